"""Read saved solutions, and check solution files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from opticoll.analysis.result.result import Result
from opticoll.errors import BadFile, BadInput, refuse
from opticoll.formulations import bounds_of
from opticoll.formulations import formulation as formulation_named
from opticoll.formulations.matrix.stated_model import StatedModel
from opticoll.formulations.model import forms_of
from opticoll.formulations.registry import paper_of
from opticoll.instances import Instance, parse
from opticoll.instances.readers.listed_graph import ListedGraph
from opticoll.instances.readers.objects import as_instance
from opticoll.instances.readers.reading import as_path, as_struct
from opticoll.instances.readers.topology_json import list_document
from opticoll.solvers import solution_json, verify
from opticoll.solvers.compile.program_json import ONLY_MATRIX, read_program
from opticoll.solvers.run import Plan, Run
from opticoll.solvers.same_problem import refuse_other_problem, stated_parameters
from opticoll.solvers.solution_document import FORMAT, SolutionDocument
from opticoll.solvers.task import Proof, Record, Task, Termination, joined_messages, texts

if TYPE_CHECKING:
    from opticoll.analysis.result.result import InstanceLike
    from opticoll.formulations import Formulation
    from opticoll.solvers.task import CheckRecord
    from opticoll.types import DataSize

#: Message about a solution whose bound was not proven by duals.
NO_BOUND = (
    "note: the search that bounded the optimum is not in the file; solve again with start=, or keep a proof: "
    "exact=True and result.save('FILE.vipr')"
)


def load(
    path: str | Path,
    instance: InstanceLike | None = None,
    *,
    formulation: type[Formulation] | None = None,
    shard: DataSize | None = None,
) -> Result:
    """Read a solution that :meth:`opticoll.Result.save` or ``opticoll solve --solution`` wrote, and verify it.

    Value, violations, bound and proof are recomputed; method, times and termination are taken from the file. A bound
    that took more than duals, as for an integer program that is given by its matrix, is not recomputed.

    Parameters
    ----------
    path
        The file.
    instance
        The instance of the solution. If None, the spec in the file is read, or the topology is rebuilt from its arcs.
    formulation
        The class of a formulation of your own that is not in a plug-in.
    shard
        As in :func:`opticoll.solve`; if None, that of the file, if it has one.

    Raises
    ------
    BadFile
        If the file is not a solution document, or its arrays are not those of the formulation.
    """
    file = as_path(path, "load")
    document = solution_json.read_document(file)
    if document["format"] != FORMAT:
        refuse(file, "is a schedule, not a solution; oc.check executes schedules", BadFile)
    saved = as_struct(document, SolutionDocument, file)
    model = _formulation_of(saved, file, formulation)
    if model is StatedModel:
        if instance is not None:
            refuse(file, "holds the matrix of the model that it solves; pass no instance", BadFile)
        own: Instance = read_program(saved.program, saved.instance, file)
    elif instance is not None:
        own = as_instance(instance)
    else:
        own = _instance_of(saved, file)
    given = {**saved.settings, **({} if saved.demand is None else {"demand": saved.demand})}
    parameters = stated_parameters(model, given, file)
    refuse_other_problem(model, own, saved, file)
    result = solution_json.read_solution(model, own, parameters, saved, file)
    by_name = formulation is None and model is not StatedModel
    task = Task(model.name if by_name else model, own, settings=parameters)
    described: dict[str, Any] = msgspec.structs.asdict(saved.record)
    if model is StatedModel and ONLY_MATRIX not in (described.get("message") or ""):
        described["message"] = joined_messages(described.get("message") or "", ONLY_MATRIX)
    proven = _proven(result, task.tol)
    unproven = proven["proof"] is Proof.FEASIBLE and described.get("termination") is Termination.OPTIMAL
    if unproven and NO_BOUND not in (described.get("message") or ""):
        described["message"] = joined_messages(described.get("message") or "", NO_BOUND)
    record = Record(
        **described,
        formulation=model.name,
        paper=paper_of(model),
        instance=own.spec,
        instance_hash=own.hash,
        n=own.n,
        arcs=getattr(own, "arcs", None),
        sense=result.data.sense,
        objective=result.objective,
        violations=result.violations,
        settings=texts(parameters),
        **proven,
    )
    needed = None
    if result.needed is not None and model._needs is not None:
        needed = Run(
            Task(model._needs.formulation, own),
            Record(formulation=model._needs.formulation, verified=record.verified),
            result.needed,
        )
    plan = Plan(
        result.data,
        own,
        forms_of(model)[0],
        None,
        None,
        parameters,
        {},
        {},
        result.needed or {},
    )
    run = Run(task, record, result.values, result.duals, plan, None, needed)
    return Result.of(run, saved.shard_bytes if shard is None else shard)


def _formulation_of(saved: SolutionDocument, file: Path, formulation: type[Formulation] | None) -> type[Formulation]:
    """The formulation that a file names, which must be the one given, if any."""
    name = saved.formulation
    try:
        model = (
            StatedModel if name == StatedModel.name else formulation_named(name if formulation is None else formulation)
        )
    except BadInput as error:
        msg = f"{file}: {error}"
        if formulation is None:
            msg = (
                f"{file}: is a solution of {name[:80]!r}, which is no formulation of opticoll; "
                f"write oc.load({str(file)!r}, formulation=YOUR_CLASS), or oc.load_plugin(FILE) first"
            )
        raise BadFile(msg) from None
    if model.name != name:
        refuse(file, f"is a solution of {name[:80]}, not of {model.name}; pass the formulation of the file", BadFile)
    return model


def _proven(result: solution_json.StatedSolution, tol: float) -> dict[str, Any]:
    """What checker and bounds say about the solution, by field of the record."""
    verified = max(result.violations.values(), default=0.0) <= verify.FEASIBLE
    bounds = [*([result.bound] if result.bound else []), *bounds_of(result.data)]
    best = verify.tightest(bounds, result.data.sense)
    bound = None if best is None else best.value
    proof, gap = verify.prove(
        verified=verified, objective=result.objective, bound=bound, sense=result.data.sense, tol=tol
    )
    if result.needed is not None:  # of which only the feasibility is checked
        proof, gap = verify.capped(proof, gap, Proof.FEASIBLE, None)
    return {
        "verified": verified,
        "bound": bound,
        "bound_source": None if best is None else best.name,
        "proof": proof,
        "gap": gap,
        "metrics": verify.properties(result.data, "metrics", result.objective if verified else None),
    }


def _instance_of(saved: SolutionDocument, file: Path) -> Instance:
    """The instance of a saved result: that of its spec, or the topology of its arcs."""
    with suppress(BadInput):
        result: Instance = parse(saved.instance)
        if result.hash == saved.instance_hash or not saved.topology:
            return result
    if not saved.topology:
        refuse(file, f"its instance {saved.instance[:60]!r} cannot be read; give the instance", BadFile)
    graph = ListedGraph(f"{file}: topology")
    list_document(saved.topology, graph)
    return graph.build().renamed(saved.instance)


def check(
    formulation: str | type[Formulation],
    instance: InstanceLike,
    path: str | Path,
    *,
    demand: object = None,
    **settings: object,
) -> CheckRecord:
    """Verify a solution or schedule file for a problem; see :func:`opticoll.solvers.solution_json.check`.

    The problem is stated as for ``oc.solve``: formulation, instance, demand, and parameters by name.
    """
    if formulation is StatedModel or formulation == StatedModel.name:
        msg = (
            "check: a model of one's own, or one changed by hand, has no name by which it could be stated; "
            "oc.load(PATH) checks the solution against the matrix in the file"
        )
        raise BadInput(msg)
    if not isinstance(path, str | Path):
        refuse("check", f"needs a file, not {type(path).__name__}; a result has been checked, see its check()")
    own = instance if isinstance(instance, str) else as_instance(instance)
    stated = settings if demand is None else {**settings, "demand": demand}
    return solution_json.check(formulation, own, path, stated)
