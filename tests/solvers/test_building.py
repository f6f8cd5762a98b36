"""Models that a worker builds: the same matrix, record, errors and limits as where they are built in this process."""

from __future__ import annotations

import pickle
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from builds import problem_of
from cases import CASES
from faulty_builds import OVER, Faulty
from test_threads import interpreter_prints

import opticoll as oc
from opticoll.errors import BadInput, ModelError, OpticollError
from opticoll.formulations import modelling_layers
from opticoll.formulations.model import forms_of
from opticoll.solvers.compile import building
from opticoll.solvers.process.isolation import WorkerAnswer, call_isolated, modules_of
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opticoll.formulations.standard_form import StandardForm

FIRST = """
import json
import opticoll as oc
LONG = ("pyomo", "cvxpy", "scipy.stats", "scipy.spatial", "scipy.integrate")

def solved():
    result = oc.solve("alltoall.master", "genkautz:n=9,d=3", form=sys.argv[1])
    return result.record, {name: array.tolist() for name, array in {**result.values, **result.duals}.items()}

first, values = solved()
loaded = [name for name in LONG if name in sys.modules]
from opticoll.formulations.modelling_layers import import_layer
import_layer(sys.argv[1])
again, same = solved()
differ = [name for name in first.__struct_fields__ if getattr(first, name) != getattr(again, name)]
times = [part > 0 for part in (first.time.load_s, first.time.build_s, first.time.compile_s)]
print(json.dumps([loaded, sys.argv[1] in sys.modules, differ, values == same, times]))
"""


@pytest.mark.skipif(not building.FORKS, reason="a process that does not fork builds its models itself")
@pytest.mark.parametrize("form", ["pyomo", pytest.param("cvxpy", marks=pytest.mark.slow)])
def test_a_first_solve_imports_no_layer_and_has_the_record_of_a_build_here(form: str, tmp_path: Path) -> None:
    loaded, later, differ, same, times = interpreter_prints(FIRST, form, folder=tmp_path)
    assert (loaded, later, same, times) == ([], True, True, [True] * 3)
    assert set(differ) <= {"time", "peak_memory_mb", "incumbents"}


def parts_of(form: StandardForm) -> list[Any]:
    """Everything in a compiled form, to be compared."""
    vectors = [form.row_lower, form.row_upper, form.col_lower, form.col_upper, form.cost, np.asarray(form.integer)]
    blocks = [(name, b.shape, b.index.tolist(), b.labels) for name, b in (*form.columns.items(), *form.rows.items())]
    arrays = [form.A.data, form.A.indices, form.A.indptr, *vectors]
    return [form.sense, form.offset, blocks, *(array.tolist() for array in arrays)]


@pytest.mark.parametrize(("name", "place"), [(name, place) for place, name in enumerate(sorted(CASES))])
def test_a_worker_builds_the_matrix_that_is_built_here(name: str, place: int) -> None:
    """In one layer of each formulation; every layer is that of some."""
    spec, settings = CASES[name][0]
    problem = problem_of(name, spec, tuple(settings.items()))
    layer = forms_of(problem)[place % len(forms_of(problem))]
    sent = {"sent": pickle.dumps(problem), "layer": layer, "left_s": 60.0}
    built = call_isolated(f"{building.__name__}:build_in_worker", sent, modules=modules_of("highs"), threads=1)
    assert parts_of(built.values.form) == parts_of(building.build_here(problem, layer).form), layer


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A formulation with faults, and a process that has not loaded Pyomo; endless builds end with the test."""
    monkeypatch.setattr(modelling_layers, "is_loaded", lambda form: form == "matrix")
    monkeypatch.setenv(OVER, str(tmp_path / "over"))
    yield
    (tmp_path / "over").touch()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Formulations of users are built by workers as others are; how these builds ended."""
    if not building.FORKS:
        pytest.skip("a process that does not fork builds its models itself")
    endings: list[object] = []

    def noted(*arguments: Any, **options: Any) -> WorkerAnswer:
        try:
            answer = call_isolated(*arguments, **options)
        except OpticollError as error:
            endings.append(type(error))
            raise
        endings.append(answer.ending)
        return answer

    monkeypatch.setattr(building, "is_own", lambda problem: False)
    monkeypatch.setattr(building, "call_isolated", noted)
    return endings


def end_of(fault: str, limits: dict[str, Any]) -> tuple[object, ...]:
    """How a solve ends: with its error, or with its termination and message."""
    options = {**limits}
    if "stop" in options:
        threading.Timer(options["stop"], (event := threading.Event()).set).start()
        options["stop"] = event
    try:
        record = oc.solve(Faulty, "ring:4", fault=fault, **options).record
    except (OpticollError, KeyError) as error:
        return type(error), str(error)
    return record.termination, record.objective, record.message


@pytest.mark.parametrize(
    ("fault", "limits", "ending"),
    [
        ("input", {}, BadInput),
        ("key", {}, Termination.ERROR),
        ("square", {}, ModelError),
        ("memory", {}, Termination.MEMORY_LIMIT),
        ("endless", {"time_limit": 0.5}, Termination.TIME_LIMIT),
        ("endless", {"stop": 0.7}, Termination.INTERRUPTED),
    ],
)
def test_errors_and_limits_are_those_of_a_build_here(
    fault: str, limits: dict[str, Any], ending: object, faulty: None, request: pytest.FixtureRequest
) -> None:
    here = end_of(fault, limits)
    endings = request.getfixturevalue("elsewhere")
    assert end_of(fault, limits) == here
    assert endings == [ending]


def test_formulations_of_users_are_built_here_for_what_their_builds_keep(faulty: None) -> None:
    assert end_of("none", {})[:2] == ("optimal", 2.0)


def test_what_cannot_be_sent_is_built_here(faulty: None, elsewhere: list[object]) -> None:
    assert end_of("unsendable", {})[:2] == ("optimal", 2.0)
    assert elsewhere == []


def test_a_build_in_a_worker_ends_at_the_memory_limit(faulty: None, elsewhere: list[object]) -> None:
    """The build holds 640 MiB at most and then goes on, so that without a limit it is solved."""
    ending, objective, message = end_of("large", {"memory_limit": 0.1})
    assert (ending, objective) == ("memory-limit", None)
    assert "while the model was built" in str(message)
    assert end_of("large", {"memory_limit": 4.0})[:2] == ("optimal", 2.0)
    assert elsewhere == ["memory-limit", None]
