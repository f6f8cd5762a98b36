"""Schedules of results, as tables and files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.output_files import (
    kept_rows,
    schedule_request,
    writable,
    write_schedule,
)
from opticoll.analysis.plots.style import counted, label
from opticoll.analysis.rendering import WIDTH, number
from opticoll.formulations.variables import TIME
from opticoll.instances import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from opticoll.analysis.result.result import Result
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.solvers.schedules.collective_steps import CollectiveSteps, Shard
    from opticoll.solvers.schedules.schedule_check import ScheduleCheck
    from opticoll.solvers.schedules.sequence_schedule import SequenceSchedule
    from opticoll.types import Json


#: Share of the time that a schedule may lose without advice, and by how much to multiply its chunks.
LOSS, MORE = 0.02, 16


@dataclass(frozen=True, repr=False, eq=False)
class _Saved:
    """A schedule of a result, with the chunks that were requested per shard."""

    result: Result
    chunks: int | Sequence[int] | None

    def save(self, path: str | Path, **options: Any) -> dict[str, Json]:
        """Write the schedule: ``.xml`` (MSCCL), ``.json``, or ``.routes.json`` if it has routes; the file is executed.

        Parameters
        ----------
        path
            File to write.
        options
            For ``.xml``: target, protocol, channels, instances and sizes, see
            :class:`opticoll.solvers.schedules.lowering.XmlOptions`.

        Returns
        -------
        File, chunks, steps, times, and whether the file delivers every shard.

        Raises
        ------
        BadInput
            For another suffix, unknown options, or a file that cannot be written.
        """
        from opticoll.solvers.schedules.schedule_kinds import refuse_file

        target = writable(path)
        refuse_file(target, self.result.solved()[0].problem)
        return write_schedule(schedule_request(target, chunks=self.chunks, **options), self.result)

    def _line(self, sizes: Sequence[tuple[int, str]], more: str) -> str:
        """The schedule on one line: its sizes, and more about it."""
        size = ", ".join(counted(*one) for one in sizes)
        return f"schedule of {label(self.result.record.instance, WIDTH)}: {size}{more}"


@dataclass(frozen=True, repr=False, eq=False)
class _Steps(_Saved):
    """A schedule in synchronous steps, which can be executed."""

    @cached_property
    def verdict(self) -> ScheduleCheck:
        """The schedule executed step by step."""
        raise NotImplementedError

    @property
    def time(self) -> float | None:
        """Simulated time [shards / link bandwidth]; None if the schedule is not valid."""
        return self.verdict.time

    def check(self) -> str | None:
        """Execute the schedule: None if every rank ends with the data it must hold, else the first violation."""
        return None if self.verdict.valid else self.verdict.message

    def _summary(self, sizes: Sequence[tuple[int, str]], chunks: int | None, fluid_time: float | None) -> str:
        """The schedule on one line."""
        wrong, seconds = self.check(), self.result.scale.seconds
        end = f"invalid: {wrong}" if wrong else f"simulated T = {number(self.time, 8)} [{TIME}]"
        if self.time is not None and seconds is not None:
            end += f" = {self.time * seconds:.6g} s"
        fluid = "" if fluid_time is None else f"; fluid time {number(fluid_time, 8)}"
        loss = self.time / fluid_time - 1 if self.time is not None and fluid_time else 0.0
        if loss > LOSS and chunks is not None:
            fluid += f"; the schedule takes {100 * loss:.3g} % more, more chunks may take less: "
            fluid += f"schedule(chunks={MORE * chunks})"
        parts = "" if chunks is None else f", {counted(chunks, 'chunk')} per shard"
        return self._line(sizes, f"{parts}; {end}{fluid}")


@dataclass(frozen=True, repr=False, eq=False)
class Schedule(_Steps):
    """Moves of chunks in synchronous steps: along the routes of an all-to-all, or along packed trees.

    Parameters
    ----------
    result
        The solution; trees attain its time, but are not taken from it.
    chunks
        Requested chunks per shard, see :meth:`Result.schedule`.
    steps
        The moves, as :mod:`opticoll.solvers.schedules.collective_steps` defines them.
    fluid_time
        Time of the flow or of the trees [shards / link bandwidth].
    """

    steps: CollectiveSteps
    fluid_time: float | None

    @cached_property
    def verdict(self) -> ScheduleCheck:
        """The schedule executed step by step."""
        from opticoll.solvers.schedules.moves_execution import run_moves
        from opticoll.solvers.schedules.schedule_check import Cost

        plan, _ = self.result.solved()
        assert isinstance(plan.instance, Topology)
        root = int(plan.parameters.get("root", 0))
        return run_moves(self.steps, plan.instance, root, cost=Cost.of(plan.parameters))

    @property
    def frame(self) -> pd.DataFrame:
        """One row per move: step, path, shard (of a rank or a pair), chunk, and whether it adds to the receiver's."""
        import pandas as pd

        instance = self.result.instance
        assert isinstance(instance, Topology)
        names = instance.labels
        rows = [
            (t, "->".join(names[v] for v in move.path), _shard_name(move.shard, names), move.chunk, move.adds)
            for t, step in enumerate(self.steps.by_step())
            for move in step
        ]
        return pd.DataFrame(rows, columns=["step", "path", "shard", "chunk", "adds"])

    def __repr__(self) -> str:
        sizes = ((self.steps.steps, "step"), (self.steps.moves, "move"))
        line = self._summary(sizes, self.steps.chunks, self.fluid_time)
        keeps = kept_rows(self.result.solved()[0].problem)
        return line if keeps is None else f"{line}; it keeps {keeps}"


