"""All-to-all schemes of papers and practice, as numbers of configurations and times, to compare with the optimum.

Every scheme takes one-way circuits, or circuits that run both ways, and one shard from every node to every other. Steps
of an index algorithm use new circuits each; a static scheme keeps its topology.

Index algorithm of radix r (Bruck et al., IEEE TPDS 8, 1997; r = 2 is Bruck's, the counts for r = 3 are those of ReTri,
arXiv 2605.26930): in step i, a node sends the shards whose distance to go, written in radix r, has a digit z > 0 at
place i over the shift z r^i. One-way circuits serve the r - 1 shifts of a step; ports that are left double some of
them, and if there are fewer ports than shifts, a step takes several configurations. With two-way circuits, r = 2 is
the exchange with the node i xor 2^i, and r = 3 has digits -1, 0, 1 and circuits to both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.designs.design import records, solved
from opticoll.analysis.designs.sequence_records import bound_on_time, routed_record
from opticoll.formulations.topology import sequence_bounds
from opticoll.formulations.topology.sequence import TopologySequence
from opticoll.instances.collective_steps import collective_steps, shared_ports
from opticoll.solvers.methods.topology.sequence_orbits import OrbitSequence, named_group
from opticoll.solvers.methods.topoopt.ring_permutations import selected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True)
class Scheme:
    """A way to do an all-to-all: its number of configurations, and their time without changes.

    ``time`` is in shards / link bandwidth, for one shard from every node to every other.
    """

    name: str
    source: str
    configurations: int
    time: float

    def value(self, delay: float) -> float:
        """Time with all changes, at a delay of each [shards / link bandwidth]."""
        return self.time + delay * (self.configurations - 1)


def serving_time(loads: Sequence[float], ports: int) -> tuple[int, float]:
    """Configurations and time of loads on different circuits: larger ones get the ports that are left over."""
    ordered = np.sort(np.asarray(loads, dtype=float))[::-1]
    each = [ordered[first : first + ports] for first in range(0, len(ordered), ports)]
    return len(each), sum(float((served / shared_ports(served, ports)).max()) for served in each)


def index_scheme(n: int, degree: int, radix: int, *, directed: bool) -> Scheme | None:
    """The index algorithm of a radix; None if two-way circuits cannot carry it."""
    if directed:
        steps = [step.amounts.tolist() for step in collective_steps(f"bruck:{radix}", n)]
        ports = degree
    elif radix == 2 and n & (n - 1) == 0:
        steps, ports = [[n / 2]] * (n.bit_length() - 1), degree
    elif radix == 3 and degree > 1:
        # a circuit to either side carries both directions
        steps, ports = [[step.amounts[0]] for step in collective_steps("retri", n)], degree // 2
    else:
        return None
    served = [serving_time(step, ports) for step in steps]
    names = {2: "index algorithm, radix 2 (Bruck)", 3: "index algorithm, radix 3 (ReTri)"}
    return Scheme(
        names.get(radix, f"index algorithm, radix {radix}"),
        "Bruck et al. 1997" if radix != 3 else "arXiv 2605.26930",
        sum(one for one, _ in served),
        sum(one for _, one in served),
    )


def ring_scheme(n: int, degree: int, *, directed: bool) -> Scheme | None:
    """TopoOpt's rings, one topology: steps by SelectPermutations, flows at their best; None if there are too few."""
    rings = degree if directed else degree // 2
    steps = selected(n, rings) if rings else ()
    generators = sorted({step % n for step in steps} | (set() if directed else {-step % n for step in steps}))
    if len(generators) != degree:
        return None
    data = TopologySequence.of_nodes(n, degree, 1, directed=directed)
    one = OrbitSequence(0, named_group(n, f"{n},1,1"), np.array([generators], dtype=np.int64))
    record = routed_record(data, one, bound_on_time(data, 1))
    return None if record is None else Scheme("rings of TopoOpt, kept", "TopoOpt, Algorithm 3", 1, record.time)


def kautz_scheme(n: int, degree: int) -> Scheme | None:
    """The generalized Kautz digraph, kept; None if its time is not known."""
    row = records().get((n, degree, True))
    T = row.genkautz if row is not None and row.genkautz is not None else None
    if T is None and degree > 1:
        T = solved(f"genkautz:n={n},d={degree}").T
    return None if T is None else Scheme("generalized Kautz digraph, kept", "all-to-all paper", 1, T)


def schemes(n: int, degree: int, *, directed: bool = False) -> Iterator[Scheme]:
    """The known schemes for so many nodes and ports."""
    if directed and (kautz := kautz_scheme(n, degree)) is not None:
        yield kautz
    if (rings := ring_scheme(n, degree, directed=directed)) is not None:
        yield rings
    for radix in (2, 3):
        if (index := index_scheme(n, degree, radix, directed=directed)) is not None:
            yield index
    rounds = len(sequence_bounds.rotation(n, 1, directed=directed))
    steps = math.ceil(rounds / degree)
    yield Scheme("direct circuits in turn", "rotation", steps, float(steps))
