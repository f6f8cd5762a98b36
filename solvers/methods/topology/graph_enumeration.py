r"""All topologies of given degree on few nodes that distances do not exclude, up to the order of their nodes.

They are generated node by node (:mod:`opticoll.instances.enumeration`). A topology with sum of distances S and C links
has T >= S / C. In a partial topology, at most those nodes are within h hops of a node that it reaches over decided
links, and as many others as undecided links may lead to. So the sum over h of the nodes that remain is a lower bound on
its sum of distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import sum_of
from opticoll.instances.enumeration import wirings
from opticoll.instances.topology import Topology
from opticoll.solvers.methods.topology.minimum_load import CLOSED, least_load, with_distances

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opticoll.formulations.topology.design import Design
    from opticoll.instances.topology import I64, Mask

#: Nodes above which topologies are not enumerated.
MOST_ENUMERATED = 24
#: Relative round-off of the bounds that exclude a topology: sums of at most a few thousand positive terms.
ROUND_OFF = 1e-12


@compiled()
def least_sums(links: Mask, decided: int, degree: int, directed: bool) -> I64:
    """Lower bounds on the sum of distances from every node in any completion, ``(n,)``; n^2 if one is not reached.

    Parameters
    ----------
    links
        Whether there is a link, so far, ``(n, n)``.
    decided
        All links of the nodes with smaller numbers are decided.
    """
    n = len(links)
    result, depth, queue = np.zeros(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    spare = np.zeros(n, np.int64)
    for v in range(decided, n):
        spare[v] = degree - sum_of(links[v])
    onward = degree if directed else degree - 1
    for s in range(n):
        depth[:] = -1
        depth[s], queue[0], first, last = 0, s, 0, 1
        nodes, wild, hops = 1, 0, 0
        while nodes < n:
            result[s] += n - nodes
            grown, end = wild * onward, last
            while first < end:
                u = queue[first]
                first += 1
                grown += spare[u]
                for v in range(n):
                    if links[u, v] and depth[v] < 0:
                        depth[v] = hops + 1
                        queue[last] = v
                        last += 1
            hops += 1
            wild = min(grown, n)
            if wild == 0 and last == end:
                result[s] = n * n
                break
            nodes += last - end + wild
    return result


def topologies(data: Design, excluded: Callable[[int, int], bool], tick: Callable[[], object]) -> Iterator[Mask]:
    """Links ``(n, n)`` of the topologies that are not excluded, one of each isomorphism class.

    Parameters
    ----------
    data
        Nodes and degree; racks are not supported.
    excluded
        Whether to leave out topologies with at least this sum of distances and at most this number of links.
    tick
        Called for every partial topology; ends the enumeration by raising.
    """

    def wanted(links: Mask, decided: int, lacking: int) -> bool:
        tick()
        sums = least_sums(links, decided, data.degree, data.directed)
        return not excluded(int(sums.sum()), min(data.most_links, data.n * data.degree - lacking))

    return wirings(data.n, data.degree, directed=data.directed, wanted=wanted)


class TooMany(Exception):
    """More partial topologies than allowed."""


@dataclass
class Exclusion:
    """Proof that no topology is faster than the best known, at time ``best``: its tolerance, and what was found.

    ``least`` is a lower bound on the time of every topology once :meth:`run` has ended.
    """

    data: Design
    best: float
    tol: float
    most: int
    least: float = np.inf
    partial: int = 0
    whole: int = 0

    def run(self, improved: Callable[[Topology], tuple[float, float]], tick: Callable[[], object]) -> bool:
        """Enumerate topologies; False if there are too many.

        ``improved`` is called with every topology that may be faster, and returns a lower bound on its time, and the
        best time known then.
        """
        demand = 1.0 - np.eye(self.data.n)
        lengths = np.ones_like(demand)

        def count() -> None:
            tick()
            self.partial += 1
            if self.partial > self.most:
                raise TooMany

        try:
            for links in topologies(self.data, self._excluded, count):
                self.whole += 1
                trial = lengths.copy()
                bound, time = least_load(links.astype(np.int64), demand, trial, self.target)
                if bound < min(self.target, time * (1 - CLOSED)):  # it ended early: once more, without a target
                    trial = np.ones_like(demand)
                    bound, _ = least_load(links.astype(np.int64), demand, trial, np.inf)
                bound *= 1 - ROUND_OFF
                if bound >= self.target:
                    if np.isfinite(bound):  # the next topology is often similar
                        lengths = trial
                        with_distances(links.astype(np.int64), lengths)
                    continue
                proven, best = improved(Topology(self.data.n, *np.nonzero(links)))
                self.best, self.least = min(self.best, best), min(self.least, max(bound, proven))
        except TooMany:
            return False
        self.least = min(self.least, self.target)
        return True

    @property
    def target(self) -> float:
        """Time from which a topology is not needed."""
        return self.best * (1 - 0.5 * self.tol)

    def _excluded(self, hops: int, links: int) -> bool:
        return hops * (1 - ROUND_OFF) >= self.target * links
