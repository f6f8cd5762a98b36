"""What a plug-in asserts and nobody recomputes is shown as its claim, in one line, and proves nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any, ClassVar

import pytest

import opticoll as oc
from opticoll.errors import BadInput, MethodMismatch
from opticoll.formulations.alltoall.master import Master
from opticoll.formulations.model import Named, forms_of
from opticoll.solvers.methods.method import Answer
from opticoll.solvers.procedure import checked
from opticoll.solvers.task import Proof, Termination

METHOD = """
    import numpy as np
    from opticoll.solvers.methods.method import Answer, Method
    from opticoll.solvers.task import Termination

    def run(context):
        topology = context.data.topology
        g = np.zeros((topology.arcs, topology.n))
        return Answer({answer})

    METHOD = Method(name={name!r}, title="Nothing", summary="Sends nothing.", serves=({serves!r},), run=run)
"""


def method_of(folder: Path, name: str, answer: str, serves: str = "alltoall.master") -> str:
    file = folder / f"{name.replace('-', '_')}.py"
    file.write_text(dedent(METHOD.format(name=name, answer=answer, serves=serves)))
    oc.load_plugin(file)
    return name


def test_a_bound_of_a_method_proves_nothing(tmp_path: Path) -> None:
    answer = "Termination.OPTIMAL, {'g': g, 'F': np.array(0.0)}, bound=0.0, bound_source='nothing arrives'"
    result = oc.solve("alltoall.master", "mesh:3x3", method=method_of(tmp_path, "claims-zero", answer))
    assert result.verified
    assert result.proof not in (Proof.OPTIMAL, Proof.EXACT)
    assert result.bound == pytest.approx(1 / 6)
    assert "the method claims the bound 0 (nothing arrives), which proves nothing here" in result.record["message"]


def test_no_solution_is_not_proven_by_a_method(tmp_path: Path) -> None:
    answer = "Termination.INFEASIBLE, infeasible_by='I say so'"
    result = oc.solve(
        "alltoall.min-congestion",
        "ring:4",
        method=method_of(tmp_path, "claims-none", answer, serves="alltoall.min-congestion"),
    )
    assert result.record["infeasible_by"] is None
    assert "only the method claims that there is no solution (I say so)" in result.record["message"]


def test_a_bound_must_be_a_number() -> None:
    with pytest.raises(BadInput, match="bound = nan; leave it None"):
        checked(Answer(Termination.OPTIMAL, bound=float("nan")), "it returned")


def test_an_unknown_formulation_that_a_method_serves_is_named(tmp_path: Path) -> None:
    name = method_of(tmp_path, "serves-none", "Termination.ITERATION_LIMIT", serves="alltoall.mastr")
    with pytest.raises(
        MethodMismatch, match=r"serves 'alltoall\.mastr', no formulation; did you mean 'alltoall\.master'"
    ):
        oc.solve("alltoall.master", "ring:4", method=name)


def test_a_row_that_is_added_is_in_every_form_that_is_left() -> None:
    """Twice the flow of a ring of five goes into a vertex as it may; without its row, exact solving finds 1/3."""

    class Limited(Master):
        """All-to-all with a limit of 0.7 on what a vertex receives."""

        name = "own.limited"
        constraints: ClassVar = {**Master.constraints, "throughput": ("vertex",)}

        def cvxpy(self) -> Any:
            model = super().cvxpy()
            g, into = model.variables["g"].item, self.topology.incidence().maximum(0)
            row = into @ cp.sum(g, axis=1) <= 0.7
            problem = cp.Problem(model.problem.objective, [*model.problem.constraints, row])
            return replace(model, problem=problem, constraints={**model.constraints, "throughput": Named(row, (5,))})

        def residuals(self, values: Any) -> dict[str, float]:
            inflow = self.topology.inflow(values["g"]).sum(axis=1)
            return {**super().residuals(values), "throughput": float((inflow - 0.7).max())}

        def _closed_forms(self) -> list[oc.Bound]:
            return []

    import cvxpy as cp

    assert forms_of(Limited) == ("cvxpy",)
    assert oc.solve(Limited, "ring:5", exact=True).objective == pytest.approx(oc.solve(Limited, "ring:5").objective)


class Total(oc.Formulation):
    """Largest amount within a limit."""

    name, sense = "own.total", "max"
    variables = {"x": ("arc",)}  # noqa: RUF012
    constraints = {"limit": ()}  # noqa: RUF012

    def cvxpy(self) -> Any:
        import cvxpy as cp

        b = oc.Cvx(self)
        x = b.var("x", lower=0.0)
        b.row("limit", cp.sum(x) <= 2.0)
        return b.maximize(cp.sum(x))

    def residuals(self, values: Any) -> dict[str, float]:
        return {"limit": float(values["x"].sum()) - 2.0, "nonnegative": float(-values["x"].min())}

    def objective(self, values: Any) -> float:
        return float(values["x"].sum())


def test_rows_that_the_checker_lacks_are_named() -> None:
    class Unchecked(Total):
        name = "own.unchecked"

        def residuals(self, values: Any) -> dict[str, float]:
            return {"nonnegative": float(-values["x"].min())}

    assert not oc.solve(Total, "ring:3").record["message"]
    message = oc.solve(Unchecked, "ring:3").record["message"]
    assert "the checker of own.unchecked has no block limit: nothing checks these rows" in message


def test_a_checker_that_accepts_everything_is_named() -> None:
    class Trusting(Total):
        name = "own.trusting"

        def residuals(self, values: Any) -> dict[str, float]:
            return {"limit": 0.0}

    assert "the checker of own.trusting accepts values far from these" in oc.solve(Trusting, "ring:3").record["message"]


def test_a_checker_is_asked_once_about_a_solution_and_once_about_another() -> None:
    asked: list[float] = []

    class Counting(Total):
        name = "own.counting"

        def residuals(self, values: Any) -> dict[str, float]:
            asked.append(float(values["x"].sum()))
            return {"limit": abs(asked[-1]) - 2.0, "nonnegative": float(-values["x"].min())}

    assert oc.solve(Counting, "ring:3").objective == pytest.approx(2.0)
    assert asked[0] == pytest.approx(2.0)
    assert len(asked) == 2
    assert abs(asked[1]) > 10.0


def test_a_method_may_find_nothing(tmp_path: Path) -> None:
    result = oc.solve("alltoall.master", "ring:4", method=method_of(tmp_path, "at-a-loss", "Termination.TOLERANCE, {}"))
    assert result.proof == Proof.BOUND_ONLY
    assert not result.record["message"]


@pytest.mark.parametrize(
    ("returned", "words"),
    [(lambda duals: 2.0, "certify returned '2.0'; return a Bound or None"), (lambda duals: duals["limt"], "KeyError")],
)
def test_a_certificate_that_fails_is_named_and_proves_nothing(returned: Any, words: str) -> None:
    kind = type("Certified", (Total,), {"name": "own.certified", "certify": lambda self, duals: returned(duals)})
    result = oc.solve(kind, "ring:3")
    assert words in result.record["message"]
    assert result.value == pytest.approx(2.0)


def test_a_misspelt_attribute_is_named() -> None:
    with pytest.raises(BadInput, match="nothing reads constrants; did you mean 'constraints'"):
        type("Misspelt", (Total,), {"name": "own.misspelt", "constrants": {"limit": ()}})


def test_a_contradicted_value_passes_its_checker() -> None:
    kind = type("Low", (Total,), {"name": "own.low", "bounds": lambda self: [oc.Bound("low", 1.0, "wrong")]})
    result = oc.solve(kind, "ring:3")
    assert result.proof == Proof.NONE
    assert "it passes the checker, but results contradict each other" in repr(result)


def test_the_instance_is_kept_by_a_class_with_its_own_init() -> None:
    class Kept(Total):
        name = "own.kept"

        def __init__(self, topology: oc.Topology, *, limit: float = 2.0) -> None:
            self.topology, self.limit = topology, limit

    assert oc.problem(Kept, "ring:3").formulation.instance.n == 3
