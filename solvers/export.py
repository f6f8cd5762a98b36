"""The matrix of a formulation on an instance as an MPS or LP file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opticoll.errors import refuse
from opticoll.formulations.model import build_model
from opticoll.formulations.parameters import read_parameters
from opticoll.formulations.registry import formulation as formulation_named
from opticoll.instances import MatrixProgram
from opticoll.instances.readers.objects import as_instance
from opticoll.instances.readers.reading import as_path
from opticoll.solvers.compile.compilation import compile_built
from opticoll.solvers.plan import instance_of, make_plan
from opticoll.solvers.process import memory
from opticoll.solvers.process.budget import Budget
from opticoll.solvers.program_writer import written
from opticoll.solvers.solve import solve_needed
from opticoll.solvers.task import Task

if TYPE_CHECKING:
    from opticoll.formulations.model import Formulation
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances import Instance
    from opticoll.types import Settings


def refuse_model_file(path: Path) -> None:
    """Refuse a file to which no model can be written.

    Raises
    ------
    BadInput
        If its name ends in neither ``.mps`` nor ``.lp``, or its folder is missing.
    """
    if path.suffix not in {".mps", ".lp"}:
        refuse("export", f"{path.name} must end in .mps or .lp")
    if not path.parent.is_dir():
        refuse("export", f"the folder {path.parent} does not exist; create it first")


def export(
    formulation_name: str | type[Formulation],
    instance: object = None,
    path: str | Path | None = None,
    form: str | None = None,
    settings: Settings | None = None,
) -> tuple[str, ...]:
    """Write the matrix of a formulation on an instance as MPS or LP, with the names in its docstring or its own file.

    Other tools read the file as the same program (:mod:`opticoll.solvers.program_writer`). It is a minimization:
    the objective of a maximization is negated. Names that not all tools read are replaced; a table of these,
    ``FILE.names.csv``, is then written beside.

    Returns
    -------
    What a user of the file should know, one sentence each; the file has the same sentences as comments.

    Raises
    ------
    BadInput
        Without instance or path; if the file name ends in neither ``.mps`` nor ``.lp``, its folder is missing, or the
        task is refused.
    """
    stated = formulation_named(formulation_name)
    if instance is None:
        refuse("export", "no instance; write for example oc.export('alltoall.master', 'ring:8', 'model.mps')")
    path = as_path(path, "export")
    refuse_model_file(path)
    read_parameters(stated.parameters, settings or {}, stated.name)
    given = instance if isinstance(instance, str) else as_instance(instance)
    value, problem, matrix = stated_matrix(Task(formulation_name, given, "highs", form, settings or {}))
    program = value if isinstance(value, MatrixProgram) else None
    own = program is not None and form in (None, "matrix")
    names = (list(program.column_names), list(program.row_names)) if own and program is not None else None
    what = value.spec if program is not None else f"{problem.name} {value.spec}"
    return write_program(matrix, path, what, names)


def write_program(
    matrix: StandardForm, path: Path, what: str, names: tuple[list[str], list[str]] | None = None
) -> tuple[str, ...]:
    """Write a matrix to an MPS or LP file, and the table of its names, as :func:`export` does.

    Raises
    ------
    BadInput
        If a file cannot be written.
    """
    program = written(matrix, ".lp" if path.suffix == ".lp" else ".mps", *(names or ()))
    table = path.with_name(f"{path.name}.names.csv")
    program.write(path, f"opticoll {what}")
    if program.table:
        program.write_table(table)
    named = f"{len(program.table)} names differ in the file: {table}"
    return (*program.notes, *([named] if program.table else []))


def stated_matrix(task: Task) -> tuple[Instance, Formulation, StandardForm]:
    """The instance of a task, the problem with its data, and the matrix of its stated model.

    Raises
    ------
    OpticollError
        If the task is refused, or the solution that the formulation takes as data is not found.
    """
    value = instance_of(task)
    plan = make_plan(task, instance=value)
    needed = solve_needed(task, value, plan, Budget(task))
    plan = plan if needed is None else make_plan(task, instance=value, needed=needed.values)
    memory.refuse_plan(task, plan, solved=False)
    built = build_model(plan.problem, plan.form)
    return value, plan.problem, compile_built(plan.problem, built)
