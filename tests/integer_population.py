"""Random instances of at most eight vertices for every integer formulation, from a seed.

:data:`CASES` is the population behind the promise that ``auto`` without a limit ends. As a script it solves them and
prints a line for each with its proof and processor time:

    python tests/integer_population.py [--only NAME] [--without-bounds] [--limit S] [--from I] [--to I]
"""

from __future__ import annotations

import argparse
import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations import formulation
from opticoll.formulations.model import Formulation
from opticoll.instances import Instance, Topology, parse
from opticoll.instances.servers import ServerPool
from opticoll.solvers import solve
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Proof, Run, Task

Random = np.random.Generator
Draw = Callable[[Random], tuple[Instance, dict[str, Any]]]
#: Processor time [s] within which every case ends.
MOST_S = 20.0


@dataclass(frozen=True)
class Case:
    """A formulation, an instance and settings."""

    number: int
    formulation: str
    instance: Instance
    settings: Mapping[str, Any]

    def __str__(self) -> str:
        words = " ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{self.number} {self.formulation} {self.instance.spec} {words}"

    def task(self, **other: Any) -> Task:
        """The task of solving it by ``auto``."""
        return Task(self.formulation, self.instance, settings=self.settings, **other)


def digraph(random: Random, least: int = 3, most: int = 8, extra: float = 1.5, spread: bool = True) -> Topology:
    """A random strongly connected digraph: a directed ring, further arcs, and capacities between 0.001 and 10."""
    n = int(random.integers(least, most + 1))
    order = random.permutation(n)
    arcs = {(int(order[i]), int(order[(i + 1) % n])) for i in range(n)}
    for _ in range(int(random.integers(0, round(extra * n) + 1))):
        u, v = (int(w) for w in random.choice(n, 2, replace=False))
        arcs.add((u, v))
    listed = sorted(arcs)
    kind = int(random.integers(4)) if spread else 3
    if kind == 0:
        capacity = 10.0 ** random.uniform(-3, 1, len(listed))
    elif kind == 1:
        capacity = np.round(10.0 ** random.uniform(-3, 1, len(listed)), 3)
    elif kind == 2:
        capacity = random.choice([0.001, 0.01, 0.1, 1.0, 10.0], len(listed))
    else:
        capacity = random.choice([1.0, 2.0, 3.0], len(listed))
    return Topology(n, [u for u, _ in listed], [v for _, v in listed], capacity)


def pool(random: Random, least: int, most: int, degrees: tuple[int, ...], spread: bool = True) -> ServerPool:
    """Servers with random traffic: uniform, the same between all, sparse, or over four orders of magnitude."""
    n, kind = int(random.integers(least, most + 1)), int(random.integers(4 if spread else 3))
    matrix = random.uniform(0.0, 2e6, (n, n))
    if kind == 1:
        matrix = np.full((n, n), 1e6)
    elif kind == 2:
        matrix = np.where(random.random((n, n)) < 0.5, np.round(matrix), 0.0)
        matrix[np.arange(n), (np.arange(n) + 1) % n] = 1e6
    elif kind == 3:
        matrix = 10.0 ** random.uniform(2, 6, (n, n))
    np.fill_diagonal(matrix, 0.0)
    return ServerPool(n, int(random.choice(degrees)), matrix)


def _min_congestion(random: Random) -> tuple[Instance, dict[str, Any]]:
    paths, kappa = str(random.choice(["all", "all", "k", "shortest", "disjoint"])), int(random.integers(1, 4))
    settings: dict[str, Any] = {"paths": paths, "kappa": kappa}
    if paths == "k":
        settings["k"] = int(random.integers(kappa, 6))
    if random.random() < 0.3:
        settings["demand"] = f"random:{int(random.integers(100))}"
    for _ in range(1000):  # few graphs have kappa paths between all pairs
        topology = digraph(random, extra=1.5 * kappa)
        degrees = np.bincount([*topology.tail, *(topology.n + topology.head)], minlength=2 * topology.n)
        if kappa > 1 and degrees.min() < 2:
            continue  # the arc alone is the only path to or from its neighbour
        try:
            make_plan(Task("alltoall.min-congestion", topology, settings=settings))
        except BadInput:
            continue
        return topology, settings
    return _min_congestion(random)


def _sccl(random: Random) -> tuple[Instance, dict[str, Any]]:
    topology = digraph(random, most=6)
    settings = {"chunks": int(random.integers(1, 3)), "model": str(random.choice(["chunks", "sources"]))}
    if random.random() < 0.3:
        settings["steps"] = int(topology.diameter) + 1
    return topology, settings


