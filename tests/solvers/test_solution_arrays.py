"""Arrays from files: refused in one line before anything uses them as indices, for every formulation."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from builds import problem_of
from cases import PROBLEMS

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadFile
from opticoll.formulations.model import build_model, forms_of
from opticoll.formulations.variables import Array, SolutionSize, check_arrays, check_shapes, numbered
from opticoll.instances import parse
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.solution_document import SolutionDocument
from opticoll.solvers.solution_json import check
from opticoll.solvers.task import Task

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What ``check`` ended with, by formulation and mutation; and the peak memory of all [kB]."""
    folder = tmp_path_factory.mktemp("mutated")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "mutated_solutions.py"), str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"ended with {done.returncode} at {rows[-1:]}: {done.stderr[-2000:]}"
    result: dict[str, dict[str, tuple[int, list[str]]]] = {}
    for name, what, *ending in rows:
        if ending:
            result.setdefault(name, {})[f"{len(result.get(name, ()))} {what}"] = (ending[0], ending[1])
    return result


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_wrong_arrays_are_refused_in_one_line(checked, name):
    assert len(checked[name]) >= 10
    for what, (status, lines) in checked[name].items():
        assert len(lines) == (0 if status == 0 else 1), (what, lines)
        if "random" in what:
            assert status in {2, 3}, (what, status, lines)
            continue
        assert status == 2, (what, lines)
        array = "" if "unequal" in what else what.split()[1].rstrip(":")  # which of them differs is not stated
        assert f"values.{array}" in lines[0] or "is not valid JSON" in lines[0], (what, lines)


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_the_variables_of_every_model_are_declared(name):
    """Both builds are one matrix, which is tested with the formulations: of all cases but the first, one is asked."""
    duals_declared, duals_read = set(), set()
    for place, (spec, settings) in enumerate(PROBLEMS[name].cases):
        data = problem_of(name, spec, tuple(settings.items()))
        for form in forms_of(data)[0 if place == 0 else -1 :]:
            compiled = compile_model(build_model(data, form))
            values = compiled.values(np.zeros(compiled.A.shape[1]))
            allowed = data._arrays(values.keys())
            given = {key: allowed[key] for key in values}  # what unfolding adds is no variable
            check_shapes(given, {key: array.shape for key, array in values.items()}, form)
            declared = {key: array for key, array in allowed.items() if array.dual}
            if declared:
                duals = compiled.duals(np.zeros(compiled.A.shape[0]))
                read = {key: duals[key].shape for key in declared if key in duals}
                check_shapes(declared, read, form)
                duals_declared |= declared.keys()
                duals_read |= read.keys()
    assert bool(duals_read) == bool(duals_declared)


def test_no_small_file_takes_gigabytes(checked):
    assert checked["peak"]["0 kB"][0] < 2_000_000


@pytest.mark.parametrize("value", [2.0**63, -1.0, 5.0, 0.5, np.nan, np.inf, -np.inf])
def test_whole_numbers_are_within_their_range(value):
    declared = {"index": Array(numbered([SolutionSize("paths")]), low=0, high=5)}
    check_arrays(declared, {"index": np.array([0.0, 4.0])}, "file")
    with pytest.raises(BadFile, match=r"file\.index"):
        check_arrays(declared, {"index": np.array([0.0, value])}, "file")


def test_sizes_agree_and_are_limited():
    declared = {
        "first": Array(numbered([SolutionSize("paths", plus=1)]), low=0, high=SolutionSize("arcs", plus=1)),
        "arcs": Array(numbered([SolutionSize("arcs")])),
        "weight": Array(numbered([SolutionSize("paths", most=9)]), required=False),
    }
    assert check_shapes(declared, {"first": (3,), "arcs": (7,), "weight": (2,)}, "file") == {"paths": 2, "arcs": 7}
    for shapes in (
        {"first": (3,)},
        {"first": (0,), "arcs": (7,)},
        {"first": (3,), "arcs": (7, 1)},
        {"first": (3,), "arcs": (7,), "weight": (3,)},
        {"first": (11,), "arcs": (7,), "weight": (10,)},
        {"first": (3,), "arcs": (7,), "more": (1,)},
    ):
        with pytest.raises(BadFile):
            check_shapes(declared, shapes, "file")
    with pytest.raises(BadFile):
        check_shapes(declared, {"first": (3,), "arcs": (7,)}, "file", most=6)
    with pytest.raises(BadFile):
        check_arrays(declared, {"first": np.array([0.0, 1.0, 8.0]), "arcs": np.zeros(7)}, "file")


