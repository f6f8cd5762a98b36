"""Path sets P(s,t): the simple paths that a path-based model may use.

Source  all-to-all paper, 3.1.4 and Appendix D
Sets    k = (s_k, t_k) in K pairs of distinct vertices, by default all ordered pairs of ranks; P_k simple paths from
        s_k to t_k

all         every simple path, of at most ``lmax`` arcs if given
shortest    every path with the fewest arcs
k           the k shortest by number of arcs (Yen, Management Science 17, 1971), or all if there are fewer
disjoint    a largest set of arc-disjoint paths, among these one of minimum total length (unit capacities,
            successive shortest augmenting paths; Suurballe, Networks 4, 1974); where translations take every rank
            to every other (tori, hypercubes), those of one source, translated, so that all links are used alike

A path is a sequence of *arcs*, so parallel arcs give different paths. The paths of a pair are sorted by length,
then lexicographically by arc numbers; everything is deterministic. ``lmax`` removes longer paths from every set.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from opticoll.compiled import interpreted, kernels
from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.rounds.segments import offsets, positions, select
from opticoll.formulations.variables import rank_pairs
from opticoll.instances.translations import moved_arcs, translations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import scipy.sparse as sp

    from opticoll.instances.topology import F64, I64, Mask, Topology
    from opticoll.types import Settings

    Pairs = tuple[I64, I64]

Kind = Literal["all", "shortest", "k", "disjoint"]
KINDS: tuple[Kind, ...] = ("all", "shortest", "k", "disjoint")
#: Maximum number of paths that are listed.
MOST_PATHS = 200_000
KERNELS = "opticoll.formulations.flows.path_kernels"
#: Counting stops here; error messages then read "more than".
MOST_COUNTED = 20_000_000


@dataclass(frozen=True)
class PathRule:
    """A rule for a path set: its kind, k for ``"k"``, and the maximum path length (None for any)."""

    kind: Kind
    k: int = 4
    lmax: int | None = None

    def __str__(self) -> str:
        words = {
            "all": "all simple paths",
            "shortest": "all shortest paths",
            "k": f"{self.k} shortest paths",
            "disjoint": "a maximal arc-disjoint set",
        }[self.kind]
        return words if self.lmax is None else f"{words}, at most {self.lmax} arcs"

    @property
    def unrestricted(self) -> bool:
        """Whether it allows every simple path."""
        return self.kind == "all" and self.lmax is None


def rule_parameters(default: Kind) -> tuple[Parameter, ...]:
    """The ``--set`` parameters of a model over path sets."""
    return (
        Parameter("paths", str, default=default, help="which paths each pair may use", choices=KINDS),
        Parameter(
            "k", int, default=PathRule.k, help="paths per pair, for paths=k", only_with={"paths": ("k",)}, least=1
        ),
        Parameter("lmax", int, default=0, help="maximum path length [arcs]; 0 for no limit", least=0),
    )


def read_rule(parameters: Settings) -> PathRule:
    """The rule given by :func:`rule_parameters`."""
    stated, k, lmax = cast("Kind", parameters["paths"]), int(parameters["k"]), int(parameters["lmax"])
    return PathRule(stated, k, lmax or None)


@dataclass(frozen=True, eq=False)
class PathSet:
    """Paths of every commodity, as flat arrays.

    Parameters
    ----------
    topology
        Vertices and arcs.
    sources, targets
        s_k and t_k, shape ``(|K|,)``.
    arcs
        Concatenated arc numbers of all paths, shape ``(total length,)``.
    start
        Path p is ``arcs[start[p]:start[p + 1]]``, shape ``(|P| + 1,)``.
    pair
        Commodity of each path, ascending, shape ``(|P|,)``.
    """

    topology: Topology
    sources: I64
    targets: I64
    arcs: I64
    start: I64
    pair: I64

    @property
    def paths(self) -> int:
        """Number of paths |P|."""
        return int(self.pair.size)

    @property
    def pairs(self) -> int:
        """Number of commodities |K|."""
        return int(self.sources.size)

    @cached_property
    def length(self) -> I64:
        """Number of arcs of each path, shape ``(|P|,)``."""
        return np.diff(self.start)

    @cached_property
    def first(self) -> I64:
        """The paths of commodity k are ``first[k] .. first[k + 1] - 1``, shape ``(|K| + 1,)``."""
        return np.searchsorted(self.pair, np.arange(self.pairs + 1))

    @cached_property
    def used(self) -> I64:
        """The arcs on some path, ascending."""
        return np.flatnonzero(np.bincount(self.arcs, minlength=self.topology.arcs))

    @cached_property
    def incidence(self) -> sp.csr_array:
        """Arc-path incidence A, shape ``(m, |P|)``: 1 where the path uses the arc."""
        import scipy.sparse as sp

        columns = (np.ones(self.arcs.size), self.arcs, self.start)
        return sp.csc_array(columns, shape=(self.topology.arcs, self.paths)).tocsr()

    @cached_property
    def membership(self) -> sp.csr_array:
        """Commodity-path incidence B, shape ``(|K|, |P|)``: 1 where the path carries the commodity."""
        import scipy.sparse as sp

        rows = (np.ones(self.paths), (self.pair, np.arange(self.paths)))
        return sp.csr_array(rows, shape=(self.pairs, self.paths))

    def over(self) -> list[list[int]]:
        """The paths over every arc, in ascending order."""
        through = np.repeat(np.arange(self.paths), self.length)[np.argsort(self.arcs, kind="stable")]
        end = np.cumsum(np.bincount(self.arcs, minlength=self.topology.arcs))
        return [one.tolist() for one in np.split(through, end[:-1])]

    @cached_property
    def by_ends(self) -> dict[tuple[int, int], list[list[int]]]:
        """P_sd: the paths of every pair (s, d), each a list of arcs."""
        ends = zip(self.sources.tolist(), self.targets.tolist(), strict=True)
        return {pair: [self.path(p) for p in self.of_pair(k)] for k, pair in enumerate(ends)}

    @property
    def listed(self) -> dict[str, I64]:
        """Every path by its number ``path``: the ``i``-th from ``s`` to ``d``."""
        path, pair = np.arange(self.paths), self.pair
        return {"s": self.sources[pair], "d": self.targets[pair], "i": path - self.first[pair], "path": path}

    @property
    def crossed(self) -> dict[str, I64]:
        """Every arc ``e`` of every path, the ``i``-th from ``s`` to ``d``."""
        path = np.repeat(np.arange(self.paths), self.length)
        return {name: self.listed[name][path] for name in "sdi"} | {"e": self.arcs}

    def of_pair(self, k: int) -> range:
        """The paths of commodity ``k``."""
        return range(int(self.first[k]), int(self.first[k + 1]))

    def path(self, p: int) -> list[int]:
        """The arcs of path ``p``."""
        result: list[int] = self.arcs[self.start[p] : self.start[p + 1]].tolist()
        return result

    def shortest(self, lengths: F64, count: int = 1) -> F64:
        """Mean length of every commodity's ``count`` shortest paths under ``lengths`` ``(m,)``, shape ``(|K|,)``."""
        along = np.bincount(np.repeat(np.arange(self.paths), self.length), lengths[self.arcs], self.paths)
        if count == 1:
            return np.minimum.reduceat(along, self.first[:-1])
        order = np.lexsort((along, self.pair))
        return along[order[self.first[:-1, None] + np.arange(count)]].sum(axis=1) / count


