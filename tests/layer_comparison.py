"""Random small models, solved by opticoll and by their layer alone: all that the layer's solver sets is compared.

Run as a script with a first seed and a number of seeds, it prints a line for every difference: a solver's library stays
out of the process that runs the tests. Data are drawn from intervals, so that optima and duals are unique. A change of
parameters makes a model feasible, infeasible or unbounded; without a solution, the numbers must be gone.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo

import opticoll as oc

KINDS = ("feasible", "feasible", "infeasible", "unbounded")
#: Who solves, one after the other, each with data of its own.
ORDERS = (("layer", "opticoll"), ("opticoll", "layer"), ("opticoll", "opticoll"))
UNDECIDED = ("infeasible_or_unbounded", "infeasibleOrUnbounded")
ROWS, COLUMNS = 3, 4


class Data:
    """A feasible program: costs of either sense, rows of all kinds through a point or away from it, bounds."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.integer, self.sense = seed % 3 == 0, "max" if seed % 2 else "min"
        self.A, self.equal, self.point = (
            rng.uniform(1, 2, (ROWS, COLUMNS)),
            rng.uniform(1, 2, COLUMNS),
            rng.integers(1, 4, COLUMNS),
        )
        self.upper = self.A @ self.point + rng.uniform(0.5, 1, ROWS)
        self.width, self.high = rng.uniform(2, 3), rng.uniform(4, 5, COLUMNS)
        self.weights, self.least = rng.uniform(1, 2, (2, 2)), rng.uniform(1, 2, (2, 2))

    def parameters(self, rng: np.random.Generator, kind: str) -> dict[str, np.ndarray]:
        """Costs, first upper side and cost of the variable without an upper bound, for a program of a kind."""
        flip = -1 if self.sense == "max" else 1
        free = rng.uniform(1, 2) * (-flip if kind == "unbounded" else flip)
        first = -1.0 if kind == "infeasible" else self.upper[0] + rng.uniform(0, 0.1)
        return {"c": rng.uniform(-1, 1, COLUMNS), "b": np.array([first]), "g": np.array([free])}


class Cvxpy:
    """As a CVXPY problem."""

    def __init__(self, seed: int) -> None:
        data, kind = Data(seed), seed % 4
        self.parameters = {name: cp.Parameter(size, name=name) for name, size in (("c", COLUMNS), ("b", 1), ("g", 1))}
        x = cp.Variable(COLUMNS, name="x", integer=data.integer, bounds=[0, data.high] if seed % 5 == 0 else None)
        z = cp.Variable(name="z", nonneg=kind == 1)
        y = cp.Variable((2, 2), name="y", diag=kind == 1, symmetric=kind == 2)
        flip = -1 if data.sense == "max" else 1
        cost = (
            self.parameters["c"] @ x
            + self.parameters["g"] @ cp.hstack([z])
            + flip * cp.sum(cp.multiply(data.weights, y))
        )
        rows = [
            data.A[:1] @ x <= self.parameters["b"],
            data.A[1] @ x <= data.upper[1],
            data.upper[2] - data.width <= data.A[2] @ x,
            x >= 0,
            x <= data.high,
            cp.constraints.NonNeg(z - 0.25 * x[0]) if kind == 0 else z >= 0.25 * x[0],
            y >= (np.diag(np.diag(data.least)) if kind == 1 else np.maximum(data.least, data.least.T)),
        ]
        if not data.integer:
            away = data.equal @ x - data.equal @ data.point
            rows.append(cp.constraints.Zero(away) if kind == 3 else away == 0)
        self.problem = cp.Problem((cp.Maximize if data.sense == "max" else cp.Minimize)(cost), rows)

    def change(self, values: dict[str, np.ndarray]) -> None:
        for name, value in values.items():
            self.parameters[name].value = value

    def by_layer(self) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="(?s).*infeasible or unbounded", category=UserWarning)
            self.problem.solve(solver="HIGHS")

    def by_opticoll(self) -> None:
        oc.solve(self.problem)

    def state(self) -> dict[str, Any]:
        """All that a solve sets; certificates of infeasibility, which some solvers leave as duals, are none."""
        one = self.problem
        solved = one.status == "optimal"
        found: dict[str, Any] = {"status": one.status, "value": one.value}
        found |= {one.name(): None if one.value is None else dense(one.value) for one in one.variables()}
        found |= {f"sparse {one.name()}": hasattr(one.value, "toarray") for one in one.variables()}
        if solved:
            found |= {f"dual {i}": row.dual_value for i, row in enumerate(one.constraints) if split_by_layer(one, row)}
            found |= {f"shape of dual {i}": np.shape(row.dual_value) for i, row in enumerate(one.constraints)}
        found["solver"] = one.solver_stats is not None
        return found


def split_by_layer(problem: cp.Problem, row: Any) -> bool:
    """Whether duals of a row are unique: not where both halves of a symmetric or diagonal matrix are the same row."""
    return row.shape != (2, 2) or not any(
        v.attributes["symmetric"] or v.attributes["diag"] for v in problem.variables()
    )


