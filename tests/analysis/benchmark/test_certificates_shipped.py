"""Fractions and certificates of the benchmark: those that are shipped prove the values of the index."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction

import pytest

from opticoll.analysis.benchmark.benchmark_set import STUDY, best_known, problems
from opticoll.analysis.study.study_file import STUDIES
from opticoll.solvers.exact import vipr_check
from opticoll.solvers.solution_json import check

FOLDER = STUDIES / f"{STUDY}-certificates"
INDEX = json.loads(FOLDER.with_suffix(".json").read_text(encoding="utf-8"))
SHIPPED = {name: one for name, one in INDEX.items() if one["file"] is not None}
NAMED = {one.name: one for one in problems()}
MOST_BYTES = 100_000


def test_every_file_is_in_the_index_and_has_its_hash():
    assert {path.name for path in FOLDER.glob("*")} == {one["file"] for one in SHIPPED.values()}
    for one in SHIPPED.values():
        content = (FOLDER / one["file"]).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (one["sha256"], one["bytes"])
        assert one["bytes"] <= MOST_BYTES


def test_fractions_agree_with_the_proven_values():
    best = best_known()
    compared = 0
    for name, one in INDEX.items():
        if one["value"] is not None and name in best and best[name].instance_hash == one["instance_hash"]:
            assert float(Fraction(one["value"])) == pytest.approx(best[name].value, rel=1e-6), name
            compared += 1
    assert compared >= 30


@pytest.mark.parametrize("name", sorted(SHIPPED, key=lambda name: SHIPPED[name]["bytes"])[:15])
def test_the_stand_alone_checker_accepts_shipped_certificates(name):
    # the file states the objective without its constant, which no problem of these has
    file = str(FOLDER / SHIPPED[name]["file"])
    assert vipr_check.check(file) == f"the optimal value is {SHIPPED[name]['value']}"


@pytest.mark.parametrize("name", sorted(SHIPPED, key=lambda name: SHIPPED[name]["bytes"])[:4])
def test_a_certificate_is_one_of_its_problem(name):
    problem = NAMED[name]
    result = check(problem.formulation, problem.instance, FOLDER / SHIPPED[name]["file"], dict(problem.settings))
    assert (result["verified"], result["objective_exact"]) == (True, SHIPPED[name]["value"])
