r"""Routes and virtual channels together: least load with so many channels, or fewest channels with so much load.

Source  all-to-all paper, Appendix D.1 ("joint route-finding and VC assignment", which it leaves to future research);
        Dally & Seitz, IEEE Trans. Computers 36(5), 1987. The program is ours
Sets    a in A arcs (m); k = (s,t) in K ordered pairs of distinct ranks with demand; p in P_k paths of k, P = union of
        all P_k; l in 1..L layers (virtual channels of every arc); e = (a,b) in E dependencies: some path of P uses b
        right after a; E_p those of path p
Data    c_a > 0 capacity [link bandwidths], (m,); D_k > 0 demand of k [shards], (|K|,); D_p that of the pair of p;
        L = ``layers``; load = ``load``, the largest load allowed [shards / link bandwidth], 0 for any
Vars    y_pl in {0,1} the pair of p takes path p on layer l, (|P|, L); w_el in {0,1} dependency e occurs in layer l,
        (|E|, L); u_al in [0, m-1] position of a in an order of layer l, for arcs of some dependency, (m, L);
        ``objective=load``: Lambda in 0 .. sum_k D_k / min_a c_a largest load, integer where all capacities are 1 and
        all demands integers; ``objective=channels``: z_l in {0,1} layer l is used, (L,)

min Lambda      (``objective=load``)      or      min sum_l z_l      (``objective=channels``)      s.t.
    choose[k]       sum_{p in P_k} sum_l y_pl = 1
    congestion[a]   sum_{p through a} D_p sum_l y_pl <= c_a Lambda      or      <= c_a load      (load > 0)
    occur[k,e,l]    sum_{p in P_k: e in E_p} y_pl <= w_el
    order[e,l]      u_bl - u_al >= 1 - m (1 - w_el)                     e = (a,b)
    use[k,l]        sum_{p in P_k} y_pl <= z_l                          (objective=channels)
    symmetry[l]     z_l >= z_{l+1}                                      (objective=channels)

A layer has such an order if and only if its dependencies have no cycle (m is the smallest valid constant); wormhole
routing over acyclic layers is deadlock-free (Dally & Seitz). A pair takes one path, so ``occur`` states one row for all
its paths with a dependency.

Bounds. The load is at least that of ``alltoall.min-congestion`` over the same paths, however many layers there are.
Dependencies that all paths of some pair have are forced: if the forced ones have a cycle, one layer is not enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.alltoall import min_congestion
from opticoll.formulations.alltoall.virtual_channels import acyclic, layered_axes
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import path_flow
from opticoll.formulations.flows.concurrent_flow import demand_parameter
from opticoll.formulations.flows.flow_checks import demand_metrics
from opticoll.formulations.flows.path_flow import arc_load, largest_load, named_paths, unit_capacities
from opticoll.formulations.flows.path_sets import rule_parameters
from opticoll.formulations.index import Index
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, TIME, Array, Links, arc_axis, arc_names, entries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from fractions import Fraction

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.types import Json, Settings

NAME = "alltoall.channels"
OBJECTIVES = ("load", "channels")
#: Relative tolerance of the stated load.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class RoutedChannels(Formulation):
    """Data of the model; ``limit`` is the largest load allowed, 0 for any."""

    name = NAME
    where = "App. D.1, its future work"
    example = "ring:5"
    sense = "min"
    problem = "MILP"
    parameters = (
        *rule_parameters("k"),
        Parameter("layers", int, default=2, help="layers (virtual channels) available"),
        Parameter("objective", str, default="load", help="least load, or fewest layers", choices=OBJECTIVES),
        Parameter("load", float, default=0.0, help="largest load, for objective=channels; 0 for any [shards / link]"),
        demand_parameter(),
    )
    meaning = "largest load [shards / link bandwidth], or layers of virtual channels"
    shards = True
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
        "occur": ("use", "layer"),
        "order": ("dependency", "layer"),
        "use": ("commodity", "layer"),
        "symmetry": ("lower",),
    }

    routing: min_congestion.ChosenPaths
    layers: int
    chosen: str
    limit: float

    @property
    def topology(self) -> Topology:
        """Vertices and arcs."""
        return self.routing.topology

    @property
    def paths(self) -> PathSet:
        """The paths P."""
        return self.routing.paths

    @property
    def n(self) -> int:
        """Vertices."""
        return self.topology.n

    @cached_property
    def path_dependencies(self) -> tuple[I64, I64]:
        """For every two consecutive arcs a, b of a path: the path, and ``a m + b``; both ``(uses,)``."""
        paths = self.paths
        owner = np.repeat(np.arange(paths.paths), paths.length)
        inside = owner[1:] == owner[:-1]
        return owner[:-1][inside], paths.arcs[:-1][inside] * self.topology.arcs + paths.arcs[1:][inside]

    @cached_property
    def dependency_keys(self) -> I64:
        """``a m + b`` of every dependency (a,b), ascending, ``(|E|,)``."""
        return np.unique(self.path_dependencies[1])

    @property
    def dependencies(self) -> I64:
        """The dependencies as pairs of arcs, ``(|E|, 2)``."""
        return np.stack(np.divmod(self.dependency_keys, self.topology.arcs), axis=1)

    @cached_property
    def forced(self) -> I64:
        """Dependencies that all paths of some pair have, as pairs of arcs, ``(forced, 2)``."""
        owner, key = self.path_dependencies
        pair, number = self.paths.pair[owner], np.searchsorted(self.dependency_keys, key)
        both, count = np.unique(pair * max(self.dependency_keys.size, 1) + number, return_counts=True)
        of, which = np.divmod(both, max(self.dependency_keys.size, 1))
        every = np.unique(which[count == np.diff(self.paths.first)[of]])
        return self.dependencies[every]

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model.

        Raises
        ------
        NotApplicable
            If the instance is not a connected topology of at least two ranks, a pair has no path, or a parameter is
            out of range.
        """
        given = cls._completed(parameters)
        layers, limit, chosen = (given.pop(name) for name in ("layers", "load", "objective"))
        if layers < 1:
            msg = f"{NAME}: layers={layers}; a route needs at least 1"
            raise NotApplicable(msg)
        if not 0 <= limit < np.inf:
            msg = f"{NAME}: load={limit}; give a finite number of at least 0"
            raise NotApplicable(msg)
        if limit > 0 and chosen == "load":
            msg = f"{NAME}: load={limit} limits nothing with objective=load; use objective=channels"
            raise NotApplicable(msg)
        return cls(min_congestion.ChosenPaths.prepare(instance, given), layers, chosen, limit)

    def derived(self) -> list[Fraction]:
        """The amounts, and the bound on Lambda."""
        return path_flow.derived(self.routing)

    @cached_property
    def uses(self) -> tuple[I64, I64]:
        """Pair and dependency of every use: some path of the pair has the dependency, ``(uses,)`` each."""
        owner, key = self.path_dependencies
        both = np.unique(
            self.paths.pair[owner] * max(self.dependency_keys.size, 1) + np.searchsorted(self.dependency_keys, key)
        )
        pair, dependency = np.divmod(both, max(self.dependency_keys.size, 1))
        return pair, dependency

    def sets(self) -> dict[str, Sequence[Any]]:
        """Pairs, paths (s,t,i), dependencies (a,b), uses (s,t,a,b), and layers from 1."""
        A, L = arc_names(self.topology), range(1, self.layers + 1)
        K, of, _ = named_paths(self.paths)
        E = [(A[a], A[b]) for a, b in self.dependencies.tolist()]
        uses = [(*K[k], *E[e]) for k, e in zip(*(one.tolist() for one in self.uses), strict=True)]
        P = [p for k in K for p in of[k]]
        return {"commodity": K, "path": P, "dependency": E, "use": uses, "layer": L, "lower": L[:-1]}

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
        owner, key = self.path_dependencies
        if key.size:
            pair, of = self.uses
            uses = Index.table("use", {"use": np.arange(of.size), "commodity": pair, "dependency": of})
            uses = uses.join(layers).keyed("use layer")
            a, e = self.dependencies.T
            E = Index.table("dependency", {"dependency": np.arange(a.size), "a": a, "b": e})
            E = E.join(layers).keyed("dependency layer")
            has = Index.table("path", {"path": owner, "dependency": np.searchsorted(self.dependency_keys, key)})
            placed = Index.table("arc", {"arc": np.unique(self.dependencies)}).join(layers).keyed("arc layer")
            w, u = b.var("w", upper=1, integer=True, over=E), b.var("u", upper=m - 1, over=placed)
            having = taken.join(has)
            occurring = uses.of(having, commodity="commodity", dependency="dependency")
            b.row("occur", occurring @ y <= uses.of(E, dependency="dependency") @ w, over=uses)
            b.row("order", (E.of(placed, arc="b") - E.of(placed, arc="a")) @ u >= 1 - m * (1 - w), over=E)
        arcs = Index.table("arc", {"arc": np.unique(paths.arcs)})
        room = c[arcs["arc"]]
        used = taken.join(
            Index.table("path", {"path": np.repeat(np.arange(paths.paths), paths.length), "arc": paths.arcs})
        )
        carried = arcs.of(used) @ cp.multiply(D[taken["path"]], y)
        if self.chosen == "load":
            Lambda = b.var("Lambda", upper=self.most, integer=unit_capacities(self.routing))
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
        from pyomo.core import quicksum

        b, (K, of, over) = Pyo(self), named_paths(self.paths)
        A, P, L = b.sets("arc", "path", "layer")
        c, amount, m = (
            entries(self.topology.capacity, A),
            dict(zip(K, self.routing.amount.tolist(), strict=True)),
            len(A),
        )
        carriers: dict[tuple[Any, ...], list[Any]] = {}  # the paths of (s,t) that use b right after a, by (s,t,a,b)
        for number, p in enumerate(P):
            for both in pairwise([A[a] for a in self.paths.path(number)]):
                carriers.setdefault((*p[:-1], *both), []).append(p)
        E = {use[-2:] for use in carriers}
        placed = {a for e in E for a in e}
        y = b.var("y", upper=1, integer=True)
        w = b.var("w", upper=1, integer=True, over=[(*e, i) for e in E for i in L])
        u = b.var("u", upper=m - 1, where=lambda a, i: a in placed)

        def taken(paths: Iterable[Any], layers: Iterable[int]) -> Any:
            return quicksum(y[(*p, i)] for p in paths for i in layers)

        def load(a: Any) -> Any:
            return quicksum(amount[p[:-1]] * y[(*p, i)] for p in over[a] for i in L)

        b.row("choose", lambda *k: taken(of[k], L) == 1)
        b.row(
            "occur",
            lambda *use: taken(carriers[use[:-1]], use[-1:]) <= w[use[-3:]],
            over=[(*use, i) for use in carriers for i in L],
        )
        b.row(
            "order", lambda p, q, i: u[q, i] - u[p, i] >= 1 - m * (1 - w[p, q, i]), over=[(*e, i) for e in E for i in L]
        )
        if self.chosen == "load":
            whole = set(c.values()) == {1.0} and all(value.is_integer() for value in amount.values())
            Lambda = b.var("Lambda", upper=sum(amount.values()) / min(c.values()), integer=whole)
            b.row("congestion", lambda a: load(a) <= c[a,] * Lambda, over=over)
            return b.minimize(Lambda)
        z = b.var("z", upper=1, integer=True)
        if self.limit:
            b.row("congestion", lambda a: load(a) <= c[a,] * self.limit, over=over)
        b.row("use", lambda *kl: taken(of[kl[:-1]], kl[-1:]) <= z[kl[-1]])
        b.row("symmetry", lambda i: z[i] >= z[i + 1])
        return b.minimize(quicksum(z[i] for i in L))

    @property
    def most(self) -> float:
        """Upper bound on Lambda: everything over the arc of smallest capacity."""
        return largest_load(self.routing)

    def estimate(self) -> dict[str, int]:
        """Size of the model."""
        paths, count, edges = self.paths, self.layers, self.dependency_keys.size
        owner, key = self.path_dependencies
        uses = np.unique(paths.pair[owner] * self.topology.arcs**2 + key).size
        loaded = int(np.unique(paths.arcs).size)
        by_load = self.chosen == "load"
        rows = loaded * (by_load or self.limit > 0)
        variables = count * (paths.paths + edges + np.unique(self.dependencies).size)
        integers = count * (paths.paths + edges)
        return {
            "variables": variables + (1 if by_load else count),
            "constraints": paths.pairs
            + rows
            + count * (uses + edges)
            + (not by_load) * (count * (paths.pairs + 1) - 1),
            "nonzeros": count * (paths.paths + owner.size + uses + 3 * edges)
            + (paths.arcs.size * count if rows else 0)
            + (loaded if by_load else count * (paths.paths + paths.pairs) + 2 * (count - 1)),
            "integers": integers + (int(unit_capacities(self.routing)) if by_load else count),
        }

    def arrays(self, _names: Collection[str]) -> dict[str, Array]:
        """y, the other variables of the program, which are optional, and the duals of the routing."""
        follows, layer = layered_axes(self.topology, self.dependencies, self.layers)
        return {
            "y": Array((path_flow.path_axis(self.routing), layer)),
            "w": Array((follows, layer), required=False),
            "u": Array((arc_axis(self.topology), layer), required=False),
            "z": Array((layer,), required=False),
            "Lambda": Array(required=False, unit=TIME),
            **path_flow.dual_arrays(self.routing),
        }

    def _read(self, values: Mapping[str, F64]) -> tuple[F64, I64, I64] | None:
        """y, and the path and layer of every pair, ``(|K|,)``; None unless every pair has exactly one."""
        y = np.asarray(values.get("y", ()), dtype=float)
        if y.shape != (self.paths.paths, self.layers) or not np.isfinite(y).all():
            return None
        path, layer = np.nonzero(y > 0.5)
        if not np.array_equal(self.paths.pair[path], np.arange(self.paths.pairs)):
            return None
        return y, path, layer

    def routes_of(self, values: Mapping[str, F64]) -> tuple[list[list[int]], I64]:
        """The arcs and the layer (from 0) of the route of every pair.

        Raises
        ------
        NotApplicable
            If the values give no route or several for some pair.
        """
        read = self._read(values)
        if read is None:
            msg = f"{NAME}: the values do not give every pair exactly one path and layer"
            raise NotApplicable(msg)
        return [self.paths.path(p) for p in read[1].tolist()], read[2]

    def loads(self, path: I64) -> F64:
        """Load of every arc with these paths taken, ``(|K|,)``, [shards / link bandwidth], ``(m,)``."""
        weight = np.zeros(self.paths.paths)
        weight[path] = self.routing.amount[self.paths.pair[path]]
        return arc_load(self.paths, weight) / self.topology.capacity

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation, from y alone: binary, load beyond the limit, and infinity if some layer has a cycle."""
        read = self._read(values)
        blocks = ("binary", "choose", "congestion", "acyclic")
        if read is None:
            return dict.fromkeys(blocks, np.inf)
        y, path, layer = read
        owner, key = self.path_dependencies
        cyclic = False
        for level in np.unique(layer).tolist():
            own = np.unique(key[np.isin(owner, path[layer == level])])
            cyclic |= not acyclic(self.topology.arcs, np.stack(np.divmod(own, self.topology.arcs), axis=1))
        over = float(self.loads(path).max(initial=0.0)) / self.limit - 1.0 if self.limit else 0.0
        stated = 0.0
        if self.chosen == "load" and "Lambda" in values:
            stated = 1.0 - float(np.asarray(values["Lambda"])) / float(self.loads(path).max(initial=0.0))
        return {
            "binary": float(np.minimum(np.abs(y), np.abs(y - 1.0)).max(initial=0.0)),
            "choose": 0.0,
            "congestion": max(over, stated, 0.0),
            "acyclic": np.inf if cyclic else 0.0,
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """Largest load, or the number of layers in use."""
        read = self._read(values)
        if read is None:
            return np.inf
        return float(self.loads(read[1]).max()) if self.chosen == "load" else float(np.unique(read[2]).size)

    def repair(self, values: Mapping[str, F64]) -> dict[str, F64] | None:
        """Round y, and give the other variables the values that follow; layers in use come first."""
        read = self._read(values)
        return None if read is None else self.filled(read[1], read[2])

    def filled(self, path: I64, layer: I64) -> dict[str, F64]:
        """All arrays of a solution, given the path and the layer (from 0) of every pair, ``(|K|,)``."""
        used, place = np.unique(layer, return_inverse=True)
        y = np.zeros((self.paths.paths, self.layers))
        y[path, place] = 1.0
        w, u = np.zeros((self.dependency_keys.size, self.layers)), np.zeros((self.topology.arcs, self.layers))
        owner, key = self.path_dependencies
        for level in range(used.size):
            own = np.isin(owner, path[place == level])
            w[np.searchsorted(self.dependency_keys, key[own]), level] = 1.0
            u[:, level] = positions(self.topology.arcs, self.dependencies[w[:, level] > 0])
        values = {"y": y, "w": w, "u": u}
        if self.chosen == "load":
            return {**values, "Lambda": np.array(self.loads(path).max(initial=0.0))}
        return {**values, "z": (np.arange(self.layers) < used.size).astype(float)}

    def bounds(self) -> list[Bound]:
        """Bounds of the load over these paths, or 1 layer, or 2 if forced dependencies have a cycle."""
        if self.chosen == "load":
            return self.routing.bounds()
        if acyclic(self.topology.arcs, self.forced):
            return [Bound("one-layer", 1.0, "every route has a layer", "alltoall")]
        return [Bound("forced-cycle", 2.0, "dependencies of all paths of some pairs have a cycle", "alltoall")]

    def refute(self) -> Bound | None:
        """Bound that excludes every solution: a forced cycle with one layer, or too small a load."""
        if self.layers == 1 and not acyclic(self.topology.arcs, self.forced):
            return Bound("forced-cycle", np.inf, "dependencies of all paths of some pairs have a cycle", "alltoall")
        if self.limit:
            best = max(self.routing.bounds(), key=lambda bound: bound.value)
            if best.value > rounding.up(self.limit * (1 + TOLERANCE)):
                return Bound(best.name, np.inf, f"the load is at least {best.value:g}: {best.reason}", "alltoall")
        return None

    def certify(self, duals: Mapping[str, F64]) -> Bound | None:
        """Bound on the load proven by the duals of ``congestion`` as arc lengths."""
        return self.routing.certify(duals) if self.chosen == "load" else None

    def metrics(self, value: float | None) -> dict[str, Json]:
        """The value under the name of the objective, ranks and the path set."""
        restricted = [path_flow.restriction(self.routing)]
        if self.chosen == "load":
            restricted.insert(0, f"with {self.layers} layer{'s' * (self.layers > 1)}")
        return {
            "max_load": value if self.chosen == "load" else None,
            "layers": value if self.chosen == "channels" else None,
            "T": value if self.chosen == "load" else None,
            "ranks": self.topology.num_ranks,
            **({} if self.routing.traffic is None else demand_metrics(self.routing.flow)),
            "path_set": str(self.routing.rule),
            "paths": self.paths.paths,
            "dependencies": int(self.dependency_keys.size),
            "conditional_on": ", ".join(filter(None, restricted)) or None,
        }

    def describe(self, values: Mapping[str, F64]) -> dict[str, Json]:
        """Load and layers of a verified solution, and routes by layer."""
        read = self._read(values)
        assert read is not None
        _, path, layer = read
        load = float(self.loads(path).max())
        return {
            "max_load": load,
            "T": load,
            "layers": int(np.unique(layer).size),
            "routes_by_layer": np.bincount(layer, minlength=self.layers).tolist(),
        }

    def links(self, values: Mapping[str, F64]) -> Links:
        """Load of every arc, within the time of the largest load."""
        read = self._read(values)
        assert read is not None
        load, capacity = self.loads(read[1]), self.topology.capacity
        return Links(self.topology, load * capacity, capacity, float(load.max(initial=0.0)), SHARDS, BANDWIDTHS)


def positions(arcs: int, pairs: I64) -> F64:
    """Positions of ``arcs`` channels in which dependencies ``pairs`` ``(|E|, 2)`` go forward, if they have no cycle."""
    result, left = np.zeros(arcs), pairs
    for _ in range(arcs):
        following = np.zeros(arcs)
        np.maximum.at(following, left[:, 1], result[left[:, 0]] + 1.0)
        raised = np.maximum(result, following)
        if np.array_equal(raised, result):
            break
        result = raised
    return np.minimum(result, arcs - 1.0)


FORMULATION = RoutedChannels
