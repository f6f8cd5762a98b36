"""Data of ``topology.sequence``: what it refuses, circuits at the start, and how many configurations it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.topology import sequence_bounds
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.instances.topology import F64, I64

#: Maximum number of configurations.
MOST_CONFIGURATIONS = 64


def refuse_without_delay(where: str, *, charge: str, overlap: bool, chosen: bool) -> None:
    """Refuse what has no meaning if changes take no time."""
    needing = {"charge=changed": charge == "changed", "overlap=true": overlap, "configurations=0": chosen}
    for word, stated in needing.items():
        if stated:
            msg = f"{where}: {word} means something only where a change takes time; give delay= greater than 0"
            raise NotApplicable(msg)


def standing_circuits(where: str, start: object, n: int, degree: int, *, directed: bool, most: int) -> I64:
    """Circuits of the topology at the start, ``(n, n)``.

    Raises
    ------
    NotApplicable
        If it is no topology of these nodes and ports.
    """
    if not isinstance(start, Topology) or start.n != n or start.num_ranks != n or (start.capacity != 1).any():
        msg = f"{where}: start must be a topology of {n} nodes with links of capacity 1, such as ring:{n}"
        raise NotApplicable(msg)
    counts = np.zeros((n, n), dtype=np.int64)
    np.add.at(counts, (start.tail, start.head), 1)
    if max(counts.sum(axis=0).max(), counts.sum(axis=1).max()) > degree or counts.max() > most:
        limits = f"at a node than {degree} ports, or between two nodes than {most}"
        refuse(where, f"start={start.spec} has more links {limits}", NotApplicable)
    if not directed and (counts != counts.T).any():
        refuse(where, f"start={start.spec} has one-way links; add directed=true", NotApplicable)
    return counts


def of_nodes(
    cls: type[TopologySequence],
    n: int,
    degree: int,
    configurations: int,
    *,
    demand: F64 | None = None,
    delay: float = 0.0,
    directed: bool = False,
    start: object = None,
    relays: str = "pass",
    charge: str = "any",
    overlap: bool = False,
    parallel: int = 0,
    startup: float = 0.0,
) -> TopologySequence:
    """Prepare the data of the model for n nodes of the given degree.

    Parameters
    ----------
    n, degree
        Number of nodes, and of circuits out of and into each.
    configurations
        Number of configurations; 0 to choose it.
    demand
        Shards from every node to every other, ``(n, n)``; None for one each.
    start
        Topology that stands at the start, as an instance; None for any.
    delay, directed, relays, charge, overlap, parallel, startup
        As the parameters of the formulation; times in shards / link bandwidth.

    Raises
    ------
    NotApplicable
        If the parameters are out of range or exclude each other.
    """
    if n < 2 or not 0 <= configurations <= MOST_CONFIGURATIONS or parallel < 0:
        msg = (
            f"{cls.name}: {n} nodes, {configurations} configurations, {parallel} parallel circuits: give at least 2 "
            f"nodes, 0 to {MOST_CONFIGURATIONS} configurations, and 0 or more parallel circuits"
        )
        raise NotApplicable(msg)
    if delay == 0:
        refuse_without_delay(cls.name, charge=charge, overlap=overlap, chosen=configurations == 0 and startup == 0)
    if configurations == 0 and relays == "step":
        msg = f"{cls.name}: with relays=step, circuits may stay for any number of configurations; give configurations="
        raise NotApplicable(msg)
    amounts = np.ones((n, n)) - np.eye(n) if demand is None else np.asarray(demand, dtype=float)
    standing = (
        None
        if start is None
        else standing_circuits(cls.name, start, n, degree, directed=directed, most=parallel or degree)
    )
    chosen = configurations == 0
    data = cls(
        n,
        degree,
        configurations or 1,
        amounts,
        delay,
        directed,
        standing,
        relays,
        "changed" if chosen else charge,
        overlap,
        min(parallel or degree, degree),
        chosen,
        startup,
    )
    if chosen:
        most = sequence_bounds.most_useful(data)
        if most > MOST_CONFIGURATIONS:
            msg = (
                f"{cls.name}: at delay={delay:g}, {most} configurations may pay; give configurations= up to "
                f"{MOST_CONFIGURATIONS}"
            )
            raise NotApplicable(msg)
        object.__setattr__(data, "configurations", most)
    return data
