"""Method ``lp-rounding``: single paths by rounding the fractional optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.flows.column_generation import generate, pricing_for
from opticoll.solvers.methods.flows.exact_routing import (
    SINGLE_PATH,
    round_shares,
    route_metrics,
    single_only,
    values_of,
    worst_load,
)
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.flows.path_flow import PathFlow
    from opticoll.solvers.methods.method import Context


def run_lp_rounding(context: Context) -> Answer:
    """Randomised rounding of a concurrent flow to one path per pair.

    Source  Raghavan & Thompson, Combinatorica 7, 1987

    The concurrent flow over the same paths is solved by column generation. Every pair then takes one of its paths
    with its share as probability, ``tries`` times, and the best routing is kept. The fluid optimum, rounded up to whole
    paths, is the bound.
    """
    data: PathFlow = context.data.routing
    listed = None if data.rule.kind == "all" else data.paths
    fluid = generate(
        data.topology,
        data.commodities,
        pricing_for(data.topology, data.commodities, data.rule, listed),
        tol=1e-7,
        context=context,
        algorithm="auto",
        amount=data.amount / data.amount.mean(),
    )
    paths, share = fluid.used(1e-7)
    fluid_time = fluid.time * float(data.amount.mean())
    tries = int(context.parameters["tries"])
    routes = round_shares(paths, share, data.amount, np.random.default_rng(context.task.seed), tries)
    return Answer(
        Termination.TOLERANCE,
        values=values_of(data, routes),
        duals={"capacity": fluid.best.lengths},
        solver={
            "name": "highs",
            "version": fluid.master.version,
            "options": {},
            "algorithm": "column generation, randomised rounding",
        },
        metrics={
            **route_metrics(data, routes),
            "fluid_time": fluid_time,
            "load_over_fluid": worst_load(routes, data.amount) / fluid_time,
            "tries": tries,
            "seed": context.task.seed,
        },
        message="a heuristic: it stops without trying to prove anything",
    )


METHOD = Method(
    name="lp-rounding",
    title="Column generation, then randomised rounding",
    summary="one path per pair, drawn with probability equal to its share of the LP optimum; best of several; seeded",
    serves=SINGLE_PATH,
    parameters=(Parameter("tries", int, default=50, help="independent roundings; the best is kept"),),
    run=run_lp_rounding,
    refuse=lambda data: single_only(data.routing, "lp-rounding"),
)
