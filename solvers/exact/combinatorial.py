"""Combinatorial certificates: a solution, and an argument that no better one exists, which a short program checks.

They are for problems with a short argument but no short linear derivation: rounds of circuits, wavelengths, layers
without cycles, placements, and routings of any size. The claim is the interval between the bound that the argument
proves and the value of the solution. The stand-alone checker :mod:`~opticoll.solvers.exact.combinatorial_check`
documents the format.

    alltoall.min-congestion, lumorph.min-overlap, optree.one-stage    routes: arc prices
    sipml.ring-wavelengths, sipml.ocs-circuits                        circuits: arc prices and integer circuits
    lumorph.rounds                                                    rounds: what a vertex or a set must receive
    lumorph.sum-rounds                                                sums: that, and the transfers of a sum
    alltoall.virtual-channels                                         layers: a cycle of dependencies
    sipml.placement                                                   placement: work between two chains
    topology.design                                                   design: distances in any topology of the degree
    alltoall.sccl                                                     steps: arc prices and whole rounds
    topoopt.topology                                                  wiring: enumeration, by byte-hops and lengths

The problem in a file allows all routes. If a formulation allows fewer, the lower end of the claim still holds, and the
paths of the solution must be allowed.
"""

from __future__ import annotations

import gzip
import json
from fractions import Fraction
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, TypedDict

import numpy as np

from opticoll.errors import BadFile, BadInput
from opticoll.formulations.rounding import decimal
from opticoll.solvers.exact import combinatorial_check
from opticoll.solvers.exact.combinatorial_check import Refused
from opticoll.solvers.exact.combinatorial_networks import (
    circuits_problem,
    design_problem,
    designing,
    lighting,
    numbers,
    pairs_of,
    stepping,
    steps_problem,
    wiring,
    wiring_problem,
    word,
)
from opticoll.solvers.exact.wiring_check import SERVERS
from opticoll.solvers.stated_problem import refuse_other_header
from opticoll.solvers.task import check_record, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from opticoll.formulations import Formulation
    from opticoll.formulations.model import Bound
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances import Instance, Topology
    from opticoll.instances.types import Json, Settings
    from opticoll.solvers.task import CheckRecord, Run

    Parts = tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]

#: File name suffixes of combinatorial certificates.
SUFFIXES = (".proof.json", ".proof.json.gz")
#: The kind of every formulation that has combinatorial certificates.
FORMULATIONS = {
    "alltoall.min-congestion": "routes",
    "lumorph.min-overlap": "routes",
    "optree.one-stage": "routes",
    "lumorph.rounds": "rounds",
    "alltoall.virtual-channels": "layers",
    "sipml.placement": "placement",
    "sipml.ring-wavelengths": "circuits",
    "sipml.ocs-circuits": "circuits",
    "lumorph.sum-rounds": "sums",
    "topology.design": "design",
    "alltoall.sccl": "steps",
    "topoopt.topology": "wiring",
}
#: Largest denominator of arc prices rounded from duals.
MOST_PARTS = 5040


def is_combinatorial(path: Path) -> bool:
    """Whether a file name has the suffix of a combinatorial certificate."""
    return path.name.lower().endswith(SUFFIXES)


class CertificateFacts(TypedDict):
    """The claim of a certificate as a string, its kind, and the size of its file [bytes]."""

    claim: str
    kind: str
    bytes: int


class Certificate(TypedDict):
    """A combinatorial certificate as in its file; ``kind`` determines the form of problem, solution and argument."""

    certificate: int
    formulation: str
    instance: str | None
    instance_hash: str | None
    settings: dict[str, str]
    kind: str
    problem: Mapping[str, Json]
    solution: Mapping[str, Json]
    argument: Mapping[str, Json] | None
    claim: tuple[str | int | None, str | int | None]


def certificate(run: Run) -> Certificate:
    """The certificate of a verified run, with the best argument found.

    Raises
    ------
    BadInput
        If there is no solution, or the formulation has no combinatorial certificate with these parameters.
    """
    plan, record = run.plan, run.record
    if plan is None or run.values is None or not record.verified:
        msg = "certificate: there is no solution to certify; solve with a larger --time-limit"
        raise BadInput(msg)
    name, data = plan.formulation.name, plan.data
    kind = kind_of(type(plan.formulation), data)
    problem, solution, arguments = _PARTS[name](data, run.values, run.duals or {})
    proven: list[tuple[Fraction, int]] = []
    check = combinatorial_check.KINDS[kind]
    for k, argument in enumerate(arguments):
        try:
            low, _ = check(problem, None, argument)
        except Refused:  # such as prices that are 0 on all paths
            continue
        assert low is not None
        proven.append((low, -k))
    low, place = max(proven, default=(None, 0))
    _, high = check(problem, solution, None)
    return {
        "certificate": 1,
        "formulation": name,
        "instance": record.instance,
        "instance_hash": record.instance_hash,
        "settings": texts(plan.parameters),
        "kind": kind,
        "problem": problem,
        "solution": solution,
        "argument": arguments[-place] if proven else None,
        "claim": (word(low), word(high)),
    }


