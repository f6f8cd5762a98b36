"""Which kind of schedule the solutions of a formulation hold, and the schedule of a solution."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from opticoll.errors import BadInput, refuse
from opticoll.formulations import declared_axes
from opticoll.formulations.model import is_own
from opticoll.formulations.rounds.round_schedule import RoundFormulation
from opticoll.instances.topology import Topology
from opticoll.solvers.schedules import collective_steps
from opticoll.solvers.schedules.link_schedule import schedule_routes
from opticoll.solvers.schedules.schedule_check import Cost
from opticoll.solvers.schedules.sequence_schedule import sequence_schedule
from opticoll.solvers.schedules.shard_routes import refuse_without_routes, routes_in_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from opticoll.formulations import Formulation
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.topology import F64
    from opticoll.solvers.run import Plan
    from opticoll.solvers.schedules.collective_steps import CollectiveSchedule
    from opticoll.solvers.schedules.sequence_schedule import SequenceSchedule


class ScheduleKind(Enum):
    """A kind of schedule."""

    ROUNDS = "rounds of circuits"
    CONFIGURATIONS = "circuits that change"
    TREES = "copies and sums along packed trees, in steps"
    ROUTES = "shards along routes, in steps"


def kind_of(formulation: Formulation | type[Formulation]) -> ScheduleKind:
    """The kind of schedule that solutions of a formulation hold.

    Raises
    ------
    NotApplicable
        If they hold none.
    """
    model = formulation if isinstance(formulation, type) else type(formulation)
    if issubclass(model, RoundFormulation):
        return ScheduleKind.ROUNDS
    if model.name == "topology.sequence":
        return ScheduleKind.CONFIGURATIONS
    if model.name in collective_steps.COLLECTIVES:
        return ScheduleKind.TREES
    if not (is_own(model) and declared_axes.has_routes(formulation)):
        refuse_without_routes(model.name)
    return ScheduleKind.ROUTES


def holds(model: type[Formulation], kind: ScheduleKind) -> bool:
    """Whether solutions of a formulation hold this kind of schedule."""
    try:
        return kind_of(model) is kind
    except BadInput:
        return False


def schedule_of(
    plan: Plan, values: Mapping[str, F64], chunks: int | Sequence[int] | None = None
) -> RoundSchedule | SequenceSchedule | CollectiveSchedule:
    """The schedule of a solution.

    Parameters
    ----------
    plan, values
        The plan of the run, and its verified values.
    chunks
        Chunks per shard, or several numbers of which the best is taken; None for the default of the kind.

    Raises
    ------
    NotApplicable
        If solutions of the formulation hold no schedule.
    BadInput
        If chunks are given for rounds, whose collective determines them, or for circuits that change; or the instance
        is not a topology.
    """
    problem: Any = plan.problem
    topology, kind = plan.instance, kind_of(problem)
    refuse_chunks(problem, chunks)
    if isinstance(problem, RoundFormulation):
        return problem.rounds(values)
    if kind is ScheduleKind.CONFIGURATIONS:
        return sequence_schedule(problem, values)
    if not isinstance(topology, Topology):
        refuse(problem.name, "its solutions hold no routes for a schedule; solve an all-to-all")
    cost = Cost.of(plan.parameters)
    if kind is ScheduleKind.TREES:
        root = root_of(problem.name, problem)
        return collective_steps.best_schedule(problem.name, topology, root, chunks=chunks, cost=cost)
    routes = routes_in_steps(problem.name, problem, topology, values)
    return schedule_routes(topology, routes, chunks=chunks, cost=cost)


def root_of(name: str, data: Any) -> int | None:
    """The root of a broadcast; None for all other formulations."""
    return int(data.root) if name == "alltoall.broadcast" else None


def refuse_chunks(formulation: Formulation | type[Formulation], chunks: int | Sequence[int] | None) -> None:
    """Refuse numbers of chunks for a schedule that is not cut into chunks.

    Raises
    ------
    BadInput
        If chunks are given for rounds or for circuits that change.
    """
    kind = kind_of(formulation)
    if chunks is not None and kind in {ScheduleKind.ROUNDS, ScheduleKind.CONFIGURATIONS}:
        what = "collective" if kind is ScheduleKind.ROUNDS else "flow"
        refuse(formulation.name, f"the {what} determines the chunks; omit chunks")


def refuse_file(path: Path, formulation: Formulation | type[Formulation]) -> None:
    """Refuse a file to which no schedule of the formulation can be written.

    Raises
    ------
    BadInput
        If the format of its suffix does not hold the kind of schedule.
    NotApplicable
        If solutions of the formulation hold no schedule.
    """
    name, kind = formulation.name, kind_of(formulation)
    suffix, routes = path.suffix.lower(), path.name.lower().endswith(".routes.json")
    if kind in {ScheduleKind.ROUNDS, ScheduleKind.CONFIGURATIONS}:
        if suffix != ".json" or routes:
            refuse(path, f"{kind.value} are written as .json")
    elif suffix not in {".xml", ".json"}:
        refuse(path, "unknown schedule format; use .xml (MSCCL), .json (moves) or .routes.json (routes)")
    elif kind is ScheduleKind.TREES and routes:
        refuse(path, f"{name} sends copies or sums, which cannot be written as routes; use .json or .xml")
    elif suffix == ".xml" and name == "alltoall.broadcast":
        refuse(path, "MSCCL XML does not state the root of a broadcast; use .json")
