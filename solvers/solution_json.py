"""Read and check solution files."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opticoll.errors import refuse
from opticoll.formulations import formulation
from opticoll.formulations.alltoall.channels_bounds import TOLERANCE
from opticoll.formulations.matrix.program import FileProgram
from opticoll.formulations.model import Bound, PyomoModel, build_model, forms_of, is_own, states
from opticoll.formulations.parameters import read_parameters
from opticoll.formulations.rounds.round_schedule import RoundFormulation
from opticoll.formulations.standard_form import packed
from opticoll.instances import MatrixProgram, Topology
from opticoll.instances.demands import traffic_of
from opticoll.instances.readers import reading
from opticoll.instances.readers.objects import as_instance
from opticoll.solvers import verify
from opticoll.solvers.compile.compilation import (
    compile_built,
    compile_model,
    declared_arrays,
    declared_duals,
)
from opticoll.solvers.coordinate_arrays import named_arrays
from opticoll.solvers.exact.vipr_file import is_certificate
from opticoll.solvers.methods import prepared
from opticoll.solvers.plan import shared_parameters
from opticoll.solvers.same_problem import refuse_other_problem, refuse_other_settings
from opticoll.solvers.schedules.collective_steps import COLLECTIVES
from opticoll.solvers.schedules.schedule_check import Cost, refused
from opticoll.solvers.schedules.schedule_json import read_configurations, read_rounds
from opticoll.solvers.schedules.schedule_kinds import ScheduleKind, holds
from opticoll.solvers.schedules.verification import is_schedule, verify_document, verify_file
from opticoll.solvers.solution_document import FORMAT, SolutionDocument
from opticoll.solvers.task import check_record
from opticoll.solvers.verify import FEASIBLE, dual_bound, matrix_violations
from opticoll.types import Json, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from opticoll.formulations import Formulation
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances import Instance
    from opticoll.instances.readers.solver_solutions import SolFile
    from opticoll.instances.topology import F64
    from opticoll.solvers.program_writer import WrittenProgram
    from opticoll.solvers.schedules.schedule_check import ScheduleCheck
    from opticoll.solvers.task import CheckRecord

#: Largest solution file that is read [bytes].
MAX_BYTES = 1 << 30
#: Parameters of formulations that determine the time of a schedule.
SCHEDULE_SETTINGS = ("alpha", "beta")
#: Parameters of virtual channels that limit or value a table of routes.
CHANNEL_SETTINGS = ("layers", "objective", "load")


def check(
    model: str | type[Formulation],
    instance_spec: object,
    path: str | Path,
    settings: Mapping[str, object] | None = None,
) -> CheckRecord:
    """Verify an external solution of a formulation on an instance or its spec.

    The problem is given by the instance and ``settings``, the parameters of the formulation by name. A file for another
    problem is refused. Values are read from the file, and duals, from which the bound is recomputed.

    Returns
    -------
    A record: formulation, instance, instance_hash, settings, verified, violations, objective, reason (why it is
    refused: the worst block and its violation), claimed (the objective that the file states), bound and bound_source
    (recomputed from the file's duals, else None), and notes, a list of sentences on what was ignored.

    Raises
    ------
    BadFile
        If the file is not a solution document, too large, for another formulation, instance or settings, or its arrays
        are not those of the formulation (:mod:`opticoll.formulations.variables`).
    BadInput
        For settings that the formulation does not have.
    """
    model = formulation(model)
    instance = as_instance(instance_spec)
    path, given = Path(path), settings or {}
    parameters = read_parameters(model.parameters, given, model.name)
    other = _other_check(path)
    if other is not None:
        return other(model, instance, path, parameters)
    if path.suffix.lower() == ".xml":
        return check_schedule(model, instance, path, given)
    document = read_document(path)
    if is_schedule(document, path):
        if document.get("kind") == "rounds":
            return check_rounds(model, instance, path, parameters, document)
        if document.get("kind") == "configurations":
            return check_configurations(model, instance, path, parameters, document)
        return check_schedule(model, instance, path, given, document)
    stated = stated_problem(model, instance, parameters, document, path)
    solution = read_solution(model, instance, parameters, stated, path)
    violations, objective, bound, claimed = solution.violations, solution.objective, solution.bound, stated.objective
    notes: list[str] = []
    if model._needs is not None:
        notes.append(f"the data are the file's own solution of {model._needs}, which was checked as well")
    wrong_claim = claimed is not None and not math.isclose(
        claimed, objective, rel_tol=1e-6, abs_tol=0.0 if objective else 1e-12
    )
    reason = verify.violated(violations) or ""
    if wrong_claim and not reason:
        reason = f"the file claims objective {claimed}, but its values have {objective!r}"
    if bound is not None:
        notes.append(f"the bound was recomputed from the file's duals ({bound.reason})")
    elif stated.bound is not None:
        notes.append("the file's bound was ignored: it has no duals from which the bound can be recomputed")
    if stated.proof is not None:
        notes.append("the file's proof was ignored")
    record = check_record(model, instance, parameters, reason, violations, objective)
    record |= {"claimed": claimed, "notes": notes}
    if bound is not None:
        record |= {"bound": bound.value, "bound_source": bound.name}
    if states(model, "metrics"):
        record["metrics"] = verify.properties(solution.data, "metrics", None if reason else objective)
    return record


def _other_check(path: Path) -> Callable[[type[Formulation], Any, Path, Settings], CheckRecord] | None:
    """How to check a file that is neither a JSON document nor XML; None for any other."""
    if _is_sol(path):
        return check_sol
    if is_certificate(path):
        from opticoll.solvers.exact.vipr_verify import check_certificate

        return check_certificate
    return None


def stated_problem(
    model: type[Formulation], instance: Instance, parameters: Settings, document: dict[str, Json], path: Path
) -> SolutionDocument:
    """The solution in a document.

    Raises
    ------
    BadFile
        If it is malformed, or states another formulation, instance or other settings.
    """
    stated = reading.as_struct(document, SolutionDocument, path)
    refuse_other_problem(model, instance, stated, path)
    refuse_other_settings(model, parameters, stated.settings, path, instance)
    return stated


@dataclass(frozen=True)
class StatedSolution:
    """A checked solution from a document: data of the model, values, those of the needed solution, duals and verdict.

    ``bound`` is recomputed from the duals; None without any.
    """

    data: Any
    values: dict[str, F64]
    needed: dict[str, F64] | None
    duals: dict[str, F64] | None
    violations: dict[str, float]
    objective: float
    bound: Bound | None


def read_solution(
    model: type[Formulation], instance: Instance, parameters: Settings, stated: SolutionDocument, path: Path
) -> StatedSolution:
    """Read a solution of ``model`` on ``instance`` from a document, and check it.

    Raises
    ------
    BadFile
        If the arrays of the document are not those of the formulation.
    """
    needed = None
    if model._needs is not None:
        basis = _basis_data(model, instance, parameters)
        needed = named_arrays(stated.needed, "needed", path, partial(declared_arrays, basis))
    data = prepared(model, instance, parameters, needed)
    values = named_arrays(stated.values, "values", path, partial(declared_arrays, data))
    violations = recomputed_violations(model, instance, parameters, data, values, needed)
    with np.errstate(all="ignore"):
        objective = verify.objective(data, values)
    duals = _stated_duals(data, stated, path)
    bound = None if duals is None else _recomputed_bound(data, duals)
    return StatedSolution(data, values, needed, duals, violations, objective, bound)


def recomputed_violations(
    model: type[Formulation],
    instance: Instance,
    parameters: Settings,
    data: Any,
    values: Mapping[str, F64],
    needed: Mapping[str, F64] | None = None,
) -> dict[str, float]:
    """Worst violation of every block by the values and by those of the needed solution, whose blocks are prefixed."""
    violations: dict[str, float] = {}
    if model._needs is not None and needed is not None:
        basis = formulation(model._needs.formulation)
        worst = _residuals(_basis_data(model, instance, parameters), needed)
        violations = {f"{basis.name}.{block}": value for block, value in worst.items()}
    return violations | _residuals(data, values)


def _basis_data(model: type[Formulation], instance: Instance, parameters: Mapping[str, Any]) -> Any:
    """Data of the formulation whose solution ``model`` needs."""
    assert model._needs is not None
    return formulation(model._needs.formulation).prepare(instance, shared_parameters(model, parameters))


def _stated_duals(data: Formulation, stated: SolutionDocument, path: Path) -> dict[str, F64] | None:
    """The duals in a document from which a bound can be computed; None if there are none."""
    of_rows = data.problem == "LP" and (isinstance(data, FileProgram) or is_own(data))
    if not (states(data, "certify") or of_rows):
        return None
    declared = declared_duals(data, stated.values.keys())
    read = {name: stated.duals[name] for name in declared if name in stated.duals}
    return named_arrays(read, "duals", path, lambda _: declared) if read else None


def _recomputed_bound(data: Formulation, duals: Mapping[str, F64]) -> Bound | None:
    """The bound that duals prove, of a program's rows by weak duality; None if they prove nothing."""
    if isinstance(data, FileProgram) or not states(data, "certify"):
        form = compile_model(data.matrix()) if isinstance(data, FileProgram) else compile_built(data, build_model(data))
        y = np.nan_to_num(packed(form.rows, form.A.shape[0], duals))
        bound: Bound | None = Bound("lp-dual", dual_bound(form, y), "weak duality from the file's row duals")
    else:
        with np.errstate(all="ignore"):
            bound = verify.certified(data, duals)
    return bound if bound is not None and math.isfinite(bound.value) else None


def check_sol(model: type[Formulation], instance: Instance, path: Path, parameters: Settings) -> CheckRecord:
    """Verify a solver's solution file (:mod:`opticoll.instances.readers.solver_solutions`).

    Its columns are those of the program's file, or of the model as :func:`opticoll.solvers.export.export` writes it.
    Duals in the file give a bound by weak duality, unless there are integer columns.

    Raises
    ------
    BadFile
        If the file is malformed, too large, or names other columns; also for a formulation that takes its data from a
        solution, which the file does not hold.
    """
    from opticoll.formulations.matrix.program import most_violated

    result, problem, form, file, x, values, told = _sol_values(model, instance, path, parameters)
    program = instance if isinstance(instance, MatrixProgram) else None
    violations = _residuals(problem, values) | matrix_violations(form, x)
    worst = max(violations, key=lambda k: violations[k])
    objective = verify.objective(problem, values)
    reason, notes = verify.violated(violations) or "", [*(() if program is None else program.notes), *told]
    own = form.objective(x)
    if _differs(own, objective):
        notes.append(f"the file's columns give {own:.12g}; the objective is recomputed from the solution")
    if reason:
        if program is not None and worst in {"row", "column", "integrality"}:
            reason += ", most at " + most_violated(program, {"x": x}, worst)
        reason += _few_digits(result)
    elif result.objective is not None:
        claimed = [result.objective] if form.sense == "min" else [result.objective, -result.objective]
        if all(_differs(value, one) for value in (objective, own) for one in claimed):
            reason = f"the file claims objective {result.objective}, but its values have {objective!r}"
            reason += _few_digits(result)
        elif form.sense == "max" and objective * result.objective < 0:
            result.objective = -result.objective
            notes.append("the file's objective is negated: export writes a maximization as a minimization")
    bound = None
    if result.duals is not None and not form.is_mip:
        bound = _sol_bound(form, result.duals, path, file)
        notes.append("the bound was recomputed from the file's duals by weak duality")
    if result.status:
        notes.append(f"the file's status {result.status!r} was ignored")
    record = check_record(model, instance, parameters, reason, violations, objective)
    record |= {"claimed": result.objective, "bound": bound, "notes": notes}
    record["bound_source"] = None if bound is None else "lp-dual"
    return record


def _sol_bound(form: StandardForm, duals: Mapping[str, float], path: Path, file: WrittenProgram) -> float | None:
    """The bound that duals by the name of their row prove; None if they prove nothing."""
    from opticoll.instances.readers.solver_solutions import positions

    at = file.row[positions(duals, file.rows, f"solution file {path}", "row")]
    y = np.zeros(form.row_lower.size)
    np.add.at(y, at[at >= 0], np.array(list(duals.values()))[at >= 0])
    # Duals of either sign prove what they prove: a maximization may have been solved as a minimization.
    bound = dual_bound(form, y)
    bound = bound if form.sense == "min" else min(bound, dual_bound(form, -y))
    return bound if math.isfinite(bound) else None


def _file_of(form: StandardForm, result: SolFile, program: MatrixProgram | None) -> WrittenProgram:
    """The file of which a solution has the names or, if it numbers them, the size: as exported, or a program's own."""
    from opticoll.solvers.program_writer import WrittenProgram, written

    names = None if program is None else (list(program.column_names), list(program.row_names))
    own = names or (list(form.column_names()), list(form.row_names()))
    stated = WrittenProgram(form, *own, np.arange(form.row_lower.size), ".mps")

    def has(known: list[str], given: Mapping[str, float]) -> bool:
        return len(given) == len(known) if result.numbered else given.keys() <= set(known)

    def fits(file: WrittenProgram) -> int:  # 2 with the rows of the duals
        return has(file.columns, result.values) * (2 if not result.duals or has(file.rows, result.duals) else 1)

    if program is not None and fits(stated) == 2:
        return stated
    exported = [written(form, suffix, *(names or ())) for suffix in (".mps", ".lp")]
    return max([*exported, stated] if program is None else [stated, *exported], key=fits)


#: Numbers of significant digits that rounded values have; whole numbers have fewer.
FEW_DIGITS = range(6, 9)


def _few_digits(file: SolFile) -> str:
    """What to add to the refusal of a file whose values are rounded to few digits; else nothing."""
    if file.digits not in FEW_DIGITS:
        return ""
    return f"; its values have {file.digits} digits, write more (docs/reference/matrix-files.md, Solutions)"


def _differs(one: float, other: float) -> bool:
    return abs(one - other) > FEASIBLE * max(abs(one), abs(other), 1.0)


def _forms(problem: Formulation, program: MatrixProgram | None) -> Iterator[StandardForm]:
    """The matrix of a problem under the names that export, a layer or a model to change (`oc.model`) gives it."""
    for layer in forms_of(problem) if program is None else ("matrix",):
        built = build_model(problem, layer)
        yield compile_built(problem, built)
        if isinstance(built, PyomoModel):
            yield compile_built(problem, replace(built, labelled=True))


class _SolValues(NamedTuple):
    """A solver's file, the problem, its matrix and the file that was solved, values of columns and by name, notes."""

    result: SolFile
    problem: Formulation
    form: StandardForm
    file: WrittenProgram
    x: F64
    values: dict[str, F64]
    notes: list[str]


def _sol_values(model: type[Formulation], instance: Instance, path: Path, parameters: Settings) -> _SolValues:
    """A solver's solution file with the problem of which it is a solution.

    Raises
    ------
    BadFile
        As :func:`check_sol`.
    """
    from opticoll.instances.readers.solver_solutions import positions, read_sol

    if model._needs is not None:
        reading.refuse(
            path, f"{model.name} takes its data from a solution of {model._needs}; name a JSON file with both"
        )
    where = f"solution file {path}"
    problem = prepared(model, instance, parameters)
    result = read_sol(path)
    if not result.solved:
        reading.refuse(where, f"contains no solution (status {result.status or 'unknown'}); name a file with values")
    program = instance if isinstance(instance, MatrixProgram) else None
    for form in _forms(problem, program):
        file = _file_of(form, result, program)
        if result.numbered or result.values.keys() <= set(file.columns):
            break
    result = result.named(file.columns, file.rows, where)
    columns, size = np.full(len(file.columns), np.nan), form.cost.size
    columns[positions(result.values, file.columns, where)] = list(result.values.values())
    x = np.nan_to_num(columns[:size])  # after them, the constant of the objective
    absent, told = int(np.isnan(columns[:size]).sum()), []
    if absent and result.partial:
        reading.refuse(
            where, f"leaves {absent} of {size} columns open, as a MIP start may; write a whole solution (.sol)"
        )
    if absent:
        told.append(f"the file has no value of {absent} of {size} columns: they are 0")
    if result.count > 1:
        told.append(f"the file has {result.count} solutions: the first is read")
    values = form.values(x) if program is not None else problem._unfold(form.values(x))
    return _SolValues(result, problem, form, file, x, values, told)


def read_start(
    model: type[Formulation], instance: Instance, path: Path, settings: Mapping[str, object]
) -> dict[str, F64]:
    """Named values of a solution file from which a solve of the same problem may start.

    Parameters
    ----------
    model, instance
        The formulation and the instance.
    path
        A solution that ``opticoll solve --solution`` wrote, or a solver's file (``.sol``).
    settings
        Those of the task; those that the formulation does not have are ignored.

    Raises
    ------
    BadFile
        If it is no such file, or is for another problem.
    """
    own = {p.name for p in model.parameters}
    parameters = read_parameters(model.parameters, {k: v for k, v in settings.items() if k in own}, model.name)
    if _is_sol(path):
        return _sol_values(model, instance, path, parameters).values
    stated = stated_problem(model, instance, parameters, read_document(path), path)
    return read_solution(model, instance, parameters, stated, path).values


def check_rounds(
    model: type[Formulation], instance: Any, path: Path, parameters: Settings, document: dict[str, Json]
) -> CheckRecord:
    """Replay an external schedule of rounds of circuits; ``objective`` in the record is the number of rounds.

    Raises
    ------
    BadFile
        If the document is malformed, too large, or for another instance; also for a formulation without rounds.
    """
    if not holds(model, ScheduleKind.ROUNDS) or not isinstance(instance, Topology):
        reading.refuse(
            path, f"rounds of circuits are checked as lumorph.rounds or an optree formulation, not as {model.name}"
        )
    schedule = read_rounds(document, path, instance)
    performed = str(getattr(model, "performs", None) or parameters.get("collective", "file:"))
    if not performed.startswith("file:"):  # those of a file or plug-in have names of their own
        _refuse_other_collective(document, path, performed, int(parameters.get("pieces", 1)))
    problem = prepared(model, instance, parameters)
    assert isinstance(problem, RoundFormulation)
    with np.errstate(all="ignore"):
        violations = {
            block: np.inf if np.isnan(worst) else worst + 0.0 for block, worst in problem.replay(schedule).items()
        }
    worst = max(violations, key=lambda block: violations[block])
    reason = "" if violations[worst] <= FEASIBLE else f"{worst} is violated {violations[worst]:g} times"
    record = check_record(model, instance, parameters, reason, violations, float(schedule.rounds))
    record |= {
        "metrics": {"rounds": schedule.rounds, "circuits": schedule.circuits, "transfers": schedule.transfers},
        "schedule": {"violation": worst if reason else None, "rank": None, "chunk": None, "step": None},
    }
    return record


def check_configurations(
    model: type[Formulation], instance: Instance, path: Path, parameters: Settings, document: dict[str, Json]
) -> CheckRecord:
    """Execute an external schedule of circuits that change; ``objective`` in the record is its time.

    The parameters define the problem, as for a solution.

    Raises
    ------
    BadFile
        If the document is malformed, too large, or for another instance; also for a formulation without such schedules.
    """
    from opticoll.solvers.schedules.sequence_simulator import run_configurations

    if not holds(model, ScheduleKind.CONFIGURATIONS):
        reading.refuse(path, f"circuits that change are checked as topology.sequence, not as {model.name}")
    data: Any = prepared(model, instance, parameters)
    stated = read_configurations(document, path, instance, data.n)
    _refuse_other_collective(document, path, "alltoall")
    verdict = run_configurations(stated, data)
    bound = max(bound.value for bound in data.bounds())
    if verdict.valid and verdict.time is not None and 0 < bound < math.inf:
        verdict.metrics.update({"T_bound": bound, "over_bound": verdict.time / bound})
    return _executed(model, instance, parameters, verdict)


def _executed(
    model: type[Formulation], instance: Instance, parameters: Settings | None, verdict: ScheduleCheck
) -> CheckRecord:
    """The record of an executed schedule: its time, metrics, and the first violated rank, chunk and step."""
    violations = {} if verdict.valid else {verdict.reason: None}
    record = check_record(model, instance, parameters, verdict.message, violations, verdict.time)
    record["metrics"] = verdict.metrics
    record["schedule"] = {
        "violation": verdict.reason or None,
        "rank": verdict.rank,
        "chunk": verdict.chunk,
        "step": verdict.step,
    }
    return record


def _refuse_other_collective(document: dict[str, Json], path: Path, performed: str, chunks: int | None = None) -> None:
    """Refuse a schedule that states a collective, or a number of chunks per shard, that is not the problem's."""
    stated = document.get("collective", performed)
    if str(stated).replace("-", "") != performed.replace("-", ""):
        reading.refuse(
            path, f"is a schedule for {str(stated)[:40]}, not for {performed}; state the problem of the file"
        )
    if chunks is not None and document.get("chunks", chunks) != chunks:
        has = f"has {str(document['chunks'])[:40]} chunks per shard"
        reading.refuse(path, f"{has}, not {chunks}; state the problem of the file")


def check_schedule(
    model: type[Formulation],
    instance: Any,
    path: Path,
    settings: Mapping[str, object] | None = None,
    document: dict[str, Json] | None = None,
) -> CheckRecord:
    """Execute an external schedule (MSCCL XML, or the JSON ``document`` in ``path``) on an instance.

    Only these parameters of the formulation apply to a schedule: ``alpha`` and ``beta``, the cost of a step and a
    shard, ``demand`` and ``root``, which must be those of the schedule, and of virtual channels ``layers``,
    ``objective`` and ``load``.

    Returns
    -------
    The record of :func:`check`; its ``schedule`` contains the key of the reason and the first violated rank, chunk and
    step; ``objective`` is the time of the schedule, or the number of layers where the formulation counts these.

    Raises
    ------
    BadFile
        If the file is malformed, too large, or for another instance; also for a formulation that has no schedules, and
        for a schedule without layers of virtual channels where the formulation has them.
    BadInput
        For other settings.
    """
    if not model.name.startswith("alltoall."):
        reading.refuse(path, f"a schedule is checked as one of alltoall.master or its siblings, not as {model.name}")
    if not isinstance(instance, Topology):
        reading.refuse(path, f"schedules are checked on topologies, but {instance.spec} is not one")
    for name in settings or {}:
        if name not in (*SCHEDULE_SETTINGS, "demand", "root", *CHANNEL_SETTINGS):
            refuse(path, f"is a schedule, which is executed as stated: {name}= has no effect; omit it")
    parameters = read_parameters(model.parameters, settings or {}, model.name)
    collective, root = COLLECTIVES.get(model.name, "alltoall"), int(parameters.get("root", 0))
    verify_schedule = verify_file if document is None else partial(verify_document, document)
    traffic = traffic_of(parameters, instance)
    verdict = verify_schedule(path, instance, collective, traffic=traffic, root=root, cost=Cost.of(parameters))
    if verdict.valid and "layers" in parameters and "layers" not in verdict.metrics:
        needs = f"{model.name} needs one for every route, and alltoall.master checks routes without layers"
        reading.refuse(path, f"has no layer for its routes, so that they may deadlock; {needs}")
    if verdict.valid and "layers" in parameters:
        most = int(parameters["layers"]) if settings and "layers" in settings else None
        verdict = _within_channels(verdict, instance, traffic, most, float(parameters.get("load", 0.0)))
    record = _executed(model, instance, None, verdict)
    layers = verdict.metrics.get("layers")
    if isinstance(layers, int) and "layers" in parameters and parameters.get("objective", "channels") == "channels":
        record["objective"] = layers
    record["verified"] = verdict.valid
    record["schedule"] = {"collective": collective, **record["schedule"]}
    return record


def _within_channels(
    verdict: ScheduleCheck, topology: Topology, traffic: F64 | None, most: int | None, load: float
) -> ScheduleCheck:
    """The verdict on valid routes with layers: one for every pair, on ``most`` layers (None: any), 0 being any load."""
    ranks, (routes, layers) = topology.num_ranks, (verdict.metrics[name] for name in ("paths", "layers"))
    pairs = ranks * (ranks - 1) if traffic is None else int(np.count_nonzero(traffic))
    if routes != pairs:
        return refused("split", f"{routes} routes for {pairs} pairs; give every pair one route, and it one layer")
    if most is not None and isinstance(layers, int) and layers > most:
        return refused("layers", f"the routes use {layers} layers, but layers={most}; set layers={layers}")
    if load and verdict.time is not None and verdict.time > load * (1 + TOLERANCE):
        return refused("load", f"the largest load is {verdict.time}, but load={load}; set load={verdict.time}")
    return verdict


def _residuals(problem: Formulation, values: Mapping[str, F64]) -> dict[str, float]:
    with np.errstate(all="ignore"):  # overflow counts as a violation
        result = verify.residuals(problem, values)
    return {block: np.inf if np.isnan(worst) else worst + 0.0 for block, worst in result.items()}


def _is_sol(path: Path) -> bool:
    """Whether a file is a solver's, by its name or contents; not JSON, as `solve --solution NAME.sol` writes."""
    from opticoll.instances.readers.solver_solutions import begins_as_solution

    begin = b""
    with suppress(OSError):
        if path.is_file():  # opening a pipe would wait for its writer
            with path.open("rb") as file:
                begin = file.read(4096)
    if begin.startswith(b"{"):
        return False
    named = path.name.lower().removesuffix(".gz").endswith((".sol", ".slx", ".asc", ".mst"))
    return named or begins_as_solution(begin.decode(errors="replace").removeprefix("\ufeff"))


def read_document(path: Path) -> dict[str, Json]:
    """Read a solution document or a schedule as parsed JSON.

    Raises
    ------
    BadFile
        If it cannot be read, is too large, or is neither.
    """
    document = reading.read_json(path, MAX_BYTES, "name a solution file that opticoll wrote")
    if isinstance(document, dict) and str(document.get("format")).startswith("opticoll-topology/"):
        reading.refuse(path, f"is a topology, not a solution document; its name as an instance is file:{path}")
    if isinstance(document, dict) and {"SolutionInfo", "Task/solutions"} & document.keys():
        reading.refuse(path, "is JSON of Gurobi or MOSEK, which is not read; write the solution to a file NAME.sol")
    if not isinstance(document, dict) or (document.get("format") != FORMAT and not is_schedule(document, path)):
        reading.refuse(path, f"is not a solution document (format {FORMAT!r}); save a solution as such a file")
    return document
