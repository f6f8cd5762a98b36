"""The routing table names existing formulations, methods that apply to them, and their parameters."""

from __future__ import annotations

from opticoll.formulations import formulation
from opticoll.formulations.model import states
from opticoll.solvers.auto import LARGEST
from opticoll.solvers.methods import methods_for
from opticoll.solvers.methods.registry import METHOD_PARAMETERS, SMALLER_FORMULATIONS


def test_methods_for_large_instances_apply_to_their_formulations():
    for key, largest in LARGEST.items():
        name, _, parameter = key.partition(" ")
        model = formulation(name)
        assert not parameter or parameter.partition("=")[0] in {known.name for known in model.parameters}
        assert {largest.beyond, largest.proof} - {None} <= set(methods_for(model))
        assert states(model, "estimate")
        assert (largest.beyond is None) == (model.problem == "LP")


def test_method_parameters_belong_to_formulations_that_need_another():
    for name, parameter in METHOD_PARAMETERS.items():
        model = formulation(name)
        assert model.needs is not None
        assert parameter in {known.name for known in model.parameters}


def test_smaller_formulations_have_the_same_sense():
    assert all(formulation(name).sense == formulation(other).sense for name, other in SMALLER_FORMULATIONS.items())
