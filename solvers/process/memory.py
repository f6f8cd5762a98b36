"""Lower estimates of the memory that a solve needs, and the refusal of solves that cannot fit.

Sizes are counted in *entries* of the matrix: variables, constraints and nonzeros together. The bytes per entry are
below the smallest values measured over all formulations and sizes (``notes/memory.md`` has the figures, and the
command that measures them); those of a solver or a method stand in its own file. A solve that is refused would not
have fit. One that is accepted may still run out of memory; the worker is then stopped by its limit.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from opticoll.errors import BadInput
from opticoll.formulations.declared_axes import ARC
from opticoll.formulations.model import forms_of
from opticoll.solvers.adapters import Adapter, adapters
from opticoll.solvers.methods import method_named, methods_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from opticoll.formulations.model import Formulation
    from opticoll.solvers.run import Plan
    from opticoll.solvers.task import Task

    Size = Mapping[str, int]

GIB = 2**30
#: Peak of building and compiling a model, by layer [bytes per entry].
BUILD = {"matrix": 45.0, "cvxpy": 90.0, "pyomo": 160.0}
#: Size of the compiled form, which the caller keeps while it is solved [bytes per entry].
KEPT = 20.0
#: Models of up to this many entries are not compared with the available memory: any solver needs less than 25 MB.
FEW_ENTRIES = 25_000
#: Per-commodity flows are dense arrays of at most this many entries (8 bytes each).
MOST_ENTRIES = 200_000_000


class TooLarge(BadInput):
    """A solve that cannot fit in the available memory; refused before it starts."""


@dataclass(frozen=True)
class Limit:
    """Available memory [bytes]; ``requested`` if the user set it."""

    bytes: float
    requested: bool

    def __str__(self) -> str:
        return f"{'the memory limit is' if self.requested else 'this machine has'} {self.bytes / GIB:.1f} GiB" + (
            "" if self.requested else " left"
        )

    @classmethod
    def of(cls, task: Task) -> Limit:
        """The task's own limit, or the memory available on this machine and in its container."""
        if task.memory_limit_gib is not None:
            return cls(task.memory_limit_gib * GIB, requested=True)
        return cls(available_bytes(), requested=False)


def entries(size: Size) -> int:
    """Variables, constraints and nonzeros together."""
    return size["variables"] + size["constraints"] + size["nonzeros"]


def needed_bytes(size: Size, form: str, solver: str | None) -> float:
    """Lower estimate of the peak [bytes] of building a model of this size and of solving it with a solver."""
    chosen = adapters().get(solver or "")
    per_entry = Adapter.bytes_per_entry if chosen is None else chosen.bytes_per_entry
    return entries(size) * max(BUILD[form], KEPT + per_entry)


def refuse_plan(task: Task, plan: Plan) -> None:
    """Refuse a plan whose matrix, or whose method, cannot fit.

    Raises
    ------
    TooLarge
        See :func:`refuse`.
    """
    problem = plan.problem
    on_links = any(ARC in axes for axes in problem.variables.values())  # counts of listed paths would list them
    size: Size | None = problem.estimate() if plan.adapter is not None or on_links else None
    if size is not None:
        solver = None if plan.adapter is None else plan.adapter.name
        share = None
        if plan.method is not None and (of_method := plan.method.share) is not None:
            share = partial(of_method, problem, plan.method_parameters)
        spec = plan.instance.spec
        refuse(task, problem, size, form=plan.form, method=plan.method_name, solver=solver, spec=spec, share=share)


def refuse(
    task: Task,
    model: Formulation | type[Formulation],
    size: Size,
    *,
    form: str,
    method: str,
    solver: str | None,
    spec: str,
    share: Callable[[], float] | None = None,
) -> None:
    """Refuse a solve that cannot fit.

    Parameters
    ----------
    task
        Its memory limit applies; by default the available memory.
    model, size, spec
        The formulation, the size of its matrix, and the instance's name.
    form, method, solver
        The layer the matrix is built in, the method, and the solver of the matrix. For a method that builds no
        matrix its own need is used, if known.
    share
        The part of its own need that a method has by symmetry; asked only if the whole would not fit.

    Raises
    ------
    TooLarge
        The message states the need and names methods that fit.
    """
    if task.memory_limit_gib is None and entries(size) <= FEW_ENTRIES:
        return
    needed = _needed_by(size, method, form, solver)
    if needed is None:
        return
    limit = Limit.of(task)
    if needed > limit.bytes and share is not None:
        needed *= share()
    if needed <= limit.bytes:
        return
    msg = (
        f"{model.name} on {spec} by {method} needs at least {needed / GIB:.1f} GiB of memory "
        f"({size['variables']:,} variables, {size['nonzeros']:,} nonzeros) and {limit}: "
        f"{_remedy(model, size, form, solver, limit)}"
    )
    raise TooLarge(msg)


def _needed_by(size: Size, name: str, form: str, solver: str | None) -> float | None:
    method = method_named(name)
    if method is None or method.run is None:
        return needed_bytes(size, form, solver)
    return None if method.bytes_per_variable is None else method.bytes_per_variable * size["variables"]


def _remedy(model: Formulation | type[Formulation], size: Size, form: str, solver: str | None, limit: Limit) -> str:
    """Name alternatives that fit: other methods, a smaller layer, a smaller formulation with the same optimum."""
    fitting_methods = methods_for(model)
    smaller = next((method.same_as for method in fitting_methods.values() if method.same_as is not None), None)
    known = {name: method.bytes_per_variable for name, method in fitting_methods.items()}
    needs = {name: bytes_ * size["variables"] for name, bytes_ in known.items() if bytes_ is not None}
    fitting = {name: need for name, need in needs.items() if need <= limit.bytes}
    if smaller is not None and size["variables"] > MOST_ENTRIES:
        fitting = {}  # all of them return a flow per commodity
    ways = []
    if fitting:
        ways.append(f"use method {' or '.join(sorted(fitting, key=lambda name: fitting[name])[:3])}")
    lean = [lighter for lighter in forms_of(model) if BUILD[lighter] < BUILD[form]]
    lean = [lighter for lighter in lean if needed_bytes(size, lighter, solver) <= limit.bytes]
    if lean:
        ways.append(f"form {min(lean, key=lambda lighter: BUILD[lighter])}")
    if smaller is not None:
        ways.append(f"solve {smaller}, which has the same optimum")
    ways.append("raise the memory limit" if limit.requested else "set a memory limit to override this check")
    return "; ".join(ways)


# Available memory -----------------------------------------------------------------------------------------------


def available_bytes(processes: Path = Path("/proc/self"), groups: Path = Path("/sys/fs/cgroup")) -> float:
    """Memory [bytes] that this process can still get: from the machine, its control groups, and its own limit.

    A control group's cached files count as free, because the kernel evicts them first.
    """
    import psutil

    least = float(psutil.virtual_memory().available)
    for folder, limit, used in _control_groups(processes, groups):
        with suppress(OSError, ValueError):
            allowed = float((folder / limit).read_text(encoding="ascii"))  # "max" is not a number
            in_use = float((folder / used).read_text(encoding="ascii")) - _cached(folder)
            least = min(least, max(allowed - in_use, 0.0))
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
        for place in (folder, *folder.parents):  # if the path is not visible in the container, the root is our group
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
