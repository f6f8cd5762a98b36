"""Weighted paths for every commodity from a master solution, and their file format.

The master's flow of each source, made exact and acyclic, splits into at most N + m paths (Ford & Fulkerson, 1962), each
found from a target back to the source along the fullest arcs. At N = 1000, d = 4 these are millions of paths. They are
stored in flat arrays and checked in that form: every path is a chain of arcs from its source to its target, rates add
up to F D_sv for each commodity, and loads are within the capacities. MCF-extP (all-to-all paper, 3.2.1) takes the paths
of a single commodity's flow, widest first.

File (``.npz``, no pickles)
    ``instance_hash``           of the topology, as a string
    ``F``                       served fraction: the rate of commodity (s, v) is F D_sv
    ``demand``                  D as a string, as in ``--set demand=``
    ``sources``, ``targets``    of the commodities with D_sv > 0, ascending by (source, target), ``(K,)``
    ``first_path``              paths of commodity k are ``first_path[k] .. first_path[k+1]``, ``(K+1,)``
    ``first_arc``               arcs of path p are ``first_arc[p] .. first_arc[p+1]`` of ``arcs``, ``(P+1,)``
    ``arcs``, ``rate``          arc numbers in order from the source; flow of each path, ``(P,)``
    ``tail``, ``head``          of the arcs, so that the file can be read on its own, ``(m,)``
"""

from __future__ import annotations

import heapq
import math
import tokenize
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadFile, BadInput
from opticoll.file_contents import check_file
from opticoll.formulations.flows.single_source import WeightedPath
from opticoll.formulations.rounds.segments import offsets, splits
from opticoll.formulations.variables import Array, Axis, SolutionSize, check_arrays, check_shapes, members
from opticoll.instances.demands import UNIFORM

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.instances.topology import F64, I32, I64, Topology


#: Maximum missing share of a commodity that counts as served; the paths then carry it too.
ROUND_OFF = 1e-9
#: Maximum relative violation (:func:`violations`) of paths that are written.
EXACT = 1e-7
#: Size limits of a file [bytes] and of an array in it [entries].
MAX_BYTES, MAX_ENTRIES = 1 << 32, 400_000_000
#: Maximum length of an array header [characters], and of a string in the file [bytes].
MAX_HEADER, MAX_TEXT = 1000, 1 << 16
#: Maximum paths per byte of a file: the ascending numbers of ``first_arc`` take more than a byte each, measured
#: with the best compression.
LEAST_COMPRESSION = 4


@dataclass(frozen=True, eq=False)
class WeightedPaths:
    """The arrays of the file (see the module docstring)."""

    F: float
    sources: I64
    targets: I64
    first_path: I64
    first_arc: I64
    arcs: I32
    rate: F64
    demand: str = UNIFORM

    @property
    def summary(self) -> dict[str, float | int]:
        """Numbers of paths and their lengths."""
        length = np.diff(self.first_arc)
        return {
            "paths": int(self.rate.size),
            "paths_per_commodity": self.rate.size / max(self.sources.size, 1),
            "most_paths_of_a_commodity": int(np.diff(self.first_path).max(initial=0)),
            "longest_path": int(length.max(initial=0)),
        }


def from_flow(data: ConcurrentFlow, flow: F64, demand: str = UNIFORM) -> WeightedPaths:
    """Split all sources' flows.

    Parameters
    ----------
    data
        Data of the master.
    flow
        ``g`` of ``alltoall.master``, ``(m, |S|)``; it need not be exact or acyclic.
    demand
        The demand of ``data`` as a string.

    Raises
    ------
    BadInput
        If some rank is not reached at all.
    """
    from opticoll.formulations.flows.flow_kernels import Adjacency
    from opticoll.formulations.flows.single_source import NOISE

    topology, graph = data.topology, Adjacency.of(data.topology)
    load, parts, room = np.zeros(topology.arcs), [], 8
    for i, source in enumerate(data.sources.tolist()):
        shards = np.ascontiguousarray(data.demand[:, i : i + 1].T, dtype=float)
        unit = np.ascontiguousarray(flow[:, i : i + 1].T, dtype=float)
        if not graph.make_exact(unit, shards, np.array([source]), NOISE):
            msg = f"weighted paths: the flow of {topology.labels[source]} cannot serve every rank"
            raise BadInput(msg)
        load += unit[0]
        targets = np.flatnonzero(shards[0])
        try:
            parts.append(graph.paths_of(unit[0], source, targets, shards[0, targets], ROUND_OFF, room))
            room = max(room, int(parts[-1][1].max()))
        except LookupError as short:
            target = topology.labels[targets[short.args[0]]]
            msg = f"weighted paths: too little of the flow of {topology.labels[source]} reaches {target}"
            raise BadInput(msg) from None
    F = float((topology.capacity[load > 0] / load[load > 0]).min())
    sources, targets, _ = data.demanded()
    counts, lengths, rates, arcs = (np.concatenate(part) for part in zip(*parts, strict=True))
    return WeightedPaths(F, sources, targets, offsets(counts), offsets(lengths), arcs, rates * F, demand)


