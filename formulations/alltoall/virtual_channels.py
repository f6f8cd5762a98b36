r"""Fewest layers of virtual channels for given routes such that no dependency cycle remains.

Source  all-to-all paper, Appendix D.1, which states the problem and heuristics; the program is ours. Dally & Seitz,
        IEEE Trans. Computers 36(5), 1987; fewest layers: Domke, Hoefler & Nagel, IPDPS 2011 (NP-hard)
Sets    r in R routes, one per pair of ranks; a in A arcs (channels); l in 1..L layers (virtual channels of every arc);
        e = (a,b) in E dependencies: some route uses b right after a; E_r those of route r
Data    the routes, from a solution of ``alltoall.min-congestion`` over the path set ``paths`` (all paths by default),
        solved by the method ``routes``; L = ``layers``
Vars    y_rl in {0,1} route r uses layer l, (|R|, L); w_el in {0,1} dependency e occurs in layer l, (|E|, L);
        z_l in {0,1} layer l is used, (L,); u_al in {0..m-1} position of a in an order of layer l, for arcs of
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
suits small instances; the heuristics of D.1 are methods. The checker reads only y: ``acyclic`` stands for ``occur`` and
``order``. The objective counts the layers in use, so ``use`` has no block; ``symmetry`` only removes equal solutions.
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
from opticoll.formulations.flows.path_sets import rule_parameters
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, NeededSolution, PyomoModel
from opticoll.formulations.parameters import Parameter

if TYPE_CHECKING:
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
        Parameter("layers", int, default=8, help="layers (virtual channels) available", least=1),
        Parameter(
            "routes",
            str,
            default="exact-routing",
            help="method of alltoall.min-congestion that finds the routes",
            choices=("exact-routing", "sssp", "lp-rounding"),
        ),
        *rule_parameters("all"),
    )
    _needs = NeededSolution(ChosenPaths.name, method="routes", passed_on=("paths", "k", "lmax"))
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
    _beside = (virtual_channels_solution,)

    topology: Topology
    routes: PathSet | None
    layers: int
    known_routes = property(virtual_channels_solution.known_routes)

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any], needed: Values | None = None) -> Self:
        """The problem for ``needed``, the values of a solution of ``alltoall.min-congestion``."""
        rule = {name: given[name] for name in cls._needs.passed_on}
        routing = ChosenPaths.prepare(instance, rule).routing
        return cls(routing.topology, None if needed is None else chosen_paths(routing, needed), given["layers"])

    @cached_property
    def dependencies(self) -> Dependencies:
        """E."""
        return Dependencies(self.known_routes)

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        import cvxpy as cp

        b, m = Cvx(self), self.topology.arcs
        (route, e), (first, second) = self.dependencies.uses, self.dependencies.pairs.T
        R = Index.grid(route=self.known_routes.paths)
        E = Index.table("dependency", {"dependency": np.arange(first.size), "a": first, "b": second})
        uses = Index.table("occurrence", {"occurrence": np.arange(e.size), "route": route, "dependency": e})
        y, z = b.var("y", upper=1, integer=True), b.var("z", upper=1, integer=True)
        b.row("assign", cp.sum(y, axis=1) == 1)
        b.row("use", np.ones((len(R), 1)) @ cp.reshape(z, (1, self.layers), order="C") >= y)
        if len(E):
            A = Index.table("arc", {"arc": np.unique(self.dependencies.pairs)})
            placed = A.join(Index.grid(layer=self.layers)).keyed("arc layer")
            w, u = b.var("w", upper=1, integer=True), b.var("u", upper=m - 1, integer=True, over=placed)
            u = cp.reshape(u, (len(A), self.layers), order="C")
            b.row("occur", uses.of(E, dependency="dependency") @ w >= uses.of(R, route="route") @ y)
            b.row("order", (E.of(A, arc="b") - E.of(A, arc="a")) @ u >= 1 - m * (1 - w))
        if self.layers > 1:
            b.row("symmetry", z[:-1] >= z[1:])
        return b.minimize(cp.sum(z))

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: r is a pair of ranks (s,t), e of arcs (a,b)."""
        b = Pyo(self)
        A, R, L = b.sets("arc", "route", "layer")
        follows = {r: list(pairwise([A[a] for a in self.known_routes.path(i)])) for i, r in enumerate(R)}
        E, m = {e for pairs in follows.values() for e in pairs}, len(A)
        used = {arc for e in E for arc in e}
        y, z = b.var("y", upper=1, integer=True), b.var("z", upper=1, integer=True)
        w = b.var("w", upper=1, integer=True, over=[(*e, layer) for e in E for layer in L])
        u = b.var("u", upper=m - 1, integer=True, where=lambda a, layer: a in used)

        def order(first: str, second: str, layer: int) -> Any:
            return u[second, layer] - u[first, layer] >= 1 - m * (1 - w[first, second, layer])

        b.row("assign", lambda s, t: b.sum(y[s, t, layer] for layer in L) == 1)
        b.row(
            "occur",
            lambda s, t, first, second, layer: w[first, second, layer] >= y[s, t, layer],
            over=[(*r, *e, layer) for r in R for e in follows[r] for layer in L],
        )
        b.row("use", lambda s, t, layer: z[layer] >= y[s, t, layer])
        b.row("order", order, over=[(*e, layer) for e in E for layer in L])
        b.row("symmetry", lambda layer: z[layer] >= z[layer + 1])
        return b.minimize(b.sum(z[layer] for layer in L))

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation, from y alone: binary, one layer per route, and infinity if some layer has a cycle."""
        y, layer = np.asarray(values["y"], dtype=float), layers_of(self, values)
        of, arcs = self.dependencies, self.topology.arcs
        cyclic = any(not acyclic(arcs, of.pairs[of.of_paths(layer == i)]) for i in np.unique(layer).tolist())
        return {
            "binary": float(np.minimum(np.abs(y), np.abs(y - 1.0)).max(initial=0.0)),
            "assign": float(np.abs(y.sum(axis=1) - 1.0).max(initial=0.0)),
            "acyclic": np.inf if cyclic else 0.0,
        }

    def objective(self, values: Values) -> float:
        """Number of layers in use."""
        return float(np.unique(layers_of(self, values)).size)


FORMULATION = LayeredRoutes