def _virtual_channels(random: Random) -> tuple[Instance, dict[str, Any]]:
    return digraph(random, most=6), {"layers": int(random.integers(2, 5))}


def _channels(random: Random) -> tuple[Instance, dict[str, Any]]:
    settings: dict[str, Any] = {"layers": int(random.integers(1, 4)), "k": int(random.integers(1, 4))}
    if random.random() < 0.5:
        settings["objective"] = "channels"
    return digraph(random, most=5), settings


def _mesh(random: Random, shapes: tuple[str, ...]) -> Instance:
    shape, lasers, guides = random.choice(shapes), int(random.integers(1, 5)), int(random.integers(1, 4))
    return parse(f"lightpath:{shape},lasers={lasers},waveguides={guides}")


def _min_overlap(random: Random) -> tuple[Instance, dict[str, Any]]:
    settings: dict[str, Any] = {
        "circuits": str(random.choice(["permutation", "all", "recursive-doubling:1", "recursive-doubling:2"])),
        "seed": int(random.integers(100)),
        "model": str(random.choice(["arc", "path"])),
    }
    if settings["model"] == "path":
        settings["paths"] = str(random.choice(["all", "shortest", "k", "disjoint"]))
    if settings["circuits"] != "permutation":
        del settings["seed"]
    return _mesh(random, ("1x4", "2x2", "2x3", "2x4", "1x8")), settings


def _rounds(random: Random) -> tuple[Instance, dict[str, Any]]:
    settings = {
        "collective": str(random.choice(["broadcast", "scatter", "all-gather", "all-to-all", "reduce-scatter"])),
        "bounds": bool(random.integers(2)),
        "wavelengths": str(random.choice(["free", "fixed"])),
    }
    return _mesh(random, ("1x2", "1x3", "1x4", "2x2", "2x3", "2x4")), settings


def _sum_rounds(random: Random) -> tuple[Instance, dict[str, Any]]:
    settings = {
        "collective": str(random.choice(["reduce", "reduce-scatter", "all-reduce"])),
        "bounds": bool(random.integers(2)),
    }
    return _mesh(random, ("1x2", "1x3", "1x4", "2x2")), settings


def _iteration(random: Random) -> tuple[Instance, dict[str, Any]]:
    gpus, calls, seed = int(random.integers(4, 9)), int(random.integers(3, 13)), int(random.integers(1000))
    settings = {
        "algorithm": str(random.choice(["lumorph-4", "lumorph-2", "ring"])),
        "overlap": bool(random.integers(4)),
        "first": str(random.choice(["transfers", "calls"])),
        "boundaries": str(random.choice(["transfers", "stages"])),
    }
    stages = int(random.integers(1, 5))
    return parse(f"training:random,gpus={gpus},calls={calls},seed={seed},stages={stages}"), settings


def _forwarded_rounds(random: Random) -> tuple[Instance, dict[str, Any]]:
    settings = {
        "collective": str(random.choice(["broadcast", "scatter", "gather", "all-gather", "all-to-all"])),
        "bounds": bool(random.integers(2)),
    }
    return _mesh(random, ("1x2", "1x3", "1x4", "2x2", "2x3", "2x4")), settings


def _one_stage(random: Random) -> tuple[Instance, dict[str, Any]]:
    shape = random.choice(["line", "ring"])
    return parse(f"wdm-{shape}:n={int(random.integers(3, 9))},wavelengths={int(random.integers(1, 5))}"), {}


def _tree(random: Random) -> tuple[Instance, dict[str, Any]]:
    return _one_stage(random)[0], {"count": str(random.choice(["lemma", "exact", "printed"]))}


def _ocs_circuits(random: Random) -> tuple[Instance, dict[str, Any]]:
    return pool(random, 3, 8, (4, 6, 8, 12, 16)), {"model": str(random.choice(["counts", "switches"]))}


def _placement(random: Random) -> tuple[Instance, dict[str, Any]]:
    layers, parts, seed = int(random.integers(2, 5)), int(random.integers(1, 4)), int(random.integers(1000))
    settings = {
        "k": int(random.integers(2, 4)),
        "degree": int(random.integers(2, 4)),
        "replicas": int(random.integers(1, 3)),
        "bandwidth": float(random.choice([0.0, 1e9, 1e11])),
        "rule": str(random.choice(["distance", "degree"])),
    }
    return parse(f"op-graph:model=random,layers={layers},parts={parts},training=false,seed={seed}"), settings


