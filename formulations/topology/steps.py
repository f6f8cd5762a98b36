r"""A collective step by step: keep the standing topology, or set other circuits after a delay.

Source  ours. The question: *When Light Bends to the Collective Will*, arXiv 2510.08072. Steps of known algorithms:
        :mod:`opticoll.instances.collective_steps`
Sets    i = 0..m-1 steps of the collective in order; q in Q topologies: 0 the standing one, others ``between``, and the
        circuits for each step's own exchanges; C in Q x steps, the choices: a topology for a step that it can serve
Data    c_iq time of step i on topology q, by concurrent flow [shards / link bandwidth], (m,|Q|), not a number outside
        C; delay >= 0 of a change of topology; startup >= 0 of a step [shards / link bandwidth]
Vars    y_iq in {0,1} whether step i runs on topology q, (i,q) in C, (m,|Q|); v_iq >= 0 whether topology q is set
        before step i, (i,q) in C, (m,|Q|)

min sum_iq (c_iq + startup) y_iq + delay sum_iq v_iq      s.t.
    one[i]           sum_q y_iq = 1
    changed[i,q]     v_iq >= y_iq - y_i-1,q            (i,q) in C; y_-1,0 = 1, and 0 for all others outside C

Before the first step the standing topology is there. Setting it again takes the delay like any other. Topologies with
equal circuits are one, so that a collective that repeats a step changes once.

c_iq is the least time in which flows within the capacities serve what the nodes send in step i (a fluid, which may be
relayed by other nodes). The method ``times`` solves these linear programs; their flows and duals are checked here, and
c_iq is what its flow achieves (:mod:`opticoll.formulations.topology.pattern_times`). The circuits of a step are
one-way; ``ports`` of them leave and enter every node
(:meth:`opticoll.instances.collective_steps.CollectiveStep.circuits`).

Choices. Without ``reuse``, circuits for a step serve that step alone (and equal ones). With it they may stay for later
steps and are choices for all. Left out is a choice other than the standing topology whose bound by hops exceeds the
time of the own circuits by two delays or more: changing to these circuits, and back, is as good.

Exactness. The matrix is that of a shortest walk through the choices, whose vertices are integral: y is a walk, and v_iq
the arcs that are charged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.topology import pattern_times
from opticoll.formulations.variables import Array, Axis, entries
from opticoll.instances import parse
from opticoll.instances.collective_steps import COLLECTIVES, FORMS, collective_steps
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from fractions import Fraction

    from opticoll.instances.collective_steps import CollectiveStep
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.types import Json, Settings


NAME = "topology.steps"
#: Largest relative distance of a time that a flow achieves from the bound that its duals prove.
TOLERANCE = 1e-6
#: Maximum number of flow variables of all steps and topologies together.
MOST_FLOWS = 4_000_000
#: Word for the collective that an algorithm performs by default.
USUAL = "usual"


@dataclass(frozen=True, eq=False)
class TopologySteps(Formulation):
    """Data of the model.

    ``time`` and ``least`` are what flows achieve and what lengths prove, ``(m, |Q|)``, infinite outside the choices.
    """

    name = NAME
    where = "ours"
    example = "ring:8"
    sense = "min"
    problem = "MILP"
    parameters = (
        Parameter("algorithm", str, default="recursive:2", help=FORMS),
        Parameter(
            "collective",
            str,
            default=USUAL,
            help="the collective; usual: all-to-all for shifts, bruck and retri, all-reduce for the others",
            choices=(USUAL, *COLLECTIVES),
        ),
        Parameter("delay", float, default=1.0, help="time of a change of topology [shards / link bandwidth]"),
        Parameter("startup", float, default=0.0, help="time before every step [shards / link bandwidth]"),
        Parameter("ports", int, default=0, help="one-way circuits out of and into a node; 0 for the degree"),
        Parameter("between", str, default="", help="specs of other topologies to choose from, separated by ;"),
        Parameter("reuse", bool, default=True, help="circuits set for a step may stay for others"),
        Parameter("times", str, "step-choice", "method that routes the steps", ("step-choice",), constructs=True),
    )
    meaning = "time of all steps and changes [shards / link bandwidth]"
    shards = True
    variables: ClassVar = {"y": ("step", "topology"), "v": ("step", "topology")}
    constraints: ClassVar = {"one": ("step",), "changed": ("step", "topology")}

    n: int
    steps: tuple[str, ...]
    topologies: tuple[str, ...]
    time: F64
    least: F64
    delay: float
    startup: float = 0.0
    circuits: tuple[F64, ...] = field(default=(), repr=False)

    @cached_property
    def allowed(self) -> Mask:
        """C: whether a topology may be chosen for a step, ``(m, |Q|)``."""
        return np.isfinite(self.time)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of steps and of topologies."""
        return len(self.steps), len(self.topologies)

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> TopologySteps:
        """Prepare the data of the model; ``times`` is the function that routes the steps.

        Raises
        ------
        NotApplicable
            For anything but a topology all of whose nodes are ranks, parameters out of range, or too many flows.
        BadInput
            For an algorithm that is unknown or does not fit the number of nodes.
        """
        given = cls._completed(parameters)
        if not isinstance(instance, Topology) or instance.num_ranks != instance.n:
            msg = f"{NAME}: needs a standing topology all of whose nodes are ranks, such as ring:8"
            raise NotApplicable(msg)
        delay, startup = given["delay"], given["startup"]
        ports = given["ports"]
        if not (0 <= delay < np.inf and 0 <= startup < np.inf and ports >= 0):
            msg = f"{NAME}: delay={delay:g}, startup={startup:g}, ports={ports}: give finite numbers of at least 0"
            raise NotApplicable(msg)
        collective = given["collective"]
        try:
            steps = collective_steps(given["algorithm"], instance.n, "" if collective == USUAL else collective)
        except BadInput as reason:
            msg = f"{NAME}: {reason}"
            raise BadInput(msg) from None
        others = [word.strip() for word in given["between"].split(";") if word.strip()]
        return steps_data(
            steps,
            _capacity(instance),
            ports=ports or int(max(np.bincount(instance.tail).max(), np.bincount(instance.head).max())),
            delay=delay,
            startup=startup,
            between={spec: _between(spec, instance.n) for spec in others},
            reuse=given["reuse"],
            route=given["times"],
        )

    def derived(self) -> list[Fraction]:
        """Times of the choices, with the start-up."""
        return [rounding.decimal(float(value)) for value in np.unique(self._cost[self.allowed])]

    @property
    def _cost(self) -> F64:
        return self.time + self.startup

    def sets(self) -> dict[str, range]:
        """Steps and topologies."""
        return {"step": range(len(self.steps)), "topology": range(len(self.topologies))}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the choices."""
        import cvxpy as cp

        b, C = Cvx(self), Index.of_mask("step topology", self.allowed)
        y, v = b.var("y", upper=1, integer=True, over=C), b.var("v", over=C)
        standing = (C["step"] == 0) & (C["topology"] == 0)
        before = C.of(C, step=C["step"] - 1) @ y + standing
        b.row("one", Index.grid(step=len(self.steps)).of(C) @ y == 1)
        b.row("changed", v >= y - before, over=C)
        return b.minimize(self._cost[C["step"], C["topology"]] @ y + self.delay * cp.sum(v))

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``y[i,q]``, ``v[i,q]`` for the choices."""
        from pyomo.core import quicksum

        b = Pyo(self)
        S, Q = b.sets("step", "topology")
        allowed, time = entries(self.allowed, S, Q), self.time.tolist()
        y = b.var("y", upper=1, integer=True, where=lambda *iq: allowed[iq])
        v = b.var("v", where=lambda *iq: allowed[iq])

        def before(i: int, q: int) -> Any:
            return y[i - 1, q] if i else int(q == 0)

        b.row("one", lambda i: quicksum(y[i, q] for q in Q) == 1)
        b.row("changed", lambda i, q: v[i, q] >= y[i, q] - before(i, q), where=lambda *iq: allowed[iq])
        steps = quicksum((time[i][q] + self.startup) * y[i, q] for i, q in y)
        return b.minimize(steps + self.delay * quicksum(v[iq] for iq in v))

    def estimate(self) -> dict[str, int]:
        """Size of the model."""
        choices = int(self.allowed.sum())
        kept = int((self.allowed[1:] & self.allowed[:-1]).sum())
        return {
            "variables": 2 * choices,
            "constraints": len(self.steps) + choices,
            "nonzeros": 3 * choices + kept,
            "integers": choices,
        }

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Shapes of y, or of the number of every step's topology, and of v, which follows."""
        step = Axis("step", len(self.steps), [f"{i}: {name}" for i, name in enumerate(self.steps)])
        if "topology" in names:
            return {"topology": Array((step,), low=0, high=len(self.topologies))}
        axes = step, Axis("topology", len(self.topologies), list(self.topologies))
        return {"y": Array(axes), "v": Array(axes, required=False)}

    def chosen(self, values: Mapping[str, F64]) -> I64:
        """Topology of every step, ``(m,)``."""
        if "topology" in values:
            return np.asarray(values["topology"], dtype=float).astype(np.int64)
        return np.asarray(np.nan_to_num(np.asarray(values["y"], dtype=float)).argmax(axis=1), dtype=np.int64)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block; v is not read."""
        chosen = self.chosen(values)
        result = {"allowed": float((~self.allowed[np.arange(len(chosen)), chosen]).any())}
        if "topology" not in values:
            y = np.nan_to_num(np.asarray(values["y"], dtype=float))
            result["integrality"] = float(np.abs(y - np.rint(np.clip(y, 0, 1))).max())
            result["one"] = float(np.abs(np.where(self.allowed, np.rint(y), 0.0).sum(axis=1) - 1.0).max())
        return result

    def objective(self, values: Mapping[str, F64]) -> float:
        """Time of all steps and changes."""
        chosen = self.chosen(values)
        changes = int((np.diff(chosen, prepend=0) != 0).sum())
        return float(self._cost[np.arange(len(chosen)), chosen].sum() + self.delay * changes)

    def bounds(self) -> list[Bound]:
        """Every step at its fastest; one change at least, or none."""
        least = rounding.sum_down(self.least.min(axis=1) + self.startup)
        stay = rounding.sum_down(self.least[:, 0] + self.startup) if self.allowed[:, 0].all() else np.inf
        once = rounding.sum_down([least, self.delay])
        word = "every step on its fastest topology"
        return [Bound("stay-or-change", min(stay, max(once, least)), f"{word}, with one change or none", "topology")]

    def describe(self, values: Mapping[str, F64]) -> dict[str, Json]:
        """Properties of a verified solution: the topology and time of every step, and the time on the standing one."""
        chosen = self.chosen(values)
        time = self.time[np.arange(len(chosen)), chosen]
        stay = float(self._cost[:, 0].sum())
        return {
            "changes": int((np.diff(chosen, prepend=0) != 0).sum()),
            "T_flow": float(time.sum()),
            "T_standing": stay if np.isfinite(stay) else None,
            "steps": [
                {"step": name, "topology": self.topologies[q], "time": float(one)}
                for name, q, one in zip(self.steps, chosen.tolist(), time, strict=True)
            ],
        }

    def metrics(self, value: float | None) -> Mapping[str, Json]:
        """Figures at a value."""
        return {} if value is None else {"T": value, "delay": self.delay}


def _capacity(topology: Topology) -> F64:
    result = np.zeros((topology.n, topology.n))
    np.add.at(result, (topology.tail, topology.head), topology.capacity)
    np.fill_diagonal(result, 0.0)
    return result


def _between(spec: str, n: int) -> F64:
    """Capacities of a topology named by a spec.

    Raises
    ------
    NotApplicable
        If it has other nodes.
    """
    topology = parse(spec)
    if not isinstance(topology, Topology) or topology.n != n or topology.num_ranks != n:
        msg = f"{NAME}: between={spec} must be a topology of {n} nodes, all of them ranks"
        raise NotApplicable(msg)
    return _capacity(topology)


def steps_data(
    steps: Sequence[CollectiveStep],
    standing: F64,
    *,
    ports: int,
    delay: float,
    route: Callable[[Sequence[tuple[F64, F64]]], list[pattern_times.PatternFlow | None]],
    startup: float = 0.0,
    between: Mapping[str, F64] | None = None,
    reuse: bool = True,
) -> TopologySteps:
    """Prepare the data of the model.

    Parameters
    ----------
    steps
        Steps of the collective in order.
    standing
        Capacities of the standing topology, ``(n, n)``.
    ports, delay, startup, reuse
        As the parameters of the formulation.
    route
        Function that gives a flow and lengths for every pair (capacities, demand), or None where nothing serves it.
    between
        Capacities of other topologies by name.

    Raises
    ------
    NotApplicable
        If some step has no topology, the flows are too many, or their times cannot be proven.
    """
    n = len(standing)
    names, capacities, own = ["standing"], [standing], []
    listed = {standing.tobytes(): 0}
    for name, capacity in (between or {}).items():
        if capacity.tobytes() not in listed:
            listed[capacity.tobytes()] = len(names)
            names.append(name)
            capacities.append(capacity)
    general = len(names)
    for i, step in enumerate(steps):
        capacity = step.circuits(ports).astype(float)
        if capacity.tobytes() not in listed:
            listed[capacity.tobytes()] = len(names)
            names.append(f"circuits of step {i}")
            capacities.append(capacity)
        own.append(listed[capacity.tobytes()])
    patterns: dict[bytes, int] = {}
    which = [patterns.setdefault(step.demand.tobytes(), len(patterns)) for step in steps]
    demands = [steps[which.index(p)].demand for p in range(len(patterns))]
    mine = {p: {own[i] for i in range(len(steps)) if which[i] == p} for p in range(len(patterns))}
    time, least = _times(demands, capacities, mine, range(general), delay, route, reuse=reuse)
    missing = np.flatnonzero(np.isinf(time).all(axis=1))
    if missing.size:
        i = which.index(int(missing[0]))
        msg = f"{NAME}: no topology serves step {i} ({steps[i].name}); give more ports, or a topology between"
        raise NotApplicable(msg)
    every = np.array(which)
    return TopologySteps(
        n,
        tuple(step.name for step in steps),
        tuple(names),
        time[every],
        least[every],
        delay,
        startup,
        tuple(capacities),
    )


def _times(
    demands: Sequence[F64],
    capacities: Sequence[F64],
    own: Mapping[int, set[int]],
    general: range,
    delay: float,
    route: Callable[[Sequence[tuple[F64, F64]]], list[pattern_times.PatternFlow | None]],
    *,
    reuse: bool,
) -> tuple[F64, F64]:
    """Times that flows achieve and bounds that lengths prove, by pattern and topology, infinite where not chosen."""
    time = np.full((len(demands), len(capacities)), np.inf)
    least = time.copy()
    _refuse_large(demands, capacities, own, general, reuse=reuse)

    def fill(choices: list[tuple[int, int]]) -> None:
        pairs = [(capacities[q], demands[p]) for p, q in choices]
        for (p, q), (capacity, demand), flow in zip(choices, pairs, route(pairs), strict=True):
            if flow is None:
                continue
            reached = pattern_times.achieved(capacity, demand, flow)
            proven = pattern_times.least(capacity, demand, flow.lengths)
            if not proven <= reached <= proven * (1 + TOLERANCE):
                msg = (
                    f"{NAME}: the flow of a step takes {reached:g}, but its duals prove only {proven:g}; "
                    "use capacities that differ less"
                )
                raise NotApplicable(msg)
            time[p, q], least[p, q] = reached, proven

    fill([(p, q) for p in own for q in sorted(own[p])])
    later = []
    for p, demand in enumerate(demands):
        for q in range(len(capacities)) if reuse else general:
            if q not in own[p]:
                far = pattern_times.hops(capacities[q], demand)
                if np.isfinite(far) and (q == 0 or far < time[p].min() + 2 * delay):
                    later.append((p, q))
    fill(later)
    return time, least


def _refuse_large(
    demands: Sequence[F64], capacities: Sequence[F64], own: Mapping[int, set[int]], general: range, *, reuse: bool
) -> None:
    total = 0
    for p, demand in enumerate(demands):
        for q in range(len(capacities)) if reuse else {*general, *own[p]}:
            alike = pattern_times.differences(capacities[q], demand) is not None
            total += int((capacities[q] > 0).sum()) * (1 if alike else len(demand))
    if total > MOST_FLOWS:
        msg = f"{NAME}: the steps have {total:,} flows on all topologies; use fewer nodes, or reuse=false"
        raise NotApplicable(msg)


FORMULATION = TopologySteps
