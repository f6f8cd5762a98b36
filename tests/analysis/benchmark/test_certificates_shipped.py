"""Fractions and certificates of the benchmark: filled in, resumed, shipped, and refused when they are changed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from fractions import Fraction

import pytest
from click.testing import CliRunner

from opticoll.analysis.benchmark import certificates, wiring_check
from opticoll.analysis.benchmark.benchmark_set import best_known, problems
from opticoll.errors import BadFile
from opticoll.instances import parse
from opticoll.solvers.exact import vipr_check

SHIPPED = {name: one for name, one in certificates.certified().items() if one.file is not None}


def test_every_file_is_in_the_index_and_has_its_hash():
    assert {path.name for path in certificates.FOLDER.glob("*")} == {one.file for one in SHIPPED.values()}
    for one in SHIPPED.values():
        content = (certificates.FOLDER / one.file).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (one.sha256, one.bytes)
        assert one.bytes <= certificates.MOST_BYTES


def test_fractions_agree_with_the_proven_values():
    best = best_known()
    compared = 0
    for name, one in certificates.certified().items():
        if one.value is not None and name in best and best[name].instance_hash == one.instance_hash:
            assert float(Fraction(one.value)) == pytest.approx(best[name].value, rel=1e-6), name
            compared += 1
    assert compared >= 30


def shown(names):
    """Topologies take longer to check: all their wirings are tried."""
    return [pytest.param(name, marks=pytest.mark.slow if name.startswith("topology-") else ()) for name in names]


@pytest.mark.parametrize("name", shown(sorted(SHIPPED, key=lambda name: SHIPPED[name].bytes)[:15]))
def test_the_stand_alone_checker_accepts_shipped_certificates(name):
    # the file states the objective without its constant, which no problem of these has
    file = str(certificates.FOLDER / SHIPPED[name].file)
    if file.endswith(".vipr.gz"):
        assert vipr_check.check(file) == f"the optimal value is {SHIPPED[name].value}"
    else:
        assert set(wiring_check.verify(wiring_check.read(file))) == {Fraction(SHIPPED[name].value)}


def test_fill_resumes_and_check_refuses_changed_files(tmp_path, capsys):
    index, folder = tmp_path / "index.json", tmp_path / "files"
    smallest = min(
        (name for name in SHIPPED if SHIPPED[name].file.endswith(".vipr.gz")), key=lambda name: SHIPPED[name].nonzeros
    )
    [problem] = [one for one in problems() if one.name == smallest]
    [(_, result)] = certificates.fill([problem], 60.0, index=index, folder=folder)
    assert result.value == SHIPPED[smallest].value
    assert result.instance_hash == parse(problem.instance).hash
    assert certificates.certified(index) == {smallest: result}
    assert list(certificates.wanted([problem], index=index)) == []
    assert certificates.verify(problem, result, folder) is None
    assert "proves" in certificates.verify(problem, replace(result, value="1/7"), folder)
    (folder / result.file).write_bytes(b"")
    assert "SHA-256" in certificates.verify(problem, result, folder)
    index.write_text(json.dumps({smallest: {"instance_hash": "0", "value": None}}))
    assert list(certificates.wanted([problem], index=index)) == [problem]  # of another instance
    index.write_text("[]")
    with pytest.raises(BadFile, match="not an index"):
        certificates.certified(index)


def test_the_certificate_of_a_wiring_is_one_of_its_problem_alone(monkeypatch):
    name, other = "topology-servers-n-6-degree-2", "topology-servers-n-6-degree-2-traffic-random-seed-1"
    named = {one.name: one for one in problems() if one.name in (name, other)}
    ends = wiring_check.verify(wiring_check.read(str(certificates.FOLDER / SHIPPED[name].file)))
    monkeypatch.setattr(wiring_check, "verify", lambda document: ends)  # all wirings are tried once
    assert certificates.verify(named[name], SHIPPED[name]) is None
    assert "another problem" in certificates.verify(named[other], SHIPPED[name])
    assert "the index says 1/7" in certificates.verify(named[name], replace(SHIPPED[name], value="1/7"))


def test_the_command_that_verifies():
    smallest = min(SHIPPED, key=lambda name: SHIPPED[name].bytes)
    result = CliRunner().invoke(certificates.maintain, ["verify", smallest])
    assert (result.exit_code, result.output) == (0, f"{smallest}: proven, {SHIPPED[smallest].value}\n")
