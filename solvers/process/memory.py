"""A lower estimate of the memory that a model needs, and the refusal of models that cannot fit.

Sizes are counted in *entries* of the matrix: variables, constraints and nonzeros together. The bytes per entry are
below the smallest values measured over all formulations and sizes (``notes/memory.md``). A model that is refused would
not have been built. What a solver or a method needs besides is not estimated: the worker is stopped by its limit.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from opticoll.errors import BadInput
from opticoll.formulations.model import forms_of
from opticoll.solvers.methods import methods_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opticoll.solvers.run import Plan
    from opticoll.solvers.task import Task

GIB = 2**30
#: Peak of building and compiling a model, by layer [bytes per entry].
BUILD = {"matrix": 25.0, "cvxpy": 90.0, "pyomo": 160.0}
#: Models of up to this many entries are not compared with the available memory.
FEW_ENTRIES = 25_000
#: Per-commodity flows are dense arrays of at most this many entries (8 bytes each).
MOST_ENTRIES = 200_000_000


class TooLarge(BadInput):
    """A model that cannot fit in the available memory; refused before it is built."""


def entries(size: Mapping[str, int]) -> int:
    """Entries of a model of this size."""
    return size["variables"] + size["constraints"] + size["nonzeros"]


def refuse_plan(task: Task, plan: Plan, *, solved: bool = True) -> None:
    """Refuse a plan whose model cannot be built within the memory limit, or by default in the available memory.

    ``solved`` is false for a model that is wanted for itself, in place of which no method can be used.

    Raises
    ------
    TooLarge
        The message states the need and names methods that build no model.
    """
    model, limit = plan.problem, task.memory_limit_gib
    size = model._estimate() if plan.builds else None
    if size is None:
        return
    count = entries(size)
    if limit is None and count <= FEW_ENTRIES:
        return
    needed = count * BUILD[plan.form] / GIB
    most = available_bytes() / GIB if limit is None else limit
    if needed <= most:
        return
    ways = []
    others = methods_for(model).values()
    if solved and (names := [method.name for method in others if method.run is not None and not method.builds]):
        ways.append(f"use method {' or '.join(names[:3])}")
    if lean := [form for form in forms_of(model) if BUILD[form] * needed <= BUILD[plan.form] * most]:
        ways.append(f"form {min(lean, key=BUILD.__getitem__)}")
    if smaller := next((method.same_as for method in others if method.same_as is not None), None):
        ways.append(f"solve {smaller}, which has the same optimum")
    if solved:
        ways.append("set a memory limit to override this check" if limit is None else "raise the memory limit")
    there = f"this machine has {most:.1f} GiB left" if limit is None else f"the memory limit is {most:.1f} GiB"
    msg = (
        f"{model.name} on {plan.instance.spec} by {plan.method_name} needs at least {needed:.1f} GiB of memory "
        f"({size['variables']:,} variables, {size['nonzeros']:,} nonzeros) and {there}: "
        f"{'; '.join(ways) or 'use a smaller instance'}"
    )
    raise TooLarge(msg)


# Available memory -----------------------------------------------------------------------------------------------


def available_bytes(processes: Path = Path("/proc/self"), groups: Path = Path("/sys/fs/cgroup")) -> float:
    """Memory [bytes] that this process can still get: from the machine, its control groups, and its own limit.

    A control group's cached files count as free, because the kernel evicts them first.
    """
    least = _left_bytes()
    for folder in _control_groups(processes, groups):
        with suppress(OSError, ValueError):
            allowed = float((folder / "memory.max").read_text(encoding="ascii"))  # "max" is not a number
            in_use = float((folder / "memory.current").read_text(encoding="ascii")) - _cached(folder)
            least = min(least, max(allowed - in_use, 0.0))
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            least = min(least, float(soft))
    return least


def _left_bytes() -> float:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024.0 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    import psutil

    return float(psutil.virtual_memory().available)


def exhausted(held: float) -> bool:
    """Whether a job that holds most of the memory there was [bytes] has left a fiftieth or less: it would only page."""
    left = available_bytes()
    return left * 49 < held


def _control_groups(processes: Path, groups: Path) -> Iterator[Path]:
    """The folders of the memory groups that this process is in, from its own up to the root (version 2)."""
    try:
        lines = (processes / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        if line.startswith("0::"):
            folder = groups / line.removeprefix("0::").strip("/")
            for place in (folder, *folder.parents):  # if a container does not see the path, the root is our group
                if place.is_dir():
                    yield place
                if place == groups:
                    break


def _cached(folder: Path) -> float:
    lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
    held = dict(line.split(" ", 1) for line in lines)
    return float(held.get("inactive_file", 0)) + float(held.get("active_file", 0))