def violations(data: ConcurrentFlow, paths: WeightedPaths) -> dict[str, float]:
    """Worst violations, from numpy alone; 0 for valid paths, infinite for anything that is not a path.

    ``commodities``: all ordered pairs of ranks with demand, once; ``path``: arcs connect and lead from source to
    target; ``rate``: rates are positive and add up to F D, relative to F D; ``capacity``: relative to the arc's.
    """
    topology = data.topology
    result = dict.fromkeys(("commodities", "path", "rate", "capacity"), np.inf)
    sources, targets, shards = data.demanded()
    first_path, first_arc, arcs, rate = paths.first_path, paths.first_arc, paths.arcs, paths.rate
    if np.array_equal(paths.sources, sources) and np.array_equal(paths.targets, targets):
        result["commodities"] = 0.0
    sound = (
        splits(first_path, sources.size, rate.size)
        and splits(first_arc, rate.size, arcs.size)
        and arcs.size > 0
        and 0 <= arcs.min() <= arcs.max() < topology.arcs
        and np.isfinite(rate).all()
        and 0 < paths.F < np.inf
    )
    if not sound or result["commodities"]:
        return result
    joined = topology.head[arcs[:-1]] == topology.tail[arcs[1:]]
    joined[first_arc[1:-1] - 1] = True  # arcs of different paths need not join
    owner = np.repeat(np.arange(sources.size), np.diff(first_path))
    begins = np.array_equal(topology.tail[arcs[first_arc[:-1]]], sources[owner])
    ends = np.array_equal(topology.head[arcs[first_arc[1:] - 1]], targets[owner])
    result["path"] = 0.0 if joined.all() and begins and ends else np.inf
    served = np.bincount(owner, rate, sources.size)
    least = float((rate / shards[owner]).min())
    result["rate"] = max(float(np.abs(served / shards / paths.F - 1.0).max()), -least / paths.F, 0.0)
    load = np.bincount(arcs, np.repeat(rate, np.diff(first_arc)), topology.arcs)
    result["capacity"] = max(float((load / topology.capacity).max()) - 1.0, 0.0)
    return result


def write(path: Path, topology: Topology, paths: WeightedPaths) -> None:
    """Write the file with fast compression."""
    named = {f.name: np.asarray(getattr(paths, f.name)) for f in fields(paths)}
    named |= {"instance_hash": np.array(topology.hash), "tail": topology.tail, "head": topology.head}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in named.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def declared(data: ConcurrentFlow, most: int) -> dict[str, Array]:
    """Shapes and ranges of the arrays of the file, with at most ``most`` paths."""
    topology = data.topology
    count = data.demanded()[0].size
    pair, vertex, next_path = (
        Axis("pair", count),
        Axis("vertex", topology.n),
        Axis("path", SolutionSize("paths", plus=1)),
    )
    return {
        "F": Array(),
        "sources": members(pair, of=vertex),
        "targets": members(pair, of=vertex),
        "first_path": members(Axis("boundary", count + 1), of=next_path),
        "first_arc": members(next_path, of=Axis("hop", SolutionSize("arcs", plus=1))),
        "arcs": members(Axis("hop", SolutionSize("arcs")), of=Axis("arc", topology.arcs)),
        "rate": Array((Axis("path", SolutionSize("paths", most=most)),)),
    }


def read_demand_of(path: Path) -> str:
    """Read the demand recorded in a file.

    Raises
    ------
    BadFile
        If it is not a file of paths.
    """
    with _opened(path) as archive:
        return _text(archive, "demand", path)


