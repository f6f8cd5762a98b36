"""Small Pyomo and CVXPY models as other people write them, and their optima by the layers' own solvers.

Run as a script, it solves all of them with HiGHS through Pyomo and CVXPY, and prints the values as JSON: a solver's
library stays out of the process that runs the tests.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.modelling_layers import import_layer

if TYPE_CHECKING:
    from collections.abc import Callable

ARCS = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]


@dataclass(frozen=True)
class Case:
    """A function that returns a model; ``unique`` unless it has several optimal solutions."""

    build: Callable[[], Any]
    unique: bool = True


PYOMO: dict[str, Case] = {}
CVXPY: dict[str, Case] = {}
#: Models that no solution satisfies.
INFEASIBLE: dict[str, Callable[[], Any]] = {}
#: Models whose objective improves without limit.
UNBOUNDED: dict[str, Callable[[], Any]] = {}
#: Models that are refused: a function that returns one, and a pattern for the reason, which names the component.
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {}


def pyomo_case(function: Any = None, *, unique: bool = True) -> Any:
    """Add a function that fills a ConcreteModel, or returns a model, to the Pyomo cases."""

    def add(fill: Callable[[Any], Any]) -> Callable[[Any], Any]:
        PYOMO[fill.__name__] = Case(pyomo_build(fill), unique)
        return fill

    return add if function is None else add(function)


def pyomo_build(fill: Callable[[Any, Any], Any]) -> Callable[[], Any]:
    """A function without arguments that returns the model which ``fill(model, pyo)`` completes or returns."""

    def build() -> Any:
        import pyomo.environ as pyo

        model = pyo.ConcreteModel()
        result = fill(model, pyo)
        return model if result is None else result

    return build


def cvxpy_case(function: Any = None, *, unique: bool = True) -> Any:
    """Add a function of the module ``cvxpy`` that returns a problem to the CVXPY cases."""

    def add(state: Callable[[Any], Any]) -> Callable[[Any], Any]:
        CVXPY[state.__name__] = Case(cvxpy_build(state), unique)
        return state

    return add if function is None else add(function)


def cvxpy_build(state: Callable[[Any], Any]) -> Callable[[], Any]:
    """A function without arguments that returns the problem ``state(cvxpy)``."""

    def build() -> Any:
        import cvxpy

        return state(cvxpy)

    return build


def infeasible(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a function of ``(model, pyo)`` or of ``cp`` to the infeasible models."""
    pyomo = function.__code__.co_argcount == 2
    INFEASIBLE[function.__name__] = pyomo_build(function) if pyomo else cvxpy_build(function)
    return function


def unbounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a function of ``(model, pyo)`` or of ``cp`` to the unbounded models."""
    pyomo = function.__code__.co_argcount == 2
    UNBOUNDED[function.__name__] = pyomo_build(function) if pyomo else cvxpy_build(function)
    return function


def refused(pattern: str) -> Callable[..., Any]:
    """Add a function of ``(model, pyo)`` or of ``cp`` to the models that are refused with a reason."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        pyomo = function.__code__.co_argcount == 2
        REFUSED[function.__name__] = (pyomo_build(function) if pyomo else cvxpy_build(function), pattern)
        return function

    return add


# Pyomo: blocks -------------------------------------------------------------------------------------------------


@pyomo_case
def blocks(m, pyo):
    def rule(b, i):
        b.f = pyo.Var(bounds=(0, 10))
        b.least = pyo.Constraint(expr=b.f >= 3 + i)

    m.b = pyo.Block(range(2), rule=rule)
    m.cost = pyo.Objective(expr=m.b[0].f + m.b[1].f)


@pyomo_case
def nested_blocks(m, pyo):
    def inner(b, k):
        b.f = pyo.Var(["x", "y"], within=pyo.NonNegativeReals)
        b.least = pyo.Constraint(["x", "y"], rule=lambda b, k: b.f[k] >= {"x": 1, "y": 2}[k])

    def outer(b, i):
        b.f = pyo.Var(bounds=(1, 9))
        b.part = pyo.Block(["left", "right"], rule=inner)
        b.link = pyo.Constraint(expr=b.f >= sum(b.part[k].f["x"] + 0.5 * i * b.part[k].f["y"] for k in b.part))

    m.node = pyo.Block([1, 2], rule=outer)
    m.f = pyo.Var(bounds=(0, None))
    m.top = pyo.Constraint(expr=m.f >= m.node[1].f + m.node[2].f)
    m.cost = pyo.Objective(expr=m.f + 0.1 * sum(v for v in m.component_data_objects(pyo.Var)))


