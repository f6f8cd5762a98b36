r"""Routes of minimum overlap: one path per circuit, with fewest circuits on the busiest arc.

Source  LuMorph paper, Algorithm 2 (Appendix A), (10)-(16), and section 3.1 (k shortest paths as route sets)
Sets    a in A arcs (m); v in V vertices (n); k = (s_k, d_k) in L circuits; p in P_k candidate paths of k
Data    L, see :mod:`opticoll.formulations.lumorph.circuits`; for the path form A arc-path and B circuit-path incidence;
        c_a capacity of an arc, (m,): 1, or the waveguides or fibres of the arc between them and those of all other arcs
        in lowest terms, if wafers are joined by more or fewer fibres than an arc has waveguides
Vars    x_ak in {0,1} circuit k uses arc a, (m, |L|), or x_p in {0,1} path taken, (|P|,); Lambda in 0 .. |L|, the
        overlap, integer if every c_a is 1

Arc form (``model=arc``), as printed:  min Lambda  s.t.

    congestion[a]     sum_k x_ak <= c_a Lambda
    balance[v,k]      sum_in(v) x_ak - sum_out(v) x_ak = 0          v not in {s_k, d_k}   (10)
    enter_once[v,k]   sum_in(v) x_ak <= 1                           v not in {s_k, d_k}   (11)
    leave_once[v,k]   sum_out(v) x_ak <= 1                          v not in {s_k, d_k}   (12)
    depart[k]         sum_out(s_k) x_ak = 1                                               (13)
    no_return[k]      sum_in(s_k) x_ak <= 0                                               (14)
    no_exit[k]        sum_out(d_k) x_ak <= 0                                              (15)
    arrive[k]         sum_in(d_k) x_ak = 1                                                (16)

Corrections: (16) is printed with right-hand side 0, which makes the model infeasible; the appendix prints (14) and (15)
a second time with in(v) at d; the sums of (13)-(16) are over the arcs at s or d, not at every v; circuits are indexed
by their position in the list, so pairs may repeat. Cycles disjoint from the path satisfy the model; they never help
and are dropped when the routes are traced.

Path form (``model=path``), over a route set (``paths``, ``k``, ``lmax``; k is the paper's k shortest paths by Yen):
min Lambda  s.t.

    congestion[a]     (A x)_a <= c_a Lambda
    choose[k]         (B x)_k = 1

Its optimum holds *for the route set*.

Overlap counts circuits and ignores wavelengths and capacities, as in the paper; parallel arcs count separately. Any
topology is allowed, including one with missing links, if every circuit has a path. The paper asks how many waveguides
an arc needs. Between wafers an arc has F fibres, on a wafer W waveguides; with c_a = F / gcd(W, F) and W / gcd(W, F),
the circuits fit if every arc has ceil(Lambda) c_a waveguides or fibres, and not with fewer in these proportions.

Bounds: cuts (:mod:`opticoll.formulations.lumorph.mesh_cuts`), a closed form for recursive exchanges on intact meshes,
and for any lengths l >= 0, Lambda >= sum_k dist_l(s_k, d_k) / sum_a c_a l_a by LP duality, rounded up to the next
multiple of some 1 / c_a; lengths are rounded to integers first, so that rounding up is exact.

Methods may return the routes of the arc form as paths: x has one entry per circuit, with ``path_arcs`` and
``path_pair`` as in :mod:`opticoll.formulations.flows.path_flow`, instead of m entries per circuit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import path_flow
from opticoll.formulations.flows.path_flow import (
    PathFlow,
    arc_load,
    bounded_distances,
    known_paths,
    named_paths,
    unit_capacities,
    whole_paths,
)
from opticoll.formulations.flows.path_sets import PathRule, PathSet, assemble, check_reach, read_rule, rule_parameters
from opticoll.formulations.index import Index
from opticoll.formulations.lumorph.circuits import FORMS, Circuits, CircuitSpec, read_circuits
from opticoll.formulations.lumorph.mesh_cuts import cut_bounds, exchange_overlap, grid_shape, is_mesh
from opticoll.formulations.model import (
    Bound,
    CvxpyModel,
    Formulation,
    NotApplicable,
    Parameter,
    PyomoModel,
    changed_from_defaults,
)
from opticoll.formulations.rounds.round_schedule import Limits
from opticoll.formulations.variables import (
    Array,
    Axis,
    Links,
    Names,
    arc_axis,
    entries,
    incident_arcs,
    pair_labels,
    pair_names,
)
from opticoll.instances.photonics import LightpathMesh
from opticoll.instances.topology import Topology, connecting_remedy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json, Settings

NAME = "lumorph.min-overlap"
#: Maximum number of variables x for which the arc form is built.
MOST_VARIABLES = 4_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Overlap(PathFlow, Formulation):
    """Data of the model: topology with capacities c_a, route rule, circuits, and form (``arc`` or ``path``)."""

    name = NAME
    where = "Algorithm 2, (10)-(16)"
    example = "lightpath:4x4"
    sense = "min"
    problem = "MILP"
    parameters = (
        Parameter("circuits", CircuitSpec, default="permutation", help=FORMS),
        Parameter("seed", int, default=0, help="seed of circuits=permutation"),
        Parameter("model", str, default="arc", help="on arcs as printed, or over a route set", choices=("arc", "path")),
        *rule_parameters("k"),
    )
    meaning = "overlap Lambda: circuits on the busiest arc"
    constraints: ClassVar = {
        "congestion": ("arc",),
        "choose": ("circuit",),
        "balance": ("vertex", "circuit"),
        "enter_once": ("vertex", "circuit"),
        "leave_once": ("vertex", "circuit"),
        "depart": ("circuit",),
        "no_return": ("circuit",),
        "no_exit": ("circuit",),
        "arrive": ("circuit",),
    }

    circuits: Circuits
    model: str

    load_unit: ClassVar[str] = "circuits"

    @cached_property
    def commodities(self) -> tuple[I64, I64]:
        """s_k and d_k, each ``(|L|,)``."""
        return self.circuits.sources, self.circuits.targets

    @cached_property
    def cuts(self) -> list[Bound]:
        """Cut bounds and the closed form, best first."""
        result = cut_bounds(self.topology, self.commodities)
        shape = grid_shape(self.topology)
        if shape is not None and unit_capacities(self) and is_mesh(self.topology, shape):
            value = exchange_overlap(self.circuits, shape)
            if value is not None:
                reason = (
                    f"{self.circuits.name} on an intact {shape[0]}x{shape[1]} mesh: XY routes meet the straight cut"
                )
                exact = self.rule.unrestricted
                result.append(Bound("recursive-exchange", float(value), reason, exact=exact))
        return sorted(result, key=lambda bound: -bound.value)

    @cached_property
    def hop_bound(self) -> Bound:
        """Bound of unit lengths: every circuit loads at least as many arcs as the distance between its ends."""
        value = length_bound(self, np.ones(self.topology.arcs))
        total = "number of arcs" if unit_capacities(self) else "capacity of all arcs"
        return Bound("hop-lengths", value, f"hops of all circuits over the {total}, rounded up")

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model.

        Raises
        ------
        BadInput
            For a circuit list that cannot be read or does not fit the instance.
        NotApplicable
            If the instance is not a topology of at least two ranks, a circuit has no path, or the route rule allows
            none.
        """
        given = cls._completed(parameters)
        if not isinstance(instance, Topology):
            msg = f"{NAME}: {getattr(instance, 'spec', instance)} is not a topology; use one, e.g. lightpath:4x4"
            raise NotApplicable(msg)
        if instance.num_ranks < 2:
            msg = f"{NAME}: {instance.spec} has {instance.num_ranks} rank; a circuit joins two"
            raise NotApplicable(msg)
        text, seed, model = given["circuits"], given["seed"], given["model"]
        circuits = read_circuits(text, instance, seed, NAME)
        _refuse_unreachable(instance, circuits)
        if seed and text.strip() != "permutation":
            msg = f"{NAME}: seed={seed} has no effect with circuits={text}; only circuits=permutation is random"
            raise NotApplicable(msg)
        for name in changed_from_defaults(rule_parameters("k"), given) if model == "arc" else ():
            msg = f"{NAME}: {name}={given[name]} has no effect on arcs; give model=path for a route set"
            raise NotApplicable(msg)
        rule = PathRule("all") if model == "arc" else read_rule(given, NAME)
        pairs = (circuits.sources, circuits.targets)
        check_reach(instance, rule, NAME, pairs)
        return cls(in_circuits(instance), rule, circuits=circuits, model=model)

    @property
    def variables(self) -> dict[str, tuple[str, ...]]:  # type: ignore[override]
        """Circuits on arcs, or over the paths of a route set."""
        return {"x": ("arc", "circuit") if self.model == "arc" else ("path",), "Lambda": ()}

    def sets(self) -> dict[str, Sequence[Any]]:
        """Circuits (s,d), numbered where they repeat; with ``model=path`` also their paths (s,d,i)."""
        if self.model == "arc":
            return {"circuit": pair_names(self.topology, *self.commodities)}
        L, of, _ = named_paths(self.paths)
        return {"circuit": L, "path": [p for k in L for p in of[k]]}

    def cvxpy(self) -> CvxpyModel:
        """The chosen form in CVXPY."""
        import cvxpy as cp

        b, topology, count, c = Cvx(self), self.topology, self.circuits.count, self.topology.capacity
        Lambda = b.var("Lambda", upper=count, integer=unit_capacities(self))
        if self.model == "path":
            x, used = b.var("x", upper=1, integer=True), np.unique(self.paths.arcs)
            A = self.paths.incidence.tocsr()[used]
            b.row("congestion", A @ x <= Lambda * c[used], over=Index.table("arc", {"arc": used}))
            b.row("choose", self.paths.membership @ x == 1)
            return b.minimize(Lambda)
        _refuse_large(self)
        (s, d), vertices = self.commodities, np.arange(topology.n)[:, None]
        x, M = b.var("x", upper=1, integer=True), topology.incidence()
        into, out_of, k = M.maximum(0) @ x, (-M).maximum(0) @ x, np.arange(count)
        entered, left = topology.in_degree > 0, topology.out_degree > 0
        inner = (vertices != s) & (vertices != d)
        b.row("congestion", cp.sum(x, axis=1) <= c * Lambda)
        b.row("balance", into - out_of == 0, where=inner & (entered | left)[:, None])
        b.row("enter_once", into <= 1, where=inner & entered[:, None])
        b.row("leave_once", out_of <= 1, where=inner & left[:, None])
        b.row("depart", out_of[s, k] == 1, where=left[s])
        b.row("no_return", into[s, k] <= 0, where=entered[s])
        b.row("no_exit", out_of[d, k] <= 0, where=left[d])
        b.row("arrive", into[d, k] == 1, where=entered[d])
        return b.minimize(Lambda)

    def pyomo(self) -> PyomoModel:
        """The chosen form in Pyomo: ``x[a,k]`` or ``x[s,d,i]``, ``Lambda``; k is (s_k, d_k)."""
        from pyomo.core import quicksum

        b, (into, out_of) = Pyo(self), incident_arcs(self.topology)
        A, V, L = b.sets("arc", "vertex", "circuit")
        c = entries(self.topology.capacity, A)
        Lambda = b.var("Lambda", upper=len(L), integer=set(c.values()) == {1.0})
        x = b.var("x", upper=1, integer=True)
        if self.model == "path":
            _, of, over = named_paths(self.paths)
            b.row("congestion", lambda a: quicksum(x[p] for p in over[a]) <= c[a,] * Lambda, where=lambda a: a in over)
            b.row("choose", lambda *k: quicksum(x[p] for p in of[k]) == 1)
            return b.minimize(Lambda)
        _refuse_large(self)
        s, d = ({k: V[v] for k, v in zip(L, ends.tolist(), strict=True)} for ends in self.commodities)

        def on(arcs: list[str], k: tuple[Any, ...]) -> Any:
            return quicksum(x[(a, *k)] for a in arcs)

        def inner(v: Any, k: tuple[Any, ...]) -> bool:
            return v not in (s[k], d[k])

        b.row("congestion", lambda a: quicksum(x[(a, *k)] for k in L) <= c[a,] * Lambda)
        b.row(
            "balance",
            lambda v, *k: on(into[v], k) - on(out_of[v], k) == 0,
            where=lambda v, *k: inner(v, k) and (into[v] or out_of[v]),
        )
        b.row("enter_once", lambda v, *k: on(into[v], k) <= 1, where=lambda v, *k: inner(v, k) and into[v])
        b.row("leave_once", lambda v, *k: on(out_of[v], k) <= 1, where=lambda v, *k: inner(v, k) and out_of[v])
        b.row("depart", lambda *k: on(out_of[s[k]], k) == 1)
        b.row("no_return", lambda *k: on(into[s[k]], k) <= 0, where=lambda *k: into[s[k]])
        b.row("no_exit", lambda *k: on(out_of[d[k]], k) <= 0, where=lambda *k: out_of[d[k]])
        b.row("arrive", lambda *k: on(into[d[k]], k) == 1)
        return b.minimize(Lambda)

    def estimate(self) -> dict[str, int]:
        """Size of the model; the path form lists the route set for this, since the model needs it anyway."""
        if self.model == "path":
            return path_flow.estimate(self)
        topology, count = self.topology, self.circuits.count
        degree = {"in": topology.in_degree, "out": topology.out_degree}
        some = {side: d > 0 for side, d in degree.items()}
        either = some["in"] | some["out"]
        ends = self.commodities
        inner = sum(int(there.sum()) * count - int(there[np.stack(ends)].sum()) for there in (either, *some.values()))
        rows = topology.arcs + inner + sum(int(some[side][v].sum()) for v in ends for side in ("in", "out"))
        at_ends = sum(int(degree[side][v].sum()) for v in ends for side in ("in", "out"))
        nonzeros = topology.arcs * (count + 1) + 2 * (2 * topology.arcs * count - at_ends) + at_ends
        loops = int((topology.tail == topology.head).sum())
        return {
            "variables": topology.arcs * count + 1,
            "constraints": rows,
            "nonzeros": nonzeros - 2 * loops * count,
            "integers": topology.arcs * count + int(unit_capacities(self)),
        }

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Shapes of x and Lambda, on arcs or on paths; equal circuits are numbered by the list."""
        if self.model == "arc" and "path_arcs" not in names:
            count = self.circuits.count

            def circuits(_values: object) -> Names:
                return {"circuit": range(count), "commodity": pair_labels(self.topology, *self.commodities)}

            x = Array((arc_axis(self.topology), Axis("circuit", count, circuits)))
            return {"x": x, "Lambda": Array(unit=self.load_unit), **path_flow.dual_arrays(self)}
        return path_flow.arrays(self, names)

    def links(self, values: Mapping[str, F64]) -> Links:
        """Number of circuits over every arc, relative to the busiest arc."""
        x = np.asarray(values["x"], dtype=float)
        load = x.sum(axis=1) if _on_arcs(self, values) else arc_load(known_paths(self, values), x)
        capacity = self.topology.capacity
        return Links(self.topology, load, capacity, float((load / capacity).max(initial=0.0)), "circuits", "arcs")

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone.

        For x on arcs, all of (10)-(16), absolute. For x on paths, ``paths`` (0 if every path is a simple chain of arcs
        between the ends of its circuit, else infinite), ``binary`` and ``choose``. ``congestion`` is relative to
        Lambda.
        """
        if not _on_arcs(self, values):
            return path_flow.residuals(self, values)
        x, stated = np.asarray(values["x"], dtype=float), float(np.asarray(values["Lambda"]))
        count = self.circuits.count
        blocks = (
            "binary",
            "balance",
            "enter_once",
            "leave_once",
            "depart",
            "no_return",
            "no_exit",
            "arrive",
            "congestion",
        )
        if x.shape != (self.topology.arcs, count) or not np.isfinite(x).all() or not np.isfinite(stated):
            return dict.fromkeys(blocks, np.inf)
        entering, leaving = np.zeros((2, self.topology.n, count))
        np.add.at(entering, self.topology.head, x)
        np.add.at(leaving, self.topology.tail, x)
        k, (s, d) = np.arange(count), self.commodities
        ends = {
            "depart": np.abs(leaving[s, k] - 1.0),
            "no_return": entering[s, k],
            "no_exit": leaving[d, k],
            "arrive": np.abs(entering[d, k] - 1.0),
        }
        through = np.ones_like(entering, dtype=bool)
        through[s, k] = through[d, k] = False
        off = np.minimum(np.abs(x), np.abs(x - 1.0)).max(initial=0.0)
        fraction = abs(stated - round(stated)) if unit_capacities(self) else 0.0
        load = x.sum(axis=1) / self.topology.capacity
        return {
            "binary": float(max(off, fraction)),
            "balance": float(np.abs(np.where(through, entering - leaving, 0.0)).max(initial=0.0)),
            "enter_once": float(np.where(through, entering - 1.0, 0.0).max(initial=0.0)),
            "leave_once": float(np.where(through, leaving - 1.0, 0.0).max(initial=0.0)),
            **{name: float(np.maximum(violation, 0.0).max(initial=0.0)) for name, violation in ends.items()},
            "congestion": max(0.0, float(load.max(initial=0.0)) - stated) / max(abs(stated), 1e-12),
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """Recomputed overlap of the routes; infinite if the values contain no routes."""
        if not _on_arcs(self, values):
            return path_flow.objective(self, values)
        routes = traced(self, np.asarray(values["x"], dtype=float))
        return np.inf if routes is None else overlap(routes)

    def repair(self, values: Mapping[str, F64]) -> dict[str, F64] | None:
        """Trace integral routes in x, without cycles, with their overlap as Lambda; None if x contains no routes."""
        if not _on_arcs(self, values):
            return path_flow.repair(self, values)
        routes = traced(self, np.asarray(values["x"], dtype=float))
        if routes is None:
            return None
        return _on_all_arcs(self, routes)

    def unfold(self, values: Mapping[str, F64]) -> dict[str, F64]:
        """The arc form of a solution that lists its own routes, if it is not too large; else the values."""
        size = self.topology.arcs * self.circuits.count
        if self.model != "arc" or _on_arcs(self, values) or size > MOST_VARIABLES:
            return dict(values)
        try:
            return _on_all_arcs(self, path_flow.chosen_paths(self, values))
        except NotApplicable:  # no routes, which the checker reports
            return dict(values)

    def certify(self, duals: Mapping[str, F64]) -> Bound | None:
        """Bound proven by the duals of ``congestion`` (or ``capacity``), read as arc lengths."""
        name = "congestion" if "congestion" in duals else "capacity"
        if name not in duals:
            return None
        value = length_bound(self, np.abs(np.asarray(duals[name], dtype=float)))
        if value <= 0:
            return None
        return Bound("any-lengths", value, "arc lengths from duals: shortest paths over total length, rounded up")

    def bounds(self) -> list[Bound]:
        """Bounds from cuts, the closed form where it applies, and unit lengths."""
        return sorted([*self.cuts, self.hop_bound], key=lambda bound: -bound.value)

    def metrics(self, value: float | None) -> dict[str, Json]:
        """The overlap, the circuit list and form, and every analytic bound by name; the bounds hold for all routes."""
        bounds = self.bounds()
        proven = value is not None and bool(value <= max((bound.value for bound in bounds), default=-np.inf))
        return {
            "max_load": value,
            "circuits": self.circuits.count,
            "circuit_list": self.circuits.name,
            "ranks": self.topology.num_ranks,
            "model": self.model,
            "path_set": str(self.rule),
            **self._capacities(),
            "bounds": {b.name: int(b.value) if b.value.is_integer() else b.value for b in bounds},
            "unrestricted_proven": None if value is None else proven,
            "conditional_on": None if proven or self.model == "arc" else path_flow.restriction(self),
        }

    def _capacities(self) -> dict[str, Json]:
        """c_a on a wafer and between wafers, where they differ."""
        fibres = self.topology.scarce_fibres if isinstance(self.topology, LightpathMesh) else None
        if fibres is None:
            return {}
        between = fibres.joins(self.topology)
        capacity = self.topology.capacity
        return {
            "capacity_on_wafer": int(capacity[~between].max(initial=0.0)),
            "capacity_between_wafers": int(capacity[between].max(initial=0.0)),
        }

    def closed_forms(self) -> list[Bound]:
        """The exact ones among the bounds."""
        return self.bounds()


def _refuse_unreachable(topology: Topology, circuits: Circuits) -> None:
    hops = topology.hops[np.searchsorted(topology.terminals, circuits.sources), circuits.targets]
    cut_off = np.flatnonzero(~np.isfinite(hops))
    if cut_off.size:
        s, d = (topology.labels[ends[cut_off[0]]] for ends in (circuits.sources, circuits.targets))
        msg = (
            f"{NAME}: {topology.spec} has no path from {s} to {d} ({cut_off.size} such circuits); "
            f"{connecting_remedy(topology)}, or remove these circuits"
        )
        raise NotApplicable(msg)


# The arc form -----------------------------------------------------------------------------------------------------


def _refuse_large(data: Overlap) -> None:
    size = data.topology.arcs * data.circuits.count
    if size > MOST_VARIABLES:
        msg = (
            f"{NAME}: the arc form of {data.circuits.count:,} circuits on {data.topology.spec} has {size:,} variables, "
            f"above {MOST_VARIABLES:,}; use model=path or --method negotiated-rerouting"
        )
        raise NotApplicable(msg)


# Solutions --------------------------------------------------------------------------------------------------------


def _on_arcs(data: Overlap, values: Mapping[str, F64]) -> bool:
    """Whether x has one entry per arc and circuit."""
    return data.model == "arc" and "path_arcs" not in values


def _on_all_arcs(data: Overlap, routes: PathSet) -> dict[str, F64]:
    """The variables of the arc form for the routes of all circuits."""
    x = np.zeros((data.topology.arcs, data.circuits.count))
    x[routes.arcs, np.repeat(routes.pair, routes.length)] = 1.0
    return {"x": x, "Lambda": np.asarray(overlap(routes))}


def traced(data: Overlap, x: F64) -> PathSet | None:
    """Trace the path of every circuit from s_k to d_k in x, ``(m, |L|)``, and drop disjoint cycles.

    None if the arcs of some circuit do not lead from its source to its target.
    """
    topology, (s, d), count = data.topology, data.commodities, data.circuits.count
    if x.shape != (topology.arcs, count):
        return None
    arc, circuit = np.nonzero(x > 0.5)
    following = np.full((topology.n, count), -1, dtype=np.int64)
    following[topology.tail[arc], circuit] = arc
    at, k, steps = s.copy(), np.arange(count), []
    for _ in range(topology.n):
        step = np.where(at == d, -1, following[at, k])
        if ((step < 0) & (at != d)).any():
            return None
        steps.append(step)
        at = np.where(step >= 0, topology.head[step], at)
        if (at == d).all():
            break
    else:
        return None
    table = np.stack(steps, axis=1)
    return assemble(topology, table[table >= 0], (table >= 0).sum(axis=1), k, (s, d))


def routes(data: Overlap, values: Mapping[str, F64]) -> PathSet:
    """Return the path of every circuit, in list order.

    Raises
    ------
    NotApplicable
        If the values do not contain exactly one path per circuit.
    """
    if not _on_arcs(data, values):
        return path_flow.chosen_paths(data, values)
    result = traced(data, np.asarray(values["x"], dtype=float))
    if result is None:
        msg = f"{NAME}: the arcs of some circuit do not lead from its source to its destination"
        raise NotApplicable(msg)
    return result


def decode(data: Overlap, values: Mapping[str, F64]) -> list[tuple[int, int, list[int]]]:
    """``(s, d, arcs of the route)`` of every circuit, in list order.

    Raises
    ------
    NotApplicable
        If the values do not contain exactly one path per circuit.
    """
    result = routes(data, values)
    ends = zip(*(v.tolist() for v in data.commodities), strict=True)
    return [(s, d, result.path(k)) for k, (s, d) in enumerate(ends)]


def overlap(paths: PathSet) -> float:
    """Number of circuits over capacity on the busiest arc, given one path per circuit."""
    load = np.bincount(paths.arcs, minlength=paths.topology.arcs)
    return float((load / paths.topology.capacity).max(initial=0.0))


def in_circuits(topology: Topology) -> Topology:
    """The topology with the capacities c_a: those of its waveguides and fibres in lowest terms, or 1 everywhere."""
    capacity = np.ones(topology.arcs)
    if isinstance(topology, LightpathMesh):
        room = Limits(topology.lasers, topology.waveguides, fibres=topology.scarce_fibres).room(topology)
        capacity = (room // np.gcd.reduce(room)).astype(float)
    if np.array_equal(topology.capacity, capacity):
        return topology
    return topology.with_arcs(topology.tail, topology.head, capacity)


# Bounds -----------------------------------------------------------------------------------------------------------


def length_bound(data: Overlap, lengths: F64) -> float:
    """``sum_k dist_l(s_k, d_k) / sum_a c_a l_a`` over the allowed routes, for any lengths, ``(m,)``; 0 if empty.

    Rounded up to a multiple of some ``1 / c_a``. Exact: lengths are scaled to integers small enough that every sum of
    them is exact in double precision.
    """
    topology, (s, d) = data.topology, data.commodities
    lengths = np.asarray(lengths, dtype=float)
    lengths = np.where(np.isfinite(lengths) & (lengths > 0), lengths, 0.0)
    if lengths.shape != (topology.arcs,) or not lengths.any():
        return 0.0
    lengths = np.ldexp(lengths, -rounding.exponent(lengths))
    most = 2.0**52 / (max(s.size, int(topology.capacity.sum())) * topology.n)
    whole = np.maximum(np.floor(lengths / lengths.max() * most), 1.0)
    if data.rule.kind != "all":
        reach = data.paths.shortest(whole)
    elif data.rule.lmax is not None:
        table = bounded_distances(topology, whole, data.rule.lmax)[-1]
        reach = table[np.searchsorted(topology.terminals, s), d]
    elif (whole == whole[0]).all() and np.isin(s, topology.terminals).all():
        reach = topology.hops[np.searchsorted(topology.terminals, s), d] * whole[0]
    else:
        from scipy.sparse.csgraph import dijkstra

        starts, which = np.unique(s, return_inverse=True)
        reach = dijkstra(topology.length_matrix(whole), indices=starts)[which, d]
    total, cost = sum(int(r) for r in reach), int((whole * topology.capacity).sum())
    capacities = map(Fraction, np.unique(topology.capacity).tolist())
    return rounding.fraction_down(whole_paths(Fraction(total, cost), capacities, Fraction(1)))


def unit_data(topology: Topology, sources: I64, targets: I64) -> Overlap:
    """Data of the arc form for circuits given as arrays, each ``(|L|,)``, without checks."""
    topology = in_circuits(topology)
    return Overlap(topology, PathRule("all"), circuits=Circuits(sources, targets, "given"), model="arc")


FORMULATION = Overlap
