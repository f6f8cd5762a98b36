r"""Exact optima of flow problems, lifted from smaller programs.

A master LP with symmetries is solved on its orbits (:mod:`opticoll.solvers.methods.flows.flow_orbits`). The flow is
lifted to all sources and the arc lengths to all arcs, with shortest distances as the other multipliers.

Everything is checked on the whole problem (:func:`opticoll.solvers.exact.exact_form.fault`): no property of the
symmetries is taken on trust.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NoSolution, refuse
from opticoll.formulations.rounding import decimal
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.exact.exact_form import ExactAnswer, ExactForm, Leaf, common

if TYPE_CHECKING:
    from opticoll.formulations import Formulation
    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.solvers.methods.flows.flow_orbits import Orbits
    from opticoll.types import Json

#: The formulation whose flow is grouped by source.
GROUPED = "alltoall.master"
#: Flow problems with fewer columns are solved as stated.
LIFTED_COLUMNS = 1000


def answer_of(
    formulation: Formulation, form: ExactForm, solve: Callable[[ExactForm], ExactAnswer]
) -> tuple[ExactAnswer, dict[str, Json]]:
    """The exact answer to a formulation's program, lifted from a smaller one if possible, and metrics of the solve.

    Raises
    ------
    NoSolution
        If it is not proven.
    """
    data: Any = formulation
    if len(form.cost) >= LIFTED_COLUMNS and formulation.name == GROUPED:
        from opticoll.solvers.methods.flows import flow_orbits

        orbits = flow_orbits.find(data.flow)
        if not orbits.trivial:
            return _on_orbits(orbits, form, solve)
    answer = solve(form)
    return answer, {"exact_nodes": len(answer.nodes)} if form.integer.any() else {}


def _on_orbits(
    orbits: Orbits, form: ExactForm, solve: Callable[[ExactForm], ExactAnswer]
) -> tuple[ExactAnswer, dict[str, Any]]:
    """The optimum of the reduced master LP, lifted: flows by the orbits, lengths by arcs, distances for the rest."""
    from opticoll.solvers.methods.flows import flow_orbits

    data, small = orbits.data, compile_model(flow_orbits.model(orbits))
    # Capacity rows have the coefficients w_r |p| / |P|: whole numbers after multiplication by |P|.
    sizes, first = orbits.arcs_in_orbit, small.A.shape[0] - orbits.arcs_in_orbit.size
    matrix = small.A.tocsr()
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    flows = (rows >= first) & (matrix.indices < matrix.shape[1] - 1)
    whole = matrix.data.copy()
    whole[flows] = np.rint(whole[flows] * sizes[rows[flows] - first])
    values = [decimal(value) for value in whole.tolist()]
    for place in np.flatnonzero((rows >= first) & ~flows).tolist():
        values[place] *= int(sizes[rows[place] - first])
    read = ExactForm.of(small)
    reduced = replace(read, values=tuple(values))
    best = solve(reduced)
    if best.objective is None or best.x is None or best.objective <= 0:
        refuse("exact", f"the program on orbits is {best.status}; nothing is proven exactly", NoSolution)
    time_ = best.objective
    column = small.columns["y"].index.reshape(small.columns["y"].shape).astype(float)
    lifted = orbits.lift(column).astype(np.int64)
    share: list[Fraction] = [value / time_ for value in best.x]
    x = [Fraction(0)] * len(form.cost)
    for place, source in zip(form.columns["g"].index.tolist(), lifted.ravel().tolist(), strict=True):
        if place >= 0 and source >= 0:
            x[place] = share[source]
    x[int(form.columns["F"].index[0])] = 1 / time_

    leaf = best.nodes[0]
    assert isinstance(leaf, Leaf)
    lengths = [-leaf.y.get(first + orbit, Fraction(0)) for orbit in orbits.arc_orbit.tolist()]
    return ExactAnswer("optimal", 1 / time_, tuple(x), (_priced(data, form, lengths),)), {
        "exact_columns": len(reduced.cost)
    }


def _priced(data: ConcurrentFlow, form: ExactForm, lengths: list[Fraction]) -> Leaf:
    """Leaf with arc lengths and shortest distances as multipliers, scaled so that the demand has price 1."""
    reach = distances(data, lengths)
    scale = sum((demand * reach[k][u] for k in range(data.groups) for u, demand in _demands(data, k)), Fraction(0))
    y: dict[int, Fraction] = {}
    balance = form.rows["balance"].index.reshape(form.rows["balance"].shape)
    for k in range(data.groups):
        for u, row in enumerate(balance[:, k].tolist()):
            if row >= 0 and reach[k][u]:
                y[row] = reach[k][u] / scale
    for a, row in enumerate(form.rows["capacity"].index.tolist()):
        if lengths[a]:
            y[row] = -lengths[a] / scale
    return Leaf(y)


def _demands(data: ConcurrentFlow, k: int) -> list[tuple[int, Fraction]]:
    return [(u, decimal(float(data.demand[u, k]))) for u in np.flatnonzero(data.demand[:, k]).tolist()]


def distances(data: ConcurrentFlow, lengths: list[Fraction]) -> list[list[Fraction]]:
    """Exact shortest distances from every source to every vertex; 0 where there is no path."""
    import networkx as nx

    whole, below = common(lengths)
    topology = data.topology
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    ends = topology.tail.tolist(), topology.head.tolist()
    graph.add_nodes_from(range(topology.n))
    graph.add_weighted_edges_from(zip(*ends, whole.tolist(), strict=True))
    reached = (nx.single_source_dijkstra_path_length(graph, source) for source in data.sources.tolist())
    return [[Fraction(int(found.get(u, 0)), below) for u in range(topology.n)] for found in reached]