def read(path: Path, data: ConcurrentFlow) -> WeightedPaths:
    """Read a file of paths for the data of the master; :func:`violations` checks them.

    Shapes are compared with those that the data require before anything is allocated, and numbers with their ranges
    before anything uses them.

    Raises
    ------
    BadFile
        If it is not a file of paths, is too large, or is for another topology or number of commodities.
    """
    topology = data.topology
    with _opened(path) as archive:
        stated = _text(archive, "instance_hash", path)
        if stated != topology.hash:
            msg = f"{path}: instance_hash is {stated[:16]!r}, not {topology.spec}'s; name its topology"
            raise BadFile(msg)
        demand = _text(archive, "demand", path)
        wanted = declared(data, LEAST_COMPRESSION * path.stat().st_size)
        shapes = {}
        for name in wanted:
            shape, dtype = _header(archive, name)
            kind = "f" if name in {"F", "rate"} else "i"
            if dtype.kind != kind or math.prod(shape) > MAX_ENTRIES:
                msg = f"{path}: {name} is {dtype} of shape {shape}; save weighted paths as such a file"
                raise BadFile(msg)
            shapes[name] = shape
        sizes = check_shapes(wanted, shapes, str(path))
        if sizes["arcs"] > sizes["paths"] * topology.n:
            msg = f"{path}: {sizes['arcs']} arcs are more than {sizes['paths']} paths without cycles can have"
            raise BadFile(msg)
        result: dict[str, NDArray[Any]] = {}
        for name in wanted:
            with archive.open(f"{name}.npy") as entry:
                result[name] = np.lib.format.read_array(entry, allow_pickle=False, max_header_size=MAX_HEADER)
    check_arrays(wanted, result, str(path))
    F = float(result.pop("F"))
    return WeightedPaths(F, **result, demand=demand)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the archive; errors while reading become one-line messages."""
    check_file(path, MAX_BYTES, "name a file of paths")
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except BadFile:
        raise
    except OSError as reason:
        msg = f"{path}: cannot be read ({reason.strerror}); name a file of paths"
        raise BadFile(msg) from None
    except (
        zipfile.BadZipFile,
        zlib.error,
        tokenize.TokenError,
        KeyError,
        ValueError,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ) as reason:
        why = (str(reason).splitlines() or [type(reason).__name__])[0]
        msg = f"{path}: is not a file of paths ({why[:200]}); save weighted paths as such a file"
        raise BadFile(msg) from None


def _header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an array, without reading it."""
    with archive.open(f"{name}.npy") as entry:
        version = np.lib.format.read_magic(entry)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            msg = f"{name} has version {version}"
            raise ValueError(msg)
        shape, _, dtype = readers[version](entry, max_header_size=MAX_HEADER)
    return shape, dtype


def _text(archive: zipfile.ZipFile, name: str, path: Path) -> str:
    shape, dtype = _header(archive, name)
    if dtype.kind != "U" or shape != () or dtype.itemsize > MAX_TEXT:
        msg = f"{path}: {name} is {dtype} of shape {shape}; save weighted paths as such a file"
        raise BadFile(msg)
    with archive.open(f"{name}.npy") as entry:
        return str(np.lib.format.read_array(entry, allow_pickle=False, max_header_size=MAX_HEADER))


#: Relative amount of a commodity that may remain: round-off of a flow feasible to within 1e-9.
EXTRACTION_ROUND_OFF = 1e-7


def widest_path(
    tails: list[int], heads: list[int], width: list[float], source: int, target: int
) -> tuple[list[int], float]:
    """Find the path whose narrowest arc is widest, and its width; among equals one with fewest arcs.

    Dijkstra with (max-min width, arcs) in place of length. Arcs are given by position; those of width 0 are ignored.

    Returns
    -------
    Positions of its arcs from ``source`` on, and its width; an empty list and 0 if there is no path.
    """
    leaving: dict[int, list[int]] = {}
    for i, tail in enumerate(tails):
        if width[i] > 0:
            leaving.setdefault(tail, []).append(i)
    best: dict[int, tuple[float, int]] = {source: (-np.inf, 0)}
    parent: dict[int, int] = {}
    queue = [(-np.inf, 0, source)]
    while queue:
        label, count, u = heapq.heappop(queue)
        if (label, count) > best[u]:
            continue
        if u == target:
            path: list[int] = []
            while u != source:
                path.append(parent[u])
                u = tails[path[-1]]
            return path[::-1], -label
        for i in leaving.get(u, ()):
            reached = (max(label, -width[i]), count + 1)
            if reached < best.get(heads[i], (0.0, 0)):
                best[heads[i]] = reached
                parent[heads[i]] = i
                heapq.heappush(queue, (*reached, heads[i]))
    return [], 0.0


def extract_paths(topology: Topology, source: int, target: int, flow: F64, amount: float) -> list[WeightedPath]:
    """Split a commodity's flow that delivers ``amount`` to ``target`` into widest paths.

    Every path empties an arc or the rest of the demand, so there are at most ``m`` of them, in order of
    decreasing rate; the rest of the flow consists of circulations.

    Parameters
    ----------
    topology, source, target
        The graph and the commodity.
    flow
        Flow of the commodity, ``(m,)``.
    amount
        Amount that it carries; the amounts of the paths add up to it exactly.

    Raises
    ------
    BadInput
        If the flow does not carry that much (by more than round-off).
    """
    arcs = np.flatnonzero(flow > EXTRACTION_ROUND_OFF * 1e-3 * amount)
    width = flow[arcs].tolist()
    tails, heads, names = topology.tail[arcs].tolist(), topology.head[arcs].tolist(), arcs.tolist()
    left = amount
    paths: list[WeightedPath] = []
    while left > EXTRACTION_ROUND_OFF * amount:
        path, rate = widest_path(tails, heads, width, source, target)
        if not path:
            msg = (
                f"MCF-extP: the flow from {topology.labels[source]} to {topology.labels[target]} carries "
                f"{amount - left:g} of {amount:g}; give a flow that serves every pair"
            )
            raise BadInput(msg)
        rate = min(rate, left)
        for i in path:
            width[i] -= rate
        left -= rate
        paths.append(WeightedPath([names[i] for i in path], rate))
    carried = sum(path.amount for path in paths)
    return [WeightedPath(path.arcs, path.amount * amount / carried) for path in paths]
