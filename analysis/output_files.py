"""Write the solution, schedule or certificate of a solved run to a file, read it back and check it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, TypedDict

import msgspec

from opticoll.errors import BadFile, BadInput, ModelError, OpticollError, refuse
from opticoll.formulations.model import is_own
from opticoll.formulations.registry import formulation
from opticoll.instances import Topology
from opticoll.instances.demands import UNIFORM, traffic_of
from opticoll.instances.quantities import parse_size
from opticoll.instances.readers.reading import as_path
from opticoll.shared_files import write_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opticoll.formulations.model import Formulation
    from opticoll.solvers.run import Run
    from opticoll.solvers.schedules.lowering import XmlOptions
    from opticoll.solvers.task import Task
    from opticoll.types import Json


class Written(NamedTuple):
    """Facts about each file that was written, by kind, and an error for each that was not."""

    facts: Mapping[str, Mapping[str, object]]
    failures: list[OpticollError]


@dataclass(frozen=True)
class Outputs:
    """Files to write after a solve: a solution, a schedule, a certificate; None for one not wanted."""

    solution: Path | None = None
    schedule: ScheduleRequest | None = None
    certificate: Path | None = None

    def prepared(self, task: Task) -> Task:
        """The task whose run has what the files need.

        Raises
        ------
        BadInput
            If a file cannot be written for this task.
        """
        if self.certificate is not None:
            task = msgspec.structs.replace(task, exact=True)
        if self.schedule is not None:
            refuse_schedule_early(self.schedule, task)
            task = for_schedule(task)
        return task

    def write(self, run: Run, shard_bytes: float | None = None) -> Written:
        """Write the files that the run, for shards of a size, has something for.

        One file that cannot be written keeps no other from being written.
        """
        written: dict[str, Mapping[str, object]] = {}
        failures: list[OpticollError] = []
        if self.solution is not None and run.verified:
            with errors_kept(failures):
                write_solution(self.solution, run, shard_bytes)
        if self.schedule is not None and run.verified:
            with errors_kept(failures):
                written["schedule"] = write_schedule(self.schedule, run)
        if self.certificate is not None and run.exact is not None:
            with errors_kept(failures):
                written["certificate"] = write_certificate(self.certificate, run)
        return Written(written, failures)


@contextmanager
def errors_kept(failures: list[OpticollError]) -> Iterator[None]:
    """Collect errors of the block instead of raising them."""
    try:
        yield
    except OpticollError as error:
        failures.append(error)
    except OSError as error:
        failures.append(BadFile(f"{error.filename or 'a file'}: cannot be written: {error.strerror or error}"))


def writable(path: str | Path) -> Path:
    """The path of a file to write, in a folder that exists.

    Raises
    ------
    BadInput
        If the folder does not exist.
    """
    target = as_path(path, "save")
    if not target.parent.is_dir() or target.is_dir():
        refuse(target, "cannot be written; name a file in a folder that exists")
    return target


@dataclass(frozen=True)
class ScheduleRequest:
    """A schedule file to write: its chunks per shard (None: default) and options of MSCCL XML (None: no XML)."""

    path: Path
    chunks: int | tuple[int, ...] | None
    options: XmlOptions | None


def schedule_request(
    path: Path,
    *,
    chunks: str | int | Sequence[int] | None = None,
    sizes: str | tuple[int, int] | None = None,
    **options: Any,
) -> ScheduleRequest:
    """The request with these options; strings are read as on the command line.

    Raises
    ------
    BadInput
        For an invalid number, size or name, or options of MSCCL XML for another file.
    """
    from opticoll.solvers.schedules.lowering import XmlOptions

    numbers: int | tuple[int, ...] | None
    if isinstance(chunks, str):
        words = chunks.split(",")
        if not all(word.strip().isdecimal() and 0 < int(word) <= MOST_NUMBER for word in words):
            msg = (
                f"chunks: {chunks[:40]!r} is not a number of chunks per shard from 1 to {MOST_NUMBER}; "
                "write 16, or 1,2,4 for the best of them"
            )
            raise BadInput(msg)
        numbers = int(words[0]) if len(words) == 1 else tuple(map(int, words))
    else:
        numbers = chunk_numbers(chunks)
    if isinstance(sizes, str):
        least, colon, most = sizes.partition(":")
        if not colon:
            refuse("bytes", f"{sizes[:40]!r} is not a range of sizes; write for example 64KiB:1GiB")
        first = 0.0 if least.strip() in {"", "0"} else parse_size(least, "bytes")
        sizes = (int(first), int(parse_size(most, "bytes")))
    if path.suffix.lower() != ".xml":
        if options or sizes is not None:
            name = next(iter(options), "bytes")
            refuse(path, f"{name} is an option of MSCCL XML; name a file that ends in .xml")
        return ScheduleRequest(path, numbers, None)
    return ScheduleRequest(path, numbers, XmlOptions(sizes=sizes, **options))


#: Maximum number of chunks per shard.
MOST_NUMBER = 4096


def chunk_numbers(chunks: object) -> int | tuple[int, ...] | None:
    """A number of chunks per shard, several, or None, as given.

    Raises
    ------
    BadInput
        If a number is not whole, or not in 1..``MOST_NUMBER``.
    """
    if chunks is None:
        return None
    several = list(chunks) if isinstance(chunks, Iterable) and not isinstance(chunks, str) else [chunks]
    numbers = tuple(int(one) for one in several if isinstance(one, Integral) and 0 < int(one) <= MOST_NUMBER)
    if not numbers or len(numbers) < len(several):
        refuse(f"chunks={chunks!r:.40}", f"give a whole number of chunks per shard from 1 to {MOST_NUMBER}, or several")
    return numbers[0] if isinstance(chunks, Integral) else numbers


def for_schedule(task: Task) -> Task:
    """The task with the method that finds the routes of a schedule fastest.

    The link MCF, and the path MCF over all paths, have the optimum of the master LP, whose flow by source holds all
    routes.
    """
    name, given = str(task.formulation), task.settings
    same = name == "alltoall.link-mcf" and "printed" not in given
    same |= name == "alltoall.path-mcf" and given.get("paths") == "all" and str(given.get("lmax", 0)).strip() == "0"
    return (
        msgspec.structs.replace(task, method="flow-decomposition")
        if same and task.method == "auto" and not task.form
        else task
    )


def refuse_schedule_early(request: ScheduleRequest, task: Task) -> None:
    """Refuse, before the solve, tasks whose schedule cannot be written.

    Raises
    ------
    BadInput
        For a wrong suffix, a formulation without schedules, chunks of rounds, or a program for a demand that is not
        uniform.
    """
    from opticoll.solvers.schedules.lowering import EQUAL_SHARDS
    from opticoll.solvers.schedules.schedule_kinds import refuse_chunks, refuse_file

    path, model = request.path, formulation(task.formulation)
    refuse_file(path, model)
    refuse_chunks(model, request.chunks)
    if isinstance(task.instance, str) and task.instance.startswith("file:"):
        read = Path(re.split(r"[,+]", task.instance.removeprefix("file:"))[0])
        if read.exists() and path.exists() and path.samefile(read):
            refuse(path, "is the file of the instance; name another file for the schedule")
    if path.suffix.lower() == ".xml" and str(task.settings.get("demand", UNIFORM)).strip() != UNIFORM:
        refuse(path, EQUAL_SHARDS)


def kept_rows(problem: Formulation) -> str | None:
    """What a schedule keeps of a formulation of one's own, whose other rows it does not know; None for all others."""
    return f"demands and capacities, not other rows of {problem.name}" if is_own(problem) else None


