"""Arrays of a solution: declared shapes and ranges, names of their indices, and the load of every link.

Every formulation declares its arrays (:attr:`opticoll.formulations.model.Formulation._arrays`). Arrays from a file or a
solver are checked against that declaration before any other use, because an index out of range fails inside numpy.

An axis (:class:`Axis`) names its indices: vertices by the labels of the topology, an arc as ``u->v``, a commodity as
``s->t``, a path by all its vertices. Parallel arcs are numbered: ``u->v#2``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadFile, NotApplicable, refuse
from opticoll.nearest_names import NamedItems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.topology import F64, I64, Topology


@dataclass(frozen=True)
class SolutionSize:
    """A size that depends on the solution, such as its number of paths; the same in all arrays that refer to it.

    ``plus`` is added to it where it is used; ``most`` is its largest value, None for no limit.
    """

    name: str
    plus: int = 0
    most: int | None = None


#: Names along an axis: one per index, or several named columns of names.
Names = Sequence[object] | Mapping[str, Sequence[object]]


@dataclass(frozen=True)
class Axis:
    """An index set along a dimension of arrays.

    Parameters
    ----------
    name
        Name of the set, e.g. ``arc``.
    size
        Number of its members.
    names
        Names of the members, or a function of a solution that makes them; None if they are 0, 1, ....
    labels
        Indices of the members in Pyomo, or a function that makes them; None if they are 0, 1, ....
    """

    name: str
    size: int | SolutionSize
    names: Names | Callable[[Mapping[str, F64]], Names] | None = None
    labels: Sequence[Hashable] | Callable[[], Sequence[Hashable]] | None = None

    @cached_property
    def members(self) -> Sequence[Hashable]:
        """Indices of the members in Pyomo."""
        if self.labels is None:
            assert isinstance(self.size, int), f"{self.name} has no members without a solution"
            return range(self.size)
        return self.labels() if callable(self.labels) else self.labels

    def named(self, values: Mapping[str, F64]) -> Names | None:
        """Names of the members under a solution."""
        return self.names(values) if callable(self.names) else self.names


def listed_axis(name: str, size: int, labels: Callable[[], Sequence[Hashable]]) -> Axis:
    """An axis whose labels, one per member, are made when they are read: in Pyomo, and to name results."""
    made = cache(labels)
    return Axis(name, size, lambda _: made(), made)


@dataclass(frozen=True)
class Array:
    """An array of a solution: finite real numbers, or integers with ``low <= value < high``.

    Parameters
    ----------
    axes
        Index set along every dimension.
    low, high
        Range of whole numbers; ``high`` may differ by column (a tuple along the last axis), or be a size. Both None
        for real numbers.
    required
        Whether a solution must contain the array.
    entries
        Index set to which the entries belong, counted from ``base``, or one per column of the last axis. Entries below
        ``base`` stand for no member. None for quantities.
    unit
        Unit of a quantity, empty for plain numbers.
    dual
        Whether it holds duals of constraints, which a certificate reads, and is no part of a solution.
    """

    axes: tuple[Axis, ...] = ()
    low: int | None = None
    high: int | SolutionSize | tuple[int, ...] | None = None
    required: bool = True
    entries: Axis | tuple[Axis, ...] | None = None
    base: int = 0
    unit: str = ""
    dual: bool = False

    @property
    def shape(self) -> tuple[int | SolutionSize, ...]:
        """Size along every axis."""
        return tuple(axis.size for axis in self.axes)


def members(*axes: Axis, of: Axis, low: int = 0, base: int = 0, required: bool = True) -> Array:
    """An array whose entries are members of an index set, counted from ``base``."""
    high = of.size if isinstance(of.size, SolutionSize) else base + of.size
    return Array(axes, low, high, required, of, base)


def index_names(arrays: Mapping[str, Array] | None) -> dict[str, Names | None]:
    """Names along all axes of arrays whose names no solution determines."""
    return {axis.name: axis.named({}) for array in (arrays or {}).values() for axis in array.axes}


def numbered(shape: Sequence[int | SolutionSize]) -> tuple[Axis, ...]:
    """Axes without names of their own: ``index_0``, ``index_1``, ..."""
    return tuple(Axis(f"index_{i}", size) for i, size in enumerate(shape))


class DeferredArray(ABC):
    """An array of a solution that is too large to be stored, and made when it is asked for."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Size along every axis."""

    @property
    @abstractmethod
    def entries(self) -> F64:
        """An array with all values that occur in it."""

    @abstractmethod
    def whole(self) -> F64:
        """The array."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.whole(), dtype=dtype)


class NamedArrays(Mapping[str, "F64"]):
    """Named arrays of a solution; those that are too large to be stored are made when they are asked for.

    Parameters
    ----------
    kept
        The arrays as they are stored.
    """

    def __init__(self, kept: Mapping[str, F64]) -> None:
        self.kept = NamedItems(kept, "values")

    def __getitem__(self, name: str) -> F64:
        if isinstance(self.kept[name], DeferredArray):
            self.kept[name] = np.asarray(self.kept[name])
        return self.kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.kept)})"


def stored(values: Mapping[str, F64]) -> Mapping[str, F64]:
    """The arrays as they are stored, without making any."""
    return values.kept if isinstance(values, NamedArrays) else values


def check_arrays(declared: Mapping[str, Array], given: Mapping[str, NDArray[Any]], where: str) -> None:
    """Check names, shapes, finiteness, and ranges of integers against the declaration.

    Raises
    ------
    BadFile
        With ``where`` and the name of the first array that differs.
    """
    sizes = check_shapes(declared, {name: np.shape(array) for name, array in given.items()}, where)
    for name, array in given.items():
        entries = array.entries if isinstance(array, DeferredArray) else np.asarray(array)
        _check_entries(declared[name], entries, sizes, f"{where}.{name}")


def is_finite(array: NDArray[Any] | DeferredArray) -> bool:
    """Whether all entries are finite numbers; a finite sum implies it without a temporary array."""
    entries = array.entries if isinstance(array, DeferredArray) else np.asarray(array)
    with np.errstate(all="ignore"):
        return bool(entries.dtype.kind != "f" or np.isfinite(entries.sum()) or np.isfinite(entries).all())


def check_shapes(
    declared: Mapping[str, Array], given: Mapping[str, tuple[int, ...]], where: str, most: int | None = None
) -> dict[str, int]:
    """Check names and shapes against the declaration.

    Parameters
    ----------
    declared, where
        As in :func:`check_arrays`.
    given
        Shape of every array.
    most
        Largest size that the solution may choose along an axis; None for no limit.

    Returns
    -------
    Sizes chosen by the solution, by name.

    Raises
    ------
    BadFile
        For an unknown or missing array, or a wrong shape.
    """
    for name in given:
        if name not in declared:
            refuse(where, f"this formulation has no array {name[:60]!r}; its arrays are {', '.join(declared)}", BadFile)
    for name, array in declared.items():
        if array.required and name not in given:
            refuse(where, f"the required array {name!r} is missing", BadFile)
    sizes: dict[str, int] = {}
    for name, shape in given.items():
        wanted = declared[name].shape
        good = len(shape) == len(wanted)
        for have, size in zip(shape, wanted, strict=False):
            if isinstance(size, SolutionSize):
                number = have - size.plus
                limits = [limit for limit in (size.most, most) if limit is not None]
                good &= 0 <= number <= min(limits, default=number) and sizes.setdefault(size.name, number) == number
            else:
                good &= have == size
        if not good:
            msg = f"{where}.{name}: its shape is {_shape_text(shape)}, expected {_shape_text(wanted, sizes)}"
            raise BadFile(msg)
    return sizes


def _shape_text(shape: tuple[int | SolutionSize, ...], sizes: Mapping[str, int] | None = None) -> str:
    words = []
    for size in shape:
        if isinstance(size, int):
            words.append(str(size))
        elif sizes and size.name in sizes:
            words.append(str(sizes[size.name] + size.plus))
        else:
            words.append(f"{size.name}+{size.plus}" if size.plus else size.name)
    return f"({', '.join(words)})"


def _check_entries(declared: Array, array: NDArray[Any], sizes: Mapping[str, int], where: str) -> None:
    if array.dtype.kind not in "fiub":
        refuse(where, f"its entries are of type {array.dtype}, expected numbers", BadFile)
    if not is_finite(array):
        refuse(where, "an entry is not finite", BadFile)
    if declared.high is None:
        return
    high: Any = declared.high
    if isinstance(high, SolutionSize):
        high = sizes[high.name] + high.plus
    wrong = (array < declared.low) | (array >= np.asarray(high))
    if array.dtype.kind == "f":
        wrong |= array != np.rint(array)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        top = high[place[-1]] if isinstance(high, tuple) else high
        msg = (
            f"{where}: entry {list(place)} is {array[place]:.16g}, expected a whole number in {declared.low}..{top - 1}"
        )
        raise BadFile(msg)


# Names of indices, and loads of links --------------------------------------------------------------------------

#: Units that are converted by a shard size and a capacity unit (:mod:`opticoll.instances.quantities`).
SHARDS, BANDWIDTHS, TIME = "shards", "link bandwidths", "shards / link bandwidth"
#: Largest number of pairs of ranks that are listed, in some gigabytes.
MOST_PAIRS = 10**8


@dataclass(frozen=True, eq=False)
class Links:
    """Load of every link under a solution.

    Parameters
    ----------
    topology
        The links, as its arcs; m of them.
    load
        Load of every link [``load_unit``], ``(m,)``.
    capacity
        Capacity of every link [``capacity_unit``], ``(m,)``.
    time
        Duration in which the load is carried, so that utilisation = load / (capacity time); 1 for rates.
    load_unit, capacity_unit
        Units for tables and plots.
    """

    topology: Topology
    load: F64
    capacity: F64
    time: float
    load_unit: str
    capacity_unit: str

    @property
    def utilisation(self) -> F64:
        """Share of the capacity in use, ``(m,)``; 0 for a link without capacity and load."""
        room = np.asarray(self.capacity, dtype=float) * self.time
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where((room == 0) & (self.load == 0), 0.0, self.load / room)
        return np.asarray(share)


def vertex_names(topology: Topology) -> list[int | str]:
    """Indices of the vertices in Pyomo: labels, or numbers if these are the labels, ``(n,)``."""
    if len(set(topology.labels)) < topology.n:
        return list(range(topology.n))
    return [u if label == str(u) else label for u, label in enumerate(topology.labels)]


def arc_names(topology: Topology) -> list[str]:
    """Names of the arcs, also in Pyomo, ``(m,)``: ``tail->head``, with ``#2``, ... from the second parallel arc on."""
    vertices, copies, names = vertex_names(topology), Counter[tuple[int, int]](), []
    for ends in zip(topology.tail.tolist(), topology.head.tolist(), strict=True):
        copies[ends] += 1
        name = f"{vertices[ends[0]]}->{vertices[ends[1]]}"
        names.append(name if copies[ends] == 1 else f"{name}#{copies[ends]}")
    return names