@pyomo_case
def deactivated_block(m, pyo):
    m.x = pyo.Var(bounds=(0, 9))
    m.off = pyo.Block()
    m.off.x = pyo.Var(bounds=(7, 8))
    m.off.unused = pyo.Var(bounds=(3, 2))
    m.off.never = pyo.Constraint(expr=m.x <= -1)
    m.least = pyo.Constraint(expr=m.x + m.off.x >= 12)
    m.off.deactivate()
    m.cost = pyo.Objective(expr=m.x + 2 * m.off.x)


# Pyomo: fixed variables, parameters, expressions -------------------------------------------------------------


@pyomo_case
def fixed_variables(m, pyo):
    m.x = pyo.Var(range(3), bounds=(0, 9))
    m.x[1].fix(2.5)
    m.c = pyo.Constraint(range(2), rule=lambda m, i: m.x[i] + m.x[i + 1] >= 5 + i)
    m.cost = pyo.Objective(expr=sum(m.x[i] for i in range(3)))


@pyomo_case
def fixed_outside_its_bounds(m, pyo):
    m.x = pyo.Var(within=pyo.Binary)
    m.x.fix(3)
    m.y = pyo.Var()
    m.c = pyo.Constraint(expr=m.y >= m.x)
    m.cost = pyo.Objective(expr=m.y)


@pyomo_case
def products_with_a_fixed_entry(m, pyo):
    m.x = pyo.Var([1, 2, 3], bounds=(0, 4))
    m.x[2].fix(1.5)
    m.c = pyo.Constraint(expr=m.x[1] * m.x[2] + m.x[3] / m.x[2] <= 5)
    m.value = pyo.Objective(expr=m.x[2] ** 2 * m.x[1] + m.x[3] + m.x[2] * m.x[2], sense=pyo.maximize)


@pyomo_case
def every_variable_fixed(m, pyo):
    m.x = pyo.Var([1, 2])
    m.x.fix(1.5)
    m.c = pyo.Constraint(expr=m.x[1] + m.x[2] <= 3)
    m.cost = pyo.Objective(expr=m.x[1] + 2 * m.x[2])


@pyomo_case
def ranges(m, pyo):
    m.x = pyo.Var(bounds=(None, None))
    m.y = pyo.Var(bounds=(None, 3))
    m.sum = pyo.Expression(expr=m.x + m.y + 1)
    m.range = pyo.Constraint(expr=(2, m.sum, 5))
    m.difference = pyo.Constraint(expr=pyo.inequality(-1, m.x - m.y, 1))
    m.gain = pyo.Objective(expr=m.x + 2 * m.y, sense=pyo.maximize)


# Pyomo: indices ------------------------------------------------------------------------------------------------


@pyomo_case
def arcs_and_commodities(m, pyo):
    m.A, m.K = pyo.Set(initialize=ARCS, dimen=2), pyo.Set(initialize=["k", 7])
    m.f = pyo.Var(m.A, m.K, within=pyo.NonNegativeReals)
    m.room = pyo.Constraint(m.A, rule=lambda m, u, v: m.f[u, v, "k"] + m.f[u, v, 7] <= len(u + v) + (u == "a"))
    m.most = pyo.Constraint(m.K, rule=lambda m, k: sum(m.f[a, k] for a in m.A) <= (4 if k == 7 else 3.5))
    m.gain = pyo.Objective(
        expr=sum((i + 1 + (k == 7)) * m.f[a, k] for i, a in enumerate(ARCS) for k in m.K), sense=pyo.maximize
    )


@pyomo_case
def numpy_indices(m, pyo):
    m.x = pyo.Var(np.arange(4), bounds=(0, None))
    m.y = pyo.Var(np.array([3, 5]), np.array(["p", "q"]), bounds=(1, 2))
    m.c = pyo.Constraint(np.arange(4), rule=lambda m, i: m.x[i] >= int(i))
    m.cost = pyo.Objective(expr=sum(m.x[i] for i in range(4)) + sum(m.y[k] for k in m.y))


