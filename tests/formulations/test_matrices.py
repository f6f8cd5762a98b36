"""The matrix of every case is the recorded one: the builds share data, so that an error in these is in both of them.

``python tests/formulations/test_matrices.py`` records the matrices anew, after a change that is meant; the commit says why.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(HOME))

import pytest
from builds import normal, problem_of
from cases import CASES

from opticoll.solvers.compilation import compile_built

RECORD = HOME / "data" / "matrices.json"
EVERY = [(name, *case) for name in CASES for case in CASES[name]]


def named(name, spec, settings):
    return " ".join([name, spec, *(f"{key}={Path(value).name}" for key, value in settings.items())])


def fingerprint(name, spec, settings):
    """A digest of the columns and rows by name, with numbers to ten digits."""
    problem = problem_of(name, spec, tuple(settings.items()))
    columns, rows = normal(compile_built(problem, problem.pyomo()))
    lines = [f"{one} {' '.join(f'{x:.10g}' for x in values)}" for one, values in columns.items()]
    lines += [f"{one} {' '.join(f'{k} {v:.10g}' for k, v in sorted(row.items()))}" for one, row in rows.items()]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


@pytest.mark.parametrize(("name", "spec", "settings"), EVERY)
def test_the_matrix_is_the_recorded_one(name, spec, settings):
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    assert fingerprint(name, spec, settings) == recorded.get(named(name, spec, settings)), (
        f"the model has changed; if that is meant, run python {Path(__file__).relative_to(HOME.parent)}"
    )


def test_no_record_is_of_a_case_that_is_gone():
    assert set(json.loads(RECORD.read_text(encoding="utf-8"))) == {named(*one) for one in EVERY}


if __name__ == "__main__":
    text = json.dumps({named(*one): fingerprint(*one) for one in EVERY}, indent=1, sort_keys=True)
    RECORD.write_text(f"{text}\n", encoding="utf-8")
