"""What every concurrent flow has beside its builds: the checker, a repair, the rows without a modelling layer, figures.

Functions of the data (:class:`~opticoll.formulations.flows.concurrent_flow.ConcurrentFlow`) get the flow, or its name
in the formulation; functions of a formulation, ``problem``, are its methods.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.declared_axes import axes_arrays
from opticoll.formulations.flows.concurrent_flow import blocks_of_rows
from opticoll.formulations.flows.flow_bounds import BOUNDS, closed_forms
from opticoll.formulations.flows.symmetric_flow import SymmetricFlow, total
from opticoll.formulations.model import Bound
from opticoll.formulations.rounds.segments import offsets
from opticoll.formulations.standard_form import Columns, StandardForm, blocks
from opticoll.formulations.variables import BANDWIDTHS, Axis, Links, pair_axis, vertex_axis

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from fractions import Fraction

    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.formulations.model import Changeable
    from opticoll.formulations.variables import Array
    from opticoll.instances.topology import F64, Topology
    from opticoll.types import Json


def flow_residuals(data: ConcurrentFlow, given: F64 | SymmetricFlow, F: F64 | float) -> dict[str, float]:
    """Worst violation of every block of a flow x, ``(m, |K|)``, of value F, from numpy alone.

    ``nonnegative``, ``blocked`` and ``capacity`` are relative to the arc's own capacity, or to F times the smallest
    positive demand where that is more; ``balance`` to the amount that the vertex must receive, F D_uk, or F times the
    smallest positive demand of the group where D_uk = 0: scaling all capacities, or all demands, leaves every number
    unchanged.

    A :class:`~opticoll.formulations.flows.symmetric_flow.SymmetricFlow` is checked on one group of each orbit, after
    its automorphisms.
    """
    F, (m, n), chosen = float(np.asarray(F)), (data.topology.arcs, data.topology.n), None
    if isinstance(given, SymmetricFlow):
        if not given.relates(data):
            return dict.fromkeys(("symmetry", "nonnegative", "blocked", "balance", "capacity"), np.inf)
        chosen = given.trees.root
    x = np.asarray(given.entries if isinstance(given, SymmetricFlow) else given, dtype=float)
    groups = data.groups if chosen is None else chosen.size
    load = np.zeros(m)
    usable = data.capacity[data.capacity > 0]
    unit = float(usable.min()) if usable.size else np.finfo(float).tiny
    smallest, mean = data.amount_range
    # Relative to the largest capacity, a thin arc next to a thick one could carry many times its own.
    size = np.maximum(data.capacity, max(abs(F) * smallest, unit))
    least = most = missing = 0.0
    for batch in blocks_of_rows(groups, max(n, m)):
        part = np.ascontiguousarray(x[:, batch])
        which = batch if chosen is None else chosen[batch]
        load += part.sum(axis=1)
        least = min(least, float((part.min(axis=1, initial=0.0) / size).min(initial=0.0)))
        stray = np.where(data.blocked_of(which), np.abs(part), 0.0).max(axis=1, initial=0.0)
        most = max(most, float((stray / size).max(initial=0.0)))
        demand = data.demand_of(which)
        short = F * demand - data.topology.net(part)
        if data.equality:
            np.abs(short, out=short)
        short[~data.served_of(which)] = 0.0
        short /= demand_units(demand)
        missing = max(missing, float(short.max(initial=0.0)))
    if isinstance(given, SymmetricFlow):
        load = given.load
    return {
        "nonnegative": max(-least, -F * mean / unit, 0.0),
        "blocked": most,
        "balance": missing / max(abs(F), 1e-12 * unit / max(mean, np.finfo(float).tiny)),
        "capacity": float(((load - data.capacity) / size).max(initial=0.0)),
    }


def demand_units(demand: F64) -> F64:
    """Demands by vertex and group, with 0 replaced by the smallest positive demand of the group, or by 1."""
    least = np.where(demand > 0, demand, np.inf).min(axis=0, initial=np.inf)
    return np.where(demand > 0, demand, np.where(np.isfinite(least), least, 1.0)[None, :])


def repaired_flow(data: ConcurrentFlow, values: Mapping[str, F64], name: str) -> dict[str, F64] | None:
    """An exactly feasible flow near the approximate one of a ``name``, ``(m, |K|)``, and the F that it delivers.

    Each group's flow is made acyclic, each vertex keeps only the *fractions* in which it receives over its arcs, and
    unit demands are sent back along them; the result is scaled to the capacities. It is a flow for any input; only its
    value depends on the quality of the input.

    None if no flow can be read off at all, or for a symmetric flow, which is exact before it is made.
    """
    from opticoll.formulations.flows.single_source import unit_flow

    if isinstance(values[name], SymmetricFlow):
        return None
    x = np.asarray(values[name], dtype=float)
    unit = unit_flow(data.topology, data.sources, data.demand, x)
    if unit is None:
        return None
    load = unit.sum(axis=1)
    used = load > 0
    if not used.any() or (data.capacity[used] <= 0).any():
        return None
    F = float((data.capacity[used] / load[used]).min())
    return {name: unit * F, "F": np.asarray(F)}


def flow_matrix(data: ConcurrentFlow, flow: str) -> StandardForm:
    """The program without a modelling layer, for methods that solve it often: vec(x) column-major, then F.

    ``flow`` is the name of x.
    """
    topology, m, groups, n = data.topology, data.topology.arcs, data.groups, data.topology.n
    served = data.served.T
    rows = int(np.count_nonzero(served))
    balance = np.full((groups, n), -1, dtype=np.int32)  # the row of every group and vertex, -1 without one
    balance[served] = np.arange(rows)
    k, u = np.nonzero(served)
    demand = data.demand[u, k]
    # Of every x_ak: the rows of its ends, that of the first vertex first, and of its arc.
    entries, signs = np.empty((groups, m, 3), dtype=np.int32), np.ones((m, 3))
    forward = topology.tail < topology.head
    entries[:, :, 0] = balance[:, np.minimum(topology.tail, topology.head)]
    entries[:, :, 1] = balance[:, np.maximum(topology.tail, topology.head)]
    entries[:, :, 2] = np.arange(rows, rows + m)
    signs[:, 0], signs[:, 1] = np.where(forward, -1.0, 1.0), np.where(forward, 1.0, -1.0)
    stored, needed = entries >= 0, np.flatnonzero(demand)
    A = Columns(
        np.concatenate([np.broadcast_to(signs, entries.shape)[stored], -demand[needed]]),
        np.concatenate([entries[stored], needed]),
        offsets(np.append(stored.sum(axis=2), needed.size)),
        (rows + m, m * groups + 1),
    )
    cost = np.zeros(m * groups + 1)
    cost[-1] = 1.0
    return StandardForm(
        A=A,
        row_lower=np.concatenate([np.zeros(rows), np.full(m, -np.inf)]),
        row_upper=np.concatenate([np.zeros(rows) if data.equality else np.full(rows, np.inf), data.capacity]),
        col_lower=np.zeros(cost.size),
        col_upper=np.append(np.where(data.blocked, 0.0, np.inf).ravel(order="F"), np.inf),
        cost=cost,
        sense="max",
        columns=blocks(
            {
                flow: ((m, groups), np.arange(m * groups).reshape((m, groups), order="F").ravel()),
                "F": ((), np.array([m * groups])),
            }
        ),
        rows=blocks(
            {"balance": ((n, groups), balance.T.ravel().astype(np.int64)), "capacity": ((m,), rows + np.arange(m))}
        ),
    )


# Methods of every formulation whose data are ``flow`` ----------------------------------------------------------------


class FlowProblem(Protocol):
    """A formulation whose data are a concurrent flow."""

    @property
    def variables(self) -> Mapping[str, tuple[str, ...]]:
        """Axes of the variables."""

    @property
    def constraints(self) -> Mapping[str, tuple[str, ...]]:
        """Axes of the constraints."""

    @property
    def flow(self) -> ConcurrentFlow:
        """The data."""


def certify(problem: FlowProblem, duals: Mapping[str, F64]) -> Bound | None:
    """Bound proven by the duals of ``capacity``, read as arc lengths."""
    value = problem.flow.length_bound(duals["capacity"]) if "capacity" in duals else np.inf
    if not np.isfinite(value):
        return None
    return Bound("any-lengths", value, "arc lengths from the duals of capacity, shortest paths recomputed")


def analytic_bounds(problem: FlowProblem) -> dict[str, Callable[[], Bound | None]]:
    """Bounds of distances, cuts and degrees, and the optimum that the family of the topology declares, by name."""
    known = {"closed-form": lambda: next(iter(declared_optimum(problem)), None)}
    return {**{name: partial(make, problem.flow) for name, make in BOUNDS.items()}, **known}


def declared_optimum(problem: FlowProblem) -> list[Bound]:
    """The optimum that the family of the topology declares."""
    return closed_forms(problem.flow)


def metrics(problem: FlowProblem, value: float | None) -> dict[str, Json]:
    """F, T = 1/F, the number of ranks, and :func:`demand_metrics`."""
    T = 1.0 / value if value is not None and value > 0 else None
    return {"F": value, "T": T, "ranks": problem.flow.topology.num_ranks, **demand_metrics(problem.flow)}


def arrays(problem: FlowProblem, names: Collection[str]) -> dict[str, Array]:
    """The variables, and the duals of ``capacity``, along their axes."""
    return axes_arrays(problem, "capacity")


def topology(problem: Any) -> Topology:
    """V and A."""
    return problem.flow.topology


def sets(problem: FlowProblem) -> dict[str, Axis]:
    """The groups of a flow: its sources, its pairs, or the destinations of one source."""
    flow, (_, name) = problem.flow, problem.constraints["balance"]
    return {name: group_axis(flow) if name != "destination" else vertex_axis(name, flow.topology, flow.targets)}


def group_axis(flow: ConcurrentFlow) -> Axis:
    """Groups by their source, or by their pair where each is one commodity."""
    if flow.targets is None:
        return vertex_axis("source", flow.topology, flow.sources)
    return pair_axis(flow.topology, flow.sources, flow.targets)


def changeable(problem: FlowProblem) -> Changeable:
    """The data c and D that can be changed, along the axes of ``capacity`` and ``balance``."""
    return {"c": (problem.flow.capacity, "arc"), "D": (problem.flow.demand, *problem.constraints["balance"])}


def derived(problem: FlowProblem) -> Iterable[Fraction]:
    """The demands as fractions."""
    return rounding.decimals(problem.flow.demand)


def demand_metrics(data: ConcurrentFlow) -> dict[str, Json]:
    """Total of a demand and the number of ranks that send; empty for the uniform demand."""
    if data.uniform:
        return {}
    return {"shards": float(data.demand.sum()), "sources": int(np.unique(data.sources).size)}


def links(problem: FlowProblem, values: Mapping[str, F64]) -> Links:
    """Flow over every arc, all groups together."""
    data, flow = problem.flow, values[_flow_of(problem)]
    return Links(data.topology, total(flow), data.capacity, 1.0, BANDWIDTHS, BANDWIDTHS)


def rows_alone(problem: FlowProblem) -> StandardForm:
    """The same rows without a modelling layer."""
    return flow_matrix(problem.flow, _flow_of(problem))


def repair(problem: FlowProblem, values: Mapping[str, F64]) -> dict[str, F64] | None:
    """An exactly feasible flow in the same proportions, and its F."""
    return repaired_flow(problem.flow, values, _flow_of(problem))


def _flow_of(problem: FlowProblem) -> str:
    """The name of the flow x in a formulation: its variable with axes."""
    return next(name for name, axes in problem.variables.items() if axes)