def _shard_name(shard: Shard, names: Sequence[str]) -> str:
    return names[shard] if isinstance(shard, int) else f"{names[shard[0]]}->{names[shard[1]]}"


@dataclass(frozen=True, repr=False, eq=False)
class Configurations(_Steps):
    """Circuits that change, and the chunks that flow over them.

    Parameters
    ----------
    result
        The solution whose circuits and flows it uses.
    chunks
        None: the chunks are the pieces of the flow.
    made
        The schedule, as :mod:`opticoll.solvers.schedules.sequence_schedule` defines it.
    """

    made: SequenceSchedule

    @cached_property
    def verdict(self) -> ScheduleCheck:
        """The schedule executed."""
        from opticoll.solvers.schedules.schedule_json import configurations_document, read_configurations
        from opticoll.solvers.schedules.sequence_simulator import run_configurations

        plan, _ = self.result.solved()
        problem: Any = plan.problem
        document = configurations_document(plan.instance, self.made)
        return run_configurations(read_configurations(document, Path("schedule"), plan.instance, problem.n), problem)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per transfer: configuration, path, the chunk with its ends and its amount, start and end."""
        import pandas as pd

        chunks = self.made.chunks
        rows = [
            (k, "->".join(map(str, move.path)), move.chunk, *chunks[move.chunk], move.start, move.end)
            for k, one in enumerate(self.made.configurations)
            for move in one.transfers
        ]
        names = ["configuration", "path", "chunk", "source", "target", "amount", "start", "end"]
        return pd.DataFrame(rows, columns=names)

    def __repr__(self) -> str:
        own = self.made
        sizes = ((len(own.configurations), "configuration"), (own.transfers, "transfer"))
        return self._summary(sizes, None, own.fluid_time)


@dataclass(frozen=True, repr=False, eq=False)
class Rounds(_Saved):
    """Circuits and transfers in rounds, as :mod:`opticoll.formulations.rounds.round_schedule` defines them."""

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
            "round": own.transfer_round,
            "src": names[own.transfer_source],
            "dst": names[own.transfer_target],
            "chunk": own.transfer_chunk,
            "adds": own.transfer_adds,
        }
        return pd.DataFrame(columns).sort_values(["round", "chunk"], kind="stable", ignore_index=True)

    @property
    def circuits(self) -> pd.DataFrame:
        """One row per circuit: round, src, dst, wavelength, and the vertices of its path."""
        import pandas as pd

        own, names, instance = self.rounds, self._labels(), self.result.instance
        assert isinstance(instance, Topology)
        heads = instance.head
        paths = ["->".join([names[s], *names[heads[own.path(k)]]]) for k, s in enumerate(own.circuit_source.tolist())]
        columns = {
            "round": own.circuit_round,
            "src": names[own.circuit_source],
            "dst": names[own.circuit_target],
            "wavelength": own.circuit_wavelength,
            "path": paths,
        }
        return pd.DataFrame(columns)

    def check(self) -> dict[str, float]:
        """Replay the schedule: the violations of every block, see :meth:`Result.check`."""
        return self.result.check()

    def __repr__(self) -> str:
        own = self.rounds
        return self._line(((own.rounds, "round"), (own.circuits, "circuit"), (own.transfers, "transfer")), "")
