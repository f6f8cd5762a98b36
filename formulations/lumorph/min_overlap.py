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

Rows are for all k and a. A row needs an arc: ``balance`` is stated where v has any, ``enter_once`` and ``no_return``
where one enters v or s_k, ``leave_once`` and ``no_exit`` where one leaves v or d_k.

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

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import path_flow
from opticoll.formulations.flows.path_flow import PathFlow, named_paths, unit_capacities
from opticoll.formulations.flows.path_sets import PathRule, check_reach, read_rule, rule_parameters
from opticoll.formulations.index import Index
from opticoll.formulations.lumorph import mesh_cuts, overlap_solution
from opticoll.formulations.lumorph.circuits import FORMS, Circuits, read_circuits, refuse_unreachable
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel, of_kind
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.rounds.round_schedule import Limits
from opticoll.formulations.variables import Axis, pair_names
from opticoll.instances.photonics import LightpathMesh
from opticoll.instances.readers.reading import FileSetting
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.topology import F64, I64


@dataclass(frozen=True, eq=False)
class Overlap(Formulation):
    """Data of the model: topology with capacities c_a and routes, circuits, and form (``arc`` or ``path``)."""

    name = "lumorph.min-overlap"
    where = "Algorithm 2, (10)-(16)"
    example = "lightpath:4x4"
    problem = "MILP"
    parameters = (
        Parameter("circuits", FileSetting, default="permutation", help=FORMS),
        Parameter(
            "seed", int, default=0, help="seed of circuits=permutation", only_with={"circuits": ("permutation",)}
        ),
        Parameter("model", str, default="arc", help="on arcs as printed, or over a route set", choices=("arc", "path")),
        *(replace(one, only_with={**one.only_with, "model": ("path",)}) for one in rule_parameters("k")),
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
    _beside = (mesh_cuts, overlap_solution)

    routing: PathFlow
    circuits: Circuits
    model: str

    cuts = cached_property(mesh_cuts.overlap_cuts)
    hop_bound = cached_property(mesh_cuts.hop_bound)

    @property
    def topology(self) -> Topology:
        """V and A, with the capacities c_a."""
        return self.routing.topology

    @property
    def commodities(self) -> tuple[I64, I64]:
        """s_k and d_k, each ``(|L|,)``."""
        return self.routing.commodities

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The data of the model."""
        instance = of_kind(Topology, instance, cls.name, "a topology, such as lightpath:4x4")
        if instance.num_ranks < 2:
            refuse(cls.name, f"{instance.spec} has {instance.num_ranks} rank; a circuit joins two", NotApplicable)
        text, seed, model = given["circuits"], given["seed"], given["model"]
        circuits = read_circuits(text, instance, seed, cls.name)
        refuse_unreachable(instance, circuits, cls.name)
        rule = PathRule("all") if model == "arc" else read_rule(given)
        check_reach(instance, rule, cls.name, (circuits.sources, circuits.targets))
        return cls(routing_of(circuits, instance, rule), circuits, model)

    @property
    def variables(self) -> dict[str, tuple[str, ...]]:  # type: ignore[override]
        """Circuits on arcs, or over the paths of a route set."""
        return {"x": ("arc", "circuit") if self.model == "arc" else ("path",), "Lambda": ()}

    def sets(self) -> Mapping[str, Axis | Sequence[Any]]:
        """Circuits (s,d), numbered where they repeat; with ``model=path`` also their paths (s,d,i)."""
        if self.model == "arc":
            return {"circuit": pair_names(self.topology, *self.commodities)}
        return path_flow.pairs_and_paths(self, "circuit")

    def cvxpy(self) -> CvxpyModel:
        """The chosen form in CVXPY."""
        b, topology, count, c = Cvx(self), self.topology, self.circuits.count, self.topology.capacity
        Lambda = b.var("Lambda", upper=count, integer=unit_capacities(self.routing))
        if self.model == "path":
            x, used = b.var("x", upper=1, integer=True), self.routing.paths.used
            A = self.routing.paths.incidence[used]
            b.row("congestion", A @ x <= Lambda * c[used], over=Index.table("arc", {"arc": used}))
            b.row("choose", self.routing.paths.membership @ x == 1)
            return b.minimize(Lambda)
        k, (s, d) = np.arange(count), self.commodities
        X = Index.grid(arc=topology.arcs, circuit=count)
        X = X.given(tail=topology.tail[X["arc"]], head=topology.head[X["arc"]])
        arcs, V = Index.grid(arc=topology.arcs), Index.grid(vertex=topology.n, circuit=count)
        begin, end = (Index.table("circuit", {"circuit": k, "vertex": ends}) for ends in (s, d))
        entered, left = topology.in_degree > 0, topology.out_degree > 0
        inner = V.where((V["vertex"] != s[V["circuit"]]) & (V["vertex"] != d[V["circuit"]]))
        through = inner.where((entered | left)[inner["vertex"]])
        enter, leave = inner.where(entered[inner["vertex"]]), inner.where(left[inner["vertex"]])
        x = b.var("x", upper=1, integer=True, over=X)
        b.row("congestion", arcs.of(X) @ x <= c * Lambda)
        b.row("balance", (through.of(X, head="vertex") - through.of(X, tail="vertex")) @ x == 0, over=through)
        b.row("enter_once", enter.of(X, head="vertex") @ x <= 1, over=enter)
        b.row("leave_once", leave.of(X, tail="vertex") @ x <= 1, over=leave)
        departing, returning = begin.where(left[s]), begin.where(entered[s])
        exiting, arriving = end.where(left[d]), end.where(entered[d])
        b.row("depart", departing.of(X, tail="vertex") @ x == 1, over=departing)
        b.row("no_return", returning.of(X, head="vertex") @ x <= 0, over=returning)
        b.row("no_exit", exiting.of(X, tail="vertex") @ x <= 0, over=exiting)
        b.row("arrive", arriving.of(X, head="vertex") @ x == 1, over=arriving)
        return b.minimize(Lambda)

    def pyomo(self) -> PyomoModel:
        """The chosen form in Pyomo: ``x[a,k]`` or ``x[s,d,i]``, ``Lambda``; k is (s_k, d_k)."""
        b = Pyo(self)
        into, out_of = b.incident()
        V, L = b.sets("vertex", "circuit")
        c = b.by_label(self.topology.capacity, "arc")
        Lambda = b.var("Lambda", upper=len(L), integer=set(c.values()) == {1.0})
        x = b.var("x", upper=1, integer=True)
        if self.model == "path":
            of, over = named_paths(self.routing.paths, *b.sets("circuit", "path", "arc"))
            b.row("congestion", lambda a: b.sum(x[p] for p in over[a]) <= c[a] * Lambda, where=lambda a: a in over)
            b.row("choose", lambda *k: b.sum(x[p] for p in of[k]) == 1)
            return b.minimize(Lambda)
        s, d = ({k: V[v] for k, v in zip(L, ends.tolist(), strict=True)} for ends in self.commodities)

        def on(arcs: list[str], k: tuple[Any, ...]) -> Any:
            return b.sum(x[(a, *k)] for a in arcs)

        def inner(v: Any, k: tuple[Any, ...]) -> bool:
            return v not in (s[k], d[k])

        b.row("congestion", lambda a: b.sum(x[(a, *k)] for k in L) <= c[a] * Lambda)
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

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone.

        For x on arcs, all of (10)-(16), absolute. For x on paths, ``paths`` (0 if every path is a simple chain of arcs
        between the ends of its circuit, else infinite), ``binary`` and ``choose``. ``congestion`` is relative to
        Lambda.
        """
        if not overlap_solution.is_on_arcs(self, values):
            return path_flow.residuals(self, values)
        x, stated = np.asarray(values["x"], dtype=float), float(np.asarray(values["Lambda"]))
        entering, leaving = self.topology.inflow(x), self.topology.outflow(x)
        k, (s, d) = np.arange(self.circuits.count), self.commodities
        ends = {
            "depart": np.abs(leaving[s, k] - 1.0),
            "no_return": entering[s, k],
            "no_exit": leaving[d, k],
            "arrive": np.abs(entering[d, k] - 1.0),
        }
        through = np.ones_like(entering, dtype=bool)
        through[s, k] = through[d, k] = False
        off = np.minimum(np.abs(x), np.abs(x - 1.0)).max(initial=0.0)
        fraction = abs(stated - round(stated)) if unit_capacities(self.routing) else 0.0
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
        if not overlap_solution.is_on_arcs(self, values):
            return path_flow.objective(self, values)
        routes = overlap_solution.traced(self, np.asarray(values["x"], dtype=float))
        return np.inf if routes is None else overlap_solution.overlap(routes)


def in_circuits(topology: Topology) -> Topology:
    """The topology with the capacities c_a: those of its waveguides and fibres in lowest terms, or 1 everywhere."""
    capacity = np.ones(topology.arcs)
    if isinstance(topology, LightpathMesh):
        room = Limits(topology.lasers, topology.waveguides, fibres=topology.scarce_fibres).room(topology)
        capacity = (room // np.gcd.reduce(room)).astype(float)
    if np.array_equal(topology.capacity, capacity):
        return topology
    return topology.with_arcs(topology.tail, topology.head, capacity)


def routing_of(circuits: Circuits, topology: Topology, rule: PathRule) -> PathFlow:
    """The circuits as commodities of amount 1 over the routes of a rule."""
    ends = (circuits.sources, circuits.targets)
    return PathFlow(Overlap.name, in_circuits(topology), rule, ends=ends, load_unit="circuits")


def unit_data(topology: Topology, sources: I64, targets: I64) -> Overlap:
    """Data of the arc form for circuits given as arrays, each ``(|L|,)``, without checks."""
    circuits = Circuits(sources, targets, "given")
    return Overlap(routing_of(circuits, topology, PathRule("all")), circuits, "arc")


FORMULATION = Overlap
