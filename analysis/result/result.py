"""Solve interactively: results with labels, tables, schedules and plots."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from opticoll.analysis import rendering
from opticoll.analysis.bounds.instance_bounds import BoundRow, rows_of
from opticoll.analysis.output_files import Outputs, Written, chunk_numbers, writable, write_certificate, write_solution
from opticoll.analysis.plots.style import label
from opticoll.analysis.rendering import number
from opticoll.analysis.result.interruption import stoppable_here
from opticoll.analysis.result.labelled_tables import labelled_axes, table
from opticoll.analysis.result.progress_line import progress_here
from opticoll.analysis.result.schedule_tables import Configurations, Rounds, Schedule
from opticoll.analysis.result.units import Scale, shard_of, timed
from opticoll.arguments import refused
from opticoll.errors import BadInput, LimitSpent, NoSolution, NotApplicable, refuse
from opticoll.formulations.model import states
from opticoll.formulations.parameters import read_parameters
from opticoll.formulations.registry import formulation as formulation_named
from opticoll.formulations.variables import BANDWIDTHS, TIME, Array, numbered, stored
from opticoll.instances import Instance, Topology
from opticoll.instances.readers.objects import as_instance
from opticoll.nearest_names import NamedItems
from opticoll.solvers import judge
from opticoll.solvers import solve as runner
from opticoll.solvers.compile.compilation import index_labels
from opticoll.solvers.compile.user_models import as_found, layer_of, stated_task
from opticoll.solvers.methods.registry import method_named
from opticoll.solvers.plan import refuse_arguments_of_topology
from opticoll.solvers.process.worker import fork_ahead
from opticoll.solvers.run import Plan, Run
from opticoll.solvers.task import Proof, Record, Task, Termination
from opticoll.solvers.warm_start import WarmStart

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Hashable, Sequence

    import cvxpy as cp
    import networkx as nx
    import pandas as pd
    import pyomo.environ as pyo
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from opticoll.analysis.plots.layouts import Places
    from opticoll.analysis.result.bottleneck import Bottleneck
    from opticoll.analysis.result.diagnosis import Contradiction
    from opticoll.formulations import Formulation
    from opticoll.formulations.variables import Axis, Links, Names
    from opticoll.instances.topology import F64
    from opticoll.solvers.task import Progress
    from opticoll.types import DataSize, Gibibytes, Json, Seconds

    StatedLike: TypeAlias = pyo.ConcreteModel | cp.Problem
    InstanceLike: TypeAlias = "str | Instance | nx.Graph[Any] | ArrayLike | pd.DataFrame"
    Setting = str | float | bool
    StartLike = Run | Mapping[str, ArrayLike] | str | Path


def solve(
    formulation: str | type[Formulation] | Task | StatedLike,
    instance: InstanceLike | None = None,
    *,
    demand: object = None,
    method: str = "auto",
    form: str | None = None,
    time_limit: Seconds | None = None,
    memory_limit: Gibibytes | None = None,
    tol: float = 1e-6,
    seed: int = 0,
    threads: int = 2,
    plugins: Iterable[str | Path] = (),
    log: bool = False,
    shard: DataSize | None = None,
    exact: bool = False,
    start: StartLike | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
    **settings: Setting,
) -> Result:
    """Solve, verify and certify a formulation on an instance.

    Parameters
    ----------
    formulation
        Name or class of a formulation; or a model of your own, a ``pyomo.environ.ConcreteModel`` or a ``cvxpy.Problem``
        that is linear or mixed-integer linear, without instance: its variables hold the solution afterwards. Or a
        :class:`Task`, which then holds the instance and everything else except ``log``, ``shard``, ``start``,
        ``on_progress`` and ``stop``.
    instance
        A spec such as ``"torus:4x4"``, an instance, a networkx graph, a matrix of capacities, or a DataFrame of edges
        (:func:`opticoll.instances.as_instance`).
    demand
        What is sent: a string as for ``--set demand``, or data (array, DataFrame, or dict of pairs).
    method, form
        A solver, a method of the formulation, or ``"auto"``; ``"pyomo"``, ``"cvxpy"``, or ``"matrix"`` where the
        formulation is stated as such.
    time_limit, memory_limit
        Limits of the whole solve: wall clock [s], and memory of its processes [GiB].
    tol, seed, threads
        Relative gap at which the value counts as optimal; random seed, also of what the formulation draws by its
        parameter of that name; threads of the solver.
    plugins
        Python files or modules with formulations, families, solvers or methods, loaded first.
    log
        Show the solver's own log.
    shard
        Size of a shard for results in bytes and seconds: bytes, or a string such as ``"64MB"``
        (:mod:`opticoll.instances.quantities`).
    exact
        Also solve in rational arithmetic: ``objective_exact`` is the optimum as a fraction, proven without rounding.
    start
        A known solution of the same problem, from which solvers and methods that take one begin, and which is returned
        if nothing better is found: a result, named values, or a file written by ``--solution`` or by a solver
        (``.sol``). ``record.start`` says who began with it. A string is the parameter of that name of the formulation
        or the method, if it has one; name the file by a ``pathlib.Path`` then.
    on_progress, stop
        Called with incumbent and bound when they improve; an event that ends the solve when set. Without them, a
        notebook or a terminal shows both in a line of a solve of over 2 s, and Ctrl-C or the stop button of an
        interactive session ends the solve and returns what it has found.
    **settings
        Parameters of the formulation or the method, and options of the solver, by name.

    Returns
    -------
    Result
        Returned even if the solve failed: see its ``termination`` and ``proof``.

    Raises
    ------
    BadInput
        For anything that is refused before solving.
    SolverUnavailable
        If the solver's package or licence is missing.
    """
    if isinstance(plugins, str) or not isinstance(plugins, Iterable):
        raise refused(plugins, "solve: plugins", "a list of files, such as ['mine.py']")
    for place in plugins:
        from opticoll.plugins import load_plugin

        load_plugin(place)
    limits = (time_limit, memory_limit, tol, seed, threads)
    alone = instance is None and demand is None and form is None
    if isinstance(formulation, Task):
        if settings or not alone or (method, *limits, exact) != ("auto", None, None, 1e-6, 0, 2, False):
            msg = "solve: a Task holds the instance, settings and limits; set them in the Task, and pass nothing else"
            raise BadInput(msg)
        task = formulation
    elif not isinstance(formulation, str | type) and layer_of(formulation) is not None:
        if not alone:
            refuse("solve", "a model of your own holds its data; pass no instance, demand or form beside it")
        asked = dict(zip(("time_limit_s", "memory_limit_gib", "tol", "seed", "threads"), limits, strict=True))
        with as_found(formulation):
            task, load = stated_task(formulation, method=method, settings=settings, exact=exact, **asked)
            with load.clearing():
                result = run_task(task, shard=shard, start=start, log=log, on_progress=on_progress, stop=stop)
            load(result)
        return result
    else:
        if hasattr(formulation, "stated") and hasattr(formulation, "update"):
            refuse("solve", "a model that oc.model returned is solved by its own solve: m.solve()")
        if instance is None:
            raise _without_instance(formulation)
        chosen: Any = settings if demand is None else {**settings, "demand": demand}
        wanted: Any = formulation
        if isinstance(start, str) and _has_own_start(formulation_named(wanted), method):
            chosen, start = {**chosen, "start": start}, None
        if seed and _draws(formulation_named(wanted), drawn := {**chosen, "seed": seed}):
            chosen = drawn
        value = instance if isinstance(instance, str) else as_instance(instance)
        task = Task(wanted, value, method, form, chosen, *limits, exact=exact)
    return run_task(task, shard=shard, start=start, log=log, on_progress=on_progress, stop=stop)


def _without_instance(formulation: object) -> BadInput:
    """What is missing if only a formulation is given, or what can be given if it is none."""
    if isinstance(formulation, str | type):
        return BadInput("solve: no instance; write for example oc.solve('alltoall.master', 'torus:4x4')")
    kind = type(formulation)
    return BadInput(
        f"solve: cannot solve an object of {kind.__module__.partition('.')[0]}.{kind.__qualname__}; give the name of a "
        "formulation, a pyomo.environ.ConcreteModel or a cvxpy.Problem, or write the model as an MPS file and solve "
        "'matrix.program' on 'mps:FILE'"
    )


def _has_own_start(formulation: type[Formulation], method: str) -> bool:
    """Whether ``start`` is a parameter of the formulation or the method, such as the circuits set before the first."""
    chosen = method_named(method)
    return any(one.name == "start" for one in (*formulation.parameters, *(() if chosen is None else chosen.parameters)))


def _draws(formulation: type[Formulation], settings: Mapping[str, Any]) -> bool:
    """Whether ``seed`` is a parameter of the formulation that has an effect with these settings."""
    own = {one.name: settings[one.name] for one in formulation.parameters if one.name in settings}
    try:
        read_parameters(formulation.parameters, own, formulation.name)
    except NotApplicable:
        return False
    return "seed" in own


def run_task(
    task: Task,
    *,
    shard: DataSize | None = None,
    start: StartLike | None = None,
    known: WarmStart | None = None,
    log: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
) -> Result:
    """Solve a task as :func:`solve` does.

    ``known`` is what the caller has already, beside ``start``. If nothing could be tried, since a limit was reached
    before, or the data, another solution, were not found, the result has no plan, and its record says why.
    """
    model = formulation_named(task.formulation)
    if stop is not None and not hasattr(stop, "is_set"):
        raise refused(stop, "solve: stop", "a threading.Event")
    if on_progress is not None and not callable(on_progress):
        raise refused(on_progress, "solve: on_progress", "a function of a dict")
    if any(parameter.name == "shard" for parameter in model.parameters):  # the model itself has times in seconds
        if shard is None:
            shard = str(task.settings.get("shard", "")) or None
        elif "shard" not in task.settings:
            task = msgspec.structs.replace(task, settings={**task.settings, "shard": str(shard)})
    shard = shard_of(task, model, shard)
    if shard is not None or start is not None:
        task = msgspec.structs.replace(task, instance=as_instance(task.instance))  # read once
    if shard is not None:  # refuse it before anything is solved
        method = method_named(task.method) if isinstance(task.method, str) else None
        refuse_arguments_of_topology(task.settings, model, method)
        Scale.of(model, as_instance(task.instance), shard, task.settings.get("bandwidth"))
    if start is not None:
        given = _known(start, task)
        known = replace(known or WarmStart(), values=given.values, source=given.source)
    fork_ahead()  # before there are other threads
    watched = on_progress is not None or log
    with (
        nullcontext(on_progress) if watched else progress_here(model.name) as shown,
        stoppable_here(stop) as ending,
    ):
        try:
            run = runner.solve(task, on_progress=shown, stop=ending, log=sys.stdout if log else None, known=known)
        except NoSolution as error:
            run = _untried(task, model, error)
    return Result.of(run, shard)


def _untried(task: Task, model: type[Formulation], error: NoSolution) -> Run:
    """The run of a task of which nothing could be tried."""
    instance = task.instance
    record = Record(
        formulation=model.name,
        instance=instance if isinstance(instance, str) else instance.spec,  # reading it may be what takes too long
        method=task.method,
        termination=Termination(error.termination) if isinstance(error, LimitSpent) else Termination.ERROR,
        proof=Proof.NONE,
        verified=False,
        message=str(error),
    )
    return Run(task, record)


def _known(start: StartLike, task: Task) -> WarmStart:
    """The solution from which a task starts.

    Raises
    ------
    BadInput
        If it is none of the task's problem.
    """
    from opticoll.solvers.solution_json import read_start

    model = formulation_named(task.formulation)
    if isinstance(start, Run):
        if start.values is None or not start.verified:
            refuse("start", f"the run ended with {start.termination} and has no verified solution")
        return WarmStart(start.values, f"the given solution of {start.record.formulation}")
    if isinstance(start, str | Path):
        path = Path(start)
        return WarmStart(read_start(model, as_instance(task.instance), path, task.settings), f"start {path}")
    if not isinstance(start, Mapping):
        refuse("start", f"must be a result, named values or a file, not {type(start).__name__}")
    values: Any = dict(start)
    return WarmStart(values, "start")


def _instance_of(run: Run) -> Instance:
    return run.plan.instance if run.plan is not None else as_instance(run.task.instance)


@dataclass(frozen=True, repr=False, eq=False)
class Result(rendering.Printed, Run):
    """A run: its value, bound and proof, and tables, loads, schedule, plot and file of its solution.

    ``values`` and ``duals`` are named arrays: ``values`` are empty without a solution, ``duals`` where none certify a
    bound, as in integer programs. ``record`` is everything that is recorded. Without a verified solution, the methods
    raise :class:`~opticoll.errors.NoSolution`.
    """

    shard: DataSize | None = None

    @classmethod
    def of(cls, run: Run, shard: DataSize | None = None) -> Result:
        """The result of a run, for shards of a given size."""
        given: dict[str, Any] = {f.name: getattr(run, f.name) for f in fields(Run)}
        named = {"duals": NamedItems(run.duals or {}, "duals")}
        if run.values is None or isinstance(run.values, dict):
            named["values"] = NamedItems(run.values or {}, "values")
        result = cls(**{**given, **named}, shard=shard)
        return result if shard is None else replace(result, record=timed(run, result.scale))

    @cached_property
    def scale(self) -> Scale:
        """Bytes of a shard, and bits per second of a capacity of 1."""
        return Scale.of(
            formulation_named(self.task.formulation), self.instance, self.shard, self.task.settings.get("bandwidth")
        )

    # summary

    @property
    def gap(self) -> float | None:
        """Relative gap between value and bound; None if one is missing."""
        return self.record.gap

    @property
    def value(self) -> float | None:
        """The value of the solution, as ``objective``; None if there is none."""
        return self.objective

    @property
    def T(self) -> float | None:
        """The time in which everything is sent [shards / link bandwidth]; None where the value states no time."""
        time = self.metrics.get("T")
        return float(time) if isinstance(time, int | float) else None

    @property
    def T_s(self) -> float | None:
        """T in seconds; None without a size of shards and a unit of capacity."""
        time = self.metrics.get("T_s")
        return float(time) if isinstance(time, int | float) else None

    @property
    def metrics(self) -> Mapping[str, Json]:
        """Figures of the formulation, such as ``F``, ``T`` (``T_s`` in seconds) or ``rounds``."""
        return NamedItems(self.record.metrics or {}, "metrics")

    @property
    def instance(self) -> Instance:
        """The instance."""
        return _instance_of(self)

    def compared(self) -> Result:
        """The result with all analytic bounds that can be shown; if they contradict it, nothing is proven."""
        return Result.of(judge.compared(self), self.shard)

    def bound_rows(self) -> list[BoundRow]:
        """The analytic bounds that are known, tightest first."""
        return rows_of(self, self.scale.seconds)

    def lines(self) -> dict[str, str]:
        """What the run found, in words, by name of the line, as ``opticoll solve`` prints it."""
        return rendering.record_lines(self.record, self._meaning, self.bound_rows())

    @property
    def _meaning(self) -> str:
        """What the value is, with its unit; empty without data."""
        return "" if self.plan is None else self.plan.problem.meaning

    def _outcome(self) -> str:
        """Time or value on one line."""
        time, seconds = self.metrics.get("T"), self.metrics.get("T_s")
        if time is None:
            return f"{number(self.objective, 6)} – {self._meaning}"
        return f"T = {number(time, 6)} [{TIME}]" + ("" if seconds is None else f" = {seconds:.6g} s")

    @property
    def _title(self) -> str:
        where = label(self.record.instance, rendering.WIDTH)
        return f"{self.record.formulation} on {where}{rendering.extent(self.record)}"

    # the solution

    def solved(self) -> tuple[Plan, Mapping[str, F64]]:
        """The plan and the verified values.

        Raises
        ------
        NoSolution
            If there are none.
        """
        if self.plan is None or self.values is None or not self.verified:
            msg = f"{self.record.formulation}: the run has no verified solution; it ended with {self.termination}"
            if self.record.infeasible_by is not None:
                msg += "; result.conflict() says why there is none"
            raise NoSolution(msg)
        return self.plan, self.values

    @cached_property
    def _made_names(self) -> dict[str, Names]:
        """Names along axes that were made so far."""
        return {}

    def _names(self, axis: Axis) -> Names | None:
        """Names along an axis of the solution."""
        if not callable(axis.names):
            return axis.names
        if axis.name not in self._made_names:
            self._made_names[axis.name] = axis.names(self.solved()[1])
        return self._made_names[axis.name]

    @cached_property
    def _labels(self) -> Mapping[str, Sequence[Sequence[Hashable] | None]]:
        plan, _ = self.solved()
        return index_labels(plan.problem, plan.form)

    def frame(self, name: str, *, zeros: bool = False) -> pd.DataFrame:
        """One variable array as a table.

        Parameters
        ----------
        name
            Name of the array, as in ``values``.
        zeros
            Whether to keep entries that are 0. Arrays whose entries name members of a set are always complete.

        Returns
        -------
        A column per index set, with its names (for a Pyomo model of your own, a column per index), then the entries
        under ``name`` and, where shard size and capacities have units, the same in those units. ``attrs["unit"]`` is
        the unit of the entries.

        Raises
        ------
        BadInput
            If the solution has no such array.
        """
        plan, values = self.solved()
        if not isinstance(name, str) or name not in values:
            refuse(plan.problem.name, f"no array {name!r} in the solution; it has {', '.join(values)}")
        declared = (plan.problem._arrays(values.keys()) or {}).get(name)
        array = np.asarray(values[name])
        if name in self._labels:
            declared = labelled_axes(array, self._labels[name])
        declared = declared or Array(numbered(array.shape))
        result = table(name, array, declared, self._names, zeros=zeros)
        if (absolute := self.scale.converted(declared.unit)) is not None:
            result[absolute[0]] = result[name] * absolute[1]
        result.attrs["unit"] = declared.unit
        return result

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """Every variable array as a table, by name; see :meth:`frame`."""
        return NamedItems({name: self.frame(name) for name in self.solved()[1]}, "frames")

    @property
    def links(self) -> Links:
        """Load and capacity of every link, as arrays.

        Raises
        ------
        BadInput
            If solutions of the formulation put no load on links.
        """
        plan, values = self.solved()
        if not states(plan.problem, "links"):
            refuse(plan.problem.name, "its solutions have no link loads; read them with result.frames")
        return plan.problem.links(stored(values))

    def link_loads(self) -> pd.DataFrame:
        """Table of the load of every link: ``src``, ``dst``, ``capacity``, ``load``, ``utilisation``; indexed by link.

        ``utilisation`` is the share of the capacity in use while the collective runs. Where duals prove T, ``price`` is
        dT/dc: the change of T per unit of capacity, negative where a faster link would help, and 0 on all others.
        Where shard size and capacities have units, ``capacity``, ``load`` and ``price`` are also given in those.
        ``attrs["units"]`` holds the units.
        """
        import pandas as pd

        from opticoll.analysis.result import bottleneck
        from opticoll.formulations.variables import arc_names

        links = self.links
        topology, units = links.topology, {"capacity": links.capacity_unit, "load": links.load_unit}
        names = np.array(topology.labels, dtype=object)
        result = pd.DataFrame(
            {
                "src": names[topology.tail],
                "dst": names[topology.head],
                "capacity": links.capacity,
                "load": links.load,
                "utilisation": links.utilisation,
            },
            index=pd.Index(arc_names(topology), name="arc"),
        )
        for column, unit in list(units.items()):
            if (absolute := self.scale.converted(unit)) is not None:
                result[f"{column} [{absolute[0]}]"] = result[column] * absolute[1]
        price = bottleneck.prices(self)
        if price is not None and price.size == len(result):
            result["price"] = price
            units["price"] = f"{TIME} / link bandwidth"
            if self.scale.seconds is not None and (rate := self.scale.converted(BANDWIDTHS)) is not None:
                result[f"price [s per {rate[0]}]"] = price * self.scale.seconds / rate[1]
        result.attrs["units"] = units
        return result

    def bottleneck(self) -> Bottleneck:
        """What proves that T cannot be less: a cut by its two sides, or lengths of links; and the links with a price.

        For an integer program, what its bound rests on (:mod:`opticoll.analysis.result.bottleneck`).
        """
        from opticoll.analysis.result import bottleneck

        return bottleneck.bottleneck(self)

    def why(self) -> Bottleneck | Contradiction:
        """What limits the value, or why there is no solution, as ``opticoll solve --why`` prints it.

        That is :meth:`bottleneck`, or :meth:`conflict` without a solution; if neither can be found, the reason.
        """
        from opticoll.analysis.result.diagnosis import diagnosis

        return diagnosis(self)

    def conflict(self, time_limit: Seconds | None = 60.0) -> pd.DataFrame:
        """The rows and bounds that leave the problem without a solution, none of which could be left out.

        See :func:`opticoll.analysis.result.conflict_table.conflict`.
        """
        from opticoll.analysis.result import conflict_table

        return conflict_table.conflict(self, time_limit)

    def schedule(self, *, chunks: int | Sequence[int] | None = None) -> Schedule | Rounds | Configurations:
        """The solution as a schedule: transfers in steps, moves along trees, circuits in rounds or configurations.

        Parameters
        ----------
        chunks
            Number of chunks per shard, for schedules in steps; of several numbers, the best one. By default a power
            of two up to 16, and other numbers up to 24 if those lose more than 1 %; multiples up to 64 while more than
            1 % is lost because links wait for what others send. For moves along trees, the maximum number of chunks
            (default 24; broadcast 240). Chunks of circuits that change are the pieces into which the flow divides a
            shard.

        Raises
        ------
        BadInput
            If solutions of the formulation hold no schedule, the demand is not uniform, or a number is invalid.
        """
        from opticoll.formulations.rounds.round_schedule import RoundSchedule
        from opticoll.solvers.schedules.schedule_kinds import schedule_of
        from opticoll.solvers.schedules.sequence_schedule import SequenceSchedule

        chunks = chunk_numbers(chunks)
        with progress_here(f"schedule of {self.task.instance}", searches=False):
            made = schedule_of(*self.solved(), chunks)
        if isinstance(made, RoundSchedule):
            return Rounds(self, None, made)
        if isinstance(made, SequenceSchedule):
            return Configurations(self, chunks, made)
        return Schedule(self, chunks, made.steps, made.fluid_time)

    def check(self) -> dict[str, float]:
        """Prepare the data again and verify the values with the formulation's checker.

        Returns
        -------
        The worst violation of every block of constraints, relative to its size; up to 1e-6 counts as satisfied.
        """
        from opticoll.solvers import solution_json
        from opticoll.solvers.methods.registry import prepared

        plan, values = self.solved()
        needed = None if self.needed is None else self.needed.values
        data = prepared(plan.problem, plan.instance, plan.parameters, needed)
        model = type(plan.problem)
        return solution_json.recomputed_violations(model, plan.instance, plan.parameters, data, values, needed)

    def save(self, path: str | Path) -> Path:
        """Write the solution as JSON, or a certificate: ``.vipr`` or ``.vipr.gz`` of an exact optimum.

        ``opticoll check`` and :func:`check` read both, :func:`load` reads JSON. With the solution of a model of one's
        own, or of one that was changed by hand, its matrix is saved, and :func:`load` checks it against that.

        Raises
        ------
        BadInput
            For another suffix, a certificate of a run without an exact answer, or a file that cannot be written.
        """
        from opticoll.solvers.exact.vipr_file import is_certificate

        target = writable(path)
        if is_certificate(target):
            write_certificate(target, self)
            return target
        self.solved()
        if target.suffix.lower() != ".json":
            refuse(target, "name a solution .json, a proof .vipr; save a schedule with result.schedule().save(PATH)")
        return write_solution(target, self, self.scale.shard)

    def write(self, outputs: Outputs) -> Written:
        """Write several files; see :meth:`opticoll.analysis.output_files.Outputs.write`."""
        return outputs.write(self, self.scale.shard)

    def plot(self, *, layout: str | Places | ArrayLike = "auto", title: str | None = None) -> Figure:
        """Draw the solution: load of every link on the topology, or the circuits of every round.

        The title counts the links with a price, and names the dearest.

        Parameters
        ----------
        layout
            ``"auto"`` by family, or ``"circular"``, ``"grid"``, ``"hypercube"``, ``"spring"``, ``"racks:R"``; or
            positions, as :func:`opticoll.plot_topology` takes them.
        title
            Heading; formulation, instance and value if None.

        Raises
        ------
        BadInput
            If there is nothing to draw.
        """
        from opticoll.analysis.plots import network_plots
        from opticoll.analysis.result import bottleneck
        from opticoll.formulations.rounds.round_schedule import RoundFormulation

        if not isinstance(title, str | None):
            raise refused(title, "plot: title", "a string")
        plan, values = self.solved()
        heading = title or f"{plan.problem.name}, {self.record.instance}\n{self._outcome()}"
        if isinstance(plan.problem, RoundFormulation) and isinstance(plan.instance, Topology):
            schedule = plan.problem.rounds(values)
            return network_plots.rounds(plan.instance, schedule, layout=layout, title=heading)
        links = self.links
        price = bottleneck.prices(self)
        return network_plots.loads(
            links,
            self.instance if isinstance(self.instance, Topology) else links.topology,
            scale=self.scale.converted,
            layout=layout,
            title=heading,
            price=None if price is None or price.size != links.topology.arcs else price,
        )
