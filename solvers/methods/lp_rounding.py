r"""Randomised rounding of the fluid optimum (Raghavan & Thompson, Combinatorica 7, 1987).

The concurrent flow over the same paths is solved by column generation; every pair then takes one of its paths with its
share as probability, ``tries`` times, and the best routing is kept. The fluid optimum, rounded up to whole paths, is
the bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.base import Parameter
from solvers.methods.base import Answer, Method
from solvers.methods.column_generation import generate, pricing_for
from solvers.outcome import Termination
from solvers.routing.routes import SINGLE_PATH, round_shares, route_metrics, values_of, worst_load

if TYPE_CHECKING:
    from formulations.alltoall.path_mcf import PathFlow
    from solvers.methods.base import Context


def run(context: Context) -> Answer:
    """Solve the LP, round it."""
    data: PathFlow = context.data
    listed = None if data.rule.kind == "all" else data.paths
    fluid = generate(
        data.topology, data.commodities, pricing_for(data.topology, data.commodities, data.rule, listed), tol=1e-7,
        context=context, algorithm="auto",
    )  # fmt: skip
    paths, share = fluid.used(1e-7)
    tries = int(context.parameters["tries"])
    routes = round_shares(paths, share, np.random.default_rng(context.task.seed), tries)
    return Answer(
        Termination.TOLERANCE,
        values=values_of(data, routes),
        duals={"capacity": fluid.best.lengths},
        solver={
            "name": "highs", "version": fluid.master.version, "options": {},
            "algorithm": "column generation, randomised rounding",
        },
        metrics={
            **route_metrics(data, routes), "fluid_time": fluid.time, "load_over_fluid": worst_load(routes) / fluid.time,
            "tries": tries, "seed": context.task.seed,
        },
        message="a heuristic: it stops without trying to prove anything",
    )  # fmt: skip


METHOD = Method(
    name="lp-rounding",
    title="Column generation, then randomised rounding",
    summary="one path a pair drawn with its share in the fluid optimum as probability, best of several; seeded",
    applies=lambda formulation: formulation.name in SINGLE_PATH,
    parameters=(Parameter("tries", int, default=50, help="independent roundings; the best is kept"),),
    run=run,
)