def build_path_set(topology: Topology, rule: PathRule, where: str, pairs: Pairs | None = None) -> PathSet:
    """List the paths that ``rule`` allows for every commodity.

    Parameters
    ----------
    topology, rule, where
        Graph, rule for the allowed paths, and name of the caller (for messages).
    pairs
        Source and target vertices of the commodities, each ``(|K|,)``, in which pairs may be repeated; all ordered
        pairs of distinct ranks if None.

    Raises
    ------
    NotApplicable
        If some pair has no path in the set (the message names it), or there are more than :data:`MOST_PATHS`
        paths (the message counts them).
    """
    sources, targets = rank_pairs(topology) if pairs is None else pairs
    check_reach(topology, rule, where, pairs)
    if rule.kind in {"all", "shortest"}:
        path_set = _list_all(topology, rule, where, (sources, targets))
    else:
        if sources.size * (rule.k if rule.kind == "k" else 1) > 50 * MOST_PATHS:
            msg = (
                f"{where}: {sources.size} pairs are too many to search {rule}; use paths=shortest or column-generation"
            )
            raise NotApplicable(msg)
        search = k_shortest_paths if rule.kind == "k" else _translated_disjoint_paths(topology)
        path_set = _search(topology, sources, targets, search, rule, where)
    check_nonempty(path_set, rule, where)
    return path_set