def _ring_wavelengths(random: Random) -> tuple[Instance, dict[str, Any]]:
    n, seed = int(random.integers(3, 9)), int(random.integers(1000))
    settings: dict[str, Any] = {"model": str(random.choice(["sets", "arcs"]))}
    if random.random() < 0.5:
        settings |= {"traffic": "random", "seed": seed}
    least = (n * n - 1) // 8 + n
    return parse(f"wdm-ring:n={n},wavelengths={int(random.integers(least, least + 17))}"), settings


def _design(random: Random) -> tuple[Instance, dict[str, Any]]:
    n = int(random.integers(3, 9))
    settings: dict[str, Any] = {"directed": bool(random.integers(2))}
    if n % 2 == 0 and random.random() < 0.3:
        settings |= {"rack": 2, "cables": int(random.integers(1, 3))}
    return parse(f"servers:n={n},degree={int(random.integers(2, 4))},traffic=alltoall"), settings


def _strategy(random: Random) -> tuple[Instance, dict[str, Any]]:
    model, n = random.choice(["dlrm", "candle", "bert", "ncf", "resnet50", "vgg"]), int(random.integers(2, 9))
    settings = {} if random.random() < 0.3 else {"memory": float(random.choice([0.5, 4.0, 16.0, 32.0, 64.0]))}
    return parse(f"servers:n={n},degree={int(random.integers(1, 5))},traffic={model}"), settings


def _topology(random: Random) -> tuple[Instance, dict[str, Any]]:
    settings = {"objective": str(random.choice(["max-load", "bandwidth-tax"]))}
    return pool(random, 3, 8, (1, 2, 3)), settings


def _utility(random: Random) -> tuple[Instance, dict[str, Any]]:
    return pool(random, 3, 8, (1, 2, 3, 8)), {"discount": str(random.choice(["halves", "factorial", "every", "first"]))}


def _co_scheduling(random: Random) -> tuple[Instance, dict[str, Any]]:
    gpus, calls, seed = int(random.integers(4, 9)), int(random.integers(3, 25)), int(random.integers(1000))
    settings = {"algorithm": str(random.choice(["lumorph-4", "lumorph-2", "ring"]))}
    return parse(f"training:random,gpus={gpus},calls={calls},seed={seed}"), settings


def _sequence(random: Random) -> tuple[Instance, dict[str, Any]]:
    n = int(random.integers(3, 5))
    settings: dict[str, Any] = {"configurations": int(random.integers(1, 3)), "directed": bool(random.integers(2))}
    if random.random() < 0.5:
        settings |= {"delay": float(random.choice([0.25, 1.0])), "overlap": bool(random.integers(2))}
    settings["relays"] = str(random.choice(["pass", "step"]))
    return parse(f"servers:n={n},degree={int(random.integers(1, 3))},traffic=alltoall"), settings


def _matchings(random: Random) -> tuple[Instance, dict[str, Any]]:
    n = int(random.integers(3, 6))
    settings: dict[str, Any] = {"delay": float(random.choice([0.5, 1.0, 4.0]))}
    demand = str(random.choice(["uniform", "random", "gravity", "permutation"]))
    settings["demand"] = demand if demand == "uniform" else f"{demand}:{int(random.integers(100))}"
    settings["first"] = bool(random.integers(2))
    return parse(f"servers:n={n},degree={int(random.integers(1, 4))},traffic=alltoall"), settings


def _steps(random: Random) -> tuple[Instance, dict[str, Any]]:
    n = int(random.integers(3, 9))
    settings: dict[str, Any] = {
        "algorithm": str(
            random.choice(["ring", "recursive:2", "recursive:3", "shifts", "bruck:2", "bruck:3", "retri"])
        ),
        "delay": float(random.choice([0.125, 0.5, 2.0])),
        "reuse": bool(random.integers(2)),
        "ports": int(random.integers(3)),
    }
    spec = str(random.choice([f"ring:{n}", f"genkautz:n={n},d=2", f"path:{n}"]))
    return parse(spec), settings


