"""Simulated iteration times on the networks that TopoOpt compares."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from opticoll.analysis.papers.topoopt.iteration_loads import iteration_time
from opticoll.analysis.training.cluster import FAT_TREE
from opticoll.instances import parse
from opticoll.instances.training.task_graph import training_iteration
from opticoll.instances.training.training_jobs import MEASURED_SERVERS, training_job
from opticoll.shared_files import rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.analysis.training.network_iteration import Flows
    from opticoll.instances.training.task_graph import TaskGraph


GIGABIT = 1e9 / 8
#: Networks of n servers of degree d as specs; the expander is a random regular graph.
NETWORKS = {
    "TopoOpt": "circuits:n={n},degree={d}",
    "Ideal Switch": "ideal-switch:n={n},capacity={d}",
    "Fat-tree": "fat-tree:k=8,capacity={d}",
    "Oversub. Fat-tree": "fat-tree:k=8,oversubscription=2,capacity={d}",
    "Expander": "random-regular:n={n},d={d},seed=1",
    "OCS-reconfig": "circuits:n={n},degree={d},rule=ocs-reconfig",
    "SiP-ML": "circuits:n={n},degree={d},rule=sip-ring",
}
FIELDS = ("figure", "model", "batch", "network", "degree", "link_gbps", "pause_us", "interval_ms", "seconds")
MODELS = ("candle", "vgg", "bert", "dlrm", "ncf", "resnet50")
LINKS = (10, 25, 40, 100, 200)
BATCHES = (64, 128, 256, 512, 1024, 2048)
PAUSES = (1, 10, 100, 1000, 10_000)
TABLE = Path(__file__).parent / "iteration_times.csv"
_LATENCY = 1e-6


# simulation -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def graph_of(model: str, section: str, batch: int, overlap: str) -> TaskGraph:
    """The task graph of a model on 128 servers, or 16 for section 5.6."""
    servers = MEASURED_SERVERS[section]
    return training_iteration(model, servers, section=section, batch=batch, overlap=overlap)


@lru_cache(maxsize=2)
def _flows(graph: TaskGraph, spec: str, factor: float | None) -> Flows:
    """The flows over a network whose circuits do not change, for links of 1 byte/s."""
    from opticoll.analysis.training.flow_simulator import designed_network
    from opticoll.analysis.training.network_iteration import ServerNetwork, flows_of
    from opticoll.instances.topology import Topology

    place = parse(spec)
    if isinstance(place, Topology):
        network = ServerNetwork(place, 1.0, _LATENCY, "even" if place.num_ranks < place.n else "single")
    else:
        network = designed_network(graph, place, 1.0, latency=_LATENCY, ring_factor=factor)
    return flows_of(graph, network, ring_factor=factor)


@cache
def simulated(
    model: str,
    network: str,
    degree: int,
    link: float,
    *,
    section: str = "5.3",
    batch: int = 0,
    fat_tree: float = FAT_TREE,
    overlap: str = "backward",
    factor: float | None = None,
    precision: float = 2e-3,
) -> float:
    """Simulated time of an iteration [s].

    Parameters
    ----------
    model, section, batch, overlap
        As for :func:`opticoll.instances.training.task_graph.training_iteration`.
    network, degree
        Key of :data:`NETWORKS`, or another spec with {n} and {d}.
    link
        Rate of an interface [Gb/s]; that of the fat-tree is smaller by ``fat_tree``.
    factor
        Bytes over a hop of a ring per byte of its buffer; 2 (k-1)/k for k servers if None.
    precision
        Ends of flows are merged within this part of the time of Eq. (1), or of the time since the start.
    """
    from opticoll.analysis.training.flow_simulator import simulate_circuits, simulate_flows
    from opticoll.instances.families.machines import CircuitNetwork

    graph = graph_of(model, section, batch, overlap)
    rate = link * GIGABIT / (fat_tree if network == "Fat-tree" else 1.0)
    sent = 2.0 * graph.servers * sum(graph.reduced.values())
    quick = iteration_time(sent, float(graph.transferred.sum()), 1.0, graph.servers, degree * rate)
    resolution = precision * (quick + float(graph.computing.max()))
    spec = NETWORKS.get(network, network).format(n=graph.servers, d=degree)
    place = parse(spec) if spec.startswith("circuits") else None
    if isinstance(place, CircuitNetwork) and place.periodic:
        schedule, _ = simulate_circuits(
            graph, place, rate, latency=_LATENCY, ring_factor=factor, resolution=resolution, precision=precision
        )
        return schedule.length
    flows = _flows(graph, spec, factor)
    scaled = replace(flows, capacity=flows.capacity * rate)
    return simulate_flows(graph, scaled, _LATENCY, resolution=resolution, precision=precision).length


# the table ------------------------------------------------------------------------------------------------------


class SimulatedCell(TypedDict):
    """A cell: its figure, the arguments of :func:`simulated`, and pause [us] and interval [ms] of switched circuits."""

    figure: int
    model: str
    network: str
    degree: int
    link: float
    section: NotRequired[str]
    batch: NotRequired[int]
    pause: NotRequired[float]
    interval: NotRequired[float]


def cells() -> Iterator[SimulatedCell]:
    """All cells of the table."""
    for figure, degree in ((11, 4), (27, 8)):
        for model, network, link in product(MODELS, NETWORKS, LINKS):
            yield {"figure": figure, "model": model, "network": network, "degree": degree, "link": link}
    for degree, batch, network in product((4, 8), BATCHES, ("TopoOpt", "Ideal Switch", "Fat-tree")):
        yield {
            "figure": 12,
            "model": "dlrm",
            "network": network,
            "degree": degree,
            "link": 100,
            "section": "5.4",
            "batch": batch,
        }
    for model, network, degree in product(("bert", "candle", "dlrm", "vgg"), ("TopoOpt", "Ideal Switch"), (4, 8)):
        yield {"figure": 16, "model": model, "network": network, "degree": degree, "link": 100, "section": "5.6"}
    for model, network in product(("dlrm", "bert"), ("OCS-reconfig-FW", "OCS-reconfig-noFW")):
        for pause in PAUSES:
            for interval in sorted({50.0, max(5.0, 5 * pause / 1000), max(0.5, 5 * pause / 1000)}):
                yield {
                    "figure": 17,
                    "model": model,
                    "network": network,
                    "degree": 8,
                    "link": 100,
                    "pause": pause,
                    "interval": interval,
                }
    for model, degree, link in product(("dlrm", "candle", "bert"), (4, 6, 8, 10), (40, 100)):
        yield {"figure": 28, "model": model, "network": "TopoOpt", "degree": degree, "link": link}


def _row(cell: SimulatedCell) -> dict[str, str]:
    """The row of a cell, without its time."""
    return {
        "figure": str(cell["figure"]),
        "model": cell["model"],
        "batch": str(cell.get("batch") or training_job(cell["model"], cell.get("section", "5.3")).batch),
        "network": cell["network"],
        "degree": str(cell["degree"]),
        "link_gbps": str(cell["link"]),
        "pause_us": str(cell.get("pause", "")),
        "interval_ms": str(cell.get("interval", "")),
    }


def record(cell: SimulatedCell) -> dict[str, str]:
    """The row of a cell, simulated."""
    given: dict[str, Any] = {
        key: value for key, value in cell.items() if key not in ("figure", "pause", "interval", "network")
    }
    network = cell["network"]
    if "pause" in cell:
        forwards = str(network.endswith("-FW")).lower()
        network = (
            f"circuits:n={{n}},degree={{d}},rule=ocs-reconfig,interval_ms={cell['interval']},"
            f"pause_us={cell['pause']},forwarding={forwards}"
        )
    return {**_row(cell), "seconds": f"{simulated(network=network, **given):.6g}"}


def _records(group: list[SimulatedCell]) -> list[dict[str, str]]:
    """The rows of cells that share a task graph and a network."""
    return [record(cell) for cell in group]


def write_table(path: Path = TABLE, *, jobs: int | None = None) -> None:
    """Simulate all cells, ``jobs`` at a time, and write their rows in the order of the cells.

    Raises
    ------
    OpticollError
        If a cell cannot be simulated.
    """
    from opticoll.solvers.process.executor import make_executor

    groups: dict[tuple[Any, ...], list[SimulatedCell]] = {}
    for cell in cells():
        changing = cell["link"] if cell["network"].startswith(("OCS", "SiP")) else None  # these share no routes
        key = cell["model"], cell["network"], cell["degree"], cell.get("batch"), cell.get("section"), changing
        groups.setdefault(key, []).append(cell)
    seconds: dict[tuple[str, ...], str] = {}
    with make_executor(jobs) as executor:
        for _, result in executor.map_unordered(_records, list(groups.values())):
            if isinstance(result, Exception):
                raise result
            seconds.update({tuple(row.values())[:-1]: row["seconds"] for row in result})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    keys = [tuple(_row(cell).values()) for cell in cells()]
    writer.writerows([*key, seconds[key]] for key in keys)
    rewrite(path, text.getvalue())


@cache
def table() -> tuple[dict[str, str], ...]:
    """The rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def tabulated(figure: int, model: str, network: str, **given: object) -> float:
    """A time of the table [s]; ``given`` are further columns of its row."""
    wanted = {"figure": figure, "model": model, "network": network, **given}
    return next(float(r["seconds"]) for r in table() if all(r[name] == str(v) for name, v in wanted.items()))