def _write_circuits(request: ScheduleRequest, run: Run) -> dict[str, Any]:
    """Write rounds of circuits, or circuits that change, of a verified run; read the file back and execute it."""
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.solvers import solution_json
    from opticoll.solvers.schedules.schedule_json import configurations_document, rounds_document
    from opticoll.solvers.schedules.schedule_kinds import schedule_of
    from opticoll.solvers.schedules.sequence_schedule import SequenceSchedule

    plan, path = run._planned, request.path
    assert run.values is not None
    schedule = schedule_of(plan, run.values, request.chunks)
    facts: dict[str, Any]
    if isinstance(schedule, RoundSchedule):
        assert isinstance(plan.instance, Topology)
        document = rounds_document(plan.instance, schedule)
        facts = {"rounds": schedule.rounds, "circuits": schedule.circuits, "transfers": schedule.transfers}
    else:
        assert isinstance(schedule, SequenceSchedule)
        document = configurations_document(plan.instance, schedule)
        facts = {
            "configurations": len(schedule.configurations),
            "transfers": schedule.transfers,
            "fluid_time": schedule.fluid_time,
            "time": schedule.time,
        }
    write_file(path, json.dumps(document) + "\n")
    result = solution_json.check(plan.problem.name, plan.instance, path, plan.parameters)
    if isinstance(schedule, SequenceSchedule):
        facts["simulated_time"] = result["objective"]
    return {"file": str(path), **facts, "delivers": result["verified"], "violation": result["reason"] or None}