def rank_pairs(topology: Topology) -> tuple[I64, I64]:
    """Sources and targets of all ordered pairs of different ranks, ascending by source, then target.

    Raises
    ------
    NotApplicable
        If there are more than :data:`MOST_PAIRS`.
    """
    ends = topology.terminals
    if ends.size**2 > MOST_PAIRS:
        reason = f"{ends.size:,} ranks have too many pairs to list; solve alltoall.master, whose flows are by source"
        refuse(topology.spec, reason, NotApplicable)
    sources, targets = np.repeat(ends, ends.size), np.tile(ends, ends.size)
    distinct = sources != targets
    return sources[distinct], targets[distinct]


def pair_names(topology: Topology, sources: I64, targets: I64) -> list[tuple[Hashable, ...]]:
    """Indices of commodities in Pyomo: (s,t), or (s,t,1), (s,t,2), ... if some pair is repeated, ``(|K|,)``."""
    V = vertex_names(topology)
    pairs: list[tuple[Hashable, ...]] = [(V[s], V[t]) for s, t in zip(sources.tolist(), targets.tolist(), strict=True)]
    if len(set(pairs)) == len(pairs):
        return pairs
    copies: Counter[tuple[Hashable, ...]] = Counter()
    numbered = []
    for pair in pairs:
        copies[pair] += 1
        numbered.append((*pair, copies[pair]))
    return numbered