def check_reach(topology: Topology, rule: PathRule, where: str, pairs: Pairs | None = None) -> None:
    """Refuse a length limit below some commodity's distance.

    Raises
    ------
    NotApplicable
        Naming the first pair left without a path.
    """
    if rule.lmax is None:
        return
    sources, targets = rank_pairs(topology) if pairs is None else pairs
    hops = topology.hops[np.searchsorted(topology.terminals, sources), targets]
    far = np.flatnonzero(hops > rule.lmax)
    if far.size:
        s, t = (topology.labels[ends[far[0]]] for ends in (sources, targets))
        reach = f"the diameter {topology.diameter:g}" if pairs is None else f"{hops.max():g}"
        msg = (
            f"{where}: no path of at most lmax={rule.lmax} arcs from {s} to {t} ({far.size} such pairs of "
            f"{topology.spec}); lmax must be at least {reach}"
        )
        raise NotApplicable(msg)


def check_nonempty(path_set: PathSet, rule: PathRule, where: str) -> None:
    """Refuse a set without a path for some commodity.

    Raises
    ------
    NotApplicable
        Naming the first such pair.
    """
    count = np.bincount(path_set.pair, minlength=path_set.pairs)
    if count.size and not count.min() > 0:
        k = int(np.argmin(count > 0))
        s, t = (path_set.topology.labels[v] for v in (path_set.sources[k], path_set.targets[k]))
        msg = (
            f"{where}: the path set ({rule}) is empty for {s} to {t} ({int((count == 0).sum())} such pairs of "
            f"{path_set.topology.spec}); raise lmax or use another set"
        )
        raise NotApplicable(msg)


def count_all(
    topology: Topology, rule: PathRule, most: int = MOST_COUNTED, pairs: Pairs | None = None
) -> tuple[int, int, bool]:
    """Count the paths of an ``all`` or ``shortest`` set without listing them.

    Returns
    -------
    Number of paths, their total length, and whether both are complete: counting stops after ``most`` steps. A pair that
    occurs several times counts once.
    """
    from opticoll.formulations.flows.path_kernels import simple_paths

    paths = total = steps = 0
    none = np.empty(0, dtype=np.int64)
    for source, allowed, end, longest in _searches(topology, rule, rank_pairs(topology) if pairs is None else pairs):
        asked = (allowed, end, source, longest, most - steps)
        count, length, walked = simple_paths(*_arcs(topology), *asked, none, none, none)
        paths, total, steps = paths + count, total + length, steps + walked
        if steps > most:
            return paths, total, False
    return paths, total, True


def _arcs(topology: Topology) -> tuple[I64, I64]:
    """First arc out of every vertex, ``(n + 1,)``, and the heads (arcs are sorted by tail)."""
    return np.searchsorted(topology.tail, np.arange(topology.n + 1)), topology.head


def _searches(topology: Topology, rule: PathRule, pairs: Pairs) -> Iterator[tuple[int, Mask, Mask, int]]:
    """Yield by source the arcs that its paths may use, the vertices where they may end, and their maximum length."""
    longest = min(rule.lmax or topology.n, topology.n)
    every = np.ones(topology.arcs, dtype=bool)
    sources, targets = pairs
    order = np.argsort(sources, kind="stable")
    starts, first = np.unique(sources[order], return_index=True)
    for source, ends in zip(starts.tolist(), np.split(targets[order], first[1:]), strict=True):
        end = np.zeros(topology.n, dtype=bool)
        end[ends] = True
        depth = topology.hops[np.searchsorted(topology.terminals, source)]
        allowed = every if rule.kind == "all" else depth[topology.head] == depth[topology.tail] + 1
        yield source, allowed, end, longest


def _list_all(topology: Topology, rule: PathRule, where: str, pairs: Pairs) -> PathSet:
    from opticoll.formulations.flows.path_kernels import simple_paths

    paths, total, complete = count_all(topology, rule, pairs=pairs)
    if not complete or paths > MOST_PATHS:
        many = f"{paths:,}" if complete else f"more than {paths - 1:,}"
        msg = (
            f"{where}: {topology.spec} has {many} paths ({rule}), but at most {MOST_PATHS:,} are listed; give another "
            "set (paths=disjoint, k or shortest) or a smaller lmax"
        )
        raise NotApplicable(msg)
    arcs = np.empty(total, dtype=np.int64)
    length, target, origin = (np.empty(paths, dtype=np.int64) for _ in range(3))
    at = path = 0
    for source, allowed, end, longest in _searches(topology, rule, pairs):
        searched = (*_arcs(topology), allowed, end, source, longest, MOST_COUNTED)
        count, size, _ = simple_paths(*searched, arcs[at:], length[path:], target[path:])
        origin[path : path + count] = source
        at, path = at + size, path + count
    key, wanted = origin * topology.n + target, pairs[0] * topology.n + pairs[1]
    ends, number = np.unique(wanted, return_inverse=True)
    listed = assemble(topology, arcs, length, np.searchsorted(ends, key), np.divmod(ends, topology.n))
    count = int(np.diff(listed.first)[number].sum())  # pairs may repeat
    if count > MOST_PATHS:
        refuse(where, f"{count:,} paths exceed the limit of {MOST_PATHS:,}; use another set", NotApplicable)
    pair, order = positions(listed.first, number)
    return replace(reordered(listed, order), sources=pairs[0], targets=pairs[1], pair=pair)