def write(path: Path, run: Run) -> CertificateFacts:
    """Write the certificate of a run, compressed if the name ends in ``.gz``, and return its facts.

    Raises
    ------
    BadInput
        As :func:`certificate`, or if the file cannot be written.
    """
    from opticoll.solvers import shared_files

    document = certificate(run)
    text = json.dumps(document, separators=(",", ":")).encode() + b"\n"

    def fill(file: IO[bytes]) -> None:
        if path.name.lower().endswith(".gz"):
            with gzip.GzipFile("", "wb", 6, file, 0) as stream:
                stream.write(text)
        else:
            file.write(text)

    try:
        shared_files.rewrite(path, fill)
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}"
        raise BadInput(msg) from error
    low, high = document["claim"]
    ends = ["-inf" if low is None else str(low), str(high)]
    return {"claim": " to ".join(dict.fromkeys(ends)), "kind": document["kind"], "bytes": path.stat().st_size}


def check(model: type[Formulation], instance: Instance, path: Path, parameters: Settings) -> CheckRecord:
    """Verify a combinatorial certificate: its problem is the formulation's on the instance, and its proof holds.

    The formulation, instance and settings that the file states, if any, must be these too.

    The routes of ``alltoall.virtual-channels`` are the file's own; they must be one path for every pair of ranks.

    Returns
    -------
    A record as returned by :func:`opticoll.solvers.solution.check`, with ``objective_exact`` and ``certificate``, see
    :func:`opticoll.solvers.exact.vipr_verify.check_certificate`.

    Raises
    ------
    BadFile
        If the file is not a certificate.
    """
    from opticoll.solvers.methods import prepared

    try:
        document = combinatorial_check.read(str(path))
    except (Refused, OSError) as error:
        msg = f"certificate {path} cannot be read ({error}); name a file that --certificate FILE.proof.json wrote"
        raise BadFile(msg) from None
    reason, low, high = "", None, None
    data = prepared(model, instance, parameters, None)
    try:
        low, high = combinatorial_check.verify(document)
        if document["kind"] != kind_of(model, data):
            reason = f"the file proves {document['kind']}, not {kind_of(model, data)}"
        else:
            reason = _difference(model, data, document)
    except Refused as error:
        reason = str(error)
    if not reason:
        try:
            refuse_other_header(model, instance, parameters, document, path)
        except BadInput as error:
            reason = str(error)
    record = check_record(model, instance, parameters, reason)
    record |= {"objective_exact": None, "certificate": None}
    if reason:
        return record
    value, bound = stated_ends(model, low, high)
    least, most = (value, bound) if model.sense == "max" else (bound, value)
    record["objective"], record["bound"] = (None if end is None else float(end) for end in (value, bound))
    record["bound_source"] = None if bound is None else "certificate"
    if least is not None and least == most:
        record["objective_exact"] = str(least)
        record["notes"].append(f"the certificate proves that the optimal value is {least}")
    else:
        ends = ["0" if least is None else str(least), "infinity" if most is None else str(most)]
        record["notes"].append(f"the certificate proves that the optimal value is between {' and '.join(ends)}")
    record["certificate"] = {"kind": document["kind"], "low": _text(least), "high": _text(most)}
    return record


def stated_ends(
    model: type[Formulation], low: Fraction | None, high: Fraction | None
) -> tuple[Fraction | None, Fraction | None]:
    """Solution value and bound of a claim in terms of the formulation: one that maximizes F has a claim on T = 1/F."""
    if model.sense == "max":
        low, high = (None if not end else 1 / end for end in (low, high))
    return high, low


