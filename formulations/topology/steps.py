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
equal circuits are one, so that a collective that repeats a step changes once. The objective counts the changes of the
chosen topologies, so ``changed`` needs no check.

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

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.topology import steps_solution, timed_steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.instances.topology import F64, Mask


@dataclass(frozen=True, eq=False)
class TopologySteps(Formulation):
    """Data of the model.

    ``time`` and ``least`` are what flows achieve and what lengths prove, ``(m, |Q|)``, infinite outside the choices.
    """

    name = "topology.steps"
    where = "ours"
    example = "ring:8"
    problem = "MILP"
    parameters = timed_steps.PARAMETERS
    meaning = "time of all steps and changes [shards / link bandwidth]"
    variables: ClassVar = {"y": ("step", "topology"), "v": ("step", "topology")}
    constraints: ClassVar = {"one": ("step",), "changed": ("step", "topology")}
    _beside = (timed_steps, steps_solution)

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
        return b.minimize((self.time + self.startup)[C["step"], C["topology"]] @ y + self.delay * cp.sum(v))

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``y[i,q]``, ``v[i,q]`` for the choices."""
        b = Pyo(self)
        (Q,) = b.sets("topology")
        allowed, time = b.by_label(self.allowed, "step", "topology"), self.time.tolist()
        y = b.var("y", upper=1, integer=True, where=lambda *iq: allowed[iq])
        v = b.var("v", where=lambda *iq: allowed[iq])

        def before(i: int, q: int) -> Any:
            return y[i - 1, q] if i else int(q == 0)

        b.row("one", lambda i: b.sum(y[i, q] for q in Q if allowed[i, q]) == 1)
        b.row("changed", lambda i, q: v[i, q] >= y[i, q] - before(i, q), where=lambda *iq: allowed[iq])
        steps = b.sum((time[i][q] + self.startup) * y[i, q] for i, q in y)
        return b.minimize(steps + self.delay * b.sum(v[iq] for iq in v))

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
        return float((self.time[np.arange(len(chosen)), chosen] + self.startup).sum() + self.delay * changes)

    chosen = steps_solution.chosen_topologies


FORMULATION = TopologySteps