def assemble(topology: Topology, arcs: I64, length: I64, pair: I64, pairs: Pairs | None = None) -> PathSet:
    """Sort paths by commodity, then length; paths of one commodity and length keep their order."""
    sources, targets = rank_pairs(topology) if pairs is None else pairs
    start = offsets(length)
    return reordered(PathSet(topology, sources, targets, arcs, start, pair), np.lexsort((length, pair)))


def reordered(paths: PathSet, order: I64) -> PathSet:
    """Put the paths in another order."""
    start, arcs = select(paths.start, paths.arcs, order)
    return replace(paths, arcs=arcs, start=start, pair=paths.pair[order])


def path_set_of(
    topology: Topology, paths: Sequence[Sequence[int]], pair: Sequence[int] | I64, pairs: Pairs | None = None
) -> PathSet:
    """Build a set of given paths (arc numbers), each with its commodity (of ``pairs``), in canonical order."""
    sorted_paths = sorted(zip(pair, paths, strict=True), key=lambda one: (int(one[0]), len(one[1]), tuple(one[1])))
    flat = np.array([a for _, path in sorted_paths for a in path], dtype=np.int64)
    length = np.array([len(path) for _, path in sorted_paths], dtype=np.int64)
    return assemble(topology, flat, length, np.array([int(k) for k, _ in sorted_paths], dtype=np.int64), pairs)


def _search(topology: Topology, sources: I64, targets: I64, search: Any, rule: PathRule, where: str) -> PathSet:
    paths: list[list[int]] = []
    pair: list[int] = []
    for k, (s, t) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        match = [path for path in search(topology, s, t, rule.k) if rule.lmax is None or len(path) <= rule.lmax]
        paths += match
        pair += [k] * len(match)
        if len(paths) > MOST_PATHS:
            msg = (
                f"{where}: more than {MOST_PATHS:,} paths ({rule}) on {topology.spec}; "
                "ask for fewer paths per pair, or solve it by column-generation"
            )
            raise NotApplicable(msg)
    return path_set_of(topology, paths, pair, (sources, targets))


def k_shortest_paths(topology: Topology, source: int, target: int, k: int) -> list[list[int]]:
    """Find the k simple paths with the fewest arcs (Yen, with Lawler's branching rule), shortest first."""
    first_out, head = _arcs(topology)
    shortest_path = kernels(KERNELS, 4 * k * topology.arcs).shortest_path
    tail = topology.tail
    barred_arc, barred_vertex = np.zeros(topology.arcs, dtype=bool), np.zeros(topology.n, dtype=bool)
    spur = np.empty(topology.n, dtype=np.int64)
    count = shortest_path(first_out, head, tail, barred_arc, barred_vertex, source, target, spur)
    if count < 0:
        return []
    chosen: list[list[int]] = []
    waiting: list[tuple[int, list[int], int]] = [(count, spur[:count].tolist(), 0)]
    known = {tuple(waiting[0][1])}
    while waiting and len(chosen) < k:
        _, path, branch = heapq.heappop(waiting)
        chosen.append(path)
        for i in range(branch, len(path)):
            root = path[:i]
            barred_arc[:] = False
            barred_vertex[:] = False
            barred_vertex[tail[root]] = True
            barred_arc[[other[i] for other in chosen if other[:i] == root and len(other) > i]] = True
            u = int(tail[path[i]])
            count = shortest_path(first_out, head, tail, barred_arc, barred_vertex, u, target, spur)
            whole = root + spur[: max(count, 0)].tolist()
            if count > 0 and tuple(whole) not in known:
                known.add(tuple(whole))
                heapq.heappush(waiting, (len(whole), whole, i))
    return chosen