def test_a_solver_that_returns_wrong_arrays_is_refused(monkeypatch):
    from opticoll.formulations.standard_form import StandardForm

    for wrong in (
        {"g": np.zeros((3, 3)), "F": np.asarray(1.0)},
        {"g": np.full((8, 4), np.nan), "F": np.asarray(1.0)},
        {"F": np.asarray(1.0)},
    ):
        monkeypatch.setattr(StandardForm, "values", lambda _form, _x, wrong=wrong: wrong)
        run = solve.solve(Task("alltoall.master", "ring:4", method="highs"))
        assert not run.verified
        assert run.values is None
        assert "solution" in run.record["message"]


# The problem is what the command line says ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    file = tmp_path_factory.mktemp("written") / "solution.json"
    options = ["--no-store", "--method", "certified-rounds", "--set", "lasers=2", "--solution", str(file)]
    assert main(["solve", "lumorph.rounds", "lightpath:2x2,lasers=1", *options]) == 0
    return file


def test_other_settings_are_refused_with_both_values(written, capsys):
    assert main(["check", "lumorph.rounds", "lightpath:2x2,lasers=1", str(written)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "lasers=2" in message
    assert "lasers=0" in message
    assert "--set lasers=2" in message
    assert main(["check", "lumorph.rounds", "lightpath:2x2,lasers=1", str(written), "--set", "lasers=2"]) == 0
    silent = json.loads(written.read_text())
    del silent["settings"]
    file = written.with_name("silent.json")
    file.write_text(json.dumps(silent))
    # Without a word on lasers the values themselves are held against the instance's one.
    assert main(["check", "lumorph.rounds", "lightpath:2x2,lasers=1", str(file)]) == 3
    assert main(["check", "lumorph.rounds", "lightpath:2x2,lasers=1", str(written), "--set", "laser=2"]) == 2


def test_bounds_are_recomputed_from_duals_or_ignored(tmp_path, capsys):
    run = solve.solve(Task("alltoall.master", "ring:4"))
    document, file = SolutionDocument.of(run).as_json(), tmp_path / "solution.json"
    document |= {"bound": 1e-3, "proof": "optimal"}

    def result():
        file.write_text(json.dumps(document))
        capsys.readouterr()
        assert main(["check", "alltoall.master", "ring:4", str(file), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    record = result()
    assert record["bound"] == pytest.approx(run.objective, rel=1e-6)
    assert record["bound_source"] == "any-lengths"
    assert any("proof was ignored" in note for note in record["notes"])
    document["duals"]["capacity"]["shape"] = [9]
    file.write_text(json.dumps(document))
    assert main(["check", "alltoall.master", "ring:4", str(file)]) == 2
    del document["duals"]
    record = result()
    assert record["bound"] is None
    assert any("bound was ignored" in note for note in record["notes"])
    assert main(["check", "alltoall.master", "ring:4", str(file)]) == 0
    assert "bound was ignored" in capsys.readouterr().out


def test_wrong_numbers_in_schedules_are_refused(tmp_path, capsys):
    def ends(name: str, text: str) -> int:
        (tmp_path / name).write_text(text)
        capsys.readouterr()
        status = main(["check", "alltoall.link-mcf", "ring:3", str(tmp_path / name)])
        assert capsys.readouterr().err.count("\n") == 1, text
        return status

    move = {"format": "opticoll-schedule/1", "kind": "moves", "collective": "alltoall", "chunks": 1}
    route = {**move, "kind": "routes"}
    for value in (2**63, -1, 3, float("nan"), 0.5, "0", None, [0], "\ud800"):
        for ends_of, at in itertools.product((0, 1), repeat=2):
            pairs: list[list[object]] = [[0, 1], [0, 1]]
            pairs[ends_of][at] = value
            assert ends("steps.json", json.dumps({**move, "steps": [[[*pairs, 0, "copy"]]]})) == 2
        given: dict[str, object] = {"source": 0, "target": 1, "path": [0, 1], "weight": 1.0, "chunks": 1}
        for key, entry in (("source", value), ("target", value), ("path", [0, value])):
            assert ends("routes.json", json.dumps({**route, "routes": [{**given, key: entry}]})) == 2
        assert ends("steps.json", json.dumps({**move, "chunks": 0 if value == 3 else value, "steps": []})) == 2
    assert ends("steps.json", json.dumps({**move, "steps": [[[[0, 1], [0, 1], 2**62, "copy"]]]})) == 2
    assert ends("steps.json", json.dumps({**move, "steps": [[[[0, 1], [0, 1], 7, "copy"]]]})) == 3
    assert ends("steps.json", json.dumps({**move, "chunks": 2**31, "steps": []})) == 2
    xml = (
        '<algo name="x" proto="Simple" nchannels="1" nchunksperloop="{chunks}" ngpus="{gpus}" coll="alltoall">'
        '<gpu id="0" i_chunks="3" o_chunks="3" s_chunks="0"><tb id="0" send="{send}" recv="-1" chan="0">'
        '<step s="0" type="s" srcbuf="i" srcoff="{offset}" dstbuf="o" dstoff="0" cnt="{count}" depid="-1" deps="-1"/>'
        '</tb></gpu><gpu id="1" i_chunks="3" o_chunks="3" s_chunks="0"/><gpu id="2" i_chunks="3" o_chunks="3" '
        's_chunks="0"/></algo>'
    )
    right = {"chunks": "3", "gpus": "3", "send": "1", "offset": "1", "count": "1"}
    for key in right:
        for text in (str(2**63), "nan", "0.5", "-2", str(2**40)):
            assert ends("algo.xml", xml.format(**{**right, key: text})) == 2, (key, text)
    assert ends("algo.xml", xml.format(**{**right, "offset": "3"})) == 3


@pytest.mark.parametrize(
    ("name", "spec", "message"),
    [
        ("alltoall.master", "ring:3", "is a solution of alltoall.link-mcf, not of alltoall.master"),
        ("alltoall.link-mcf", "path:3", "is a solution for ring:3, not for path:3"),
    ],
)
def test_a_file_for_another_problem_is_refused_by_the_names_of_both(name, spec, message, tmp_path):
    document = {
        "format": "opticoll-solution/1",
        "formulation": "alltoall.link-mcf",
        "instance": "ring:3",
        "instance_hash": parse("ring:3").hash,
        "settings": {"printed": False},
        "values": {},
    }
    (tmp_path / "flows.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(BadFile, match=message):
        check(name, spec, tmp_path / "flows.json")


def test_a_parameter_of_an_earlier_version_is_named_with_what_to_do(tmp_path):
    file = tmp_path / "flows.json"
    oc.solve("alltoall.link-mcf", "ring:3").save(file)
    document = json.loads(file.read_text(encoding="utf-8"))
    document["settings"]["composition"] = "phases"
    file.write_text(json.dumps(document), encoding="utf-8")
    for read in (oc.load, lambda path: oc.check("alltoall.link-mcf", "ring:3", path)):
        with pytest.raises(BadFile, match=r"states composition=phases, but .* remove it from 'settings' in the file"):
            read(file)
    del document["settings"]["composition"]
    file.write_text(json.dumps(document), encoding="utf-8")
    assert oc.load(file).verified
