"""Certificates from solve and Result.save, as check, the Python API and the stand-alone checker read them."""

from __future__ import annotations

import gzip
import json
from fractions import Fraction
from pathlib import Path

import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput
from opticoll.solvers.exact import vipr_check, vipr_file

RING = ["alltoall.master", "ring:3"]


@pytest.fixture(scope="module")
def solved(tmp_path_factory) -> Path:
    """The certificate of a small master LP, written by the command line."""
    path = tmp_path_factory.mktemp("certificates") / "ring.vipr.gz"
    assert main(["solve", *RING, "--no-store", "--certificate", str(path)]) == 0
    return path


def test_a_certificate_is_written_and_checked_by_all(solved, capfd):
    assert vipr_check.check(str(solved)) == "the optimal value is 1"
    capfd.readouterr()
    assert main(["check", *RING, str(solved), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["verified"] is True
    assert (document["objective_exact"], document["objective"], document["bound"], document["bound_source"]) == (
        "1",
        1.0,
        1.0,
        "certificate",
    )
    assert document["metrics"]["T"] == 1.0
    assert document["certificate"]["derivations"] == 1
    assert main(["check", *RING, str(solved)]) == 0
    assert "proves that the optimal value is 1\n" in capfd.readouterr().out


def test_another_problem_and_a_changed_proof_are_no_certificate_of_this_one(solved, tmp_path, capfd):
    text = gzip.decompress(solved.read_bytes()).decode()
    changed = tmp_path / "changed.vipr"
    changed.write_text(text.replace("L 1 OBJ", "L 1/2 OBJ"))
    cases = [
        (["alltoall.master", "ring:4"], solved, "states another problem"),
        (RING, changed, "the combination does not imply the constraint"),
    ]
    for problem, path, reason in cases:
        assert main(["check", *problem, str(path)]) == 3
        err = capfd.readouterr().err
        assert err.count("\n") == 1
        assert "is not a valid certificate of this problem" in err
        assert reason in err
    assert main(["check", *RING, str(tmp_path / "none.vipr")]) == 2
    for name in ("proof.txt", "a.proof.json", "a.proof.json.gz"):
        capfd.readouterr()
        assert main(["solve", *RING, "--no-store", "--certificate", str(tmp_path / name)]) == 2
        err = capfd.readouterr().err
        assert err.count("\n") == 1
        assert "name a file .vipr or .vipr.gz" in err
    assert main(["check", "alltoall.child", "ring:3", str(solved)]) == 2


def test_the_stand_alone_checker_is_printed_as_it_is_shipped(capfd):
    assert main(["check", "--print-checker"]) == 0
    assert capfd.readouterr().out == Path(vipr_check.__file__).read_text(encoding="utf-8")


def test_an_integer_program_from_python(tmp_path):
    result = oc.solve("alltoall.min-congestion", "ring:3", exact=True)
    path = result.save(tmp_path / "ring.vipr")
    assert vipr_file.is_certificate(path)
    outcome = oc.check("alltoall.min-congestion", "ring:3", path)
    assert outcome["verified"] is True
    assert Fraction(outcome["objective_exact"]) == result.objective_exact == 1
    with pytest.raises(BadInput, match="solve with exact=True"):
        oc.solve("alltoall.min-congestion", "ring:3").save(tmp_path / "no.vipr")
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_certificate_of_an_exported_model_is_one_of_the_formulation(tmp_path, capfd):
    model, path = tmp_path / "ring.mps", tmp_path / "ring.vipr"
    assert main(["export", *RING, "--to", str(model)]) == 0
    oc.solve("matrix.program", f"mps:{model}", exact=True).save(path)
    assert main(["check", "matrix.program", f"mps:{model}", str(path)]) == 0
    assert main(["check", *RING, str(path)]) == 0  # with other names, and maybe of another layer
    out = capfd.readouterr().out
    assert "proves that the optimal value is -1\n" in out  # the file is a minimization
    assert "proves that the optimal value is 1\n" in out
