r"""Routes and virtual channels together: least load with so many channels, or fewest channels with so much load.

Source  all-to-all paper, Appendix D.1 ("joint route-finding and VC assignment", which it leaves to future research);
        Dally & Seitz, IEEE Trans. Computers 36(5), 1987. The program is ours
Sets    a in A arcs (m); k = (s,t) in K ordered pairs of distinct ranks with demand; p in P_k paths of k, P = union of
        all P_k; l in 1..L layers (virtual channels of every arc); e = (a,b) in E dependencies: some path of P uses b
        right after a; E_p those of path p
Data    c_a > 0 capacity [link bandwidths], (m,); D_k > 0 demand of k [shards], (|K|,); D_p that of the pair of p;
        L = ``layers``; load = ``load``, the largest load allowed [shards / link bandwidth], 0 for any
Vars    y_pl in {0,1} the pair of p takes path p on layer l, (|P|, L); w_el in {0,1} dependency e occurs in layer l,
        (|E|, L); u_al in {0..m-1} position of a in an order of layer l, for arcs of some dependency, (m, L);
        ``objective=load``: Lambda in 0 .. sum_k D_k / min_a c_a largest load, integer where all capacities are 1 and
        all demands integers; ``objective=channels``: z_l in {0,1} layer l is used, (L,)

min Lambda      (``objective=load``)      or      min sum_l z_l      (``objective=channels``)      s.t.
    choose[k]       sum_{p in P_k} sum_l y_pl = 1
    congestion[a]   sum_{p through a} D_p sum_l y_pl <= c_a Lambda or c_a load        (objective=load or load > 0)
    occur[k,e,l]    sum_{p in P_k: e in E_p} y_pl <= w_el               for e on some path of k
    order[e,l]      u_bl - u_al >= 1 - m (1 - w_el)                     for e = (a,b) in E
    use[k,l]        sum_{p in P_k} y_pl <= z_l                          (objective=channels)
    symmetry[l]     z_l >= z_{l+1}      l < L                           (objective=channels)

``congestion`` is stated where some path uses a. A layer has such an order if and only if its dependencies have no cycle
(m is the smallest valid constant); wormhole routing over acyclic layers is deadlock-free (Dally & Seitz). A pair takes
one path, so ``occur`` states one row for all its paths with a dependency. The checker reads y alone: ``acyclic`` stands
for ``occur`` and ``order``, and every pair takes one path where y can be read (``choose`` is 0 then). A solution over
all simple paths may contain its routes (:mod:`~opticoll.formulations.alltoall.channels_routes`), also those of some
pairs that automorphisms move to all; it has u instead of y then, in which every route must ascend. The objective counts
the layers in use, so ``use`` has no block; ``symmetry`` only removes equal solutions.

Bounds. The load is at least that of ``alltoall.min-congestion`` over the same paths, however many layers there are, and
more where cycles of dependencies force routes to be longer (:mod:`opticoll.formulations.alltoall.layer_bounds`). That
many layers are needed whose bound of the load is at most ``load``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.alltoall import channels_bounds, channels_routes
from opticoll.formulations.alltoall.dependencies import Dependencies
from opticoll.formulations.alltoall.layer_bounds import LayerBound
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import path_flow
from opticoll.formulations.flows.concurrent_flow import demand_parameter
from opticoll.formulations.flows.path_flow import PathFlow, largest_load, named_paths, unit_capacities
from opticoll.formulations.flows.path_sets import rule_parameters
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.variables import TIME, Axis, listed_axis, path_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.model import Values

OBJECTIVES = ("load", "channels")


@dataclass(frozen=True, eq=False)
class RoutedChannels(Formulation):
    """The problem over the paths of ``routing``; ``limit`` is the largest load allowed, 0 for any."""

    name = "alltoall.channels"
    where = "App. D.1, its future work"
    example = "ring:5"
    problem = "MILP"
    parameters = (
        *rule_parameters("all"),
        Parameter("layers", int, default=2, help="layers (virtual channels) available", least=1),
        Parameter("objective", str, default="load", help="least load, or fewest layers", choices=OBJECTIVES),
        Parameter(
            "load",
            float,
            default=0.0,
            help="largest load, for objective=channels; 0 for any [shards / link]",
            least=0,
            only_with={"objective": ("channels",)},
        ),
        demand_parameter(),
    )
    meaning = "largest load [shards / link bandwidth], or layers of virtual channels"
    variables: ClassVar = {
        "y": ("path", "layer"),
        "w": ("dependency", "layer"),
        "u": ("arc", "layer"),
        "z": ("layer",),
        "Lambda": (),
    }
    constraints: ClassVar = {
        "choose": ("commodity",),
        "congestion": ("arc",),
        "occur": ("occurrence", "layer"),
        "order": ("dependency", "layer"),
        "use": ("commodity", "layer"),
        "symmetry": ("lower",),
    }
    units: ClassVar = {"Lambda": TIME}
    _beside = (channels_routes, channels_bounds)

    _derived = path_flow.derived

    routing: PathFlow
    layers: int
    chosen: str
    limit: float
    topology = property(path_flow.topology)

    @property
    def paths(self) -> PathSet:
        """The paths P."""
        return self.routing.paths

    @cached_property
    def dependencies(self) -> Dependencies:
        """E."""
        return Dependencies(self.paths)

    @cached_property
    def layer_bound(self) -> LayerBound:
        """The bound from cycles of dependencies."""
        return LayerBound(self.routing, listed=channels_routes.listed(self))

    def sets(self) -> dict[str, Axis | Sequence[Any]]:
        """Pairs, paths (s,t,i), dependencies (a,b), occurrences (s,t,a,b), and layers from 1."""
        L, E = range(1, self.layers + 1), self.dependencies.axis()
        pair, dependency, _ = self.dependencies.of_pairs
        axes = path_flow.pairs_and_paths(self)
        K, P = axes["commodity"], replace(axes["path"], names=lambda _: path_names(self.paths))

        def occurrences() -> list[Any]:
            known = zip(pair.tolist(), dependency.tolist(), strict=True)
            return [(*K.members[k], *E.members[e]) for k, e in known]

        uses = listed_axis("occurrence", pair.size, occurrences)
        return {"commodity": K, "path": P, "dependency": E, "occurrence": uses, "layer": L, "lower": L[:-1]}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        import cvxpy as cp

        b, paths, m, c = Cvx(self), self.paths, self.topology.arcs, self.topology.capacity
        layers, pairs = Index.grid(layer=self.layers), Index.grid(commodity=paths.pairs)
        D = self.routing.amount[paths.pair]
        P = Index.table("path", {"path": np.arange(paths.paths), "commodity": paths.pair})
        taken = P.join(layers).keyed("path layer")
        y = b.var("y", upper=1, integer=True, over=taken)
        b.row("choose", pairs.of(taken) @ y == 1)
        if self.dependencies.size:
            pair, of, _ = self.dependencies.of_pairs
            occurrences = Index.table(
                "occurrence", {"occurrence": np.arange(of.size), "commodity": pair, "dependency": of}
            )
            occurrences = occurrences.join(layers).keyed("occurrence layer")
            first, second = self.dependencies.pairs.T
            E = Index.table("dependency", {"dependency": np.arange(first.size), "a": first, "b": second})
            E = E.join(layers).keyed("dependency layer")
            has = Index.table("path", dict(zip(("path", "dependency"), self.dependencies.uses, strict=True)))
            placed = Index.table("arc", {"arc": np.unique(self.dependencies.pairs)}).join(layers).keyed("arc layer")
            w, u = b.var("w", upper=1, integer=True, over=E), b.var("u", upper=m - 1, integer=True, over=placed)
            having = taken.join(has)
            occurring = occurrences.of(having, commodity="commodity", dependency="dependency")
            b.row("occur", occurring @ y <= occurrences.of(E, dependency="dependency") @ w, over=occurrences)
            b.row("order", (E.of(placed, arc="b") - E.of(placed, arc="a")) @ u >= 1 - m * (1 - w), over=E)
        arcs = Index.table("arc", {"arc": paths.used})
        room = c[arcs["arc"]]
        used = taken.join(
            Index.table("path", {"path": np.repeat(np.arange(paths.paths), paths.length), "arc": paths.arcs})
        )
        carried = arcs.of(used) @ cp.multiply(D[taken["path"]], y)
        if self.chosen == "load":
            Lambda = b.var("Lambda", upper=largest_load(self.routing), integer=unit_capacities(self.routing))
            b.row("congestion", carried <= Lambda * room, over=arcs)
            return b.minimize(Lambda)
        z = b.var("z", upper=1, integer=True)
        if self.limit:
            b.row("congestion", carried <= self.limit * room, over=arcs)
        at = Index.grid(commodity=paths.pairs, layer=self.layers)
        b.row("use", at.of(taken) @ y <= at.of(layers) @ z, over=at)
        if self.layers > 1:
            b.row("symmetry", z[:-1] >= z[1:])
        return b.minimize(cp.sum(z))

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``y[s,t,i,l]`` for the i-th path of (s,t)."""
        b = Pyo(self)
        K, P, A, L = b.sets("commodity", "path", "arc", "layer")
        of, over = named_paths(self.paths, K, P, A)
        c, amount = b.by_label(self.topology.capacity, "arc"), b.by_label(self.routing.amount, "commodity")
        m = len(A)
        carriers: dict[tuple[Any, ...], list[Any]] = {}  # the paths of (s,t) that use b right after a, by (s,t,a,b)
        for number, p in enumerate(P):
            for both in pairwise([A[a] for a in self.paths.path(number)]):
                carriers.setdefault((*p[:-1], *both), []).append(p)
        E = {use[-2:] for use in carriers}
        placed = {a for e in E for a in e}
        y = b.var("y", upper=1, integer=True)
        w = b.var("w", upper=1, integer=True, over=[(*e, layer) for e in E for layer in L])
        u = b.var("u", upper=m - 1, integer=True, where=lambda a, layer: a in placed)

        def taken(paths: Iterable[Any], layers: Iterable[int]) -> Any:
            return b.sum(y[(*p, layer)] for p in paths for layer in layers)

        def carried(a: Any) -> Any:
            return b.sum(amount[p[:-1]] * y[(*p, layer)] for p in over[a] for layer in L)

        def order(first: str, second: str, layer: int) -> Any:
            return u[second, layer] - u[first, layer] >= 1 - m * (1 - w[first, second, layer])

        b.row("choose", lambda s, t: taken(of[s, t], L) == 1)
        b.row(
            "occur",
            lambda s, t, a, then, layer: taken(carriers[s, t, a, then], [layer]) <= w[a, then, layer],
            over=[(*use, layer) for use in carriers for layer in L],
        )
        b.row("order", order, over=[(*e, layer) for e in E for layer in L])
        if self.chosen == "load":
            whole = set(c.values()) == {1.0} and all(value.is_integer() for value in amount.values())
            Lambda = b.var("Lambda", upper=sum(amount.values()) / min(c.values()), integer=whole)
            b.row("congestion", lambda a: carried(a) <= c[a] * Lambda, over=over)
            return b.minimize(Lambda)
        z = b.var("z", upper=1, integer=True)
        if self.limit:
            b.row("congestion", lambda a: carried(a) <= c[a] * self.limit, over=over)
        b.row("use", lambda s, t, layer: taken(of[s, t], [layer]) <= z[layer])
        b.row("symmetry", lambda layer: z[layer] >= z[layer + 1])
        return b.minimize(b.sum(z[layer] for layer in L))

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation, from y alone: binary, load beyond the limit, and infinity if some layer has a cycle."""
        found = channels_routes.routed(self, values)
        if found is None:
            return dict.fromkeys(("binary", "choose", "congestion", "acyclic"), np.inf)
        y, load = np.asarray(values.get("y", 0), dtype=float), float(found.load.max(initial=0.0))
        over = load / self.limit - 1.0 if self.limit else 0.0
        stated = 0.0
        if self.chosen == "load" and "Lambda" in values:
            stated = 1.0 - float(np.asarray(values["Lambda"])) / load
        return {
            "binary": float(np.minimum(np.abs(y), np.abs(y - 1.0)).max(initial=0.0)),
            "choose": 0.0,
            "congestion": max(over, stated, 0.0),
            "acyclic": 0.0 if found.acyclic else np.inf,
        }

    def objective(self, values: Values) -> float:
        """Largest load, or the number of layers in use."""
        found = channels_routes.routed(self, values)
        if found is None:
            return np.inf
        return float(found.load.max() if self.chosen == "load" else (found.layers > 0).sum())


FORMULATION = RoutedChannels
