"""Combinatorial certificates: what is written is proven, and no changed file proves a false claim."""

from __future__ import annotations

import copy
import inspect
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import opticoll as oc
from opticoll.analysis.cli import main
from opticoll.errors import BadInput
from opticoll.formulations import formulation
from opticoll.formulations.model import read_parameters
from opticoll.instances import as_instance
from opticoll.solvers.exact import combinatorial, combinatorial_check
from opticoll.solvers.methods import prepared

ALONE = Path(combinatorial_check.__file__)

#: Small problems whose optimum is known, and the method that solves them.
CASES = {
    "routes": ("alltoall.min-congestion", "petersen", "sssp", {}, None),
    "wavelengths": ("optree.one-stage", "wdm-ring:n=5,wavelengths=2", "cycle-cover", {}, 3),
    "rounds": ("lumorph.rounds", "lightpath:2x2,lasers=1", "certified-rounds", {}, 3),
    "scatter": ("lumorph.rounds", "lightpath:2x2,lasers=1", "certified-rounds", {"collective": "scatter"}, 3),
    "layers": ("alltoall.virtual-channels", "ring:5", "layer-assignment", {"layers": "2"}, 2),
    "placement": (
        "sipml.placement", "op-graph:chain,splits=2x1x3", "degree-aware", {"degree": "2", "k": "3"}, None,
    ),
    "two paths": ("alltoall.min-congestion", "ring:3", "highs", {"kappa": "2"}, Fraction(3, 2)),
    "circuits": ("sipml.ring-wavelengths", "servers:n=3,degree=2,traffic=random,seed=1", "highs", {}, None),
    "switches": ("sipml.ocs-circuits", "servers:n=3,degree=3,traffic=random,seed=1", "highs", {}, None),
    "steps": ("alltoall.sccl", "ring:3,directed", "highs", {}, 3),
    "sums": ("lumorph.sum-rounds", "lightpath:1x2", "highs", {"collective": "reduce"}, 1),
    "design": ("topology.design", "servers:n=4,degree=2", "highs", {}, Fraction(1, 2)),
    "directed": ("topology.design", "servers:n=3,degree=1", "highs", {"directed": "true"}, Fraction(1, 3)),
}  # fmt: skip


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """The certificates of all cases, written and read again."""
    found = {}
    folder = tmp_path_factory.mktemp("certificates")
    for name, (name_of, instance, method, settings, _) in CASES.items():
        result = oc.solve(name_of, instance, method=method, **settings)
        path = result.save(folder / f"{name}.proof.json{'.gz' if name == 'rounds' else ''}")
        found[name] = (combinatorial_check.read(str(path)), path, result)
    return found


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_proven(name, documents):
    document, path, result = documents[name]
    name_of, instance, _, settings, optimum = CASES[name]
    value, bound = combinatorial.stated_ends(formulation(name_of), *combinatorial_check.verify(document))
    low, high = sorted((value, bound))
    assert float(value) == pytest.approx(result.objective)
    if optimum is not None:
        assert (low, high) == (optimum, optimum)
    found = oc.check(name_of, instance, path, settings)
    assert found["verified"] is True, found["reason"]
    assert found["objective_exact"] == (str(low) if low == high else None)
    assert found["certificate"]["low"] == str(low)
    assert (found["bound"], found["objective"]) == (float(bound), float(value))


def leaves(part, at=()):
    """The places of all numbers, texts and nulls in a document."""
    if isinstance(part, dict | list):
        for key, inner in part.items() if isinstance(part, dict) else enumerate(part):
            yield from leaves(inner, (*at, key))
    else:
        yield at, part


def changes(value):
    if value is None:
        return [0, 1, "x"]
    if isinstance(value, bool):
        return [not value, 2, None]
    if isinstance(value, str):
        try:
            number = Fraction(value)
        except ValueError:
            return ["routes", "rounds", ""]
        return [str(number + 1), str(number / 2), str(-number), "1e3", "1/0", None]
    return [value + 1, value - 1, -value - 1, value + 0.5, str(value) + "/2", None, [value]]


def changed(document, at, value):
    other = copy.deepcopy(document)
    inner = other
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return other


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("routes",)])
def test_no_changed_certificate_proves_a_false_claim(name, documents, tmp_path):
    """A changed problem is another one's, which check refuses; what else is accepted still holds the optimum."""
    document, _, _ = documents[name]
    name_of, instance, _, settings, optimum = CASES[name]
    if optimum is not None and name_of == "topology.design":  # F, where the file states T
        optimum = 1 / optimum
    least, most = combinatorial_check.verify(document) if optimum is None else (optimum, optimum)
    problems = refused = tried = 0
    for at, value in leaves(
        {key: document[key] for key in ("certificate", "kind", "problem", "solution", "argument", "claim")}
    ):
        for other in changes(value):
            mutated = changed(document, at, other)
            tried += 1
            try:
                low, high = combinatorial_check.verify(mutated)
            except combinatorial_check.Refused:
                refused += 1
                continue
            if at[0] == "problem":
                problems += 1
                if problems <= 12 and name_of != "alltoall.virtual-channels":
                    path = tmp_path / "changed.proof.json"
                    path.write_text(json.dumps(mutated))
                    found = oc.check(name_of, instance, path, settings)
                    assert found["verified"] is False, (at, value, other)
                    assert "another problem" in found["reason"]
                continue
            assert low is None or low <= most, (at, value, other)
            assert high is None or high >= least, (at, value, other)
            if at[0] == "claim":
                assert low is None or low <= least
                assert high is None or high >= most
    assert refused > 0.6 * tried


