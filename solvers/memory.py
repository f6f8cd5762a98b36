"""What a solve needs in memory at least, told before it starts, and the refusal of one that cannot fit.

Counted in *entries* of the matrix (variables, constraints and nonzeros together). The bytes an entry are the least
that were measured over all formulations and sizes (``python -m opticoll.analysis.bench memory-build memory-solve``,
figures in
``notes/memory.md``): what is refused would not have fitted; what is let through still may not, and then the worker is
stopped by its limit as before.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opticoll.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from opticoll.formulations.model import Formulation
    from opticoll.solvers.plan import Plan
    from opticoll.solvers.task import Task

    Size = Mapping[str, int]

GIB = 2**30
#: Peak of building and compiling a model, by layer [bytes an entry].
BUILD = {"matrix": 45.0, "cvxpy": 90.0, "pyomo": 160.0}
#: The compiled form, which stays with the caller while it is solved [bytes an entry].
KEPT = 20.0
#: Peak of a solver's process [bytes an entry]; a solver that is not listed holds a copy of the matrix at least.
SOLVE = {
    "highs": 130.0, "highs-simplex": 150.0, "highs-ipx": 130.0, "highs-pdlp": 140.0, "glop": 190.0,
    "clarabel": 215.0, "pdlp": 80.0, "scip": 1000.0, "cp-sat": 200.0,
}  # fmt: skip
#: The same on one formulation that takes a solver more than others do.
SOLVE_ON = {
    "alltoall.link-mcf": {
        "highs": 205.0, "highs-simplex": 205.0, "highs-ipx": 205.0, "highs-pdlp": 205.0, "glop": 260.0,
        "pdlp": 85.0, "scip": 1700.0,
    },
}  # fmt: skip
COPY = 20.0
#: Peak of a method that builds no matrix [bytes a variable of the formulation's].
PROCEDURES = {
    "column-generation": 16.0, "flow-decomposition": 16.0, "master-child": 16.0, "certified-pdhg": 40.0,
    "certified-pdlp": 300.0,
}  # fmt: skip


class TooLarge(BadInput):
    """A solve that cannot fit in the memory there is, refused before it starts."""


@dataclass(frozen=True)
class Limit:
    """How much memory there is [bytes], and who says so."""

    bytes: float
    told: bool

    def __str__(self) -> str:
        return f"{'the memory limit is' if self.told else 'this machine has'} {self.bytes / GIB:.1f} GiB" + (
            "" if self.told else " left"
        )

    @classmethod
    def of(cls, task: Task) -> Limit:
        """The task's own limit, or what this machine and the container around us have left."""
        if task.memory_limit_gib is not None:
            return cls(task.memory_limit_gib * GIB, told=True)
        return cls(available_bytes(), told=False)


def entries(size: Size) -> int:
    """Variables, constraints and nonzeros together."""
    return size["variables"] + size["constraints"] + size["nonzeros"]


def needed_bytes(model: Formulation, size: Size, form: str, solver: str | None) -> float:
    """Peak of building a model of that size in a layer, and of solving it with a solver, at least."""
    each = SOLVE_ON.get(model.name, SOLVE).get(solver or "") or SOLVE.get(solver or "", COPY)
    return entries(size) * max(BUILD[form], KEPT + each)


def refuse_early(task: Task, model: Formulation, instance: Any, parameters: Mapping[str, Any], form: str) -> None:
    """Refuse what the instance alone tells to be too large, before the data of the model take memory themselves.

    Where ``auto`` may choose a method that builds no matrix, :func:`refuse_plan` decides later.

    Raises
    ------
    TooLarge
        See :func:`refuse`.
    """
    from opticoll.solvers.methods import method_named, methods_for
    from opticoll.solvers.routing_table import FIRST_ORDER, ORBIT, PREFERRED_METHODS

    size = None if model.early_estimate is None else model.early_estimate(instance, parameters)
    if size is None:
        return
    method, solver = task.method, task.method
    if method == "auto":
        if model.name in PREFERRED_METHODS or not {FIRST_ORDER, ORBIT}.isdisjoint(methods_for(model)):
            return
        method = solver = "highs-ipx"
    elif (found := method_named(method)) is not None:
        known = {parameter.name: parameter.default for parameter in found.parameters}
        solver = str(task.settings.get("solver", known.get("solver")))
    refuse(task, model, size, form=form, method=method, solver=solver, spec=instance.spec)


