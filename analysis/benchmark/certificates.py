"""Certificates of the benchmark's optima: fractions, and proofs that anyone can check.

Every problem with a proven value, of at most ``EXACT_NONZEROS`` nonzeros, is solved in rational arithmetic. The index
is ``analysis/studies/solver-bench-certificates.json``. Files of at most ``MOST_BYTES`` are in the folder of that name.
For larger ones, the index has the SHA-256. A problem whose exact solve ended without a proof is listed with the reason,
and tried again if it is named. The best wirings of servers, ``.proof.json.gz``, have a checker of their own,
:mod:`opticoll.analysis.benchmark.wiring_check`.

``python -m opticoll.analysis.benchmark.certificates fill|verify`` is for maintainers.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from opticoll.analysis.benchmark import wiring_check
from opticoll.analysis.benchmark.benchmark_set import EXACT_NONZEROS, STUDY, best_known, problems_named
from opticoll.analysis.study.study_file import STUDIES
from opticoll.errors import BadFile, OpticollError
from opticoll.formulations import formulation
from opticoll.formulations.model import read_parameters
from opticoll.formulations.rounding import decimal
from opticoll.shared_files import rewrite
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opticoll.analysis.benchmark.benchmark_set import BenchmarkProblem

_log = logging.getLogger("opticoll")
FOLDER = STUDIES / f"{STUDY}-certificates"
INDEX = FOLDER.with_suffix(".json")
#: Largest file that is shipped [bytes].
MOST_BYTES = 100_000


@dataclass(frozen=True)
class Certified:
    """The exact optimum of a problem.

    ``value`` is the optimum as a fraction, None for the given ``reason``. ``file`` is the certificate in
    :data:`FOLDER`, None if it is too large to ship; ``sha256`` and ``bytes`` are its hash and size.
    ``instance_hash`` identifies the instance. ``solve_s``, ``exact_s``, ``write_s`` and ``check_s`` are seconds of the
    usual solve, of the exact step, and of writing and checking the certificate, on the machine that ran :func:`fill`.
    A certificate of a wiring has no ``derivations`` and no ``exact_s``.
    """

    instance_hash: str
    value: str | None
    reason: str | None = None
    nonzeros: int = 0
    file: str | None = None
    sha256: str | None = None
    bytes: int = 0
    derivations: int = 0
    solve_s: float | None = None
    exact_s: float | None = None
    write_s: float | None = None
    check_s: float | None = None


def certified(index: Path = INDEX) -> dict[str, Certified]:
    """Exact optima by the problem's name; empty if the index does not exist.

    Raises
    ------
    BadFile
        If the index does not have the format that :func:`fill` writes.
    """
    if not index.exists():
        return {}
    try:
        return {name: Certified(**entry) for name, entry in json.loads(index.read_text(encoding="utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        msg = f"{index} is not an index of certificates ({error}); delete it and run `fill` again"
        raise BadFile(msg) from error


def wanted(
    chosen: Iterable[BenchmarkProblem], *, again: bool = False, index: Path = INDEX
) -> Iterator[BenchmarkProblem]:
    """The problems that should have a certificate and have none for their present instance.

    ``again``: also those whose last exact solve ended without a proof.
    """
    from opticoll.instances import parse

    best = best_known()
    for problem in chosen:
        known = best.get(problem.name)
        if known is None or known.proof not in PROVEN or not known.size.get("nonzeros", 0):
            continue
        if known.size["nonzeros"] > EXACT_NONZEROS:
            continue
        last = certified(index).get(problem.name)
        if last is None or last.instance_hash != parse(problem.instance).hash:
            yield problem
            continue
        missing = again if last.value is None else last.file is None and last.bytes <= MOST_BYTES
        if missing:
            yield problem


def certify(problem: BenchmarkProblem, limit_s: float, folder: Path = FOLDER) -> Certified:
    """Solve a problem exactly, write its certificate, verify it, and keep it if it is small enough to ship.

    Parameters
    ----------
    limit_s
        Wall-clock limit of the whole solve [s].
    """
    from opticoll.analysis.output_files import write_certificate
    from opticoll.instances import parse
    from opticoll.solvers import solve
    from opticoll.solvers.task import Task

    task = Task(
        problem.formulation,
        problem.instance,
        settings=dict(problem.settings),
        time_limit_s=limit_s,
        threads=1,
        exact=True,
    )
    instance_hash = parse(problem.instance).hash
    try:
        run = solve.solve(task)
    except OpticollError as error:
        return Certified(instance_hash, None, str(error))
    value, times = run.record.objective_exact, run.record.time
    if value is None:
        return Certified(instance_hash, None, run.record.message or f"ended with {run.termination}")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / f"{problem.name}.vipr.gz"
        facts = write_certificate(file, run)
        content = file.read_bytes()
    shipped = len(content) <= MOST_BYTES
    if shipped:
        folder.mkdir(parents=True, exist_ok=True)
        rewrite(folder / file.name, content)
    return Certified(
        instance_hash,
        value,
        None,
        run.record.size.nonzeros or 0,
        file.name if shipped else None,
        hashlib.sha256(content).hexdigest(),
        len(content),
        facts["derivations"],
        round(times.solve_s or 0.0, 3),
        round(times.exact_s or 0.0, 3),
        round(facts["write_s"], 3),
        round(facts["check_s"], 3),
    )


def fill(
    chosen: Iterable[BenchmarkProblem],
    limit_s: float,
    *,
    again: bool = False,
    index: Path = INDEX,
    folder: Path = FOLDER,
) -> Iterator[tuple[BenchmarkProblem, Certified]]:
    """Certify what is missing; the index is read before and written after every problem."""
    for problem in wanted(chosen, again=again, index=index):
        result = certify(problem, limit_s, folder)
        entries = {**certified(index), problem.name: result}
        text = {name: asdict(entry) for name, entry in sorted(entries.items())}
        rewrite(index, json.dumps(text, indent=1) + "\n")
        yield problem, result


def verify(problem: BenchmarkProblem, entry: Certified, folder: Path = FOLDER) -> str | None:
    """Reason why a problem's shipped certificate does not prove its fraction; None if it does, or is not shipped."""
    from opticoll.solvers.exact.vipr_file import is_certificate
    from opticoll.solvers.solution_json import check

    if entry.file is None:
        return None
    try:
        if hashlib.sha256((folder / entry.file).read_bytes()).hexdigest() != entry.sha256:
            return "the file's SHA-256 differs from the one in the index"
        if not is_certificate(folder / entry.file):
            return _verify_wiring(problem, entry, folder / entry.file)
        result = check(problem.formulation, problem.instance, folder / entry.file, dict(problem.settings))
    except (OSError, OpticollError) as error:
        return str(error)
    if not result["verified"]:
        return str(result["reason"])
    proven = result["objective_exact"]
    return None if proven == entry.value else f"the file proves {proven}, the index says {entry.value}"


