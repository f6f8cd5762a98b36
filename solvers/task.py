"""Tasks, solver outcomes, and the record of a run.

:class:`Task` is the request, :class:`Record` the result. Resume keys, the messages to workers, the JSON object
of the command line, the cells of studies, the stored records and their columns
(:mod:`opticoll.analysis.store.schema`) are all derived from the fields of these two.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, NotRequired, Self, TypedDict, cast, overload

import msgspec

from opticoll.arguments import check_mapping, flag, number, refused, whole_number
from opticoll.errors import BadInput, BadOption
from opticoll.formulations.model import Formulation
from opticoll.instances import Instance
from opticoll.types import Json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64


class Termination(StrEnum):
    """Reason why a solve stopped, whether or not it has a solution."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    INFEASIBLE_OR_UNBOUNDED = "infeasible-or-unbounded"
    TIME_LIMIT = "time-limit"
    MEMORY_LIMIT = "memory-limit"
    REFUSED = "refused"
    ITERATION_LIMIT = "iteration-limit"
    TOLERANCE = "tolerance-not-reached"
    INTERRUPTED = "interrupted"
    UNAVAILABLE = "unavailable"
    CRASHED = "crashed"
    ERROR = "error"


class Proof(StrEnum):
    """What our checker and bounds prove about the value, strongest first; never taken from a solver.

    ``exact`` holds in rational arithmetic, the others within tolerances.
    """

    EXACT = "exact"
    OPTIMAL = "optimal"
    CERTIFIED_GAP = "certified-gap"
    FEASIBLE = "feasible"
    BOUND_ONLY = "bound-only"
    NONE = "none"


#: Proofs of an optimum.
PROVEN = (Proof.EXACT, Proof.OPTIMAL)
#: Endings with which a solver says that it has solved its problem.
ENDED = (Termination.OPTIMAL, Termination.INFEASIBLE)


#: Status of a column or row in a basis, in HiGHS's numbers; a free one outside the basis is 0.
LOWER, BASIC, UPPER, ZERO = range(4)


@dataclass(frozen=True)
class SimplexBasis:
    """A simplex basis: the status of every column and row.

    ``feasible`` says that it is one for the primal simplex method.
    """

    columns: NDArray[np.int8]
    rows: NDArray[np.int8]
    feasible: bool = False

    def fits(self, form: StandardForm) -> bool:
        """Whether it has a status for every row and column of the problem."""
        return (self.rows.size, self.columns.size) == form.stored.shape


@dataclass(frozen=True)
class SolveRequest:
    """A request to a solver adapter.

    Parameters
    ----------
    time_limit_s
        Wall-clock limit [s] for the solver itself, or None.
    threads
        Threads the solver may use.
    rel_tol
        Relative optimality (LP) or gap (MIP) aimed at; adapters translate it to their own tolerances, which
        they set at least one digit tighter where the solver allows it.
    seed
        Random seed, recorded.
    options
        Solver options by the solver's own names, values as strings or numbers; unknown names are refused.
    warm_start
        A column vector to start from, or None.
    basis
        A basis for the simplex method to start from, or None; solvers without one ignore it.
    want_basis
        Whether the basis of the solution is returned, where the solver has one.
    cpu_limit_s
        Processor time [s], summed over threads, after which the solver is stopped; None for no such limit. Unlike
        ``time_limit_s``, it gives a solver the same whether or not others share the processor.
    """

    time_limit_s: float | None = None
    threads: int = 2
    rel_tol: float = 1e-6
    seed: int = 0
    options: Mapping[str, object] = field(default_factory=dict)
    warm_start: F64 | None = None
    basis: SimplexBasis | None = None
    want_basis: bool = False
    cpu_limit_s: float | None = None


@dataclass
class Outcome:
    """The result of an adapter.

    ``objective`` and ``bound`` are the solver's own claims in the sense of the StandardForm (a max problem has
    bound >= objective). ``row_duals`` are shadow prices d(objective)/d(rhs) in the sense of the stated problem:
    for a max problem the dual of a binding ``<=`` row is >= 0, for a min problem it is <= 0.
    ``solve_s`` is the wall-clock time of the solver [s], ``cpu_s`` its processor time, summed over threads [s].
    ``algorithm`` is the one that ran, ``options`` are those that differ from the solver's defaults, ``basis`` that of
    the solution, if it was wanted and the solver has one.
    """

    termination: Termination
    objective: float | None = None
    bound: float | None = None
    x: F64 | None = None
    row_duals: F64 | None = None
    raw: str = ""
    algorithm: str | None = None
    version: str | None = None
    options: dict[str, Json] = field(default_factory=dict)
    iterations: int | None = None
    nodes: int | None = None
    solve_s: float | None = None
    cpu_s: float | None = None
    peak_memory_mb: float | None = None
    message: str = ""
    incumbents: list[tuple[float, float]] = field(default_factory=list)
    basis: SimplexBasis | None = None