@pyomo_case
def huge_indices(m, pyo):
    m.x = pyo.Var([0, 10**8], bounds=(0, 1))
    m.pair = pyo.Var([(0, 10**8), (10**8, 7)], bounds=(1, 3))
    m.c = pyo.Constraint([5, 10**8], rule=lambda m, i: m.x[0] + m.x[10**8] >= 1.5 - 1 / i)
    m.cost = pyo.Objective(expr=m.x[0] + 2 * m.x[10**8] + m.pair[0, 10**8] + m.pair[10**8, 7])


@pyomo_case
def sparse_product(m, pyo):
    m.R = pyo.RangeSet(300)
    m.x = pyo.Var(m.R, m.R, dense=False, bounds=(2, 4))
    m.c = pyo.Constraint(expr=m.x[1, 299] + m.x[70, 2] >= 5)
    m.cost = pyo.Objective(expr=2 * m.x[1, 299] + m.x[70, 2])


@pyomo_case
def mixed_indices(m, pyo):
    m.S = pyo.Set(initialize=[1, "1", (2, "b"), ("c", 3, 1.5), None], dimen=None)
    m.x = pyo.Var(m.S, bounds=(0, 9))
    m.c = pyo.ConstraintList()
    for i, k in enumerate(m.S):
        m.c.add(m.x[k] >= i + 0.5)
    m.cost = pyo.Objective(expr=sum(m.x[k] for k in m.S))


@pyomo_case
def one_based_and_reversed(m, pyo):
    m.x = pyo.Var(pyo.RangeSet(3), bounds=(0, 5))
    m.y = pyo.Var([2, 0, 1], bounds=(0, 5))
    m.c = pyo.Constraint([1, 2, 3], rule=lambda m, i: m.x[i] + m.y[i - 1] >= i)
    m.cost = pyo.Objective(expr=sum(m.x[i] + 2 * m.y[i - 1] for i in (1, 2, 3)))


@pyomo_case
def no_indices(m, pyo):
    m.nothing = pyo.Var([], bounds=(1, 2))
    m.x = pyo.Var(bounds=(1, 2))
    m.cost = pyo.Objective(expr=m.x + sum(m.nothing[i] for i in m.nothing))


@pyomo_case
def indices_with_blanks_and_brackets(m, pyo):
    m.site = pyo.Block(["New York", "Zürich, CH", "a.b"])
    for k in m.site:
        m.site[k].x = pyo.Var([("New York", "x"), ("[y]", "7")], bounds=(1, 5))
    m.c = pyo.Constraint(expr=m.site["a.b"].x["[y]", "7"] >= 2)
    m.cost = pyo.Objective(expr=sum(b.x[k] for b in m.site.values() for k in b.x))


# Pyomo: constraints, objectives ---------------------------------------------------------------------------------


@pyomo_case
def skipped_and_trivial_constraints(m, pyo):
    m.x = pyo.Var(range(4), bounds=(0, 5))
    m.x[3].fix(1)

    def rule(m, i):
        if i == 0:
            return pyo.Constraint.Skip
        return pyo.Constraint.Feasible if i == 1 else m.x[i] >= 0.75 * i

    m.c = pyo.Constraint(range(3), rule=rule)
    m.always = pyo.Constraint(expr=m.x[3] <= 2)
    m.free = pyo.Constraint(expr=pyo.inequality(None, m.x[0] + m.x[1], float("inf")))
    m.nothing = pyo.Constraint(expr=0 * m.x[0] <= 1)
    m.cost = pyo.Objective(expr=sum(m.x[i] for i in range(4)))


@pyomo_case
def no_objective(m, pyo):
    m.x = pyo.Var(bounds=(0, 9))
    m.c = pyo.Constraint(expr=m.x == 4)


@pyomo_case
def objective_that_is_a_constant(m, pyo):
    m.x = pyo.Var(bounds=(0, 9))
    m.c = pyo.Constraint(expr=2 * m.x == 4)
    m.cost = pyo.Objective(expr=7, sense=pyo.maximize)


