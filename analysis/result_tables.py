"""Tables of a solution with units and names of indices, and its schedule in steps or in rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from opticoll.analysis.plots import counted, label
from opticoll.analysis.present import number
from opticoll.analysis.solution_files import writable
from opticoll.errors import BadInput
from opticoll.formulations import formulation
from opticoll.formulations.arrays import BANDWIDTHS, SHARDS, TIME, Array, arc_labels
from opticoll.instances import Topology, as_instance
from opticoll.instances.digraph import parse_rate, parse_size

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from opticoll.analysis.workbench import Result
    from opticoll.formulations import Formulation
    from opticoll.formulations.arrays import Names
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.formulations.schedules import ScheduleCheck
    from opticoll.formulations.schedules.collective_steps import CollectiveSchedule
    from opticoll.formulations.schedules.link_schedule import LinkSchedule
    from opticoll.instances import Instance
    from opticoll.instances.readers import Json
    from opticoll.solvers.plan import Plan
    from opticoll.solvers.task import Record, Run, Task


@dataclass(frozen=True)
class Scale:
    """Bytes of a shard, and bits per second of a capacity of 1; each None if unknown."""

    shard: float | None = None
    rate: float | None = None

    @classmethod
    def of(cls, model: Formulation[Any], instance: Instance, shard: str | float | None) -> Scale:
        """The scale of a formulation on an instance, for shards of a given size.

        Raises
        ------
        BadInput
            If the formulation has no shards, or the capacities have no unit.
        """
        unit = instance.capacity_unit if isinstance(instance, Topology) else None
        rate = None if unit is None else parse_rate(unit)
        if shard is None:
            return cls(None, rate)
        size = parse_size(shard, "shard")
        if not model.shards:
            msg = f"shard: {model.name} has no shards, its sizes are those of the instance; omit it"
            raise BadInput(msg)
        if rate is None:
            spec = label(instance.spec, 60)
            msg = f"shard: the capacities of {spec} have no unit; give one, as in torus:4x4+unit=100Gb/s"
            raise BadInput(msg)
        return cls(size, rate)

    @property
    def seconds(self) -> float | None:
        """Time to send one shard over a link of capacity 1 [s]."""
        return None if self.shard is None or self.rate is None else 8.0 * self.shard / self.rate

    def converted(self, unit: str) -> tuple[str, float] | None:
        """The absolute unit for a relative one, and the factor; None if there is none."""
        rate = None if self.rate is None else self.rate / 1e9
        inverse = None if self.seconds is None else 1.0 / self.seconds
        known = {
            BANDWIDTHS: ("Gb/s", rate), SHARDS: ("bytes", self.shard), TIME: ("s", self.seconds),
            f"{BANDWIDTHS} / shard": ("1/s", inverse),
        }  # fmt: skip
        name, factor = known.get(unit, ("", None))
        return None if factor is None else (name, factor)


def scale_of(task: Task, shard: str | float | None) -> Scale:
    """The scale of a task; errors as in :meth:`Scale.of`."""
    return Scale.of(formulation(task.formulation), as_instance(task.instance), shard)


def timed(run: Run, scale: Scale) -> Record:
    """The record of a run with ``T_s``, its time in seconds, in the metrics where that is defined."""
    metrics = run.record.metrics or {}
    time = metrics.get("T", metrics.get("T_steps"))
    if scale.seconds is None or not isinstance(time, (int, float)):
        return run.record
    return msgspec.structs.replace(run.record, metrics={**metrics, "T_s": time * scale.seconds})


def table(
    name: str, array: NDArray[np.float64], declared: Array | None, names: Mapping[str, Names], *, zeros: bool
) -> pd.DataFrame:
    """Entries of an array with the names of their indices."""
    import pandas as pd

    entries = None if declared is None else declared.entries
    axes = declared.axes if declared is not None and declared.axes else tuple(f"index_{i}" for i in range(array.ndim))
    if isinstance(entries, tuple):  # one column per entry of the last axis
        columns = _named(axes[0], np.arange(array.shape[0]), names)
        for i, member in enumerate(entries):
            columns |= _named(member, array[:, i].astype(np.int64), names)
        return pd.DataFrame(columns)
    base = 0 if declared is None else declared.base
    members = entries is not None
    kept = array >= base if members else (np.ones(array.shape, dtype=bool) if zeros or array.ndim == 0 else array != 0)
    where = np.nonzero(kept) if array.ndim else ()
    columns = {}
    for axis, index in zip(axes, where, strict=True):
        columns |= _named(axis, index, names)
    content = array[kept] if array.ndim else array.reshape(1)
    if entries is None:
        columns[name] = content
    else:
        described = list(_named(entries, content.astype(np.int64) - base, names).values())
        columns[name] = described[0] if len(described) == 1 else content.astype(np.int64) - base
    return pd.DataFrame(columns)


def labelled_axes(
    array: NDArray[np.float64], labels: Sequence[Sequence[Hashable] | None]
) -> tuple[Array, dict[str, Names]]:
    """An array's axes and the names along them by labels per axis; tuples of one length fill a column per part."""
    axes: list[str] = []
    names: dict[str, Names] = {}
    column = 0
    for size, along in zip(array.shape, labels, strict=True):
        axis = f"index_{column}"
        axes.append(axis)
        known: list[Hashable] = list(range(size) if along is None else along)
        widths = {len(one) if isinstance(one, tuple) else 0 for one in known}
        width = widths.pop() if len(widths) == 1 else 0
        parts = [[one[i] for one in known] for i in range(width)] if width else [known]  # type: ignore[index]
        names[axis] = {f"index_{column + i}": part for i, part in enumerate(parts)}
        column += len(parts)
    return Array(array.shape, axes=tuple(axes)), names