def vertex_labels(topology: Topology, vertices: I64 | None = None) -> list[str]:
    """Labels of vertices; of all if None."""
    return list(topology.labels) if vertices is None else [topology.labels[v] for v in vertices.tolist()]


def pair_labels(topology: Topology, sources: I64, targets: I64) -> list[str]:
    """``s->t`` for every pair."""
    names = topology.labels
    return [f"{names[s]}->{names[t]}" for s, t in zip(sources.tolist(), targets.tolist(), strict=True)]


def arc_axis(topology: Topology) -> Axis:
    """The arcs."""
    return Axis("arc", topology.arcs, lambda _: arc_names(topology), lambda: arc_names(topology))


def vertex_axis(name: str, topology: Topology, vertices: I64 | None = None) -> Axis:
    """The axis of some vertices, ``(k,)``, or of all if None; their labels are its names."""

    def indices() -> list[int | str]:
        known = vertex_names(topology)
        return known if vertices is None else [known[v] for v in vertices.tolist()]

    size = topology.n if vertices is None else vertices.size
    return Axis(name, size, lambda _: vertex_labels(topology, vertices), indices)


def pair_axis(topology: Topology, sources: I64, targets: I64) -> Axis:
    """Commodities."""
    return Axis(
        "commodity",
        sources.size,
        lambda _: pair_labels(topology, sources, targets),
        lambda: pair_names(topology, sources, targets),
    )


def path_names(paths: PathSet) -> dict[str, list[str]]:
    """The commodity and the vertices of every path."""
    topology = paths.topology
    names, heads = topology.labels, topology.head.tolist()
    sources = paths.sources[paths.pair].tolist()
    walks = ["->".join([names[s], *(names[heads[a]] for a in paths.path(p))]) for p, s in enumerate(sources)]
    return {"commodity": pair_labels(topology, paths.sources[paths.pair], paths.targets[paths.pair]), "path": walks}


def round_links(topology: Topology, schedule: RoundSchedule, per_round: I64) -> Links:
    """Circuits over every arc in all rounds; an arc can carry ``per_round`` circuits per round, ``(m,)``."""
    load = np.bincount(schedule.circuit_arcs, minlength=topology.arcs).astype(float)
    room = per_round.astype(float)
    return Links(topology, load, room, float(schedule.rounds), "circuits", "circuits per round")
