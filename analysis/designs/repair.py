"""TopologyFinder's circuits after one of them fails, repaired: ``opticoll repair``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.rendering import Listing, Printed
from opticoll.arguments import refused
from opticoll.errors import BadInput
from opticoll.formulations.topoopt.circuit_design import server_pool
from opticoll.formulations.topoopt.topology import Wiring
from opticoll.instances import parse
from opticoll.solvers.methods.topoopt import link_repair
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder
from opticoll.solvers.task import Fields

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Most servers for which the least maximum load is computed.
MOST_SERVERS = 32


class FailureRow(Fields, frozen=True, kw_only=True):
    """Maximum loads [bytes] after a circuit has failed, by repair; None where a repair is impossible.

    ``least`` is the least maximum load over the circuits that are left, with free routes and shares of rings, and
    ``bound`` a lower bound on it; None if they were not computed, or if some traffic is left without a path.
    """

    circuit: str
    reroute: float | None
    spread: float | None
    swap: float | None
    least: float | None
    bound: float | None


class RepairRow(Fields, frozen=True, kw_only=True):
    """One repair over all failures: how many it is possible for, and its maximum load over two others.

    ``over_intact`` is relative to the design before the failure, ``over_least`` to the least maximum load over the
    circuits that are left.
    """

    repair: str
    possible: int
    median_over_intact: float | None
    worst_over_intact: float | None
    median_over_least: float | None
    worst_over_least: float | None


class Repairs(Printed, Fields, frozen=True, kw_only=True):
    """Failures of single circuits of TopologyFinder's design, and what repairs cost.

    ``load`` is the maximum load of the intact design, ``least`` the least over its circuits [bytes]. ``violation`` is
    the worst violation of the checker in any repaired design.
    """

    instance: str
    servers: int
    degree: int
    circuits: int
    load: float
    least: float | None
    violation: float
    rows: list[RepairRow]
    failures: list[FailureRow]

    @property
    def _title(self) -> str:
        return f"repairs of {self.instance}"

    def lines(self) -> dict[str, str]:
        """The loads before and after the failures, in words, by name of the line."""
        lines = {
            "failures": f"{len(self.failures)}, one at a time, of {self.circuits} circuits",
            "intact": f"{self.load:.6g} bytes over the busiest circuit",
        }
        if self.least is not None:
            after = [one.least for one in self.failures if one.least is not None]
            apart = len(self.failures) - len(after)
            parts = [f"{self.least:.6g} bytes over the same circuits"]
            parts += [f"{max(after):.6g} after the worst failure"] if after else []
            parts += [f"{apart} of the failures leave traffic without a path"] if apart else []
            lines["least"] = ", ".join(parts)
        return {**lines, "check": f"worst violation {self.violation:.2g}"}

    def tables(self) -> list[Listing]:
        """A row for every repair."""
        columns = ("median_over_intact", "worst_over_intact", "median_over_least", "worst_over_least")
        return [Listing(None, ["repair", "possible", *columns], self.rows)]


def repair(instance: Any, *, circuits: Sequence[str] = (), optimum: bool | None = None) -> Repairs:
    """Let circuits of TopologyFinder's design fail one at a time, and repair the design in every way.

    The repairs are those of method ``link-repair`` (TopoOpt, section 7): forwarding over the circuits that are left,
    moving the share of broken rings to other rings, and swapping ports with circuits that no ring uses.

    Parameters
    ----------
    instance
        A server pool with traffic, ``servers:n=..,degree=..,traffic=..``, or its spec.
    circuits
        Pairs of servers ``U-V`` whose circuit fails; every pair with a circuit if empty.
    optimum
        Whether to compute the least maximum load over the circuits that are left; by default up to 32 servers.

    Returns
    -------
    Repairs
        Loads of every failure, and their medians.

    Raises
    ------
    BadInput
        For something that is not a server pool with traffic, or a pair without a circuit.
    """
    pool = server_pool(parse(instance) if isinstance(instance, str) else instance, "repair")
    design, problem = topology_finder(pool), Wiring.prepare(pool)
    listed = isinstance(circuits, Iterable) and not isinstance(circuits, str)
    if not listed or not all(isinstance(text, str) for text in circuits):
        raise refused(circuits, "repair: circuits", "a list of pairs of servers, such as ['0-1']")
    wanted = [link_repair.parse_pair(text, design) for text in circuits] or link_repair.pairs_of(design)
    if not wanted:
        msg = f"repair: {pool.spec} has no circuits; use a pool with traffic between servers"
        raise BadInput(msg)
    exact = pool.n <= MOST_SERVERS if optimum is None else optimum
    found = link_repair.failures(problem, design, wanted, optimum=exact)
    rows = [
        FailureRow(
            circuit=f"{one.pair[0]}-{one.pair[1]}",
            reroute=one.loads["reroute"],
            spread=one.loads["spread"],
            swap=one.loads["swap"],
            least=one.least,
            bound=one.bound,
        )
        for one in found
    ]
    ways = {way: [(one.loads[way], one.least) for one in found] for way in link_repair.WAYS}
    ways["best"] = [(one.best, one.least) for one in found]
    return Repairs(
        instance=pool.spec,
        servers=pool.n,
        degree=pool.degree,
        circuits=len(design.circuits),
        load=design.max_load,
        least=link_repair.best_on(problem, design.circuits).value if exact else None,
        violation=max(one.violation for one in found),
        rows=[_row(way, pairs, design.max_load) for way, pairs in ways.items()],
        failures=rows,
    )


def _row(way: str, loads: list[tuple[float | None, float | None]], intact: float) -> RepairRow:
    """The row of a repair from its load and the least load of every failure."""
    before = [load / intact for load, _ in loads if load is not None]
    least = [load / best for load, best in loads if load is not None and best is not None]
    return RepairRow(
        repair=way,
        possible=len(before),
        median_over_intact=float(np.median(before)) if before else None,
        worst_over_intact=max(before, default=None),
        median_over_least=float(np.median(least)) if least else None,
        worst_over_least=max(least, default=None),
    )
