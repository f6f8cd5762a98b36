"""Export of the benchmark: model files, an index, best known values and solutions, in a folder or an archive.

::

    index.json, index.csv    sizes, grade, best known value and bound, proof, tags, generating command, SHA-256
    NAME.mps.gz              every problem, as a minimization; a comment says where the objective is negated
    benchmark.solu           best known values of the files in the format of SCIP's and MIPLIB's scripts
    solutions/NAME.sol.gz    best known solutions
    VERSION, SHA256SUMS      version of the set, and checksums of all files

``best_value`` and ``best_bound`` are those of the formulation, which ``sense`` belongs to; ``file_value`` and
``file_bound`` are those of the file. A bound is rounded outwards.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.benchmark.benchmark_set import SIZES, SOLUTIONS, best_known, problems
from opticoll.errors import BadFile, BadInput
from opticoll.formulations import formulation
from opticoll.instances import parse
from opticoll.solvers.program_writer import NEGATED, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opticoll.analysis.benchmark.benchmark_set import BenchmarkProblem, BestKnown
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.types import Json

ARCHIVES = (".tar.gz", ".tgz")
#: Endings of files, which a folder is not meant to have.
FILES = (
    *(".7z", ".bz2", ".gz", ".tar", ".xz", ".zip", ".zst"),
    *(".csv", ".html", ".json", ".lp", ".md", ".mps", ".sol", ".solu", ".svg", ".txt"),
)


def export_set(
    target: Path, chosen: Iterable[BenchmarkProblem] | None = None, tell: Callable[[str], None] | None = None
) -> list[dict[str, Json]]:
    """Write problems into a folder, or into an archive if the name ends in ``.tar.gz``.

    Parameters
    ----------
    target
        Folder, created if missing, or archive.
    chosen
        Problems; all by default.
    tell
        Called with a line of progress before each problem, and if an archive is replaced.

    Returns
    -------
    list
        The index, a row for every problem.

    Raises
    ------
    BadInput
        If the target cannot be written, or has the ending of another file.
    BadFile
        If a best known value belongs to another instance than the one that the spec now describes.
    """
    listed = list(problems() if chosen is None else chosen)
    try:
        return _exported(target, listed, tell)
    except OSError as error:
        msg = f"export: cannot write {error.filename or target}: {error.strerror or error}; choose another place"
        raise BadInput(msg) from error


def named_like_a_file(target: Path) -> bool:
    """Whether something that would become a folder has the ending of a file."""
    return target.suffix.lower() in FILES and not target.is_dir()


def _exported(target: Path, listed: list[BenchmarkProblem], tell: Callable[[str], None] | None) -> list[dict[str, Any]]:
    if not target.name.endswith(ARCHIVES):
        if named_like_a_file(target):
            msg = f"export: {target} has the name of a file; name a folder, or an archive that ends in .tar.gz"
            raise BadInput(msg)
        target.mkdir(parents=True, exist_ok=True)
        return _write(target, listed, tell)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        folder = Path(scratch) / "opticoll-benchmark"
        folder.mkdir()
        rows = _write(folder, listed, tell)
        plain = target.with_name(f".{target.name}")
        with tarfile.open(plain, "w:gz", compresslevel=1) as archive:
            archive.add(folder, folder.name, filter=_same_owner)
        if tell is not None and target.exists():
            tell(f"export: {target} is replaced")
        plain.replace(target)
    return rows


def _same_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def _write(folder: Path, chosen: list[BenchmarkProblem], tell: Callable[[str], None] | None) -> list[dict[str, Any]]:
    from opticoll.analysis import opticoll_version
    from opticoll.analysis.benchmark.runs import Stated

    known = best_known()
    rows: list[dict[str, Any]] = []
    for place, problem in enumerate(chosen, 1):
        if tell is not None:
            tell(f"export: {place} of {len(chosen)}: {problem.name}")
        best = known.get(problem.name)
        if best is not None and best.instance_hash != parse(problem.instance).hash:
            msg = f"{problem.name}: its best known value belongs to another instance; find its value again"
            raise BadFile(msg)
        stated = Stated.of(problem)
        if best is not None and dict(best.size) != stated.form.size:
            msg = f"{problem.name}: its best known value belongs to another program; find its value again"
            raise BadFile(msg)
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
    (folder / "index.csv").write_text(_table(rows), encoding="utf-8")
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
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "formulation": problem.formulation,
        "instance": problem.instance,
        "settings": dict(problem.settings),
        "class": formulation(problem.formulation).problem,
        "sense": formulation(problem.formulation).sense,
        **{part: form.size[part] for part in SIZES},
        "tags": tags(form),
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


def _table(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]) if rows else ["name"], lineterminator="\n")
    table.writeheader()
    for row in rows:
        settings = " ".join(f"{name}={value}" for name, value in row["settings"].items())
        table.writerow({**row, "settings": settings, "tags": " ".join(row["tags"])})
    return text.getvalue()


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


def tags(form: StandardForm) -> list[str]:
    """Structure of a program: its kinds of columns, and its kinds of rows as MIPLIB 2017 defines them.

    Of rows with integer columns: ``set_partitioning``, ``set_packing``, ``set_covering``, ``cardinality``,
    ``invariant_knapsack``, ``knapsack``, ``integer_knapsack``, ``variable_bound``, ``precedence``, ``mixed_binary``;
    ``equations`` and ``inequalities`` are of all rows.
    """
    whole = np.asarray(form.integer)
    binary = whole & (form.col_lower >= 0) & (form.col_upper <= 1)
    rows = form.A.tocsr()
    lengths = np.diff(rows.indptr)
    row = np.repeat(np.arange(lengths.size), lengths)

    def total(values: Any) -> Any:
        return np.bincount(row, values, lengths.size)

    def every(marks: Any) -> Any:  # of rows without entries too
        return total(marks) == lengths

    low, high = form.row_lower, form.row_upper
    equal, one_sided = low == high, np.isfinite(low) ^ np.isfinite(high)
    right = np.where(np.isfinite(high), high, -low)  # as <=
    data = rows.data * np.where(np.isfinite(high), 1.0, -1.0)[row]
    binaries, integers = every(binary[rows.indices]), every(whole[rows.indices])
    ones, units, positive = every(data == 1), every(np.abs(data) == 1), every(data > 0)
    minus = every(data == -1)
    used = lengths > 0
    two = lengths == 2
    opposite = two & (total(data) == 0)
    mixed = total(binary[rows.indices])
    kinds = {
        "set_partitioning": equal & binaries & ones & (right == 1),
        "set_packing": one_sided & binaries & ones & (right == 1),
        "set_covering": one_sided & binaries & minus & (right == -1),
        "cardinality": equal & binaries & ones & (right >= 2),
        "invariant_knapsack": one_sided & binaries & units & positive & (right >= 2),
        "knapsack": one_sided & binaries & positive & ~units,
        "integer_knapsack": one_sided & integers & ~binaries & positive,
        "precedence": one_sided & opposite & integers,
        "variable_bound": one_sided & two & (mixed == 1),
        "mixed_binary": (mixed > 0) & ~binaries & ~two,
    }
    present = [name for name, marks in kinds.items() if (marks & used).any()]
    columns = {"continuous": ~whole, "binary": binary, "integer": whole & ~binary}
    sides = {"equations": equal & used, "inequalities": ~equal & used}
    return [*(name for name, marks in {**columns, **sides}.items() if marks.any()), *present]