class Pyomo:
    """As a Pyomo model, with a block, a variable of another model, a range, and fixed, inactive and unused parts."""

    def __init__(self, seed: int) -> None:
        data = Data(seed)
        other, m = pyo.ConcreteModel("other"), pyo.ConcreteModel("one")
        other.z = pyo.Var([0], initialize=9)
        self.other, self.model = other, m
        m.c, m.b, m.g = (pyo.Param(range(n), mutable=True, initialize=1) for n in (COLUMNS, 1, 1))
        m.x = pyo.Var(
            range(COLUMNS), domain=pyo.Integers if data.integer else pyo.Reals, bounds=lambda _, j: (0, data.high[j])
        )
        m.fixed = pyo.Var(initialize=2)
        m.fixed.fix()
        m.part = pyo.Block([1, 2])
        for number in (1, 2):
            m.part[number].y = pyo.Var(bounds=(0.5, None))
            m.part[number].least = pyo.Constraint(expr=m.part[number].y + m.x[number] >= data.least[0, number - 1])
        row = [sum(data.A[i, j] * m.x[j] for j in range(COLUMNS)) for i in range(ROWS)]
        m.rows = pyo.ConstraintList()
        m.rows.add(row[0] + m.fixed <= m.b[0] + 2)
        m.rows.add(row[1] <= data.upper[1])
        m.rows.add((data.upper[2] - data.width, row[2], data.upper[2]))
        m.linked = pyo.Constraint(expr=other.z[0] >= 0.25 * m.x[0])
        m.constant = pyo.Constraint(expr=m.fixed <= 3)
        m.off = pyo.Constraint(expr=m.x[0] == 77)
        m.off.deactivate()
        if not data.integer:
            m.equal = pyo.Constraint(
                expr=sum(data.equal[j] * m.x[j] for j in range(COLUMNS)) == data.equal @ data.point
            )
        flip = -1 if data.sense == "max" else 1
        m.goal = pyo.Objective(
            expr=sum(m.c[j] * m.x[j] for j in range(COLUMNS))
            + m.g[0] * other.z[0]
            + flip * (m.part[1].y + 2 * m.part[2].y)
            + 3,
            sense=pyo.maximize if data.sense == "max" else pyo.minimize,
        )
        for name in ("dual", "rc"):
            m.add_component(name, pyo.Suffix(direction=pyo.Suffix.IMPORT))
        m.slack = pyo.Suffix(direction=pyo.Suffix.IMPORT)
        m.exported = pyo.Suffix(direction=pyo.Suffix.EXPORT)
        m.exported[m.x[0]] = 5

    def change(self, values: dict[str, np.ndarray]) -> None:
        for name, value in values.items():
            self.model.component(name).store_values(dict(enumerate(value.tolist())))

    def by_layer(self) -> None:
        solver = pyo.SolverFactory("appsi_highs")
        kept = self.model.dual, self.model.rc
        if self.model.x[0].is_integer():  # Pyomo raises an error, as an integer program has no duals
            for one in kept:
                one.direction = pyo.Suffix.LOCAL
        result = solver.solve(self.model, load_solutions=False)
        self.status = str(result.solver.termination_condition)
        if self.status == "optimal":
            solver.solve(self.model)
        for one in kept:
            one.direction = pyo.Suffix.IMPORT

    def by_opticoll(self) -> None:
        self.status = str(oc.solve(self.model).termination)

    def state(self) -> dict[str, Any]:
        """All that a solve sets; without a solution, what Pyomo marks as stale is none, and suffixes are empty."""
        m, solved = self.model, self.status == "optimal"
        variables = [*m.component_data_objects(pyo.Var), self.other.z[0]]
        found: dict[str, Any] = {"status": self.status, "exported": m.exported[m.x[0]]}
        found |= {v.name: v.value if v.fixed or not v.stale else None for v in variables}
        found |= {f"stale {v.name}": v.stale for v in variables}
        for name in ("dual", "rc"):
            suffix = m.component(name)
            found |= {
                f"{name} {one.name}": suffix[one] for one in suffix if solved and not getattr(one, "fixed", False)
            }
        if solved:
            rows = m.component_data_objects(pyo.Constraint, active=True)
            found["least slack"] = min(row.slack() for row in rows)
        return found


def dense(value: Any) -> np.ndarray:
    return value.toarray() if hasattr(value, "toarray") else np.asarray(value)


def differences(kind: type[Cvxpy | Pyomo], seed: int) -> list[str]:
    """Every field that differs after the last solve of a sequence."""
    lines = []
    for order in [ORDERS[seed // 3 % 3]] if seed % 3 == 0 else ORDERS:  # one of integer programs, which have no duals
        rng = np.random.default_rng([seed, len(order[0])])
        one, other = kind(seed), kind(seed)
        for step, who in enumerate(order):
            drawn = str(rng.choice(KINDS))
            values = Data(seed).parameters(rng, drawn)
            one.change(values)
            other.change(values)
            (one.by_layer if who == "layer" else one.by_opticoll)()
            mine = one.state()
            other.by_layer()
            theirs = other.state()
            if "opticoll" in order[: step + 1] and seed % 3 == 0:  # CVXPY leaves duals of earlier solves of a MILP
                theirs = {name: value for name, value in theirs.items() if "dual" not in name}
                theirs |= {name: None if name.startswith("dual") else () for name in mine if "dual" in name}
            if theirs["status"] in UNDECIDED:  # of integer programs: opticoll proves which
                theirs |= {name: mine[name] for name in ("status", "value") if name in mine}
            for name in sorted(mine.keys() | theirs.keys()):
                a, b = mine.get(name, "absent"), theirs.get(name, "absent")
                same = a is b or (type(a) is type(b) is str and a == b) or _close(a, b)
                if not same:
                    lines.append(f"{kind.__name__} {seed} {order} step {step} {drawn}: {name}: {a} instead of {b}")
    return lines


def _close(a: Any, b: Any) -> bool:
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return False
    return np.shape(a) == np.shape(b) and np.allclose(np.asarray(a, float), np.asarray(b, float), atol=1e-5)


if __name__ == "__main__":
    warnings.simplefilter("error")
    first, count = map(int, sys.argv[1:])
    for one in range(first, first + count):
        for layer in (Cvxpy, Pyomo):
            for line in differences(layer, one):
                print(f"differs: {line}")
