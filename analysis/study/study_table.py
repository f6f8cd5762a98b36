"""``oc.study``: run a study, by name or by its parts, and return it as a table."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import product
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from opticoll.arguments import flag, refused
from opticoll.errors import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from opticoll.analysis.store import Store
    from opticoll.analysis.study.study_file import Study
    from opticoll.types import Gibibytes, Seconds

#: Columns that are returned unless others are asked for.
COLUMNS = (
    "formulation",
    "instance",
    "n",
    "method",
    "settings",
    "termination",
    "proof",
    "T",
    "objective",
    "bound",
    "gap",
    "verified",
    "solver_name",
    "size_variables",
    "size_constraints",
    "time_solve_s",
    "time_solver_cpu_s",
    "peak_memory_mb",
    "message",
)


def study(
    formulations: str | os.PathLike[str] | Iterable[str],
    instances: object = None,
    methods: str | Iterable[str] = "auto",
    *,
    store: Store | str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    columns: Sequence[str] | str | None = None,
    time_limit: Seconds | None = None,
    memory_limit: Gibibytes | None = None,
    tol: float = 1e-6,
    seed: int = 0,
    threads: int = 2,
    dry_run: bool = False,
    **settings: Any,
) -> pd.DataFrame:
    """Run a study and return the best record of each of its cells.

    Parameters
    ----------
    formulations
        A built-in study or a TOML file, with no other argument than ``store``, ``jobs``, ``dask`` and ``columns``; or
        one or several formulations.
    instances
        What they are solved on: specs, in which braces give several (``"ring:{4..16}"``), and objects that
        :func:`opticoll.solve` takes; one or a list.
    methods
        Solvers and methods.
    store
        A store or its folder, which resumes: cells with an answer there are not run. By default that of the command
        line (``$OPTICOLL_STORE``, or ``results``) for a study by name, and none, in memory, for one by its parts.
    jobs, dask
        Number of cells to run at a time in local processes, or the address of a Dask scheduler.
    columns
        Names of columns, as ``opticoll results`` has them; ``"all"`` for all; by default 19 of them.
    time_limit, memory_limit, tol, seed, threads, **settings
        As in :func:`opticoll.solve`, for every cell.
    dry_run
        Run nothing; return a row per cell with ``cell``, ``key``, ``status`` (stored or would run) and ``reason``.

    Returns
    -------
    DataFrame
        One row per cell, in the order of the study; ``to_latex()`` writes it for a paper.

    Raises
    ------
    BadInput
        For anything in the study that can be refused; nothing has been run or written then.
    """
    from opticoll.analysis.store.records import Store
    from opticoll.analysis.study.dry_run import preview
    from opticoll.analysis.study.running import run_with_progress
    from opticoll.analysis.study.study_file import find, load

    chosen = [columns] if isinstance(columns, str) else columns
    if not (chosen is None or (isinstance(chosen, Iterable) and all(isinstance(one, str) for one in chosen))):
        raise refused(columns, "study: columns", "names of columns, such as ['T', 'gap']")
    limits = (time_limit, memory_limit, tol, seed, threads)
    if instances is not None:
        stated = _by_parts(formulations, instances, methods, limits, settings)
    elif settings or methods != "auto" or limits != (None, None, 1e-6, 0, 2):
        refuse("study", "a study by name states its methods, limits and settings; omit them, or give instances")
    elif isinstance(formulations, str | os.PathLike):
        stated = load(find(str(formulations)))
    else:
        refuse("study", "no instances; write for example oc.study('alltoall.master', ['ring:8', 'torus:4x4'])")
    kept_nowhere = store is None and instances is not None
    with TemporaryDirectory(prefix="opticoll-") if kept_nowhere else nullcontext(store) as folder:
        kept = folder if isinstance(folder, Store) else Store(folder)
        if flag(dry_run, "study: dry_run"):
            return preview(stated, kept).frame
        summary = run_with_progress(stated, kept, jobs, dask)
        if summary.interrupted:
            done = f"{len(summary.results)} of {len(summary.study.cells)} cells have a row"
            again = "pass a store= to resume" if kept_nowhere else "the same call resumes"
            print(f"opticoll: study interrupted: {done}; {again}", file=sys.stderr)
        rows = (
            kept.tables("SELECT * FROM latest ORDER BY superseded")[0]
            .drop_duplicates("key")
            .set_index("key", drop=False)
        )
    table = rows.loc[[cell.key for cell in summary.study.cells if cell.key in rows.index]].reset_index(drop=True)
    if columns == "all":
        return table
    wanted = list(chosen or COLUMNS)
    unknown = [name for name in wanted if name not in table]
    if unknown:
        from opticoll.nearest_names import nearest

        refuse("study", f"no column {unknown[0]!r}; {nearest(unknown[0], list(map(str, table.columns)))}")
    return table[wanted]


def _listed(given: object, what: str) -> list[Any]:
    if not isinstance(given, Iterable):
        refuse("study", f"{what} must be a name or a list of names, not {given!r}")
    return list(given)


def _by_parts(
    formulations: Any,
    instances: object,
    methods: str | Iterable[str],
    limits: tuple[Any, ...],
    settings: dict[str, Any],
) -> Study:
    """The study of every formulation on every instance by every method."""
    from opticoll.analysis.study.study_file import studies, study_of
    from opticoll.formulations.registry import formulation
    from opticoll.instances.readers.objects import as_instance
    from opticoll.instances.spec import expand
    from opticoll.solvers.task import Task

    known = formulations if isinstance(formulations, str | os.PathLike) else ""
    if str(known).endswith(".toml") or str(known) in studies():
        refuse("study", f"{str(known)!r} is a study, which states its instances and methods; omit them")
    names = [formulations] if isinstance(formulations, str | type) else _listed(formulations, "formulations")
    for name in names:
        formulation(name)
    chosen = [methods] if isinstance(methods, str) else _listed(methods, "methods")
    listed = list(instances) if isinstance(instances, list | tuple | Iterator) else [instances]
    on: list[Any] = []
    for one in listed:
        on += expand(one) if isinstance(one, str) else [as_instance(one)]
    if not (names and chosen and on):
        refuse("study", "give at least one formulation, instance and method")
    tasks = [Task(name, one, method, None, settings, *limits) for name, one, method in product(names, on, chosen)]
    return study_of("study", tasks)
