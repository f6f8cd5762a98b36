"""Numbers below the smallest value of a parameter are refused wherever the parameter is read."""

from __future__ import annotations

import math

import pytest

from opticoll.errors import NotApplicable
from opticoll.formulations import formulations
from opticoll.formulations.parameters import Parameter, read_parameters
from opticoll.solvers.methods import methods

LIMITED = [
    pytest.param(owner.parameters, one, id=f"{name}, {one.name}")
    for name, owner in {**formulations(), **methods()}.items()
    for one in owner.parameters
    if one.least is not None
]


@pytest.mark.parametrize(("parameters", "one"), LIMITED)
def test_a_number_below_the_smallest_value_or_infinite_is_refused(
    parameters: tuple[Parameter, ...], one: Parameter
) -> None:
    assert one.least is not None
    least = one.kind(one.least)
    assert one.read(least, "here") == least
    for wrong in (least - 1, *([math.inf, math.nextafter(least, -1)] if one.kind is float else [])):
        with pytest.raises(NotApplicable, match=rf"^here: {one.name}=\S+; give .*at least {one.least:g}$"):
            read_parameters(parameters, {one.name: wrong}, "here")


def test_many_parameters_have_a_smallest_value() -> None:
    assert len(LIMITED) > 30