#: Largest time limit [s], memory limit [GiB] and number of threads; larger ones are mistakes.
MOST_S, MOST_GIB, MOST_THREADS = 1e9, 1e6, 1024


class Task(msgspec.Struct, frozen=True):
    """One formulation on one instance by one method, with its limits.

    Parameters
    ----------
    formulation, instance
        Names as on the command line; ``formulation`` may also be a user-defined formulation, ``instance`` an instance
        object.
    method
        A solver adapter, a method of the formulation, or ``"auto"``.
    form
        ``"pyomo"``, ``"cvxpy"`` or None for the formulation's preferred one.
    settings
        ``--set`` values: parameters of the formulation, of the method, or options of the solver. ``demand`` may also be
        an array, a DataFrame or a dict of pairs (:class:`opticoll.instances.demands.DemandSpec`).
    time_limit_s, memory_limit_gib
        Limits of the whole solve: wall clock [s] and memory of its process tree [GiB].
    tol
        Relative gap at which the value counts as proven optimal.
    seed, threads, repetition
        Recorded; ``repetition`` distinguishes runs that are otherwise equal.
    exact
        Whether the optimum is also solved and proven in rational arithmetic (:mod:`opticoll.solvers.exact`).
    """

    formulation: str | type[Formulation]
    instance: str | Instance
    method: str = "auto"
    form: str | None = None
    settings: Mapping[str, object] = msgspec.field(default_factory=dict)
    time_limit_s: float | None = None
    memory_limit_gib: float | None = None
    tol: float = 1e-6
    seed: int = 0
    threads: int = 2
    repetition: int = 0
    exact: bool = False

    def __post_init__(self) -> None:
        check_mapping(self.settings, "settings")
        demand = self.settings.get("demand", "")
        if not isinstance(demand, str):
            from opticoll.instances.demands import DemandSpec

            msgspec.structs.force_setattr(self, "settings", {**self.settings, "demand": DemandSpec(demand)})
        limits = (("time limit", self.time_limit_s, MOST_S), ("memory limit", self.memory_limit_gib, MOST_GIB))
        try:
            for name, limit, most in limits:
                if limit is not None and number(limit, name, positive=True) > most:
                    raise refused(limit, name, f"at most {most:g}, or omitted for no limit")
            if not 0 < number(self.tol, "tol") < 1:
                raise refused(self.tol, "tol", "a number between 0 and 1")
            plain_types = {  # a limit of 60 is one of 60.0, and NumPy's numbers are as others
                "time_limit_s": None if self.time_limit_s is None else float(self.time_limit_s),
                "memory_limit_gib": None if self.memory_limit_gib is None else float(self.memory_limit_gib),
                "tol": float(self.tol),
                "threads": whole_number(self.threads, "threads", 1, MOST_THREADS),
                "seed": whole_number(self.seed, "seed", 0, 2**31 - 1),
                "repetition": whole_number(self.repetition, "repetition", 0),
                "exact": flag(self.exact, "exact"),
            }
        except BadInput as error:
            raise BadOption(str(error)) from None
        for name, value in plain_types.items():
            msgspec.structs.force_setattr(self, name, value)


class Progress(TypedDict):
    """The incumbent's value, the bound, and the seconds since the run began.

    ``of`` is there while a solution of another formulation is found that the data need: value and bound are its own.
    """

    objective: float | None
    bound: float | None
    elapsed_s: float
    of: NotRequired[str]


