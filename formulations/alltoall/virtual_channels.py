r"""Fewest layers of virtual channels for given routes such that no cycle of dependencies remains.

Source  all-to-all paper, Appendix D.1; Dally & Seitz, IEEE Trans. Computers 36(5), 1987; fewest layers: Domke,
        Hoefler & Nagel, IPDPS 2011 (NP-hard)
Sets    r in R routes, one per pair of ranks; a in A arcs (channels); l in 1..L layers (virtual channels of every arc);
        (a,b) in E dependencies: some route takes b right after a; E_r those of route r
Data    the routes, from a solution of ``alltoall.min-congestion`` over its default path set (solved by the
        method ``routes``); L = ``layers``
Vars    y_rl in {0,1} route r uses layer l, (|R|, L); w_el in {0,1} dependency e occurs in layer l, (|E|, L);
        z_l in {0,1} layer l is used, (L,); u_al in [0, m-1] position of a in an order of layer l,
        (m, L)

min sum_l z_l  s.t.
    assign[r]      sum_l y_rl = 1
    occur[r,e,l]   w_el >= y_rl                                e in E_r
    use[r,l]       z_l >= y_rl
    order[e,l]     u_bl - u_al >= 1 - m (1 - w_el)             e = (a,b)
    symmetry[l]    z_l >= z_{l+1}

Such an order exists if and only if a layer has no cycle of dependencies (m is the smallest valid constant, as positions
lie in 0..m-1). Wormhole routing over layers without cycles is free of deadlock (Dally & Seitz).

Bounds: 1, and 2 if all routes together have a cycle. The model has |R| L + |E| L + m L + L variables and suits small
instances; the heuristics of D.1 are methods. The checker reads y alone and searches for cycles itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.alltoall import PAPER, min_congestion
from opticoll.formulations.arrays import Array
from opticoll.formulations.flows.path_flow import arc_load
from opticoll.formulations.flows.single_path import chosen_paths
from opticoll.formulations.model import Bound, Formulation, NotApplicable, Parameter, PyomoModel

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.instances.digraph import Topology

    I64 = NDArray[np.int64]

NAME = "alltoall.virtual-channels"


@dataclass(frozen=True, eq=False)
class LayeredRoutes:
    """Data of the model: the routes (None before they are known) and the number of layers."""

    topology: Topology
    routes: PathSet | None
    layers: int

    @cached_property
    def known_routes(self) -> PathSet:
        """The routes.

        Raises
        ------
        NotApplicable
            If there are none yet.
        """
        if self.routes is None:
            msg = f"{NAME}: layers are assigned to routes; solve alltoall.min-congestion first and pass its values"
            raise NotApplicable(msg)
        return self.routes

    @cached_property
    def follows(self) -> tuple[I64, I64]:
        """For every two consecutive arcs of a route: the route, and the dependency; both ``(uses,)``."""
        routes, m = self.known_routes, self.topology.arcs
        owner = np.repeat(np.arange(routes.paths), routes.length)
        inside = owner[1:] == owner[:-1]
        key = routes.arcs[:-1][inside] * m + routes.arcs[1:][inside]
        return owner[:-1][inside], np.searchsorted(self.dependency_keys, key)

    @cached_property
    def dependency_keys(self) -> I64:
        """``a m + b`` of every dependency (a,b), ascending, ``(|E|,)``."""
        routes = self.known_routes
        owner = np.repeat(np.arange(routes.paths), routes.length)
        inside = owner[1:] == owner[:-1]
        return np.unique(routes.arcs[:-1][inside] * self.topology.arcs + routes.arcs[1:][inside])

    @property
    def dependencies(self) -> I64:
        """The dependencies as pairs of arcs, ``(|E|, 2)``."""
        return np.stack(np.divmod(self.dependency_keys, self.topology.arcs), axis=1)


def prepare(
    instance: object,
    parameters: dict[str, Any] | None = None,
    needed: Mapping[str, NDArray[np.float64]] | None = None,
) -> LayeredRoutes:
    """The data of the model; ``needed`` are the values of a solution of ``alltoall.min-congestion``.

    Raises
    ------
    NotApplicable
        If the instance is not a connected topology of at least two ranks, there is no layer, or ``needed``
        is not a routing.
    """
    routing = min_congestion.prepare(instance, {})
    layers = int((parameters or {}).get("layers", 4))
    if layers < 1:
        msg = f"{NAME}: layers={layers}; a route needs at least 1"
        raise NotApplicable(msg)
    routes = None if needed is None else chosen_paths(routing, needed)
    return LayeredRoutes(routing.topology, routes, layers)


def for_routes(routes: PathSet, layers: int = 4) -> LayeredRoutes:
    """The data for given routes, one path per commodity."""
    return LayeredRoutes(routes.topology, routes, layers)


def build_pyomo(data: LayeredRoutes) -> PyomoModel:
    """The model in Pyomo, constraints named as in the docstring."""
    import pyomo.environ as pyo

    m, layers, routes = data.topology.arcs, range(data.layers), data.known_routes.paths
    pairs = data.dependencies.tolist()
    owner, used = data.follows
    occurrences = sorted({(r, e) for r, e in zip(owner.tolist(), used.tolist(), strict=True)})
    model = pyo.ConcreteModel(name="virtual channels")
    model.y = pyo.Var(range(routes), layers, domain=pyo.Binary)
    model.w = pyo.Var(range(len(pairs)), layers, domain=pyo.Binary)
    model.z = pyo.Var(layers, domain=pyo.Binary)
    model.u = pyo.Var(range(m), layers, bounds=(0, m - 1))
    model.used = pyo.Objective(expr=pyo.quicksum(model.z[i] for i in layers), sense=pyo.minimize)
    model.assign = pyo.Constraint(range(routes), rule=lambda model, r: pyo.quicksum(model.y[r, i] for i in layers) == 1)
    model.occur = pyo.Constraint(
        [(r, e, i) for r, e in occurrences for i in layers],
        rule=lambda model, r, e, i: model.w[e, i] - model.y[r, i] >= 0,
    )
    model.use = pyo.Constraint(range(routes), layers, rule=lambda model, r, i: model.z[i] - model.y[r, i] >= 0)
    model.order = pyo.Constraint(
        range(len(pairs)), layers,
        rule=lambda model, e, i: (
            model.u[pairs[e][1], i] - model.u[pairs[e][0], i] - m * model.w[e, i] >= 1 - m
        ),
    )  # fmt: skip
    model.symmetry = pyo.Constraint(range(data.layers - 1), rule=lambda model, i: model.z[i] - model.z[i + 1] >= 0)
    count = data.layers
    return PyomoModel(
        model,
        variables={"y": (routes, count), "w": (len(pairs), count), "z": (count,), "u": (m, count)},
        constraints={
            "assign": (routes,), "use": (routes, count), "order": (len(pairs), count), "symmetry": (count - 1,),
        },
    )  # fmt: skip


def estimate(data: LayeredRoutes) -> dict[str, int]:
    """Size of the model."""
    routes, count, edges = data.known_routes.paths, data.layers, data.dependency_keys.size
    occurrences = np.unique(np.stack(data.follows), axis=1).shape[1]
    return {
        "variables": count * (routes + edges + 1 + np.unique(data.dependencies).size),
        "constraints": routes + count * (occurrences + routes + edges + 1) - 1,
        "nonzeros": count * (3 * routes + 2 * occurrences + 3 * edges + 2) - 2,
        "integers": count * (routes + edges + 1),
    }


def layers_of(data: LayeredRoutes, values: Mapping[str, NDArray[np.float64]]) -> I64 | None:
    """The layer of every route, ``(|R|,)``; None if ``y`` does not assign exactly one."""
    y = np.asarray(values["y"], dtype=float)
    if y.shape != (data.known_routes.paths, data.layers) or not np.isfinite(y).all():
        return None
    return np.argmax(y, axis=1)


def acyclic(arcs: int, pairs: I64) -> bool:
    """Whether dependencies ``pairs`` ``(|E|, 2)`` among ``arcs`` channels have no cycle: sources are peeled off."""
    left = pairs
    while left.shape[0]:
        entered = np.zeros(arcs, dtype=bool)
        entered[left[:, 1]] = True
        stay = entered[left[:, 0]]
        if stay.all():
            return False
        left = left[stay]
    return True


def cyclic_layers(data: LayeredRoutes, layer: I64) -> list[int]:
    """Layers whose channel dependency graph has a cycle, for the layer of every route."""
    owner, used = data.follows
    pairs, at = data.dependencies, layer[owner]
    return [i for i in np.unique(layer).tolist() if not acyclic(data.topology.arcs, pairs[np.unique(used[at == i])])]


def arrays(data: LayeredRoutes, _names: Collection[str]) -> dict[str, Array]:
    """y, and the other variables of the program, which are optional."""
    count = data.layers
    return {
        "y": Array((data.known_routes.paths, count)),
        "w": Array((data.dependency_keys.size, count), required=False),
        "z": Array((count,), required=False),
        "u": Array((data.topology.arcs, count), required=False),
    }


def residuals(data: LayeredRoutes, values: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Worst violation, from y alone: binary, one layer per route, and infinity if some layer has a cycle."""
    y = np.asarray(values["y"], dtype=float)
    layer = layers_of(data, values)
    if layer is None:
        return dict.fromkeys(("binary", "assign", "acyclic"), np.inf)
    return {
        "binary": float(np.minimum(np.abs(y), np.abs(y - 1.0)).max(initial=0.0)),
        "assign": float(np.abs(y.sum(axis=1) - 1.0).max(initial=0.0)),
        "acyclic": np.inf if cyclic_layers(data, layer) else 0.0,
    }


