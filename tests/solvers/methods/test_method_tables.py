"""The routing table names existing formulations, methods that apply to them, and their parameters."""

from __future__ import annotations

from opticoll.formulations import formulation
from opticoll.solvers.methods import METHOD_PARAMETERS, PREFERRED_METHODS, SMALLER_FORMULATIONS, methods_for


def test_preferred_methods_apply_to_their_formulations():
    assert all(method in methods_for(formulation(name)) for name, method in PREFERRED_METHODS.items())


def test_method_parameters_belong_to_formulations_that_need_another():
    for name, parameter in METHOD_PARAMETERS.items():
        model = formulation(name)
        assert model.needs is not None
        assert parameter in {known.name for known in model.parameters}


def test_smaller_formulations_have_the_same_sense():
    assert all(formulation(name).sense == formulation(other).sense for name, other in SMALLER_FORMULATIONS.items())
