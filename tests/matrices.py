"""Digests of the matrices of all cases, recorded in ``data/matrices.json``.

``python tests/matrices.py`` records them anew, after a change of models that is meant; the commit says why.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from builds import problem_of
from cases import CASES

from opticoll.solvers.compile.comparison import normal
from opticoll.solvers.compile.compilation import compile_model

RECORD = Path(__file__).resolve().parent / "data" / "matrices.json"
EVERY = [(name, *case) for name in CASES for case in CASES[name]]


def named(name, spec, settings):
    return " ".join([name, spec, *(f"{key}={Path(value).name}" for key, value in settings.items())])


def fingerprint(form):
    """A digest of the columns and rows by name, with numbers to ten digits."""
    columns, rows = normal(form)
    lines = [f"{one} {' '.join(f'{x:.10g}' for x in values)}" for one, values in columns.items()]
    lines += [f"{one} {' '.join(f'{k} {v:.10g}' for k, v in sorted(row.items()))}" for one, row in rows.items()]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


if __name__ == "__main__":
    forms = {named(*one): compile_model(problem_of(*one[:2], tuple(one[2].items())).pyomo()) for one in EVERY}
    text = json.dumps({name: fingerprint(form) for name, form in forms.items()}, indent=1, sort_keys=True)
    RECORD.write_text(f"{text}\n", encoding="utf-8")
