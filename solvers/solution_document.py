"""What a solution file holds, written from a run and read as the same class."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

import msgspec
import numpy as np
from msgspec import Meta

from opticoll.errors import BadFile
from opticoll.formulations.matrix.stated_model import StatedProgram
from opticoll.instances import Topology
from opticoll.instances.readers.topology_json import topology_document
from opticoll.solvers.compile.compilation import index_labels
from opticoll.solvers.compile.program_json import program_document
from opticoll.solvers.coordinate_arrays import coordinates
from opticoll.solvers.task import Size, SolverInfo, Termination, Times, plain
from opticoll.types import Json

if TYPE_CHECKING:
    from opticoll.solvers.run import Run

FORMAT: Final = "opticoll-solution/1"


class RunDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says of the run for information only; it proves nothing."""

    method: str | None = None
    form: str | None = None
    termination: Termination | None = None
    solver: SolverInfo = SolverInfo()
    time: Times = Times()
    size: Size = Size()
    message: str | None = None


class SolutionDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A solution, the problem that it solves, and what its run claims.

    Attributes
    ----------
    settings
        Parameters of the formulation; those that the file does not state are not compared.
    objective, bound, proof
        As claimed.
    values, needed, duals
        Named arrays in coordinate form (:mod:`opticoll.solvers.coordinate_arrays`); ``needed`` is the solution that
        this one took as data, ``duals`` are those that proved the bound, if any.
    indices
        Names of the indices of arrays of a Pyomo model that are not 0, 1, ...: a list per axis, null for an axis that
        needs none.
    topology
        The topology (:mod:`opticoll.instances.readers.topology_json`), to whose arcs flow indices refer.
    program
        The matrix of a model of one's own, or of one that was changed by hand.
    demand
        A demand that was given as data, which the setting only names [shards], ``(N, N)``.
    shard_bytes
        Size of a shard [bytes].
    """

    format: Literal["opticoll-solution/1"]
    formulation: str
    instance: str = ""
    instance_hash: str
    settings: dict[str, Json] = {}
    objective: Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)] | None = None
    bound: float | None = None
    proof: str | None = None
    values: dict[str, Json]
    indices: dict[str, Json] = {}
    duals: dict[str, Json] = {}
    needed: dict[str, Json] = {}
    topology: dict[str, Json] = {}
    program: Json = None
    demand: list[list[float]] | None = None
    shard_bytes: Annotated[float, Meta(gt=0)] | None = None
    record: RunDescription = RunDescription()

    @classmethod
    def of(cls, run: Run, shard_bytes: float | None = None) -> Self:
        """The verified solution of a run.

        Raises
        ------
        BadFile
            If the run has none.
        """
        if run.values is None or not run.verified or run.plan is None:
            msg = f"no solution to write: the run ended with {run.termination} and no verified solution"
            raise BadFile(msg)
        problem, instance, parameters = run.plan.problem, run.plan.instance, run.plan.parameters
        labels = index_labels(problem, run.plan.form)
        demand = getattr(parameters.get("demand"), "data", None)
        needed = None if run.needed is None else run.needed.values
        return cls(
            format=FORMAT,
            formulation=problem.name,
            instance=instance.spec,
            instance_hash=instance.hash,
            settings=plain(parameters),
            objective=run.objective,
            bound=run.bound,
            proof=str(run.proof),
            values={name: coordinates(array) for name, array in run.values.items()},
            indices=plain(labels),
            duals={name: coordinates(np.asarray(array)) for name, array in (run.duals or {}).items()},
            needed={name: coordinates(array) for name, array in (needed or {}).items()},
            topology=topology_document(instance) if isinstance(instance, Topology) else {},
            program=program_document(instance) if isinstance(instance, StatedProgram) else None,
            demand=None if demand is None else demand.amount.tolist(),
            shard_bytes=shard_bytes,
            record=RunDescription(**{name: run.record[name] for name in RunDescription.__struct_fields__}),
        )

    def as_json(self) -> dict[str, Json]:
        """The document as JSON, without what is the default."""
        return plain(msgspec.to_builtins(self))
