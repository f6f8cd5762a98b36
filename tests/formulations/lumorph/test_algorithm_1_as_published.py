"""Algorithm 1 as printed and as coded: optima, the check of each constraint, bounds, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from case_families import each
from reference import optimum, refused

from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput, MethodMismatch
from opticoll.formulations.lumorph import rounds
from opticoll.instances import parse
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task
from opticoll.solvers.verify import matrix_violations, pack

NAME = "lumorph.rounds"
CODED = {"program": "coded", "lasers": "1", "rmax": "4"}


def prepared(spec, **parameters):
    return rounds.RoundModel.prepare(parse(spec), {k: str(v) for k, v in parameters.items()})


def solution(data):
    """The values of an optimal solution, by a solver that is none of the adapters."""
    form = compile_model(data.cvxpy())
    return data.repair(form.values(optimum(form)[1])), form


@pytest.mark.parametrize(
    ("spec", "collective", "lasers", "best"),
    [
        ("lightpath:2x2", "all-gather", 1, 2),
        ("lightpath:2x2", "all-gather", 2, 1),
        ("lightpath:2x2", "all-gather", 4, 0),
        ("lightpath:2x2", "broadcast", 1, 1),
        ("lightpath:1x3", "all-gather", 1, 1),
        ("lightpath:2x3", "broadcast", 1, 2),
    ],
)
def test_the_coded_value_is_the_number_of_the_last_round(spec, collective, lasers, best):
    parameters = {"collective": collective, "lasers": lasers}
    data = prepared(spec, program="coded", rmax=3, **parameters)
    values, form = solution(data)
    assert data.objective(values) == best
    assert max(data.residuals(values).values()) == 0
    assert max(matrix_violations(form, pack(form, values)).values()) < 1e-9
    assert max(bound.value for bound in data.bounds()) <= best
    assert data.metrics(best)["rounds"] == best + 1
    # With as many waveguides, the corrected program has that many rounds.
    corrected = prepared(spec, waveguides=20, paths=1, bounds="false", **parameters)
    assert corrected.objective(solution(corrected)[0]) == best + 1


def test_constants_of_the_code_are_its_defaults():
    data = prepared("lightpath:2x4,lasers=16", program="coded")
    assert (data.limits.wavelengths, data.limits.waveguides, data.paths, data.rmin, data.rmax) == (4, 20, 1, 1, 5)
    corrected = prepared("lightpath:2x4,lasers=16")
    assert (corrected.limits.wavelengths, corrected.limits.waveguides, corrected.paths) == (16, 1, 2)


def test_both_directions_of_an_edge_share_its_limit_as_coded():
    """Two tiles exchange their shards: one round as corrected, two as coded on one circuit an edge."""
    exchange = {"lasers": 1, "waveguides": 1}
    coded, corrected = (prepared("lightpath:1x2", program=name, **exchange) for name in ("coded", "corrected"))
    assert corrected.objective(solution(corrected)[0]) == 1
    assert coded.objective(solution(coded)[0]) == 1  # the second round is round 1
    both = {"C": np.zeros(coded.programs[0].columns["r"].size), "R": np.zeros(coded.rmax)}
    both["C"][coded.programs[0].columns["r"] == 0] = 1.0
    both["R"][0] = 1.0
    assert {name for name, worst in coded.residuals(both).items() if worst} == {"edge"}


@each(
    ("block", "change"),
    [
        ("possess", "early"),
        ("deliver", "missing"),
        ("laser", "twice"),
        ("photodiode", "twice"),
        ("used", "unmarked"),
        ("unused", "marked"),
        ("minimum", "empty"),
        ("order", "gap"),
        ("binary", "half"),
        ("replay", "early"),
    ],
)
def test_the_check_finds_what_violates_the_coded_program(block, change):
    data = prepared("lightpath:2x2", **CODED)
    values, _ = solution(data)
    program, C, R = data.programs[0], values["C"].copy(), values["R"].copy()
    taken = np.flatnonzero(C)
    r, holds = program.columns["r"], program.holds[program.columns["move"]]
    if change == "early":
        C[np.flatnonzero((r == 0) & ~holds)[0]] = 1.0
    elif change == "missing":
        C[taken[0]] = 0.0
    elif change == "twice":
        same = program.columns["s" if block == "laser" else "d"]
        C[np.flatnonzero((C == 0) & (r == r[taken[0]]) & (same == same[taken[0]]))] = 1.0
    elif change == "unmarked":
        R[0] = 0.0
    elif change == "marked":
        R[3] = 1.0
    elif change == "empty":
        C[r == 0], R[0] = 0.0, 0.0
    elif change == "gap":
        C[r == 1], R[1] = 0.0, 0.0
    else:
        C[taken[0]] = 0.5
    result = data.residuals({"C": C, "R": R})
    assert result[block] > 0
    assert max(data.residuals(values).values()) == 0


def test_the_check_of_the_printed_program_follows_its_constraints():
    data = prepared("lightpath:1x2,lasers=1", program="printed", rmax=3, rmin=2)
    program = data.programs[0]
    C, R = np.zeros(program.columns["r"].size), np.array([1.0, 1.0, 0.0])
    nothing = data.residuals({"C": C, "R": R})
    assert {name for name, worst in nothing.items() if worst} == {"deliver", "laser", "photodiode"}
    # Each tile sends its own chunk in round 1: every laser is busy then, but (2) wants it received before.
    C[(program.columns["r"] == 0) & (program.columns["c"] == program.columns["s"])] = 1.0
    result = data.residuals({"C": C, "R": R})
    assert {name for name, worst in result.items() if worst} == {"possess", "once", "laser", "photodiode"}
    assert data.residuals({"C": C, "R": np.zeros(3)})["used"] == 1
    assert data.residuals({"C": C, "R": np.zeros(3)})["minimum"] == 1
    assert data.residuals({"C": C, "R": np.array([0.0, 1.0, 0.0])})["order"] == 1
    assert refused(data, {"C": C[:-1], "R": R})
    assert data.objective({"R": np.ones(3)}) == 0  # R_min < r < R_max has no round


def test_the_printed_program_is_infeasible_by_reason_and_by_solver(capsys):
    options = ["--set", "program=printed", "--set", "rmax=2", "--json", "--no-store"]
    assert main(["solve", NAME, "lightpath:2x2,lasers=1", *options]) == 3
    record = json.loads(capsys.readouterr().out)
    assert (record["termination"], record["infeasible_by"]) == ("infeasible", "program=printed")
    assert "nothing is ever sent" in record["message"]
    output = {"program": "printed", "rmax": "2", "bounds": "false"}
    for method in ("highs", "cp-sat"):
        run = solve(Task(NAME, "lightpath:2x2,lasers=1", method=method, settings=output, time_limit_s=600))
        assert run.record["termination"] == "infeasible"
        assert "recomputed duals" in run.record["infeasible_by"]


def test_auto_solves_the_coded_model_and_special_methods_refuse_it():
    run = solve(Task(NAME, "lightpath:2x2", settings=CODED))
    assert (run.objective, run.proof, run.record["method"], run.record["metrics"]["rounds"]) == (
        2,
        "optimal",
        "highs",
        3,
    )
    for method in ("certified-rounds", "ring", "layer-to-layer"):
        with pytest.raises(MethodMismatch, match="program=corrected only"):
            solve(Task(NAME, "lightpath:2x2", method=method, settings=CODED))


@pytest.mark.parametrize("collective", ["all-to-all", "gather", "scatter"])
def test_the_code_cannot_send_chunks_whose_holders_do_not_require_them(collective):
    for result in ({}, {"bounds": "false"}):
        run = solve(Task(NAME, "lightpath:2x2", settings={"program": "coded", "collective": collective, **result}))
        assert (run.record["termination"], run.record["infeasible_by"]) == ("infeasible", "program=coded")


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"program": "coded", "collective": "all-reduce"}, "sums"),
        ({"program": "printed", "wavelengths": "fixed"}, "every wavelength"),
        ({"program": "coded", "rmin": 6}, "rmin=6 is above rmax=5"),
        ({"program": "printed", "rmin": 9}, "rmin=9"),
    ],
)
def test_bad_settings_are_refused(parameters, word):
    with pytest.raises(BadInput, match=word):
        assert prepared("lightpath:2x2", **parameters).programs