def write_schedule(request: ScheduleRequest, run: Run) -> dict[str, Json]:
    """Write the schedule of a verified run and execute the file.

    Returns
    -------
    ``file``, the facts of :class:`opticoll.solvers.schedules.lowering.CutFacts`, ``simulated_time``, and
    ``delivers``: whether the simulator found every shard in its place. For a program, ``fits_runtime`` names the
    runtimes whose limits it keeps, and ``exceeds`` names what is too large for the others. For a formulation of one's
    own, ``keeps`` says which of its rows the schedule keeps; for a collective, that switches do not copy where that
    costs time. For rounds of circuits only ``file``, ``rounds``, ``circuits``, ``transfers``, ``delivers`` and
    ``violation``; for circuits that change their number and times instead of rounds.

    Raises
    ------
    BadInput
        If the file cannot be written.
    """
    from opticoll.solvers.schedules import lowering
    from opticoll.solvers.schedules.collective_steps import COLLECTIVES
    from opticoll.solvers.schedules.schedule_check import Cost
    from opticoll.solvers.schedules.schedule_kinds import ScheduleKind, kind_of
    from opticoll.solvers.schedules.verification import verify_file

    plan, topology, path = run._planned, run._planned.instance, request.path
    if kind_of(plan.problem) in {ScheduleKind.ROUNDS, ScheduleKind.CONFIGURATIONS}:
        return _write_circuits(request, run)
    assert isinstance(topology, Topology)
    assert run.values is not None
    cost = Cost.of(plan.parameters)
    name = plan.problem.name
    collective = COLLECTIVES.get(name, "alltoall")
    parts, facts, verdict = lowering.schedule_file(
        path, name, plan.problem, topology, run.values, chunks=request.chunks, cost=cost, options=request.options
    )
    write_file(path, parts)
    verdict = verdict or verify_file(
        path,
        topology,
        collective,
        traffic=traffic_of(plan.parameters, topology),
        root=int(plan.parameters.get("root", 0)),
        cost=cost,
    )
    result: dict[str, Any] = {
        key: verdict.metrics[key] for key in ("fits_runtime", "exceeds") if key in verdict.metrics
    }
    if (keeps := kept_rows(plan.problem)) is not None:
        result["keeps"] = keeps
    return {
        "file": str(path),
        **facts,
        **result,
        "simulated_time": verdict.time,
        "delivers": verdict.valid,
        "violation": verdict.message or None,
    }


def write_solution(path: Path, run: Run, shard_bytes: float | None) -> Path:
    """Write the verified solution of a run as JSON (:class:`opticoll.solvers.solution_document.SolutionDocument`).

    Raises
    ------
    BadInput
        If there is none, or the file cannot be written.
    """
    from opticoll.solvers.solution_document import SolutionDocument

    document = SolutionDocument.of(run, shard_bytes).as_json()
    return write_file(path, json.dumps(document, allow_nan=False) + "\n")


class CertificateFile(TypedDict):
    """The file that :func:`write_certificate` has written, its claim and size, and the times [s]."""

    file: str
    claim: str
    kind: NotRequired[str]
    constraints: NotRequired[int]
    derivations: NotRequired[int]
    bytes: int
    write_s: float
    check_s: float


def write_certificate(path: Path, run: Run) -> CertificateFile:
    """Write the exact answer of a run as a certificate, and verify the file against the run's problem.

    Returns
    -------
    ``file``, ``claim`` (``"infeasible"``, the optimum as a fraction, or the ends of an interval, ``"9 to inf"``),
    ``constraints``, ``derivations``, ``bytes``, and the times of writing and checking, ``write_s`` and ``check_s``.

    Raises
    ------
    BadInput
        If the run has no exact answer, the answer is unbounded, or the file cannot be written.
    """
    from opticoll.solvers.exact import vipr_file, vipr_verify

    if run.exact is None or run.needed is not None or not vipr_file.is_certificate(path):
        reason = "name it .vipr or .vipr.gz"
        if run.exact is None:
            reason = "nothing is proven exactly; solve with exact=True"
        elif run.needed is not None:
            reason = f"its data are a solution of {run.needed.record.formulation}, which a certificate does not hold"
        refuse(path, f"no certificate was written: {reason}")
    form, answer = run.exact
    began = time.perf_counter()
    try:
        title = f"{run.record.formulation} on {run.record.instance}"
        facts = vipr_file.write(path, form, answer, title)
        written = time.perf_counter()
        verdict = vipr_verify.verify(path, form)
        checked = time.perf_counter()
    except ModelError as error:
        raise BadInput(str(error)) from error
    ends = ["-inf" if verdict.low is None else str(verdict.low), "inf" if verdict.high is None else str(verdict.high)]
    claim = "infeasible" if verdict.infeasible else " to ".join(dict.fromkeys(ends))
    return {
        "file": str(path),
        "claim": claim,
        "constraints": facts["constraints"],
        "derivations": facts["derivations"],
        "bytes": facts["bytes"],
        "write_s": written - began,
        "check_s": checked - written,
    }