#: Lock held while fields are read: msgspec inspects a class when it first reads it, which is for one thread at a time.
_READING = threading.Lock()


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """Immutable fields, accessible as attributes or, as in the JSON object, by name: ``record["gap"]``."""

    @classmethod
    def read(cls, values: Mapping[str, object]) -> Self:
        """Validate fields from outside; unknown ones are ignored.

        Raises
        ------
        msgspec.ValidationError
            If a field has the wrong type; nothing is converted.
        """
        result = plain(values)
        with _READING:
            return msgspec.convert(result, cls)

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """The same of a JSON object.

        Raises
        ------
        msgspec.MsgspecError
            If it is no such object, or a field has the wrong type.
        """
        with _READING:
            return msgspec.json.decode(line, type=cls)

    def __getitem__(self, name: str) -> Any:
        if name not in self.__struct_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__struct_fields__)

    def keys(self) -> tuple[str, ...]:
        """Names of the fields."""
        return self.__struct_fields__

    def items(self) -> list[tuple[str, Any]]:
        """Names and values of the fields."""
        return [(name, getattr(self, name)) for name in self.__struct_fields__]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a field; ``default`` if there is no such field."""
        return getattr(self, name) if name in self.__struct_fields__ else default


class SolverInfo(Fields, frozen=True, kw_only=True):
    """The solver that ran, and the options in force."""

    name: str | None = None
    version: str | None = None
    algorithm: str | None = None
    options: dict[str, Json] | None = None


class Kkt(Fields, frozen=True, kw_only=True):
    """Relative errors of a linear program's optimality conditions, see :func:`opticoll.solvers.verify.kkt`."""

    primal: float | None = None
    dual: float | None = None
    gap: float | None = None


class Times(Fields, frozen=True, kw_only=True):
    """Seconds that each part of a run took."""

    load_s: float | None = None
    build_s: float | None = None
    compile_s: float | None = None
    solve_s: float | None = None
    solver_s: float | None = None
    solver_cpu_s: float | None = None
    verify_s: float | None = None
    exact_s: float | None = None


class Size(Fields, frozen=True, kw_only=True):
    """Size of the compiled matrix."""

    variables: int | None = None
    constraints: int | None = None
    nonzeros: int | None = None
    integers: int | None = None


class ModelInfo(Fields, frozen=True, kw_only=True):
    """Whether the stated model was built, in which form, and the reason; ``variables`` is its size, if known."""

    built: bool | None = None
    form: str | None = None
    reason: str | None = None
    variables: int | None = None


class Requested(Fields, frozen=True, kw_only=True):
    """The request of a task, before any choice was made."""

    method: str | None = None
    form: str | None = None
    settings: dict[str, str] | None = None
    time_limit_s: float | None = None
    memory_limit_gib: float | None = None
    tol: float | None = None
    seed: int | None = None
    threads: int | None = None
    repetition: int | None = None
    exact: bool | None = None

    @classmethod
    def of(cls, task: Task) -> Requested:
        """The request of a task, with its settings as strings."""
        fields = {name: getattr(task, name) for name in cls.__struct_fields__}
        return cls(**{**fields, "settings": texts(task.settings)})


#: Fields of a request that enter the resume key unchanged.
LIMITS = ("time_limit_s", "memory_limit_gib", "tol", "seed", "threads", "repetition")


class StartRecord(Fields, frozen=True, kw_only=True):
    """The solution from which a run started: where it comes from, its value, and what became of it.

    ``used`` are the solvers and methods that began with it, ``kept`` says whether nothing better was found.
    """

    source: str | None = None
    objective: float | None = None
    used: list[str] | None = None
    kept: bool | None = None


class SolverClaims(Fields, frozen=True, kw_only=True):
    """Value, bound and status as the solver reported them."""

    objective: float | None = None
    bound: float | None = None
    status: str | None = None


class Needed(Fields, frozen=True, kw_only=True):
    """The run whose solution was the data of this one; ``id`` names its record in the store."""

    formulation: str | None = None
    method: str | None = None
    key: str | None = None
    termination: Termination | None = None
    proof: Proof | None = None
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    id: str | None = None

    @classmethod
    def of(cls, record: Record) -> Needed:
        """The fields of another run's record."""
        return cls(**{name: record[name] for name in cls.__struct_fields__ if name != "id"})


class Repaired(Fields, frozen=True, kw_only=True):
    """A repair of the solver's values: their worst violation, and the objective before the repair."""

    violation: float | None = None
    claimed: float | None = None


class Environment(Fields, frozen=True, kw_only=True):
    """Machine and software of a run; ``code`` is the digest of opticoll's own code (:mod:`opticoll.package_code`)."""

    host: str | None = None
    platform: str | None = None
    python: str | None = None
    opticoll: str | None = None
    code: str | None = None
    git_commit: str | None = None
    cpus: int | None = None