def _named(axis: str, index: NDArray[np.int64], names: Mapping[str, Names]) -> dict[str, Any]:
    """Columns with the names of indices along an axis."""
    known = names.get(axis)
    if known is None:
        return {axis: index}
    if isinstance(known, Mapping):
        return {column: _picked(labels, index) for column, labels in known.items()}
    return {axis: _picked(known, index)}


def _picked(labels: Any, index: NDArray[np.int64]) -> NDArray[Any]:
    if isinstance(labels, range):
        return np.asarray(labels)[index]
    return np.array(labels, dtype=object)[index] if len(labels) else np.zeros(0, dtype=object)


# Schedules -----------------------------------------------------------------------------------------------------

#: Maximum length of a name.
_WIDTH = 100


def cost_model(plan: Plan) -> tuple[float, float]:
    """Alpha and beta, where the formulation has them."""
    return float(plan.parameters.get("alpha", 0.0)), float(plan.parameters.get("beta", 1.0))


@dataclass(frozen=True, repr=False, eq=False)
class Schedule:
    """Transfers of chunks in synchronous steps.

    Parameters
    ----------
    result
        The result whose routes it uses.
    chunks
        Requested chunks per shard, see :meth:`Result.schedule`.
    links
        The transfers, as :class:`opticoll.formulations.schedules.link_schedule.LinkSchedule`.
    """

    result: Result
    chunks: int | Sequence[int] | None
    links: LinkSchedule

    @cached_property
    def verdict(self) -> ScheduleCheck:
        """The schedule executed step by step."""
        from opticoll.formulations.schedules.link_schedule import run_links
        from opticoll.formulations.schedules.schedule_json import LinkSteps, links_document, read_schedule

        alpha, beta = cost_model(self.result.solved()[0])
        topology = self.links.topology
        steps = read_schedule(links_document(self.links), Path("schedule"), topology)
        assert isinstance(steps, LinkSteps)
        return run_links(steps, topology, alpha=alpha, beta=beta)

    @property
    def time(self) -> float | None:
        """Simulated time [shards / link bandwidth]; None if the schedule is not valid."""
        return self.verdict.time

    @property
    def frame(self) -> pd.DataFrame:
        """One row per transfer: step, arc, and the shard (source, target, chunk) by names."""
        import pandas as pd

        topology = self.links.topology
        step, arc, source, target, chunk = self.links.transfers.T
        names = np.array(topology.labels, dtype=object)
        arcs = np.array(arc_labels(topology), dtype=object)
        return pd.DataFrame(
            {"step": step, "arc": arcs[arc], "source": names[source], "target": names[target], "chunk": chunk}
        )

    def check(self) -> str | None:
        """Execute the schedule: None if every shard arrives, else the first violation."""
        return None if self.verdict.valid else self.verdict.message

    def save(self, path: str | Path, **options: Any) -> dict[str, Json]:
        """Write the schedule: ``.xml`` (MSCCL), ``.json`` (links) or ``.routes.json``; the file is executed.

        Parameters
        ----------
        path
            File to write.
        options
            For ``.xml``: target, protocol, channels, instances and sizes, see
            :class:`opticoll.formulations.schedules.lowering.XmlOptions`.

        Returns
        -------
        File, chunks, steps, times, and whether the file delivers every shard.

        Raises
        ------
        BadInput
            For another suffix, unknown options, or a file that cannot be written.
        """
        return _saved(path, self.result, self.chunks, options)

    def __repr__(self) -> str:
        schedule, time, wrong = self.links, self.time, self.check()
        seconds = self.result.scale.seconds
        end = f"invalid: {wrong}" if wrong else f"simulated T = {number(time, 8)} [{TIME}]"
        if time is not None and seconds is not None:
            end += f" = {time * seconds:.6g} s"
        fluid = "" if schedule.fluid_time is None else f"; fluid time {number(schedule.fluid_time, 8)}"
        size = f"{counted(schedule.steps, 'step')}, {counted(len(schedule.transfers), 'transfer')}"
        size += f", {counted(schedule.chunks, 'chunk')} per shard"
        return f"schedule of {label(schedule.topology.spec, _WIDTH)}: {size}; {end}{fluid}"


