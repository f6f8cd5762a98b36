r"""Fewest layers of virtual channels for given routes such that no dependency cycle remains.

Source  all-to-all paper, Appendix D.1; Dally & Seitz, IEEE Trans. Computers 36(5), 1987; fewest layers: Domke,
        Hoefler & Nagel, IPDPS 2011 (NP-hard)
Sets    r in R routes, one per pair of ranks; a in A arcs (channels); l in 1..L layers (virtual channels of every arc);
        e = (a,b) in E dependencies: some route uses b right after a; E_r those of route r
Data    the routes, from a solution of ``alltoall.min-congestion`` over its default path set (solved by the
        method ``routes``); L = ``layers``
Vars    y_rl in {0,1} route r uses layer l, (|R|, L); w_el in {0,1} dependency e occurs in layer l, (|E|, L);
        z_l in {0,1} layer l is used, (L,); u_al in [0, m-1] position of a in an order of layer l, for arcs of
        some dependency, (m, L)

min sum_l z_l  s.t.
    assign[r]      sum_l y_rl = 1
    occur[r,e,l]   w_el >= y_rl                                for e in E_r
    use[r,l]       z_l >= y_rl
    order[e,l]     u_bl - u_al >= 1 - m (1 - w_el)             for e = (a,b) in E
    symmetry[l]    z_l >= z_{l+1}                              l < L

Such an order exists if and only if a layer has no dependency cycle (m is the smallest valid constant, since positions
lie in 0..m-1). Wormhole routing over acyclic layers is deadlock-free (Dally & Seitz).

Bounds: 1, and 2 if the dependencies of all routes have a cycle. The model has |R| L + |E| L + m L + L variables and
suits small instances; the heuristics of D.1 are methods. The checker reads only y and searches for cycles itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations.alltoall import virtual_channels_solution
from opticoll.formulations.alltoall.dependencies import Dependencies, acyclic
from opticoll.formulations.alltoall.min_congestion import ChosenPaths
from opticoll.formulations.alltoall.virtual_channels_solution import layers_of
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows.path_flow import chosen_paths
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, NeededSolution, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.variables import Axis, listed_axis, pair_names, path_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.model import Values
    from opticoll.instances.topology import Topology


@dataclass(frozen=True, eq=False)
class LayeredRoutes(Formulation):
    """The problem for given routes (None before they are known)."""

    name = "alltoall.virtual-channels"
    where = "App. D.1"
    problem = "MILP"
    parameters = (
        Parameter("layers", int, default=4, help="layers (virtual channels) available", least=1),
        Parameter(
            "routes",
            str,
            default="exact-routing",
            help="method of alltoall.min-congestion that finds the routes",
            choices=("exact-routing", "sssp", "lp-rounding"),
        ),
    )
    needs = NeededSolution(ChosenPaths.name, method="routes")
    meaning = "layers of virtual channels, for routes of a shard each"
    variables: ClassVar = {
        "y": ("route", "layer"),
        "w": ("dependency", "layer"),
        "z": ("layer",),
        "u": ("arc", "layer"),
    }
    constraints: ClassVar = {
        "assign": ("route",),
        "occur": ("occurrence", "layer"),
        "use": ("route", "layer"),
        "order": ("dependency", "layer"),
        "symmetry": ("lower",),
    }

    topology: Topology
    routes: PathSet | None
    layers: int

    @cached_property
    def known_routes(self) -> PathSet:
        """The routes; refused before they are known."""
        if self.routes is None:
            msg = f"{self.name}: layers are assigned to routes; solve alltoall.min-congestion first and pass its values"
            raise NotApplicable(msg)
        return self.routes

    @cached_property
    def dependencies(self) -> Dependencies:
        """E."""
        return Dependencies(self.known_routes)

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any], needed: Values | None = None) -> Self:
        """The problem for ``needed``, the values of a solution of ``alltoall.min-congestion``."""
        routing = ChosenPaths.prepare(instance, {}).routing
        layers = given["layers"]
        routes = None if needed is None else chosen_paths(routing, needed)
        return cls(routing.topology, routes, layers)

    def sets(self) -> dict[str, Axis | Sequence[Any]]:
        """Routes by their pair (s,t), dependencies (a,b), their occurrences (s,t,a,b), and layers from 1."""
        routes, L, E = self.known_routes, range(1, self.layers + 1), self.dependencies.axis()
        owner, of = self.dependencies.uses

        def occurrences() -> list[Any]:
            return [(*route.members[r], *E.members[e]) for r, e in zip(owner.tolist(), of.tolist(), strict=True)]

        def named(_values: object) -> dict[str, list[str]]:
            known = path_names(routes)
            return {"commodity": known["commodity"], "route": known["path"]}

        route = Axis("route", routes.paths, named, lambda: pair_names(self.topology, routes.sources, routes.targets))
        uses = listed_axis("occurrence", of.size, occurrences)
        return {"route": route, "dependency": E, "occurrence": uses, "layer": L, "lower": L[:-1]}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        import cvxpy as cp

        b, m, layers = Cvx(self), self.topology.arcs, Index.grid(layer=self.layers)
        routes, (owner, of) = Index.grid(route=self.known_routes.paths), self.dependencies.uses
        first, second = self.dependencies.pairs.T
        E = (
            Index.table("dependency", {"dependency": np.arange(first.size), "a": first, "b": second})
            .join(layers)
            .keyed("dependency layer")
        )
        occurrences = Index.table("occurrence", {"occurrence": np.arange(of.size), "route": owner, "dependency": of})
        occurrences = occurrences.join(layers).keyed("occurrence layer")
        taken = Index.grid(route=len(routes), layer=self.layers)
        placed = Index.table("arc", {"arc": np.union1d(first, second)}).join(layers).keyed("arc layer")
        y, w = b.var("y", upper=1, integer=True, over=taken), b.var("w", upper=1, integer=True, over=E)
        z, u = b.var("z", upper=1, integer=True), b.var("u", upper=m - 1, over=placed)
        b.row("assign", routes.of(taken) @ y == 1)
        occurring = occurrences.of(E, dependency="dependency") @ w
        b.row("occur", occurring >= occurrences.of(taken, route="route") @ y, over=occurrences)
        b.row("use", taken.of(layers) @ z >= y, over=taken)
        b.row("order", (E.of(placed, arc="b") - E.of(placed, arc="a")) @ u >= 1 - m * (1 - w), over=E)
        if self.layers > 1:
            b.row("symmetry", z[:-1] >= z[1:])
        return b.minimize(cp.sum(z))

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: r is a pair of ranks (s,t), e of arcs (a,b)."""
        from pyomo.core import quicksum

        b, routes = Pyo(self), self.known_routes
        A, R, L = b.sets("arc", "route", "layer")
        taken = {r: [A[a] for a in routes.path(i)] for i, r in enumerate(R)}
        follows = {r: list(pairwise(arcs)) for r, arcs in taken.items()}
        E, m = {e for pairs in follows.values() for e in pairs}, len(A)
        used = {a for e in E for a in e}
        y, z = b.var("y", upper=1, integer=True), b.var("z", upper=1, integer=True)
        w = b.var("w", upper=1, integer=True, over=[(*e, i) for e in E for i in L])
        u = b.var("u", upper=m - 1, where=lambda a, i: a in used)
        b.row("assign", lambda *r: quicksum(y[(*r, i)] for i in L) == 1)
        b.row(
            "occur",
            lambda s, t, p, q, i: w[p, q, i] >= y[s, t, i],
            over=[(*r, *e, i) for r in R for e in follows[r] for i in L],
        )
        b.row("use", lambda s, t, i: z[i] >= y[s, t, i])
        b.row(
            "order", lambda p, q, i: u[q, i] - u[p, i] >= 1 - m * (1 - w[p, q, i]), over=[(*e, i) for e in E for i in L]
        )
        b.row("symmetry", lambda i: z[i] >= z[i + 1])
        return b.minimize(quicksum(z[i] for i in L))

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation, from y alone: binary, one layer per route, and infinity if some layer has a cycle."""
        y = np.asarray(values["y"], dtype=float)
        layer = layers_of(self, values)
        if layer is None:
            return dict.fromkeys(("binary", "assign", "acyclic"), np.inf)
        of, arcs = self.dependencies, self.topology.arcs
        cyclic = any(not acyclic(arcs, of.pairs[of.of_paths(layer == i)]) for i in np.unique(layer).tolist())
        return {
            "binary": float(np.minimum(np.abs(y), np.abs(y - 1.0)).max(initial=0.0)),
            "assign": float(np.abs(y.sum(axis=1) - 1.0).max(initial=0.0)),
            "acyclic": np.inf if cyclic else 0.0,
        }

    def objective(self, values: Values) -> float:
        """Number of layers in use."""
        layer = layers_of(self, values)
        return np.inf if layer is None else float(np.unique(layer).size)

    metrics = virtual_channels_solution.metrics
    links = virtual_channels_solution.links
    bounds = virtual_channels_solution.bounds
    arrays = virtual_channels_solution.arrays


FORMULATION = LayeredRoutes