@pyomo_case
def second_objective_deactivated(m, pyo):
    m.x = pyo.Var(bounds=(1, 9))
    m.goal = pyo.Objective(["low", "high"], rule=lambda m, k: m.x if k == "low" else -m.x)
    m.other = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.goal["high"].deactivate()
    m.other.deactivate()


@pyomo_case
def references(m, pyo):
    m.b = pyo.Block(range(2))
    for i in range(2):
        m.b[i].x = pyo.Var(["p", "q"], bounds=(i, 5))
    m.all = pyo.Reference(m.b[:].x[:])
    m.c = pyo.Constraint(expr=sum(m.all[k] for k in m.all) >= 3)
    m.cost = pyo.Objective(expr=sum((i + 1) * m.all[k] for i, k in enumerate(m.all)))


@pyomo_case
def unused_variables(m, pyo):
    m.x = pyo.Var(bounds=(1, 2))
    m.away = pyo.Var(range(2), bounds=(3, 4))
    m.below = pyo.Var(within=pyo.NegativeIntegers)
    m.unused = pyo.Var(["s"], within=pyo.Binary)
    m.nothing = pyo.Constraint(expr=m.x + 0 * m.away[0] >= 0)
    m.cost = pyo.Objective(expr=m.x)


@pyomo_case(unique=False)
def disjunction_after_big_m(m, pyo):
    from pyomo.gdp import Disjunction

    m.x, m.y = pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 10))
    m.either = Disjunction(expr=[[m.x >= 6, m.y <= 1], [m.x <= 1, m.y >= 4]])
    m.c = pyo.Constraint(expr=m.x + m.y >= 5)
    m.cost = pyo.Objective(expr=m.x + m.y)
    pyo.TransformationFactory("gdp.bigm").apply_to(m)


@pyomo_case(unique=False)
def discretized_differential_equation(m, pyo):
    from pyomo.dae import ContinuousSet, DerivativeVar

    m.t = ContinuousSet(bounds=(0, 1))
    m.x, m.u = pyo.Var(m.t, bounds=(0, 5)), pyo.Var(m.t, bounds=(0, 2))
    m.dxdt = DerivativeVar(m.x, wrt=m.t)
    m.ode = pyo.Constraint(m.t, rule=lambda m, t: m.dxdt[t] == m.u[t])
    m.start = pyo.Constraint(expr=m.x[0] == 1)
    pyo.TransformationFactory("dae.finite_difference").apply_to(m, nfe=3, wrt=m.t)
    m.gain = pyo.Objective(expr=m.x[1], sense=pyo.maximize)


@pyomo_case
def flows_through_ports(m, pyo):
    from pyomo.network import Arc, Port

    m.x, m.y = pyo.Var(bounds=(1, 5)), pyo.Var(bounds=(0, 9))
    m.p, m.q = Port(initialize={"v": m.x}), Port(initialize={"v": m.y})
    m.link = Arc(source=m.p, destination=m.q)
    pyo.TransformationFactory("network.expand_arcs").apply_to(m)
    m.cost = pyo.Objective(expr=m.x + m.y)


# Pyomo: domains -------------------------------------------------------------------------------------------------


def domain_case(name: str, domain: Callable[[Any], Any]) -> None:
    """Maximise and, in a second variable, minimise over a domain."""

    def fill(m: Any, pyo: Any) -> None:
        m.high, m.low = pyo.Var(within=domain(pyo)), pyo.Var(within=domain(pyo))
        m.room = pyo.Constraint(expr=m.high <= 3.7)
        m.least = pyo.Constraint(expr=m.low >= -2.6)
        m.gain = pyo.Objective(expr=m.high - m.low, sense=pyo.maximize)

    PYOMO[f"domain_{name}"] = Case(pyomo_build(fill))


for _name in (
    "Reals",
    "NonNegativeReals",
    "UnitInterval",
    "Integers",
    "NonPositiveIntegers",
    "Binary",
):
    domain_case(_name, lambda pyo, name=_name: getattr(pyo, name))
domain_case("whole_range", lambda pyo: pyo.RangeSet(-1, 5))
domain_case("interval", lambda pyo: pyo.RangeSet(-1.5, 2.5, 0))
domain_case("whole_numbers_in_a_set", lambda pyo: pyo.Set(initialize=[1, 2, 3]))