#: Number of cases and the draw of one, by formulation.
DRAWS: Mapping[str, tuple[int, Draw]] = {
    "alltoall.min-congestion": (80, _min_congestion),
    "alltoall.sccl": (16, _sccl),
    "alltoall.virtual-channels": (16, _virtual_channels),
    "lumorph.co-scheduling": (16, _co_scheduling),
    "lumorph.min-overlap": (16, _min_overlap),
    "lumorph.rounds": (16, _rounds),
    "lumorph.sum-rounds": (16, _sum_rounds),
    "optree.one-stage": (12, _one_stage),
    "optree.tree": (12, _tree),
    "sipml.ocs-circuits": (20, _ocs_circuits),
    "sipml.placement": (16, _placement),
    "sipml.ring-wavelengths": (16, _ring_wavelengths),
    "topology.design": (16, _design),
    "topoopt.strategy": (12, _strategy),
    "topoopt.topology": (20, _topology),
    "topology.sequence": (12, _sequence),
    "topology.matchings": (12, _matchings),
    "topology.steps": (12, _steps),
    "topoopt.utility": (12, _utility),
    "alltoall.channels": (12, _channels),
    "lumorph.forwarded-rounds": (12, _forwarded_rounds),
    "lumorph.iteration": (12, _iteration),
}


def population(seed: int = 0, wanted: Collection[int] | None = None) -> Iterator[Case]:
    """The cases, each drawn again until its formulation accepts it.

    With the numbers of the ``wanted`` cases, only these and what is drawn before them for the same formulations.
    """
    first = 0
    for name, (count, draw) in DRAWS.items():
        numbers = range(first, first + count)
        first += count
        last = numbers[-1] if wanted is None else max(set(numbers) & set(wanted), default=-1)
        random = np.random.default_rng([seed, *name.encode()])
        for number in range(numbers[0], last + 1):
            yield _accepted(number, name, draw, random)


def _accepted(number: int, name: str, draw: Draw, random: Random) -> Case:
    for _ in range(200):
        instance, settings = draw(random)
        if formulation(name).needs is not None:
            return Case(number, name, instance, settings)
        with contextlib.suppress(BadInput):
            make_plan(Task(name, instance, settings=settings))
            return Case(number, name, instance, settings)
    msg = f"{name} accepts none of 200 draws"
    raise AssertionError(msg)


def without_bounds(model: type[Formulation]) -> type[Formulation]:
    """The formulation of a user who states the same model and no bounds."""
    removed = {"closed_forms": Formulation.closed_forms, "refute": Formulation.refute, "bounds": lambda _: []}
    return type(model.__name__, (model,), {"name": f"own.{model.name}", **removed})


def solved(task: Task, limit_s: float) -> tuple[Run, float]:
    """The run of a task without a limit of its own, stopped after about ``limit_s`` of processor time, and its time.

    The time is that of this process and of all its descendants while they ran, to about 0.1 s each.
    """
    import psutil

    stop, done = threading.Event(), threading.Event()
    me, before = psutil.Process(), time.process_time()
    known: dict[int, float] = {}

    def measure(into: dict[int, float]) -> None:
        for child in me.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                into[child.pid] = sum(child.cpu_times()[:2])

    measure(known)
    latest = dict(known)

    def used() -> float:
        return time.process_time() - before + sum(time_s - known.get(pid, 0.0) for pid, time_s in latest.items())

    def watch() -> None:
        while not done.wait(0.05):
            measure(latest)
            if used() > limit_s:
                stop.set()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        run = solve.solve(task, stop=stop)
    finally:
        done.set()
        watcher.join()
    return run, used()


def main() -> None:
    """Solve the cases and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without-bounds", action="store_true")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int, default=10**6)
    options = parser.parse_args()
    late, unproven, total = [], [], 0
    for case in population(options.seed):
        if options.only not in case.formulation or not options.first <= case.number <= options.last:
            continue
        task = case.task()
        if options.without_bounds:
            task = Task(without_bounds(formulation(case.formulation)), case.instance, settings=case.settings)
        start = time.monotonic()
        run, used = solved(task, options.limit)
        total += 1
        record = run.record
        ended = run.proof is Proof.OPTIMAL or record.infeasible_by is not None
        unproven += [] if ended else [case.number]
        late += [case.number] if used > MOST_S else []
        size = f"n={case.instance.n} {record.size.variables or record.model.variables} variables"
        print(
            *([] if ended else ["UNPROVEN"]),
            f"{used:6.1f} s cpu {time.monotonic() - start:6.1f} s  {case}  {size}  ",
            f"{record.objective} {record.bound} {run.proof} {record.termination} [{record.method}: "
            f"{record.model.reason}] {record.infeasible_by or ''} {record.message or ''}",
            flush=True,
        )
    print(f"{total} cases, {len(unproven)} unproven {unproven}, {len(late)} above {MOST_S:g} s {late}")


if __name__ == "__main__":
    main()