def kind_of(model: type[Formulation], data: Any) -> str:
    """The kind of a formulation's combinatorial certificates.

    Raises
    ------
    BadInput
        If it has none with these parameters.
    """
    name = model.name
    if name not in FORMULATIONS:
        msg = f"certificate: {name} has no combinatorial certificate; write its proof in VIPR format, FILE.vipr"
        raise BadInput(msg)
    refused = {
        "topology.design": lambda: bool(data.rack),
        "lumorph.rounds": lambda: data.version != "corrected" or data.collective.summing or data.fixed,
        "sipml.placement": lambda: bool(data.memory),
        "topoopt.topology": lambda: bool(
            data.goal != "max-load"
            or data.parallel < data.degree
            or data.pool.groups
            or data.n > SERVERS
            or not data.fixed.any()
        ),
    }.get(name)
    if refused is not None and refused():
        msg = f"certificate: {name} has no combinatorial certificate with these parameters; write FILE.vipr"
        raise BadInput(msg)
    return FORMULATIONS[name]


def _difference(model: type[Formulation], data: Any, document: Mapping[str, Any]) -> str:
    """Describe how a file's problem or its paths disagree with the formulation; empty if they agree."""
    stated = document["problem"]
    if model.name != "alltoall.virtual-channels":
        wanted = _PROBLEMS[model.name](data)
        names = [key for key in {**wanted, **stated} if wanted.get(key) != stated.get(key)]
        if names:
            return f"the file states another problem: {', '.join(names)} differ"
        if document["kind"] == "routes" and hasattr(data, "rule") and not data.rule.unrestricted:
            offered = {tuple(data.paths.path(p)) for p in range(data.paths.paths)}
            taken = [] if document["solution"] is None else document["solution"]["paths"]
            if not offered.issuperset(map(tuple, taken)):
                return f"a path is not allowed by {data.rule}"
        return ""
    from opticoll.formulations.flows.concurrent_flow import commodities

    sources, targets = commodities(data.topology)
    ends = list(zip(data.topology.tail.tolist(), data.topology.head.tolist(), strict=True))
    if len(stated["routes"]) != sources.size:
        return "the file states another problem: the number of routes differs"
    for route, s, t in zip(stated["routes"], sources.tolist(), targets.tolist(), strict=True):
        try:
            combinatorial_check.walk(route, ends, s, t)
        except Refused as error:
            return f"the file states another problem: {error}"
    return ""


# Kinds --------------------------------------------------------------------------------------------------------------


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def _routes_problem(data: Any) -> dict[str, Any]:
    """Certificates of min-congestion, min-overlap and the one-stage assignment."""
    topology: Topology = data.fibres if hasattr(data, "fibres") else data.topology
    if hasattr(data, "fibres"):
        sources, targets = (ends[:: 2 if data.fibres.circular else 1] for ends in data.ends[:2])
        capacity, amount = np.ones(topology.arcs), np.ones(sources.size)
    else:
        (sources, targets), capacity = data.commodities, topology.capacity
        amount = data.amount if hasattr(data, "amount") and not hasattr(data, "circuits") else np.ones(sources.size)
    stated = {
        "arcs": pairs_of(topology.tail, topology.head.tolist(), numbers(capacity)),
        "pairs": pairs_of(sources, targets.tolist(), numbers(amount)),
        "colours": hasattr(data, "fibres"),
    }
    return stated if getattr(data, "kappa", 1) == 1 else {**stated, "split": data.kappa}


