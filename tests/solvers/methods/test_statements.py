"""What methods state about formulations: whom they serve, and from which size `auto` takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import opticoll as oc
from opticoll.formulations import formulation, formulations
from opticoll.solvers.methods import Beyond, Method, methods, taking_over
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Task

if TYPE_CHECKING:
    from collections.abc import Mapping


def test_methods_serve_formulations_that_exist():
    named = {name for method in methods().values() if not callable(method.serves) for name in method.serves}
    assert named <= set(formulations())


def test_a_method_takes_over_a_formulation_that_it_serves():
    for method in methods().values():
        for beyond in method.takes_over:
            model = formulation(beyond.formulation)
            assert method.applies(model)
            assert set(beyond.where) <= {known.name for known in model.parameters}
            assert (beyond.suits is None) == (model.problem == "MILP")


def test_all_that_take_over_are_found_without_importing_the_others():
    for name, method in methods().items():
        for beyond in method.takes_over:
            assert name in {one.name for one, _ in taking_over_any(beyond.formulation, beyond.where)}


def taking_over_any(name: str, where: Mapping[str, object] | None = None) -> list[tuple[Method, Beyond]]:
    return taking_over(
        name, {parameter.name: parameter.default for parameter in formulation(name).parameters} | dict(where or {})
    )


def test_one_method_at_most_takes_over_an_integer_program():
    for name, model in formulations().items():
        if model.problem == "MILP":
            assert len(taking_over_any(name)) <= 1


def test_a_size_for_a_parameter_precedes_that_for_all():
    (_, general), (_, special) = (
        taking_over("lumorph.rounds", {"collective": one})[0] for one in ("all-gather", "all-to-all")
    )
    assert special.variables < general.variables


def test_smaller_sizes_come_first():
    assert [method.name for method, _ in taking_over("alltoall.master", {})] == [
        "orbit-lp",
        "certified-pdhg",
        "screened-lp",
    ]


@pytest.mark.parametrize(
    ("size", "covered"),
    [
        (None, False),
        ({"variables": 10, "nonzeros": 10}, True),
        ({"variables": 11, "nonzeros": 10}, False),
        ({"variables": 10, "nonzeros": 11}, False),
    ],
)
def test_a_size_covers_what_is_not_larger(size, covered):
    assert Beyond("any", 10, 10).covers(size) is covered


def test_the_method_for_needed_data_is_named_by_a_parameter():
    for model in formulations().values():
        if model._needs is not None and model._needs.method is not None:
            assert model._needs.method in {known.name for known in model.parameters}


def test_a_formulation_with_the_same_optimum_has_the_same_sense():
    for method in methods().values():
        if method.same_as is not None and not callable(method.serves):
            assert {formulation(name).sense for name in method.serves} == {formulation(method.same_as).sense}


PLUGIN = '''
import opticoll as oc
from opticoll.solvers.methods import Beyond, Method


class Model(oc.Formulation):
    """Least capacity.

    min R  s.t.  cap  R >= 1
    """

    name, sense = "own.least", "min"

    def pyomo(self): ...
    def residuals(self, values): return {}
    def objective(self, values): return 0.0
    def _estimate(self): return {"variables": self.instance.n, "constraints": 1, "nonzeros": 1, "integers": 0}


FORMULATION = Model
METHOD = Method(
    name="mine", title="", summary="", serves=("own.least",), takes_over=(Beyond("own.least", 5),), run=print
)
'''


@pytest.mark.usefixtures("forgotten_plugins")
def test_a_method_of_the_users_own_takes_over(tmp_path):
    (tmp_path / "mine.py").write_text(PLUGIN)
    oc.load_plugin(tmp_path / "mine.py")
    assert make_plan(Task("own.least", "ring:5")).method_name == "highs-simplex"
    plan = make_plan(Task("own.least", "ring:6"))
    assert plan.method_name == "mine"
    assert plan.choice.reason == "mine works on the topology; form pyomo builds it"