def objective(data: LayeredRoutes, values: Mapping[str, NDArray[np.float64]]) -> float:
    """Number of layers in use."""
    layer = layers_of(data, values)
    return np.inf if layer is None else float(np.unique(layer).size)


def values_of(data: LayeredRoutes, layer: I64) -> dict[str, NDArray[np.float64]]:
    """The variable y for the layer of every route.

    Raises
    ------
    NotApplicable
        If there are more layers than the model has.
    """
    needed = int(layer.max(initial=0)) + 1
    if needed > data.layers:
        msg = f"{NAME}: the assignment needs {needed} layers, and layers={data.layers}; use --set layers={needed}"
        raise NotApplicable(msg)
    y = np.zeros((layer.size, data.layers))
    y[np.arange(layer.size), layer] = 1.0
    return {"y": y}


def bounds(data: LayeredRoutes) -> list[Bound]:
    """One layer, and a second where all routes in one have a cycle."""
    if acyclic(data.topology.arcs, data.dependencies):
        return [Bound("one-layer", 1.0, "every route has a layer", "alltoall")]
    return [Bound("cycle", 2.0, "all routes together have a cycle of dependencies", "alltoall")]


def metrics(data: LayeredRoutes, value: float | None) -> dict[str, float | int | None]:
    """Layers, routes and dependencies."""
    return {
        "layers": value,
        "routes": data.known_routes.paths,
        "dependencies": int(data.dependency_keys.size),
        "max_load": float(arc_load(data.known_routes, np.ones(data.known_routes.paths)).max()),
    }


FORMULATION = Formulation(
    name=NAME,
    paper=PAPER,
    where="App. D.1",
    title="Fewest virtual channels without deadlock, for given routes",
    sense="min",
    problem="MILP",
    parameters=(
        Parameter("layers", int, default=4, help="layers (virtual channels) available"),
        Parameter(
            "routes", str, default="exact-routing", help="method of alltoall.min-congestion that gives the routes",
            choices=("exact-routing", "sssp", "lp-rounding"),
        ),
    ),
    prepare=prepare,
    build={"pyomo": build_pyomo},
    residuals=residuals,
    objective=objective,
    bounds=bounds,
    arrays=arrays,
    metrics=metrics,
    estimate=estimate,
    needs="alltoall.min-congestion",
    size="(|R| + |E| + m + 1) L variables",
)  # fmt: skip
