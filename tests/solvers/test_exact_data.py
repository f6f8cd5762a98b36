"""``--exact`` on every formulation: numbers that a model computes are fractions, and what is refused is so at once.

Capacities of 3, 7 and 11 make quotients that are no decimals; 1/3 as a float is no decimal of a few digits.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cases import CASES
from slow_cases import marked

import opticoll as oc
from opticoll.errors import BadInput, OpticollError
from opticoll.formulations import formulation
from opticoll.formulations.model import forms_of
from opticoll.formulations.parameters import read_parameters
from opticoll.instances import Topology, parse
from opticoll.solvers import model_solve, procedure, solve
from opticoll.solvers.exact.exact_form import fault
from opticoll.solvers.exact.prove import exact_problem, solve_exactly
from opticoll.solvers.methods import prepared
from opticoll.solvers.task import Proof, Task, Termination

#: Capacities, repeated over the arcs.
CAPACITIES = {"sevenths": [7.0], "mixed": [3.0, 7.0, 11.0], "decimals": [0.7, 13.0, 0.9]}


def with_capacities(topology, capacities):
    values = itertools.cycle(capacities)
    return oc.topology([(int(u), int(v), next(values)) for u, v in zip(topology.tail, topology.head, strict=True)])


def problems():
    """Every case of every formulation whose data are its own, on its topology with each of the capacities.

    All layers state one matrix, which is tested with the formulations: they are all asked for the first case only.
    With other capacities than their own, the first of each formulation is quick, and sevenths are quick among others.
    """
    for name, cases in CASES.items():
        if formulation(name)._needs is not None:
            continue
        for place, (spec, settings) in enumerate(cases):
            layers = forms_of(formulation(name))[0 if place == 0 else -1 :]
            yield pytest.param(name, spec, settings, None, layers, id=f"{name} {spec} {settings}")
            if isinstance(parse(spec), Topology) and name.startswith(("alltoall", "lumorph.min")):
                for kind in CAPACITIES:
                    marks = [pytest.mark.slow] * (place > 0 or kind == "sevenths")
                    label = f"{name} {spec} {settings} {kind}"
                    yield pytest.param(name, spec, settings, kind, layers[-1:], id=label, marks=marks)


def data_of(name, spec, settings, kind):
    model, instance = formulation(name), parse(spec)
    instance = instance if kind is None else with_capacities(instance, CAPACITIES[kind])
    parameters = read_parameters(model.parameters, settings, name)
    if hasattr(parameters.get("demand"), "on"):
        parameters["demand"] = parameters["demand"].on(instance, name)
    return prepared(model, instance, parameters, None)


@pytest.mark.parametrize(("name", "spec", "settings", "kind", "layers"), [*problems()])
def test_the_program_of_every_formulation_is_stated_in_fractions(name, spec, settings, kind, layers):
    try:
        data = data_of(name, spec, settings, kind)
    except OpticollError as error:  # such as a path that the capacities' topology does not have
        assert kind is not None
        pytest.skip(str(error))
    for layer in layers:
        exact_problem(data, layer)


@pytest.mark.parametrize("kind", [marked(kind, slow=kind == "sevenths") for kind in CAPACITIES])
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in CASES
        if name.startswith("alltoall") and formulation(name)._needs is None and name != "alltoall.virtual-channels"
    ],
)
def test_small_instances_are_solved_in_fractions(name, kind):
    spec, settings = CASES[name][0]
    data = data_of(name, spec, settings, kind)
    form = exact_problem(data)
    answer = solve_exactly(form)
    assert answer.status == "optimal"
    assert fault(form, answer) is None


def test_a_capacity_of_seven_has_an_exact_all_reduce():
    """On two ranks, each sends its partial sums of half the buffer and then copies: 2 / 7."""
    both = oc.topology([(0, 1, 7.0), (1, 0, 7.0)])
    result = oc.solve("alltoall.all-reduce", both, exact=True)
    assert (result.proof, str(result.objective_exact)) == (Proof.EXACT, "2/7")


@pytest.mark.parametrize("name", ["alltoall.master", "alltoall.all-reduce", "alltoall.min-congestion"])
@pytest.mark.parametrize("method", ["auto", "highs"])
def test_what_is_no_fraction_is_refused_before_anything_is_solved(name, method, monkeypatch):
    def solved(*_args, **_kwargs):
        pytest.fail("something was solved")

    monkeypatch.setattr(model_solve, "solve_scaled", solved)
    monkeypatch.setattr(procedure, "call_isolated", solved)
    thirds = with_capacities(parse("ring:4"), [1 / 3, 1.0])
    with pytest.raises(BadInput, match="not a decimal of at most 12 digits"):
        solve.solve(Task(name, thirds, method=method, exact=True))


def test_products_of_decimals_are_decimals():
    assert parse("hypercube:2+host=1.5+scale=0.3").capacity.max() == 0.45
    assert parse("path:3+scale=0.1").scaled(3).capacity.tolist() == [0.3] * 4
    assert parse("path:3").scaled(2.0**-1074).capacity.tolist() == [2.0**-1074] * 4
    with pytest.raises(BadInput):
        parse("path:3+scale=1e308").scaled(100.0)


def test_the_refusal_of_an_exact_task_leaves_a_plain_one_alone():
    thirds = with_capacities(parse("ring:4"), [1 / 3, 1.0])
    run = solve.solve(Task("alltoall.all-reduce", thirds))
    assert run.termination is Termination.OPTIMAL
    assert np.isfinite(run.objective)
