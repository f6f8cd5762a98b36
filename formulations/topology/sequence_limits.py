"""What ``topology.sequence`` refuses: parameters out of range, and starts that are no topology of the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import NotApplicable
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from opticoll.instances.topology import I64


def refuse_times(where: str, delay: float, startup: float) -> None:
    """Refuse times that are negative or infinite."""
    for name, time in (("delay", delay), ("startup", startup)):
        if not 0 <= time < np.inf:
            msg = f"{where}: {name}={time} must be finite and nonnegative"
            raise NotApplicable(msg)


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
        msg = f"{where}: start={start.spec} has more links {limits}"
        raise NotApplicable(msg)
    if not directed and (counts != counts.T).any():
        msg = f"{where}: start={start.spec} has one-way links; add directed=true"
        raise NotApplicable(msg)
    return counts