@pytest.mark.parametrize(
    "wrong",
    ["", "[]", "null", "{}", '{"certificate": 1}', "[" * 10_000, '{"certificate": NaN}', "\x00", "1e999"],
)
def test_other_files_are_refused_in_one_line(wrong, tmp_path, capfd):
    path = tmp_path / "a.proof.json"
    path.write_text(wrong)
    assert main(["check", "lumorph.rounds", "lightpath:2x2", str(path)]) in (2, 3)
    assert capfd.readouterr().err.count("\n") == 1


def test_a_document_without_a_part_or_with_another_is_refused(documents):
    for name, (document, _, _) in documents.items():
        for part in ("problem", "solution", "argument"):
            for key in document[part]:
                less = copy.deepcopy(document)
                del less[part][key]
                with pytest.raises(combinatorial_check.Refused):
                    combinatorial_check.verify(less)
            more = copy.deepcopy(document)
            more[part]["further"] = 0
            with pytest.raises(combinatorial_check.Refused):
                combinatorial_check.verify(more)
        for missing in ("solution", "argument"):
            half = {**document, missing: None}
            with pytest.raises(combinatorial_check.Refused):
                combinatorial_check.verify(half)
            ends = list(document["claim"])
            ends[missing == "solution"] = None
            assert combinatorial_check.verify({**half, "claim": ends}), name


def test_formulations_and_parameters_without_one_are_refused(tmp_path, capfd):
    with pytest.raises(BadInput, match="has no combinatorial certificate; write its proof in VIPR"):
        combinatorial.kind_of(formulation("alltoall.master"), None)
    model = formulation("lumorph.rounds")
    parameters = read_parameters(model.parameters, {"collective": "reduce"}, model.name)
    with pytest.raises(BadInput, match="with these parameters"):
        combinatorial.kind_of(model, prepared(model, as_instance("lightpath:2x2"), parameters))
    assert not list(tmp_path.iterdir())
    assert main(["solve", "alltoall.master", "ring:3", "--certificate", str(tmp_path / "a.json")]) == 2


def test_a_certificate_of_another_instance_or_kind_is_refused(documents):
    _, path, _ = documents["rounds"]
    assert "another problem" in oc.check("lumorph.rounds", "lightpath:2x3,lasers=1", path)["reason"]
    assert "proves rounds, not routes" in oc.check("optree.one-stage", "wdm-ring:n=5,wavelengths=2", path)["reason"]
    _, path, _ = documents["layers"]
    assert "another problem" in oc.check("alltoall.virtual-channels", "ring:6", path, {"layers": 2})["reason"]


def test_the_stand_alone_checker_is_short_and_needs_python_alone(documents, tmp_path, capfd):
    assert len(ALONE.read_text(encoding="utf-8").splitlines()) <= 520
    assert all(len(inspect.getsource(kind).splitlines()) <= 50 for kind in combinatorial_check.KINDS.values())
    copied = tmp_path / "combinatorial_check.py"
    assert main(["check", "--print-checker", "combinatorial"]) == 0
    copied.write_text(capfd.readouterr().out, encoding="utf-8")
    document, path, _ = documents["rounds"]
    (tmp_path / "bad.proof.json").write_text(json.dumps({**document, "claim": [2, 2]}))

    def run(*names: object) -> tuple[int, str, str]:
        command = [sys.executable, "-I", "-S", str(copied), *map(str, names)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run(path) == (0, "proven: the least value is 3\n", "")
    for name in ("bad.proof.json", "none.proof.json"):
        status, out, err = run(name)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert err.startswith("not proven: ")
    assert run()[0] == 1


def test_a_cycle_is_found_if_there_is_one():
    assert combinatorial._cycle(set()) == []
    assert combinatorial._cycle({(0, 1), (1, 2), (0, 2), (3, 0)}) == []
    cycle = combinatorial._cycle({(0, 1), (1, 2), (2, 3), (3, 1), (3, 4), (5, 1)})
    assert sorted(cycle) == [1, 2, 3]
    assert all(pair in {(1, 2), (2, 3), (3, 1)} for pair in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