@pyomo_case
def integers_with_fractional_bounds(m, pyo):
    m.x = pyo.Var(within=pyo.Integers, bounds=(0.5, 2.5))
    m.y = pyo.Var(within=pyo.Integers, bounds=(0.5, 2.5))
    m.gain = pyo.Objective(expr=m.x - m.y, sense=pyo.maximize)


def refused_domain(name: str, domain: Callable[[Any], Any]) -> None:
    """A variable of a domain that is neither an interval nor whole numbers."""

    def fill(m: Any, pyo: Any) -> None:
        m.b = pyo.Block()
        m.b.x = pyo.Var(["k"], within=domain(pyo))
        m.cost = pyo.Objective(expr=m.b.x["k"])

    REFUSED[f"domain_{name}"] = (pyomo_build(fill), r"the Pyomo variable 'b\.x\[k\]' has the domain .*; choose")


refused_domain("steps", lambda pyo: pyo.RangeSet(0, 10, 2))
refused_domain("any", lambda pyo: pyo.Any)


# Pyomo: infeasible and refused ------------------------------------------------------------------------------------


@infeasible
def violated_by_fixed_variables(m, pyo):
    m.x = pyo.Var(range(3), bounds=(0, 5))
    m.x[0].fix(1)
    m.c = pyo.Constraint(["never", "fine"], rule=lambda m, k: m.x[0] >= 2 if k == "never" else m.x[1] >= 1)
    m.cost = pyo.Objective(expr=m.x[1] + m.x[2])


@infeasible
def violated_by_parameters(m, pyo):
    m.x = pyo.Var(range(2), bounds=(0, 5))
    m.need = pyo.Param(initialize=2, mutable=True)
    m.have = pyo.Param(initialize=1, mutable=True)
    m.c = pyo.Constraint(["never", "fine"], rule=lambda m, k: m.have >= m.need if k == "never" else m.x[1] >= 1)
    m.d = pyo.Constraint(expr=(1.5, m.have + 0 * m.x[0], 9))
    m.cost = pyo.Objective(expr=m.x[0] + m.x[1])


@infeasible
def infeasible_by_its_rule(m, pyo):
    m.x = pyo.Var(bounds=(0, 5))
    m.c = pyo.Constraint([1, 2], rule=lambda m, i: m.x >= 1 if i == 1 else pyo.Constraint.Infeasible)
    m.cost = pyo.Objective(expr=m.x)


@infeasible
def range_that_is_empty(m, pyo):
    m.x = pyo.Var()
    m.p = pyo.Param(initialize=5, mutable=True)
    m.c = pyo.Constraint(expr=(m.p, m.x, 4))
    m.cost = pyo.Objective(expr=m.x)


@infeasible
def bounds_of_an_unused_variable(m, pyo):
    m.x = pyo.Var(bounds=(3, 2))
    m.y = pyo.Var(bounds=(0, 1))
    m.cost = pyo.Objective(expr=m.y)


@unbounded
def equation_that_leaves_a_line(m, pyo):
    m.x, m.y = pyo.Var(), pyo.Var()
    m.c = pyo.Constraint(expr=m.x - m.y <= 3)
    m.cost = pyo.Objective(expr=m.x - m.y)


@unbounded
def integers_on_a_line(m, pyo):
    m.x = pyo.Var([0, 1], domain=pyo.Integers)
    m.c = pyo.Constraint(expr=2 * m.x[0] - 3 * m.x[1] == 1)
    m.value = pyo.Objective(expr=m.x[0] + m.x[1], sense=pyo.maximize)


@unbounded
def sum_of_absolute_values(cp):
    x = cp.Variable(3, name="x")
    return cp.Problem(cp.Minimize(cp.norm1(x) - 2 * cp.sum(x)))


@infeasible
def false_itself(cp):
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1, False])


@refused(r"2 active objectives, 'one', 'b\.two'; deactivate")
def two_objectives(m, pyo):
    m.x = pyo.Var(bounds=(0, 1))
    m.b = pyo.Block()
    m.one, m.b.two = pyo.Objective(expr=m.x), pyo.Objective(expr=-m.x)


@refused(r"'design' is abstract; return model\.create_instance")
def abstract_model(m, pyo):
    model = pyo.AbstractModel("design")
    model.x = pyo.Var()
    model.cost = pyo.Objective(rule=lambda m: m.x)
    return model


