r"""Why the time of a solution is what it is: prices of links, and what proves the bound.

The time T of a collective under capacities c is convex in c and halves when all capacities double. The duals of the
capacities, which prove the bound, are lengths of links; scaled so that

.. math:: \sum_a c_a \, p_a = -T ,

they are the derivatives :math:`p_a = \partial T / \partial c_a \le 0` at an optimum (one of several where the duals are
not unique), and for any other capacities c' :math:`T(c') \ge T + \sum_a p_a (c'_a - c_a)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.rendering import Listing, Printed, frame_rows, number
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.flow_bounds import cut_value
from opticoll.formulations.model import is_own
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, TIME, arc_names
from opticoll.instances import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from opticoll.analysis.result.result import Result
    from opticoll.formulations.model import Bound
    from opticoll.instances.topology import F64, Mask
    from opticoll.types import Json

#: Prices below this share of the largest one are rounding.
NOTHING = 1e-9
#: Number of vertices and links that are printed.
SHOWN = 12
#: Relative difference up to which a cut counts as the bound.
SAME = 1e-6


def network(result: Result) -> Topology | None:
    """The topology whose links carry a solution; None without one."""
    instance = None if result.plan is None else result.plan.instance
    return instance if isinstance(instance, Topology) else None


def cut_of(result: Result) -> Bound | None:
    """The bound that proves T, if it is that of the capacity of some links, ``detail["links"]``; None otherwise."""
    best = next((one for one in result.bounds or () if one.name == result.record.bound_source), None)
    if best is None or "links" not in best.detail or result.T is None:
        return None
    return best if abs(best.value - result.T) <= SAME * result.T else None


def lengths_of(result: Result) -> F64 | None:
    """The lengths of links that prove the bound, ``(m,)``; None if it rests on others.

    They are the duals of the capacities, or those of a cut: the inverse of its capacity on its links, and 0 elsewhere.
    """
    topology, duals, cut = network(result), result.duals, cut_of(result)
    if topology is not None and not duals and cut is not None:
        links = np.array(cut.detail["links"], dtype=int)
        return np.isin(np.arange(topology.arcs), links) / topology.capacity[links].sum()
    if topology is None or not duals or "capacity" not in duals:
        return None
    lengths = np.abs(np.asarray(duals["capacity"], dtype=float))
    if not lengths.ndim or lengths.shape[0] != topology.arcs or not np.isfinite(lengths).all():
        return None
    return lengths.reshape(lengths.shape[0], -1).sum(axis=1)


def prices(result: Result) -> F64 | None:
    """dT/dc of every link [shards / link bandwidth²], ``(m,)``; None where no duals prove T, as in integer programs.

    Where nothing but capacities limits the flow, F = sum c y for the duals y, and so dT/dc = -T y / (sum c y). So it is
    for the lengths y of a cut, where a method returns no duals. A model that was changed by hand has none, since its
    other rows may hold a part of the price, or capacities too.
    """
    time, lengths, topology = result.T, lengths_of(result), network(result)
    if time is None or lengths is None or topology is None or result.bound is None:
        return None
    problem = result._planned.problem
    offered = float(topology.capacity @ lengths)
    kept = np.where(lengths > NOTHING * lengths.max(), lengths, 0.0)
    alone = problem.concurrent and abs(offered - result.bound) <= SAME * abs(result.bound)
    if not offered > 0 or (is_own(problem) and result.duals and not alone):
        return None
    return -time * kept / offered + 0.0


# bottleneck -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Bottleneck(Printed):
    """What proves that T cannot be less.

    Attributes
    ----------
    kind
        ``"cut"``: the capacity out of one side; ``"lengths"``: lengths of links, over which all data have to travel;
        otherwise the name of the bound; None if nothing can be said, for the ``reason``.
    reason
        The proof in words.
    links
        The links with a price, the dearest first: ``src``, ``dst``, ``capacity``, ``load``, ``utilisation``, ``price``;
        None where the formulation states no load of links.
    sides
        Names of the vertices on the two sides of the cut; None if it is none.
    lengths
        Length of every link of the proof, by name; None if it needs none.
    """

    kind: str | None
    reason: str
    links: pd.DataFrame | None = None
    sides: tuple[list[str], list[str]] | None = None
    lengths: Mapping[str, float] | None = None

    def lines(self) -> dict[str, str]:
        """What is found, in words, by name of the line."""
        lines = {"kind": number(self.kind), "reason": self.reason}
        lines |= {side: _names(names, SHOWN) for side, names in zip(("from", "to"), self.sides or (), strict=False)}
        return lines if self.lengths is None else {**lines, "lengths": lengths_line(self.lengths)}

    def tables(self) -> list[Listing]:
        """The links with a price."""
        links = [] if self.links is None else frame_rows(self.links.reset_index())
        if not links:
            return []
        shown = [{name: number(value, 6) for name, value in link.items()} for link in links[:SHOWN]]
        columns = [name for name in shown[0] if name not in {"src", "dst"}]
        return [Listing(f"links with a price: {len(links)}", columns, shown)]

    def document(self) -> dict[str, Json]:
        """What is found, as ``opticoll solve --why --json`` prints it."""
        found: dict[str, Json] = {"kind": self.kind, "reason": self.reason}
        if self.links is not None:
            found["sides"] = None if self.sides is None else {"from": self.sides[0], "to": self.sides[1]}
            found["links"] = frame_rows(self.links.reset_index())
        return found if self.lengths is None else {**found, "lengths": dict(self.lengths)}

    _title = "bottleneck"


def lengths_line(lengths: Mapping[str, float]) -> str:
    """Lengths of links on one line, the greatest first, without those that are nothing beside it."""
    least = NOTHING * max(lengths.values(), default=0.0)
    far = sorted((one for one in lengths.items() if one[1] > least), key=lambda one: -one[1])
    rest = "" if len(far) == len(lengths) else "; 0 for all others"
    return _names([f"{name}: {length:.6g}" for name, length in far]) + rest


def _names(names: list[str], most: int = 8) -> str:
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def bottleneck(result: Result) -> Bottleneck:
    """What the bound of a result rests on, and the links that a price says are too slow.

    Raises
    ------
    BadInput
        If solutions of the formulation put no load on links.
    """
    loads = result.link_loads()
    known = "price" in loads
    binding = loads[loads["price"] < 0].sort_values("price", kind="stable") if known else loads.iloc[:0]
    plan, lengths = result.solved()[0], lengths_of(result)
    problem = plan.problem
    flow = getattr(problem, "flow", None)
    if lengths is not None and known and isinstance(flow, ConcurrentFlow):
        side, value = best_cut(flow, lengths)
        F = result.metrics.get("F")
        if side is not None and isinstance(F, int | float) and abs(value - F) <= SAME * F:
            names = np.array(flow.topology.labels, dtype=object)
            crossing = side[flow.topology.tail] & ~side[flow.topology.head]
            capacity, scale = float(flow.topology.capacity[crossing].sum()), result.scale
            reason = (
                f"{number(capacity)} of capacity{scale.beside(capacity, BANDWIDTHS)} leads out of {int(side.sum())} "
                f"vertices, and {number(capacity / value)} shards{scale.beside(capacity / value, SHARDS)} have to: "
                f"T >= {number(1 / value)}{scale.beside(1 / value, TIME)}"
            )
            return Bottleneck("cut", reason, binding, (names[side].tolist(), names[~side].tolist()))
    cut = cut_of(result) if known and not result.duals else None
    if cut is not None:
        names, sides = np.array(result.links.topology.labels, dtype=object), None
        if "inside" in cut.detail:
            held = np.isin(np.arange(names.size), np.asarray(cut.detail["inside"], dtype=int))
            sides = names[held].tolist(), names[~held].tolist()
        reason = f"{cut.reason}: T >= {number(cut.value)}{result.scale.beside(cut.value, TIME)}"
        return Bottleneck(cut.name if sides is None else "cut", reason, binding, sides)
    if lengths is not None and known:
        named = dict(zip(arc_names(result.links.topology), lengths.tolist(), strict=True))
        reason = (
            f"with the lengths below, all data need at least {number(result.T)} times the sum of capacity times "
            f"length: T >= {number(result.T)}{result.scale.beside(result.T, TIME)}"
        )
        return Bottleneck("lengths", reason, binding, lengths=named)
    return resting_on_bound(result, binding)


def resting_on_bound(result: Result, links: pd.DataFrame) -> Bottleneck:
    """The bound that proves most, in its own words, or by the rows that have a dual."""
    row = next((row for row in result.bound_rows() if row["name"] == result.record.bound_source), None)
    if row is not None:
        reason = row["reason"]
    elif result.bound is None:
        reason = "no bound is known"
    else:
        timed = isinstance(result.metrics.get("T"), int | float) and result.metrics["T"] == result.value
        reason = f"bound {number(result.bound)}{result.scale.beside(result.bound, TIME) if timed else ''}"
        if result.duals:
            largest = {name: np.abs(dual).max(initial=0.0) for name, dual in result.duals.items()}
            priced = [name for name, size in largest.items() if size > NOTHING * max(largest.values())]
            reason += f" by the duals of the rows {', '.join(priced)}"
    return Bottleneck(result.record.bound_source, reason, links)


def best_cut(flow: ConcurrentFlow, lengths: F64) -> tuple[Mask | None, float]:
    """The tightest cut among single ranks and the sets that links of length 0 connect, and its bound on F.

    Returns
    -------
    The vertices on the side that sends, ``(n,)``, or None without a cut; and capacity out of it over demand out of it.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    topology = flow.topology
    free = lengths <= NOTHING * lengths.max(initial=0.0)
    shape = (topology.n, topology.n)
    graph = csr_array((np.ones(int(free.sum())), (topology.tail[free], topology.head[free])), shape=shape)
    sides = {}
    for start in topology.terminals.tolist():
        for one in (graph, graph.T.tocsr()):
            side = np.zeros(topology.n, dtype=bool)
            side[breadth_first_order(one, start, return_predecessors=False)] = True
            alone = np.arange(topology.n) == start
            for mask in (side, ~side, alone, ~alone):
                sides[mask.tobytes()] = mask
    best: tuple[Mask | None, float] = (None, np.inf)
    for side in sides.values():
        if side[topology.terminals].any() and not side[topology.terminals].all():
            with np.errstate(divide="ignore", invalid="ignore"):
                value = cut_value(flow, side)
            if value < best[1]:
                best = (side, value)
    return best
