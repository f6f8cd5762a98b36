"""What a file of a result holds beside its solution, written and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from opticoll.solvers.task import Size, SolverInfo, Termination, Times

if TYPE_CHECKING:
    from opticoll.solvers.run import Run
    from opticoll.types import Json


class RunDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says of the run for information only; it proves nothing."""

    method: str | None = None
    form: str | None = None
    termination: Termination | None = None
    solver: SolverInfo = SolverInfo()
    time: Times = Times()
    size: Size = Size()
    message: str | None = None


class SavedResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a file of a result holds beside the arrays of its solution (:mod:`opticoll.solvers.solution_json`).

    Attributes
    ----------
    demand
        A demand that was given as data, which the setting only names [shards], ``(N, N)``.
    shard_bytes
        Size of a shard [bytes].
    """

    formulation: str
    settings: dict[str, object] = {}
    instance: str = ""
    instance_hash: str | None = None
    arcs: list[tuple[int, int, float]] | None = None
    vertices: int | None = None
    terminals: list[int] | None = None
    labels: list[str] | None = None
    capacity_unit: str | None = None
    demand: list[list[float]] | None = None
    shard_bytes: Annotated[float, msgspec.Meta(gt=0)] | None = None
    record: RunDescription = RunDescription()

    @classmethod
    def additions(cls, run: Run, shard_bytes: float | None) -> dict[str, Json]:
        """What :meth:`opticoll.Result.save` adds to the document of the solution."""
        assert run.plan is not None
        data = getattr(run.plan.parameters.get("demand"), "data", None)
        saved = cls(
            formulation=run.plan.problem.name,
            demand=None if data is None else data.amount.tolist(),
            shard_bytes=shard_bytes,
            record=RunDescription(**{name: run.record[name] for name in RunDescription.__struct_fields__}),
        )
        made: dict[str, Json] = msgspec.to_builtins(saved)
        return made