@refused(r"'b\.sos' is of type SOSConstraint")
def special_ordered_set(m, pyo):
    m.b = pyo.Block()
    m.x = pyo.Var([1, 2, 3], bounds=(0, 1))
    m.b.sos = pyo.SOSConstraint(var=m.x, sos=2)
    m.cost = pyo.Objective(expr=sum(m.x[i] for i in (1, 2, 3)))


@refused(r"'either.*' is of type Disjunct(ion)?, .*gdp\.bigm")
def disjunction(m, pyo):
    from pyomo.gdp import Disjunction

    m.x = pyo.Var(bounds=(0, 9))
    m.either = Disjunction(expr=[[m.x <= 1], [m.x >= 4]])
    m.cost = pyo.Objective(expr=m.x)


@refused(r"'both' is of type LogicalConstraint, .*logical_to_linear")
def logical_constraint(m, pyo):
    m.yes = pyo.BooleanVar(["p", "q"])
    m.both = pyo.LogicalConstraint(expr=pyo.land(m.yes["p"], m.yes["q"]))
    m.x = pyo.Var(bounds=(0, 1))
    m.cost = pyo.Objective(expr=m.x)


@refused(r"'link' is of type Arc, .*expand_arcs")
def network_arc(m, pyo):
    from pyomo.network import Arc, Port

    m.x, m.y = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(0, 1))
    m.p, m.q = Port(initialize={"v": m.x}), Port(initialize={"v": m.y})
    m.link = Arc(source=m.p, destination=m.q)
    m.cost = pyo.Objective(expr=m.x)


@refused(r"'dxdt' is of type DerivativeVar, .*finite_difference")
def differential_equation(m, pyo):
    from pyomo.dae import ContinuousSet, DerivativeVar

    m.t = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(m.t, bounds=(0, 1))
    m.dxdt = DerivativeVar(m.x)
    m.cost = pyo.Objective(expr=m.x[0])


@refused(r"cannot compile the constraint 'square\[k\]' to a linear form: .* nonlinear")
def nonlinear_constraint(m, pyo):
    m.x = pyo.Var(bounds=(0, 1))
    m.square = pyo.Constraint(["k"], rule=lambda m, k: m.x**2 <= 1)
    m.cost = pyo.Objective(expr=m.x)


@refused(r"cannot compile the objective 'product' to a linear form: .* nonlinear")
def nonlinear_objective(m, pyo):
    m.x = pyo.Var(range(2), bounds=(0, 1))
    m.product = pyo.Objective(expr=m.x[0] * m.x[1])


@refused(r"'x\[b\]' is fixed without a value")
def fixed_without_a_value(m, pyo):
    m.x = pyo.Var(["a", "b"], bounds=(0, 1))
    m.x["b"].fixed = True
    m.c = pyo.Constraint(expr=m.x["a"] + m.x["b"] >= 1)
    m.cost = pyo.Objective(expr=m.x["a"])


@refused(r"cannot compile the constraint 'c\[b\]' to a linear form: .*Param value \(need\[b\]\)")
def parameter_without_a_value(m, pyo):
    m.need = pyo.Param(["a", "b"], mutable=True, initialize={"a": 1}, within=pyo.Reals)
    m.x = pyo.Var(["a", "b"], bounds=(0, 5))
    m.c = pyo.Constraint(["a", "b"], rule=lambda m, k: m.x[k] >= m.need[k])
    m.cost = pyo.Objective(expr=m.x["a"] + m.x["b"])


@refused(r"cannot compile the constraint 'share\[q\]' to a linear form: .*division by zero")
def division_by_a_parameter_that_is_zero(m, pyo):
    m.p = pyo.Param(["p", "q"], initialize={"p": 1, "q": 0}, mutable=True)
    m.x = pyo.Var(bounds=(0, 1))
    m.share = pyo.Constraint(["p", "q"], rule=lambda m, k: m.x / m.p[k] <= 1)
    m.cost = pyo.Objective(expr=m.x)


