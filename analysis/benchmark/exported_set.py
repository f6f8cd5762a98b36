"""Export of the benchmark: a folder of model files, an index, best known values and solutions.

::

    index.json               sizes, grade, best known value and bound, proof, generating command
    NAME.mps.gz              every problem, as a minimization; a comment says where the objective is negated
    benchmark.solu           best known values of the files in the format of SCIP's and MIPLIB's scripts
    solutions/NAME.sol.gz    best known solutions
    VERSION, SHA256SUMS      version of the set, and checksums of all files

``best_value`` and ``best_bound`` are those of the formulation, which ``sense`` belongs to; ``file_value`` and
``file_bound`` are those of the file. A bound is rounded outwards.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opticoll.analysis.benchmark.benchmark_set import SIZES, SOLUTIONS, best_known, problems
from opticoll.errors import BadFile, BadInput, refuse
from opticoll.formulations import formulation
from opticoll.instances import parse
from opticoll.solvers.program_writer import NEGATED, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from opticoll.analysis.benchmark.benchmark_set import BenchmarkProblem, BestKnown
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.types import Json


def export_set(
    folder: Path, chosen: Iterable[BenchmarkProblem] | None = None, tell: Callable[[str], None] | None = None
) -> list[dict[str, Json]]:
    """Write problems into a folder.

    Parameters
    ----------
    folder
        Folder, created if missing.
    chosen
        Problems; all by default.
    tell
        Called with a line of progress before each problem.

    Returns
    -------
    list
        The index, a row for every problem.

    Raises
    ------
    BadInput
        If the folder cannot be written.
    BadFile
        If a best known value belongs to another instance than the one that the spec now describes.
    """
    listed = list(problems() if chosen is None else chosen)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _write(folder, listed, tell)
    except OSError as error:
        msg = f"export: cannot write {error.filename or folder}: {error.strerror or error}; choose another folder"
        raise BadInput(msg) from error


def _write(folder: Path, chosen: list[BenchmarkProblem], tell: Callable[[str], None] | None) -> list[dict[str, Any]]:
    from opticoll.analysis.benchmark.runs import ProblemMatrix
    from opticoll.analysis.checkout import opticoll_version

    known = best_known()
    rows: list[dict[str, Any]] = []
    for place, problem in enumerate(chosen, 1):
        if tell is not None:
            tell(f"export: {place} of {len(chosen)}: {problem.name}")
        best = known.get(problem.name)
        if best is not None and best.instance_hash != parse(problem.instance).hash:
            refuse(problem.name, "its best known value belongs to another instance; find its value again", BadFile)
        stated = ProblemMatrix.of(problem)
        if best is not None and dict(best.size) != stated.form.size:
            refuse(problem.name, "its best known value belongs to another program; find its value again", BadFile)
        plain, file = folder / f"{problem.name}.mps", folder / f"{problem.name}.mps.gz"
        program = written(stated.form, ".mps")
        notes = (*([NEGATED] if stated.flip < 0 else []), *program.notes)
        replace(program, notes=notes).write(plain, f"opticoll {problem.formulation} {problem.instance}")
        file.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
        plain.unlink()
        solution = SOLUTIONS / f"{problem.name}.sol.gz"
        if solution.exists():
            (folder / "solutions").mkdir(exist_ok=True)
            content = solution.read_bytes()
            if stated.form.offset:
                content = gzip.compress(gzip.decompress(content) + f"{program.columns[-1]} 1\n".encode(), mtime=0)
            (folder / "solutions" / solution.name).write_bytes(content)
        rows.append(_row(problem, best, stated.form, stated.flip, file))
    (folder / "index.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    (folder / "benchmark.solu").write_text(solu(rows), encoding="ascii")
    (folder / "VERSION").write_text(f"opticoll {opticoll_version() or 'unknown'}\n", encoding="ascii")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    return rows


def _row(
    problem: BenchmarkProblem, best: BestKnown | None, form: StandardForm, flip: float, file: Path
) -> dict[str, Any]:
    value, bound = (None, None) if best is None else (best.value, best.bound)
    return {
        "name": problem.name,
        "file": file.name,
        "formulation": problem.formulation,
        "instance": problem.instance,
        "settings": dict(problem.settings),
        "class": formulation(problem.formulation).problem,
        "sense": formulation(problem.formulation).sense,
        **{part: form.size[part] for part in SIZES},
        "grade": None if best is None else best.grade,
        "best_value": value,
        "best_value_exact": None if best is None else best.value_exact,
        "best_bound": bound,
        "file_value": None if value is None else flip * value,
        "file_bound": None if bound is None else flip * bound,
        "proof": "none" if best is None else best.proof,
        "method": None if best is None else best.method,
        "bound_source": None if best is None else best.bound_source,
        "generator": problem.generator,
    }


def solu(rows: Iterable[Mapping[str, Json]]) -> str:
    """Best known values of the files, a line each: ``=opt=``, ``=best=``, or ``=unkn=``."""
    lines = []
    for row in rows:
        value = row["file_value"]
        proven = row["proof"] in ("optimal", "exact")
        lines.append(
            f"=unkn= {row['name']}" if value is None else f"={'opt' if proven else 'best'}= {row['name']} {value!r}"
        )
    return "".join(f"{line}\n" for line in lines)
