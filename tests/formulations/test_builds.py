"""Every formulation is stated twice, in builds that share no code; any error in one of them is detected."""

from __future__ import annotations

import json
import logging
import re
import signal
import sys
from collections import Counter
from functools import cache

import pytest
from builds import (
    builds_of,
    code_of,
    mutated_matrices,
    mutations,
    problem_of,
    users,
)
from case_families import each
from cases import CASES
from matrices import EVERY, RECORD, fingerprint, named

from opticoll.formulations import formulation, formulations
from opticoll.formulations.model import check_stated
from opticoll.solvers.compile.comparison import differences, each_difference
from opticoll.solvers.compile.compilation import compile_model


def both_builds(name):
    """The builds of a formulation by form, among them those in Pyomo and in CVXPY."""
    result = builds_of(name)
    missing = " and ".join(form for form in ("pyomo", "cvxpy") if form not in result)
    assert not missing, f"{name} has no build {missing}: its class needs methods pyomo and cvxpy (CONTRIBUTING.md)"
    return result


def compiled(name, spec, settings, build):
    form = compile_model(build(problem_of(name, spec, tuple(settings.items()))))
    form.A.check_format(full_check=True)  # a changed build may point outside of the matrix, where SciPy would read
    return form


@each("name", sorted(formulations()))
def test_ours_are_stated_as_those_of_users_must_be(name):
    """A misspelt or wrongly declared method would otherwise be ignored."""
    check_stated(formulation(name))


@each("name", sorted(formulations()))
def test_every_formulation_has_both_forms(name):
    both_builds(name)


def test_a_formulation_with_one_build_is_told_what_is_missing(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "builds_of", lambda name: {"pyomo": formulation(name).pyomo})
    for check in (both_builds, lambda name: right(name, "ring:4", (), "pyomo")):
        with pytest.raises(AssertionError, match=r"alltoall\.master has no build cvxpy: its class needs"):
            check("alltoall.master")


def check_docstring(name, stated):
    """The docstring has every constraint of a Pyomo build, with an index or without, and every variable."""
    text = sys.modules[formulation(name).__module__].__doc__
    variables = text[text.index("\nVars ") : text.index("s.t.")]
    for constraint, axes in stated.constraints.items():
        line = re.search(rf"^ +{constraint}(\[[a-z_,A-Z]+\])? ", text, re.MULTILINE)
        assert line, constraint
        assert bool(axes) == bool(line[1]), constraint
    for variable in stated.variables:
        assert re.search(rf"\b{variable}(\b|_)", variables), variable


@each("name", CASES)
def test_builds_share_no_code(name):
    code = [set(code_of(build)) for build in both_builds(name).values()]
    assert sum(map(len, code)) == len(set().union(*code))


def entries(size):
    """Variables, constraints and nonzeros together."""
    return size["variables"] + size["constraints"] + size["nonzeros"]


@cache
def recorded():
    return json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "spec", "settings"), EVERY)
def test_all_builds_are_the_recorded_matrix_of_about_the_estimated_size_and_state_the_docstring(name, spec, settings):
    """Recorded, as builds share data, so that an error in these is in both of them."""
    problem, others = problem_of(name, spec, tuple(settings.items())), dict(both_builds(name))
    stated = others.pop("pyomo")(problem)
    check_docstring(name, stated)
    first = compile_model(stated)
    for other in others.values():
        assert differences(first, compiled(name, spec, settings, other)) == []
    assert fingerprint(first) == recorded().get(named(name, spec, settings)), (
        "the model is new or has changed; if that is meant, run python tests/matrices.py"
    )
    assert 0.4 <= entries(problem._estimate()) / entries(first.size) <= 4.0


def test_no_record_is_of_a_case_that_is_gone():
    assert set(recorded()) == {named(*one) for one in EVERY}


@each("name", sorted(CASES)[::5])
def test_every_wrong_entry_of_a_matrix_is_noticed(name):
    spec, settings = CASES[name][0]
    form = compiled(name, spec, settings, both_builds(name)["pyomo"])
    assert differences(form, form) == []
    missed = [what for what, wrong in mutated_matrices(form) if not differences(form, wrong)]
    assert missed == []


#: CPU seconds after which a changed build counts as endless; the right ones take a few tenths of a second.
ENDLESS_S = 1.5

#: Changes of the source that leave every model as it is.
HARMLESS = {
    "flow_checks.flow_matrix": ["1"],  # marks a row that does not exist: any negative number
    "min_congestion_solution.matrix": ["1"],
    "path_mcf_solution.flow_program": ["1"],
    "timestep_mcf.StepFlow.pyomo": ["1"],  # rows before anything can arrive have no terms
    "matchings.TopologyMatchings.cvxpy": ["0"],  # whether anything is sent: no demand is less than a shard
    "sequence.TopologySequence.cvxpy": ["1", "1"],  # a phase without a configuration, or without a change, as above
}


@pytest.fixture
def patience():
    """A changed build may run for ever, or let Pyomo write to its log."""
    logging.disable()
    before = signal.signal(signal.SIGPROF, _late)
    yield
    signal.signal(signal.SIGPROF, before)
    logging.disable(logging.NOTSET)


def _late(*_):
    raise TimeoutError


def noticed(function, changed, cases):
    """Whether a changed function makes some build fail, or give another matrix than the build of another form.

    The case that notices moves to the front of ``cases``: it is likely to notice the next change too.
    """
    for place, (name, form, spec, settings) in enumerate(cases):
        build, expected = builds_of(name)[form], right(name, spec, settings, form)
        signal.setitimer(signal.ITIMER_PROF, ENDLESS_S)
        try:
            wrong = compiled(name, spec, dict(settings), changed if build is function else build)
            different = any(each_difference(expected, wrong))
        except Exception:  # noqa: BLE001 - however it fails
            different = True
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if different:
            cases.insert(0, cases.pop(place))
            return True
    return False


@cache
def right(name, spec, settings, form):
    """The model by another form, whose build runs nothing that changes."""
    return compiled(name, spec, dict(settings), both_builds(name)["cvxpy" if form == "pyomo" else "pyomo"])


USERS = {f"{f.__module__.rpartition('.')[2]}.{f.__qualname__}": (f, using) for f, using in users().items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("most", [2, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", USERS)
def test_every_change_of_a_build_is_noticed(place, most, patience):
    function, using = USERS[place]
    cases = [(name, form, spec, tuple(given.items())) for name, form in using for spec, given in CASES[name]]
    for name, form, spec, settings in cases:
        if builds_of(name)[form] is not function:  # it is used, perhaps by the data of both models
            right(name, spec, settings, form)
    missed = [what for what, changed in mutations(function, most) if not noticed(function, changed, cases)]
    left = sorted((Counter(missed) - Counter(HARMLESS.get(place, ()))).elements())
    assert not left, (
        f"no case in tests/problems notices that {left} is changed; if no model changes, name it in HARMLESS"
    )
