"""Random instances of at most eight vertices for every integer formulation, from a seed.

They are behind the promise that ``auto`` without a limit ends. As a script, this solves them and prints a line for each
with its proof and processor time; numbers count the cases of one formulation:

    python tests/integer_population.py [--only NAME] [--without-bounds] [--limit S] [--from I] [--to I]
"""

from __future__ import annotations

import argparse
import contextlib
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from cases import PROBLEMS
from problems import Draws
from random_instances import Random

from opticoll.errors import BadInput
from opticoll.formulations import formulation
from opticoll.formulations.model import Formulation
from opticoll.instances import Instance
from opticoll.solvers import solve
from opticoll.solvers.plan import make_plan
from opticoll.solvers.run import Run
from opticoll.solvers.task import Proof, Task

#: Processor time [s] within which every case ends.
MOST_S = 20.0
#: The integer formulations.
DRAWS = {name: one.draws for name, one in PROBLEMS.items() if one.draws is not None}


@dataclass(frozen=True)
class Case:
    """A case of a formulation: its number there, the instance and settings."""

    number: int
    formulation: str
    instance: Instance
    settings: Mapping[str, Any]

    def __str__(self) -> str:
        words = " ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{self.formulation} {self.number} {self.instance.spec} {words}"

    def task(self, **other: Any) -> Task:
        """The task of solving it by ``auto``."""
        return Task(self.formulation, self.instance, settings=self.settings, **other)


def population(seed: int = 0, wanted: Mapping[str, Collection[int]] | None = None) -> Iterator[Case]:
    """The cases, each drawn again until its formulation accepts it.

    With the numbers of the ``wanted`` cases of formulations, only these and what is drawn before them.
    """
    for name, draws in DRAWS.items():
        count = draws.count if wanted is None else max(wanted.get(name, ()), default=-1) + 1
        random = np.random.default_rng([seed, *name.encode()])
        for number in range(count):
            yield _accepted(number, name, draws, random)


def _accepted(number: int, name: str, draws: Draws, random: Random) -> Case:
    for _ in range(200):
        instance, settings = draws.draw(random)
        if formulation(name)._needs is not None:
            return Case(number, name, instance, settings)
        with contextlib.suppress(BadInput):
            make_plan(Task(name, instance, settings=settings))
            return Case(number, name, instance, settings)
    msg = f"{name} accepts none of 200 draws"
    raise AssertionError(msg)


def without_bounds(model: type[Formulation]) -> type[Formulation]:
    """The formulation of a user who states the same model and no bounds."""
    removed = {"_closed_forms": Formulation._closed_forms, "_refute": Formulation._refute, "bounds": lambda _: []}
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
        unproven += [] if ended else [f"{case.formulation} {case.number}"]
        late += [f"{case.formulation} {case.number}"] if used > MOST_S else []
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