class Record(Fields, frozen=True, kw_only=True):
    """Everything that is recorded about a run; unknown fields are None.

    ``key`` is the resume key. ``form`` is the form of the model that was built. ``infeasible_by`` states how
    infeasibility was proven. ``settings`` are the effective settings, ``requested`` those of the task. ``plugins`` are
    the plug-ins used, by name, with the SHA-256 of their source, ``versions`` those of solvers and layers in the key.
    ``incumbents`` are pairs (seconds, objective).
    ``objective_exact`` is the optimum as a fraction, ``"761/51"``, if it is proven without rounding.
    """

    key: str | None = None
    formulation: str | None = None
    paper: str | None = None
    instance: str | None = None
    instance_hash: str | None = None
    n: int | None = None
    arcs: int | None = None
    method: str | None = None
    form: str | None = None
    model: ModelInfo = ModelInfo()
    solver: SolverInfo = SolverInfo()
    termination: Termination | None = None
    proof: Proof | None = None
    sense: str | None = None
    objective: float | None = None
    objective_exact: str | None = None
    bound: float | None = None
    bound_source: str | None = None
    gap: float | None = None
    verified: bool | None = None
    infeasible_by: str | None = None
    violations: Mapping[str, float | None] | None = None
    kkt: Kkt | None = None
    metrics: dict[str, Json] | None = None
    settings: dict[str, str] | None = None
    solver_claims: SolverClaims | None = None
    time: Times = Times()
    size: Size = Size()
    peak_memory_mb: float | None = None
    message: str | None = None
    incumbents: Sequence[tuple[float, float | None]] | None = None
    requested: Requested = Requested()
    needed: Needed | None = None
    repaired: Repaired | None = None
    start: StartRecord | None = None
    plugins: dict[str, str] | None = None
    versions: dict[str, str | None] | None = None


#: How a message begins that reports no failure.
NOTE = "note: "


def joined_messages(*messages: str | None) -> str:
    """Several messages as one, with a semicolon after one that ends without a mark."""
    result = ""
    for message in messages:
        if result and message and not message.startswith(";"):
            result += " " if result[-1] in ".:;" else "; "
        result += message or ""
    return result


def texts(settings: Mapping[str, object]) -> dict[str, str]:
    """Convert settings to strings, as in records and resume keys."""
    return {name: str(value) for name, value in settings.items()}


class ScheduleFault(TypedDict):
    """The rule that a schedule violates, and the rank, chunk and step; None for any that does not apply."""

    collective: NotRequired[str]
    violation: str | None
    rank: int | None
    chunk: int | None
    step: str | None


class CheckRecord(TypedDict):
    """The verdict on a solution, schedule or certificate, see :func:`opticoll.solvers.solution_json.check`.

    ``violations`` has the worst violation of every block of constraints, ``claimed`` the objective that the file
    states. For a schedule, ``objective`` is its time, ``schedule`` its first violation, and there are no ``settings``.
    For a certificate, ``objective_exact`` is the proven optimum as a fraction, and ``certificate`` its interval and
    size.
    """

    formulation: str
    instance: str
    instance_hash: str
    settings: NotRequired[dict[str, str]]
    verified: bool
    violations: Mapping[str, float | None]
    objective: float | None
    claimed: float | None
    bound: float | None
    bound_source: str | None
    metrics: Mapping[str, Json]
    reason: str
    notes: list[str]
    schedule: NotRequired[ScheduleFault]
    objective_exact: NotRequired[str | None]
    certificate: NotRequired[Mapping[str, Json] | None]


def check_record(
    model: type[Formulation],
    instance: Instance,
    parameters: Mapping[str, object] | None,
    reason: str = "",
    violations: Mapping[str, float | None] | None = None,
    objective: float | None = None,
) -> CheckRecord:
    """Make a verdict without claim, bound, metrics and notes: verified unless there is a ``reason``.

    ``parameters`` are None for a schedule, which has no settings.
    """
    result: CheckRecord = {
        "formulation": model.name,
        "instance": instance.spec,
        "instance_hash": instance.hash,
        "settings": texts(parameters or {}),
        "verified": not reason,
        "violations": violations or {},
        "objective": objective,
        "claimed": None,
        "bound": None,
        "bound_source": None,
        "metrics": {},
        "reason": reason,
        "notes": [],
    }
    if parameters is None:
        del result["settings"]
    return result


@overload
def plain(value: Mapping[str, object] | Fields) -> dict[str, Json]: ...


@overload
def plain(value: object) -> Json: ...


def plain(value: object) -> Json:
    """Convert a value to JSON types: plain Python numbers, lists and strings; NaN and infinity become None."""
    if value is None or type(value) in (bool, int, str):
        return cast("Json", value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, dict | Fields | Mapping):  # the slow test last
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return int(value) if isinstance(value, int) else str(value)


def digest(parts: Mapping[str, Json]) -> str:
    """SHA-256 of a JSON-able mapping, independent of key order."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