def _verify_wiring(problem: BenchmarkProblem, entry: Certified, path: Path) -> str | None:
    """As :func:`verify`, for a certificate of a wiring: its problem must be that of the instance."""
    from opticoll.instances import parse
    from opticoll.solvers.methods import prepared

    try:
        document = wiring_check.read(str(path))
        ends = wiring_check.verify(document)
    except wiring_check.Refused as error:
        return str(error)
    model = formulation(problem.formulation)
    data: Any = prepared(
        model, parse(problem.instance), read_parameters(model.parameters, dict(problem.settings), model.name)
    )
    sent = data.pool.point_to_point
    traffic = {(s, t): decimal(sent[s, t]) for s, t in np.argwhere(sent).tolist()}
    stated = document["problem"]
    theirs = {(s, t): Fraction(size) for s, t, size in stated["traffic"]}
    if (stated["servers"], stated["ports"], theirs) != (data.n, data.degree, traffic):
        return "the file states another problem"
    return (
        None if set(ends) == {Fraction(entry.value or 0)} else f"the file proves {ends}, the index says {entry.value}"
    )


# maintainers ----------------------------------------------------------------------------------------------------------

_CHOSEN = click.argument("names", nargs=-1, metavar="[NAME]...")


@click.group()
def maintain() -> None:
    """Certificates of the benchmark's optima."""


@maintain.command("fill")
@_CHOSEN
@click.option("--time-limit", type=float, default=300.0, show_default=True, metavar="S", help="Limit of a solve [s].")
def fill_command(names: tuple[str, ...], time_limit: float) -> None:
    """Certify what has no certificate yet; problems that are named also if their last solve ended without a proof."""
    for problem, result in fill(problems_named(names), time_limit, again=bool(names)):
        stated = result.value or f"nothing is proven: {result.reason}"
        click.echo(f"{problem.name}: {stated} ({result.bytes} bytes{'' if result.file else ', not shipped'})")


@maintain.command("verify")
@_CHOSEN
def verify_command(names: tuple[str, ...]) -> None:
    """Verify the certificates that are shipped."""
    known, failed = certified(), 0
    for problem in problems_named(names):
        entry = known.get(problem.name)
        if entry is not None and entry.file is not None:
            reason = verify(problem, entry)
            failed += reason is not None
            click.echo(f"{problem.name}: {reason or f'proven, {entry.value}'}")
    if failed:
        raise SystemExit(3)


if __name__ == "__main__":
    maintain()