def refuse_plan(task: Task, plan: Plan) -> None:
    """Refuse a plan whose matrix, or whose method, cannot fit.

    Raises
    ------
    TooLarge
        See :func:`refuse`.
    """
    model = plan.formulation
    size = None if model.early_estimate is None else model.early_estimate(plan.instance, plan.parameters)
    if size is None and model.estimate is not None and plan.adapter is not None:
        size = model.estimate(plan.data)
    if size is not None:
        solver = None if plan.adapter is None else plan.adapter.name
        refuse(task, model, size, form=plan.form, method=plan.method, solver=solver, spec=plan.instance.spec)


def refuse(
    task: Task, model: Formulation, size: Size, *, form: str, method: str, solver: str | None, spec: str
) -> None:
    """Refuse a solve that cannot fit.

    Parameters
    ----------
    task
        Its memory limit counts, or the memory that is available.
    model, size, spec
        The formulation, the size of its matrix, and the instance's name.
    form, method, solver
        The layer the matrix is built in, the method, and the solver that gets the matrix. A method that builds none
        counts by its own need, where that is known.

    Raises
    ------
    TooLarge
        The message says how much is needed and names methods that fit.
    """
    needed = _needed_by(model, size, method, form, solver)
    if needed is None:
        return
    limit = Limit.of(task)
    if needed <= limit.bytes:
        return
    msg = (
        f"{model.name} on {spec} by {method} needs at least {needed / GIB:.1f} GiB of memory "
        f"({size['variables']:,} variables, {size['nonzeros']:,} nonzeros) and {limit}: "
        f"{_remedy(model, size, form, solver, limit)}"
    )
    raise TooLarge(msg)


def _needed_by(model: Formulation, size: Size, method: str, form: str, solver: str | None) -> float | None:
    from opticoll.solvers.methods import method_named

    found = method_named(method)
    if found is None or found.run is None:
        return needed_bytes(model, size, form, solver)
    return _needed_by_procedure(model, size, method)


def _needed_by_procedure(model: Formulation, size: Size, method: str) -> float | None:
    each = PROCEDURES.get(method)
    return None if each is None else each * size["variables"]


def _remedy(model: Formulation, size: Size, form: str, solver: str | None, limit: Limit) -> str:
    """Name what fits: other methods, a leaner layer, a smaller formulation of the same optimum."""
    from opticoll.solvers.methods import methods_for
    from opticoll.solvers.methods.alltoall.decomposition import MOST_ENTRIES
    from opticoll.solvers.routing_table import SMALLER_FORMULATIONS

    needs = {name: _needed_by_procedure(model, size, name) for name in methods_for(model)}
    fitting = {name: need for name, need in needs.items() if need is not None and need <= limit.bytes}
    smaller = SMALLER_FORMULATIONS.get(model.name)
    if smaller is not None and size["variables"] > MOST_ENTRIES:
        fitting = {}  # they all give every commodity's flow
    ways = []
    if fitting:
        ways.append(f"use --method {' or '.join(sorted(fitting, key=lambda name: fitting[name])[:3])}")
    lean = [other for other in model.forms if BUILD[other] < BUILD[form]]
    lean = [other for other in lean if needed_bytes(model, size, other, solver) <= limit.bytes]
    if lean:
        ways.append(f"--form {min(lean, key=lambda other: BUILD[other])}")
    if smaller is not None:
        ways.append(f"solve {smaller}, which has the same optimum")
    ways.append("raise --memory-limit" if limit.told else "insist with --memory-limit GIB")
    return "; ".join(ways)


# What there is ------------------------------------------------------------------------------------------------


def available_bytes(processes: Path = Path("/proc/self"), groups: Path = Path("/sys/fs/cgroup")) -> float:
    """Memory [bytes] that this process can still get: from the machine, its control groups, and its own limit.

    A control group's cached files count as free, as the kernel gives them up first.
    """
    import psutil

    least = float(psutil.virtual_memory().available)
    for folder, limit, used in _control_groups(processes, groups):
        with suppress(OSError, ValueError):
            allowed = float((folder / limit).read_text(encoding="ascii"))  # "max" is no number
            taken = float((folder / used).read_text(encoding="ascii")) - _cached(folder)
            least = min(least, max(allowed - taken, 0.0))
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            least = min(least, float(soft))
    return least


def _control_groups(processes: Path, groups: Path) -> Iterator[tuple[Path, str, str]]:
    """The memory groups that this process is in, from its own up to the root, by version 2 and 1 of the interface."""
    try:
        lines = (processes / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            top, limit, used = groups, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            top, limit, used = groups / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        folder = top / path.strip("/")
        for place in (folder, *folder.parents):  # where the path is not visible from inside, the root is our own
            if place.is_dir():
                yield place, limit, used
            if place == top:
                break


def _cached(folder: Path) -> float:
    for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(" ")
        if name in {"inactive_file", "total_inactive_file"}:
            return float(value)
    return 0.0