def arc_disjoint_paths(topology: Topology, source: int, target: int, _k: int = 0) -> list[list[int]]:
    """Find a largest set of arc-disjoint paths, of minimum total length among such sets."""
    tail, head = topology.tail.tolist(), topology.head.tolist()
    paths_most = min(tail.count(source), head.count(target))
    # In lists, some four rounds of all arcs for every path take as long as so many steps of the other kernels.
    search = kernels(KERNELS, topology.arcs * (paths_most + 1) // 8)
    ends = (tail, head) if search is interpreted(KERNELS) else (topology.tail, topology.head)
    count, used = search.disjoint_flow(topology.n, *ends, source, target)
    leaving: dict[int, list[int]] = {}
    for arc in np.flatnonzero(used)[::-1].tolist():
        leaving.setdefault(tail[arc], []).append(arc)
    paths = []
    for _ in range(count):
        path: list[int] = []
        u = source
        while u != target:
            path.append(leaving[u].pop())
            u = head[path[-1]]
        paths.append(path)
    return paths


def _translated_disjoint_paths(topology: Topology) -> Callable[[Topology, int, int, int], list[list[int]]]:
    """Search arc-disjoint paths from one rank and translate them, where translations take it to all others."""
    images = translations(topology)
    if len(images) < topology.terminals.size:
        return arc_disjoint_paths
    back = np.argsort(images, axis=1)
    by, found = back.argmin(axis=0), lru_cache(maxsize=None)(partial(arc_disjoint_paths, topology))
    moved = lru_cache(maxsize=1)(lambda image: moved_arcs(topology, images[image, None])[0])

    def search(_topology: Topology, source: int, target: int, _k: int) -> list[list[int]]:
        image = int(by[source])
        paths = found(int(back[image, source]), int(back[image, target]))
        return [moved(image)[path].tolist() for path in paths]

    return search


def path_violations(paths: PathSet, rule: PathRule) -> float:
    """Return 0 if every path is a simple chain from source to target within the length limit of the rule, else inf.

    Computed with numpy alone, for sets from external sources. Membership in a set of kind k, shortest or disjoint is
    not checked.
    """
    topology, length = paths.topology, paths.length
    outside = paths.arcs.size and (paths.arcs.min() < 0 or paths.arcs.max() >= topology.arcs)
    if outside or (length < 1).any() or (rule.lmax is not None and (length > rule.lmax).any()):
        return np.inf
    if paths.pair.size and (paths.pair.min() < 0 or paths.pair.max() >= paths.pairs):
        return np.inf
    owner = np.repeat(np.arange(paths.paths), length)
    tails, heads = topology.tail[paths.arcs], topology.head[paths.arcs]
    inside = owner[1:] == owner[:-1]
    chain = (heads[:-1][inside] == tails[1:][inside]).all()
    ends = (tails[paths.start[:-1]] == paths.sources[paths.pair]).all()
    ends &= (heads[paths.start[1:] - 1] == paths.targets[paths.pair]).all()
    visits = np.concatenate(
        [owner * topology.n + heads, np.arange(paths.paths) * topology.n + paths.sources[paths.pair]]
    )
    simple = np.unique(visits).size == visits.size
    return 0.0 if chain and ends and simple else np.inf


def to_arrays(paths: PathSet) -> dict[str, F64]:
    """Convert the set to arrays stored with the values.

    ``path_arcs`` ``(|P|, longest)`` holds 1 + arc number, and 0 after the end; ``path_pair`` ``(|P|,)`` holds
    commodities.
    """
    longest = int(paths.length.max(initial=0))
    table = np.zeros((paths.paths, longest))
    owner = np.repeat(np.arange(paths.paths), paths.length)
    table[owner, np.arange(paths.arcs.size) - paths.start[owner]] = paths.arcs + 1.0
    return {"path_arcs": table, "path_pair": paths.pair.astype(float)}


def from_arrays(topology: Topology, arrays: Mapping[str, F64], pairs: Pairs | None = None) -> PathSet | None:
    """Read the set from the arrays of :func:`to_arrays`; None unless pairs ascend and rows have no holes."""
    table, pair = (np.asarray(arrays[name]).astype(np.int64) for name in ("path_arcs", "path_pair"))
    used = table > 0
    length = used.sum(axis=1)
    if (used != (np.arange(table.shape[1]) < length[:, None])).any() or (np.diff(pair) < 0).any():
        return None
    sources, targets = rank_pairs(topology) if pairs is None else pairs
    return PathSet(topology, sources, targets, table[used] - 1, offsets(length), pair)


def subset(paths: PathSet, keep: Mask) -> PathSet:
    """Select the paths of the mask ``keep`` ``(|P|,)``."""
    stay, start = np.repeat(keep, paths.length), offsets(paths.length[keep])
    return replace(paths, arcs=paths.arcs[stay], start=start, pair=paths.pair[keep])