@refused(r"the bounds of the Pyomo variable 'x\[b\]' cannot be evaluated: .*room\[b\]")
def bound_without_a_value(m, pyo):
    m.room = pyo.Param(["a", "b"], mutable=True, initialize={"a": 1}, within=pyo.Reals)
    m.x = pyo.Var(["a", "b"], bounds=lambda m, k: (0, m.room[k]))
    m.cost = pyo.Objective(expr=m.x["a"] + m.x["b"])


@refused(r"returned a Pyomo .*block.*return a pyo\.ConcreteModel")
def kernel_model(m, pyo):
    import pyomo.kernel as pmo

    model = pmo.block()
    model.x = pmo.variable(lb=0)
    model.cost = pmo.objective(model.x)
    return model


# CVXPY --------------------------------------------------------------------------------------------------------------


@cvxpy_case
def symmetric_bounded_integers(cp):
    x = cp.Variable((3, 3), name="x", symmetric=True, integer=True, bounds=[-2, 4])
    return cp.Problem(cp.Maximize(cp.trace(x) - x[0, 2] + 2 * x[1, 0]), [cp.sum(x[0]) <= 3.5, x[2, 1] == 1, x[1] >= 0])


@cvxpy_case
def diagonal(cp):
    x = cp.Variable((3, 3), name="x", diag=True)
    y = cp.Variable(2, name="y", nonneg=True)
    return cp.Problem(cp.Minimize(cp.sum(x) + cp.sum(y)), [cp.diag(x) >= np.array([1, 2, 3]), y[0] >= x[1, 1]])


@cvxpy_case
def sparse_with_bounds(cp):
    x = cp.Variable((3, 3), name="x", sparsity=([0, 2], [2, 1]), bounds=[-1, 4])
    return cp.Problem(cp.Maximize(x[0, 2] - x[2, 1] + x[1, 1]), [cp.sum(x) <= 2.5])


@cvxpy_case
def signs(cp):
    p, n, q = (cp.Variable(2, name=k, **{k: True}) for k in ("nonneg", "nonpos", "pos"))
    return cp.Problem(cp.Minimize(cp.sum(p) + cp.sum(q) - cp.sum(n)), [p - n >= 1, p <= 0.25, q >= 0.5])


@cvxpy_case
def boolean_entries(cp):
    x = cp.Variable((2, 2), name="x", boolean=([0, 1], [0, 1]))
    return cp.Problem(cp.Maximize(cp.sum(x)), [x <= 0.75 * np.array([[1, 1], [1, 4]]), x >= 0])


@cvxpy_case
def integer_entries(cp):
    x = cp.Variable(3, name="x", integer=([0, 2],), bounds=[0, np.array([2.5, 2.5, 1.5])])
    return cp.Problem(cp.Maximize(cp.sum(x)), [])


@cvxpy_case
def bounds_with_arrays(cp):
    x = cp.Variable((2, 2), name="x", bounds=[np.array([[1.0, -np.inf], [0, 2]]), None])
    return cp.Problem(cp.Minimize(cp.sum(x)), [x[0, 1] >= -3, x <= 9])


@cvxpy_case
def sparse_parameter(cp):
    from scipy.sparse import coo_array

    x, p = cp.Variable((2, 2), name="x"), cp.Parameter((2, 2), name="p", sparsity=([0], [1]))
    p.value_sparse = coo_array(([3.0], ([0], [1])), shape=(2, 2))
    return cp.Problem(cp.Minimize(cp.sum(x)), [x >= p])


@cvxpy_case
def three_dimensions(cp):
    x = cp.Variable((2, 3, 2), name="x")
    return cp.Problem(cp.Minimize(cp.sum(x)), [x >= np.arange(12).reshape(2, 3, 2)])


@cvxpy_case(unique=False)
def variable_without_effect(cp):
    x, y = cp.Variable(2, name="x", bounds=[1, 2]), cp.Variable((2, 2), name="y", symmetric=True)
    return cp.Problem(cp.Minimize(cp.sum(x) + 0 * cp.sum(y)), [y >= 3])


@cvxpy_case
def size_zero(cp):
    x, y = cp.Variable(0, name="x"), cp.Variable(2, name="y")
    return cp.Problem(cp.Minimize(cp.sum(y) + cp.sum(x)), [y >= 1, x >= 1])


@cvxpy_case
def constant_objective(cp):
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Maximize(3), [x == np.array([1, 2])])


