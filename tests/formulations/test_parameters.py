"""Numbers below the smallest value of a parameter, and words that are none of its choices, are refused everywhere."""

from __future__ import annotations

import math

import pytest
from case_families import each

from opticoll.errors import BadInput, NotApplicable
from opticoll.formulations import formulations
from opticoll.formulations.parameters import Parameter, read_parameters
from opticoll.solvers.methods import methods

EVERY = {**formulations(), **methods()}
LIMITED = [
    pytest.param(owner.parameters, one, id=f"{name}, {one.name}")
    for name, owner in EVERY.items()
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


@each("name", list(EVERY))
def test_a_word_that_is_no_choice_is_refused_with_those_there_are(name: str) -> None:
    for one in EVERY[name].parameters:
        if one.choices:
            with pytest.raises(BadInput, match=f"^here: .*{one.name}.*{one.choices[0]}"):
                read_parameters(EVERY[name].parameters, {one.name: "no-such-word"}, "here")


def test_many_parameters_have_a_smallest_value() -> None:
    assert len(LIMITED) > 30
