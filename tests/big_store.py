"""Write a store of synthetic records through the store's own writer, from a seed."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from opticoll.analysis.store import Store
from opticoll.analysis.store.schema import environment
from opticoll.solvers.run import Run
from opticoll.solvers.task import (
    Proof,
    Record,
    Requested,
    Size,
    SolverClaims,
    SolverInfo,
    Task,
    Termination,
    Times,
    digest,
)

SOLVERS = ("highs", "highs-simplex", "highs-ipx", "highs-pdlp", "glop", "clarabel", "scip")


def fill(store: Store, count: int, seed: int = 0) -> None:
    """Save ``count`` runs of ``alltoall.master`` on rings: some repeated, one in fifty failed."""
    rng = np.random.default_rng(seed)
    where, begin = environment(), datetime(2026, 1, 1, tzinfo=UTC)
    for index in range(count):
        n, solver = int(rng.integers(3, 200)), str(rng.choice(SOLVERS))
        task = Task("alltoall.master", f"ring:{n}", solver, seed=int(rng.integers(0, 40)))
        failed, value = bool(rng.random() < 0.02), 8.0 / (n * n)
        seconds = [float(x) for x in rng.exponential(0.1, 5)]
        record = Record(
            key=digest({"instance": task.instance, "method": solver, "seed": task.seed}),
            formulation=task.formulation,
            paper="alltoall",
            instance=str(task.instance),
            instance_hash=digest({"instance": task.instance}),
            n=n,
            arcs=2 * n,
            method=solver,
            form="matrix",
            solver=SolverInfo(name=solver, version="1.0", options={"threads": 2}),
            termination=Termination.CRASHED if failed else Termination.OPTIMAL,
            proof=Proof.NONE if failed else Proof.OPTIMAL,
            sense="max",
            objective=None if failed else value,
            bound=None if failed else value,
            bound_source=None if failed else "lp-dual",
            gap=None if failed else 0.0,
            verified=not failed,
            violations={"balance": 1e-12, "capacity": 0.0, "matrix.rows": 1e-12},
            metrics={"F": value, "T": 1 / value},
            settings={"demand": "all"},
            solver_claims=SolverClaims(objective=value, bound=value, status="Optimal"),
            time=Times(**dict(zip(("build_s", "compile_s", "solve_s", "solver_s", "verify_s"), seconds, strict=True))),
            size=Size(variables=n * n, constraints=n * n, nonzeros=3 * n * n, integers=0),
            peak_memory_mb=120.0,
            message="the worker died by signal 11 (SIGSEGV)" if failed else "",
            incumbents=[(float(t), value * float(t)) for t in np.sort(rng.random(5))],
            requested=Requested.of(task),
        )
        moment = begin + timedelta(seconds=index)
        store.save(Run(task, record), study="synthetic", started=moment, finished=moment, where=where)


if __name__ == "__main__":
    os.fsync = lambda _: None  # type: ignore[assignment]  # nothing here must survive a crash of the machine
    fill(Store(Path(sys.argv[1])), int(sys.argv[2]), *map(int, sys.argv[3:]))