@refused(r"variable 'z' is complex; state its real")
def complex_variable(cp):
    z = cp.Variable(2, name="z", complex=True)
    return cp.Problem(cp.Minimize(cp.sum(cp.real(z))), [cp.real(z) >= 1, cp.imag(z) == 2])


@refused(r"variable 'S' is PSD, which is not linear")
def positive_semidefinite(cp):
    S = cp.Variable((2, 2), name="S", PSD=True)
    return cp.Problem(cp.Minimize(cp.trace(S)), [S >= 1])


@refused(r"its constraint SOC\(.* is not linear")
def cone_constraint(cp):
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum(x)), [x >= -3, cp.SOC(cp.Constant(1), x)])


@refused(r"its objective minimize .*(quad_over_lin|power)\(.* is not linear")
def quadratic_objective(cp):
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum_squares(x)), [x >= 1])


@refused(r"its objective minimize .*\(.* is not linear")
def frobenius_norm_in_an_unbounded_objective(cp):
    x = cp.Variable((2, 2), name="x")
    return cp.Problem(cp.Minimize(cp.norm(x, "fro") - 3 * cp.sum(x)))


@refused(r"its objective minimize \w+\(x.*\) is not DCP")
def objective_that_is_not_dcp(cp):
    x = cp.Variable(name="x", nonneg=True)
    return cp.Problem(cp.Minimize(cp.sqrt(x)), [x >= 2])


@refused(r"its constraint x @ y <= 1\.0 is not DCP")
def constraint_that_is_not_dcp(cp):
    x, y = cp.Variable(2, name="x"), cp.Variable(2, name="y")
    return cp.Problem(cp.Minimize(cp.sum(x)), [x >= 2, x @ y <= 1])


@refused(r"parameter 'price' of shape \(2,\) has no value")
def cvxpy_parameter_without_a_value(cp):
    x, price = cp.Variable(2, name="x", nonneg=True), cp.Parameter(2, name="price")
    return cp.Problem(cp.Minimize(price @ x), [x <= 1])


def by_its_own_solver(form: str, case: Case) -> dict[str, Any]:
    """Optimum of a model by HiGHS through its own layer, and the value of every variable that the layer reports."""
    model = case.build()
    if form == "cvxpy":
        import cvxpy as cp

        value = model.solve(solver=cp.HIGHS)
        values = {
            v.name(): np.asarray(v.value.toarray() if hasattr(v.value, "toarray") else v.value).tolist()
            for v in model.variables()
        }
        return {"objective": float(value), "values": values}
    import pyomo.environ as pyo

    objectives = list(model.component_data_objects(pyo.Objective, active=True))
    if not objectives:  # which this interface does not accept
        model.nothing_to_minimize = pyo.Objective(expr=0)
    pyo.SolverFactory("appsi_highs").solve(model)
    values = {v.name: v.value for v in model.component_data_objects(pyo.Var, active=None)}
    return {"objective": float(pyo.value(objectives[0])) if objectives else 0.0, "values": values}


def claims_unbounded(build: Callable[[], Any]) -> bool:
    """Whether HiGHS through the model's own layer ends with unbounded, or with unbounded or infeasible."""
    model = build()
    if type(model).__module__.startswith("cvxpy"):
        import cvxpy as cp

        model.solve(solver=cp.HIGHS)
        return model.status in {cp.UNBOUNDED, cp.settings.INFEASIBLE_OR_UNBOUNDED}
    import pyomo.environ as pyo

    ended = pyo.SolverFactory("appsi_highs").solve(model, load_solutions=False).solver.termination_condition
    return str(ended) in {"unbounded", "infeasibleOrUnbounded"}


def main() -> None:
    """Print the optima of all cases, and what the own solvers say about the unbounded ones."""
    warnings.simplefilter("ignore")
    for form in ("pyomo", "cvxpy"):
        import_layer(form)  # without what Pyomo imports beside it
    forms = {"pyomo": PYOMO, "cvxpy": CVXPY}
    optima = {f: {k: by_its_own_solver(f, c) for k, c in cases.items()} for f, cases in forms.items()}
    print(json.dumps(optima | {"unbounded": {k: claims_unbounded(build) for k, build in UNBOUNDED.items()}}))


if __name__ == "__main__":
    sys.exit(main())