@dataclass(frozen=True, repr=False, eq=False)
class Moves:
    """Copies and sums along packed trees in synchronous steps.

    Parameters
    ----------
    result
        The solution; the trees attain its time, but are not taken from it.
    chunks
        Requested chunks per shard, None by default; at most the largest number is used.
    made
        The moves, as :mod:`opticoll.formulations.schedules.collective_steps` defines them.
    """

    result: Result
    chunks: int | Sequence[int] | None
    made: CollectiveSchedule

    @cached_property
    def verdict(self) -> ScheduleCheck:
        """The schedule executed step by step."""
        from opticoll.formulations.schedules.collective_steps import run_moves

        plan, _ = self.result.solved()
        assert isinstance(plan.instance, Topology)
        alpha, beta = cost_model(plan)
        root = int(plan.parameters.get("root", 0))
        return run_moves(self.made.steps, plan.instance, root, alpha=alpha, beta=beta)

    @property
    def time(self) -> float | None:
        """Simulated time [shards / link bandwidth]; None if the schedule is not valid."""
        return self.verdict.time

    @property
    def frame(self) -> pd.DataFrame:
        """One row per move: step, path, shard and chunk, and whether it adds to what the receiver holds."""
        import pandas as pd

        plan, _ = self.result.solved()
        assert isinstance(plan.instance, Topology)
        names = plan.instance.labels
        rows = [
            (t, " ".join(names[v] for v in move.path), names[move.shard], move.chunk, move.adds)
            for t, step in enumerate(self.made.steps.steps)
            for move in step
        ]
        return pd.DataFrame(rows, columns=["step", "path", "shard", "chunk", "adds"])

    def check(self) -> str | None:
        """Execute the schedule: None if every rank ends with the data it must hold, else the first violation."""
        return None if self.verdict.valid else self.verdict.message

    def save(self, path: str | Path, **options: Any) -> dict[str, Json]:
        """Write the schedule, ``.json`` or ``.xml`` (MSCCL); as :meth:`Schedule.save`."""
        return _saved(path, self.result, self.chunks, options)

    def __repr__(self) -> str:
        steps, time, wrong = self.made.steps, self.time, self.check()
        end = f"invalid: {wrong}" if wrong else f"simulated T = {number(time, 8)} [{TIME}]"
        size = f"{counted(len(steps.steps), 'step')}, {counted(steps.moves, 'move')}"
        size += f", {counted(steps.chunks, 'chunk')} per shard"
        where = label(self.result.record.instance, _WIDTH)
        return f"schedule of {where}: {size}; {end}; fluid time {number(self.made.fluid_time, 8)}"