def _prices(data: Any, duals: Mapping[str, NDArray[np.float64]]) -> list[dict[str, Any]]:
    """Arc prices to try: rounded duals, 1 everywhere, the best line across a grid, and the middle of a line."""
    topology: Topology = data.fibres if hasattr(data, "fibres") else data.topology
    tried: list[NDArray[np.float64]] = [np.ones(topology.arcs)]
    for name in ("congestion", "capacity"):
        if name in duals and np.size(duals[name]) == topology.arcs and np.abs(duals[name]).max() > 0:
            price = np.abs(np.asarray(duals[name], dtype=np.float64)).ravel()
            tried.insert(0, price / price.max())
    if hasattr(data, "fibres") and not data.fibres.circular:
        onward, backward = data.fibres.arcs_onward()
        numbers = np.arange(topology.arcs)
        tried += [(numbers == arcs[(data.n - 1) // 2]).astype(np.float64) for arcs in (onward, backward)]
    if hasattr(data, "circuits"):
        tried += _line(topology, data.commodities)
    return [
        {
            "prices": [
                [a, word(part)]
                for a, value in enumerate(price.tolist())
                if (part := Fraction(value).limit_denominator(MOST_PARTS)) > 0
            ]
        }
        for price in tried
    ]


def _line(topology: Topology, pairs: tuple[NDArray[np.int64], NDArray[np.int64]]) -> list[NDArray[np.float64]]:
    """A price of 1 on the arcs across the grid line that most pairs per arc cross; empty if it is not a grid."""
    from opticoll.formulations.lumorph.mesh_cuts import grid_shape

    shape = grid_shape(topology)
    if shape is None:
        return []
    best = 0.0
    results: list[NDArray[np.float64]] = []
    for axis, size in enumerate(shape):
        s, t, u, v = (np.divmod(ends, shape[1])[axis] for ends in (*pairs, topology.tail, topology.head))
        for at in range(size - 1):
            for one, other, tail, head in ((s, t, u, v), (t, s, v, u)):
                arcs = (tail <= at) & (head > at)
                ratio = float(((one <= at) & (other > at)).sum()) / max(int(arcs.sum()), 1)
                if ratio > best and arcs.any():
                    best, results = ratio, [arcs.astype(np.float64)]
    return results


def _routing(data: Any, values: Mapping[str, NDArray[np.float64]], duals: Mapping[str, NDArray[np.float64]]) -> Parts:
    if hasattr(data, "circuits"):
        from opticoll.formulations.lumorph.min_overlap import routes

        paths = routes(data, values)
    else:
        from opticoll.formulations.flows.path_flow import chosen_paths

        paths = chosen_paths(data, values)
    solution = {"paths": [paths.path(k) for k in range(paths.paths)], "colour": None}
    return _routes_problem(data), solution, _prices(data, duals)


def _colouring(data: Any, values: Mapping[str, NDArray[np.float64]], duals: Mapping[str, NDArray[np.float64]]) -> Parts:

    plan = data.rounds(values)
    order = np.lexsort((plan.circuit_target, plan.circuit_source)).tolist()
    colour = plan.circuit_round * data.fibres.wavelengths + plan.circuit_wavelength
    solution = {"paths": [plan.path(k) for k in order], "colour": colour[order].tolist()}
    return _routes_problem(data), solution, _prices(data, duals)


def _rounds_problem(data: Any) -> dict[str, Any]:
    limits, wanted = data.limits, data.collective
    return {
        "vertices": data.topology.n,
        "arcs": pairs_of(data.topology.tail, data.topology.head.tolist()),
        "wavelengths": limits.wavelengths,
        "waveguides": limits.waveguides,
        "ports": limits.ports,
        "load": limits.load,
        "pre": wanted.pre.tolist(),
        "post": wanted.post.tolist(),
    }


def _scheduling(data: Any, values: Mapping[str, NDArray[np.float64]], _duals: object) -> Parts:
    from opticoll.formulations.lumorph.round_bounds import round_bounds

    plan = data.rounds(values)
    arguments = _ends(round_bounds(data.topology, data.collective, data.limits))
    return _rounds_problem(data), _schedule(plan), arguments


def _ends(bounds: Iterable[Bound]) -> list[dict[str, Any]]:
    """The arguments of those bounds that count what a vertex receives or sends, or what enters a set."""
    names = {
        "receptions": ("receives", "vertex"),
        "sole holder": ("sends", "vertex"),
        "sends": ("sends", "vertex"),
        "cut": ("enters", "vertices"),
    }
    return [
        {names[bound.name][0]: bound.detail[names[bound.name][1]]}
        for bound in bounds
        if bound.name in names and bound.detail
    ]


def _schedule(plan: RoundSchedule) -> dict[str, list[list[Any]]]:
    """Circuits and transfers of a schedule, in the form of a certificate."""
    circuits = pairs_of(
        plan.circuit_round,
        plan.circuit_source.tolist(),
        plan.circuit_target.tolist(),
        plan.circuit_wavelength.tolist(),
        [plan.path(k) for k in range(plan.circuits)],
    )
    transfers = pairs_of(
        plan.transfer_round, plan.transfer_source.tolist(), plan.transfer_target.tolist(), plan.transfer_chunk.tolist()
    )
    return {"circuits": circuits, "transfers": transfers}


def _layering(data: Any, values: Mapping[str, NDArray[np.float64]], _duals: object) -> Parts:
    from opticoll.formulations.alltoall.virtual_channels import layers_of

    routes = [data.known_routes.path(k) for k in range(data.known_routes.paths)]
    assigned = layers_of(data, values)
    assert assigned is not None
    layer = assigned.tolist()
    used = {old: new for new, old in enumerate(sorted(set(layer)))}
    order = []
    for old in used:
        before: dict[int, set[int]] = {}
        for route, where in zip(routes, layer, strict=True):
            for a in route if where == old else ():
                before.setdefault(a, set())
            for a, b in pairwise(route) if where == old else ():
                before[b].add(a)
        order.append(list(TopologicalSorter(before).static_order()))
    cycle = _cycle({pair for route in routes for pair in pairwise(route)})
    arguments = [{"cycle": cycle}] if cycle else []
    return {"routes": routes}, {"layer": [used[old] for old in layer], "order": order}, arguments


def _cycle(pairs: set[tuple[int, int]]) -> list[int]:
    """The vertices of a cycle of a graph, in order; empty if it has none."""
    while pairs:  # until every remaining vertex has a predecessor
        entered = {b for _, b in pairs}
        rest = {(a, b) for a, b in pairs if a in entered}
        if len(rest) == len(pairs):
            break
        pairs = rest
    before = {b: a for a, b in sorted(pairs)}
    path: list[int] = []
    at = min(before, default=None)
    while at is not None and at not in path:
        path.append(at)
        at = before[at]
    return [] if at is None else path[path.index(at) :][::-1]


def _placement_problem(data: Any) -> dict[str, Any]:
    graph = data.graph
    rate = decimal(float(data.bandwidth))
    delays = [word(decimal(float(b)) / rate * 10**6 if rate else Fraction(0)) for b in graph.volume.tolist()]
    return {
        "devices": data.devices,
        "durations": numbers(graph.duration.tolist()),
        "edges": pairs_of(graph.tail, graph.head.tolist(), delays),
        "peers": data.delta,
        "distance": data.rule == "distance",
    }


def _placing(data: Any, values: Mapping[str, NDArray[np.float64]], _duals: object) -> Parts:
    from opticoll.formulations.sipml.placement import placed

    problem = _placement_problem(data)
    result = placed(data, values)
    assert result is not None
    device, begin = result[0].tolist(), result[1]
    lasts = [Fraction(p) for p in problem["durations"]]
    into: dict[int, list[tuple[int, Fraction]]] = {}
    for u, v, delay in problem["edges"]:
        into.setdefault(v, []).append((u, Fraction(delay)))
    free, start = [Fraction(0)] * data.devices, [Fraction(0)] * data.n
    for v in np.lexsort((np.arange(data.n), begin)).tolist():  # the same order in exact arithmetic
        ready = [start[u] + lasts[u] + (wait if device[u] != device[v] else 0) for u, wait in into.get(v, [])]
        start[v] = max([free[device[v]], *ready])
        free[device[v]] = start[v] + lasts[v]
    heads, tails, p = data.heads, data.tails, data.graph.duration
    arguments = [{"operations": [int(np.argmax(heads + p + tails))]}, {"operations": list(range(data.n))}]
    for h in np.unique(heads):
        for r in np.unique(tails[heads >= h]) if data.n <= MOST_OPERATIONS else ():
            arguments.append({"operations": np.flatnonzero((heads >= h) & (tails >= r)).tolist()})
    return problem, {"device": device, "start": [word(s) for s in start]}, arguments


def _summing(data: Any, values: Mapping[str, NDArray[np.float64]], _duals: object) -> Parts:
    from opticoll.formulations.lumorph.round_bounds import sum_bounds

    plan = data.rounds(values)
    result = _schedule(plan)
    for move, adds in zip(result["transfers"], plan.transfer_adds.tolist(), strict=True):
        move.append(adds)
    every: dict[str, Any] = {"transfers": list(range(data.collective.chunks))}
    return _rounds_problem(data), result, [every, *_ends(sum_bounds(data.topology, data.collective, data.limits))]


#: With more operations, only the longest chain and the total work are tried as arguments.
MOST_OPERATIONS = 40
_PARTS = {
    "alltoall.min-congestion": _routing,
    "lumorph.min-overlap": _routing,
    "optree.one-stage": _colouring,
    "lumorph.rounds": _scheduling,
    "alltoall.virtual-channels": _layering,
    "sipml.placement": _placing,
    "sipml.ring-wavelengths": lighting,
    "sipml.ocs-circuits": lighting,
    "lumorph.sum-rounds": _summing,
    "topology.design": designing,
    "alltoall.sccl": stepping,
    "topoopt.topology": wiring,
}
_PROBLEMS = {
    "alltoall.min-congestion": _routes_problem,
    "lumorph.min-overlap": _routes_problem,
    "optree.one-stage": _routes_problem,
    "lumorph.rounds": _rounds_problem,
    "sipml.placement": _placement_problem,
    "sipml.ring-wavelengths": circuits_problem,
    "sipml.ocs-circuits": circuits_problem,
    "lumorph.sum-rounds": _rounds_problem,
    "topology.design": design_problem,
    "alltoall.sccl": steps_problem,
    "topoopt.topology": wiring_problem,
}