def _saved(
    path: str | Path, result: Result, chunks: int | Sequence[int] | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the schedule of a result and execute the file."""
    from opticoll.analysis.solution_files import schedule_request, write_schedule
    from opticoll.formulations.schedules.lowering import refuse_early

    plan, _ = result.solved()
    target = writable(path)
    refuse_early(target, plan.formulation.name)
    return write_schedule(schedule_request(target, chunks=chunks, **options), result)


@dataclass(frozen=True, repr=False, eq=False)
class Rounds:
    """Circuits and transfers in rounds, as :mod:`opticoll.formulations.rounds.round_schedule` defines them."""

    result: Result
    rounds: RoundSchedule

    def _labels(self) -> NDArray[Any]:
        instance = self.result.instance
        assert isinstance(instance, Topology)
        return np.array(instance.labels, dtype=object)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per transfer: round, src, dst, chunk, and whether it adds to a partial sum."""
        import pandas as pd

        own, names = self.rounds, self._labels()
        columns = {
            "round": own.transfer_round, "src": names[own.transfer_source], "dst": names[own.transfer_target],
            "chunk": own.transfer_chunk, "adds": own.transfer_adds,
        }  # fmt: skip
        return pd.DataFrame(columns).sort_values(["round", "chunk"], kind="stable", ignore_index=True)

    @property
    def circuits(self) -> pd.DataFrame:
        """One row per circuit: round, src, dst, wavelength, and the vertices of its path."""
        import pandas as pd

        own, names, instance = self.rounds, self._labels(), self.result.instance
        assert isinstance(instance, Topology)
        heads = instance.head
        paths = [" -> ".join([names[s], *names[heads[own.path(k)]]]) for k, s in enumerate(own.circuit_source.tolist())]
        columns = {
            "round": own.circuit_round, "src": names[own.circuit_source], "dst": names[own.circuit_target],
            "wavelength": own.circuit_wavelength, "path": paths,
        }  # fmt: skip
        return pd.DataFrame(columns)

    def check(self) -> dict[str, float]:
        """Replay the schedule: the violations of every block, see :meth:`Result.check`."""
        return self.result.check()

    def save(self, path: str | Path) -> dict[str, Json]:
        """Write the schedule as ``.json``, read it back and replay it.

        Returns
        -------
        File, numbers of rounds, circuits and transfers, and whether the file delivers everything.

        Raises
        ------
        BadInput
            For another suffix, or a file that cannot be written.
        """
        from opticoll.analysis.solution_files import ScheduleRequest, refuse_rounds, write_schedule

        target = writable(path)
        refuse_rounds(target)
        return write_schedule(ScheduleRequest(target, None, None), self.result)

    def __repr__(self) -> str:
        own = self.rounds
        where = label(self.result.record.instance, _WIDTH)
        sizes = (own.rounds, "round"), (own.circuits, "circuit"), (own.transfers, "transfer")
        return f"schedule of {where}: {', '.join(counted(*size) for size in sizes)}"
