"""Data, arrays and figures of :mod:`opticoll.formulations.alltoall.few_paths`, which ``problem`` is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.alltoall import path_mcf_solution
from opticoll.formulations.flows import path_flow
from opticoll.formulations.flows.concurrent_flow import demand_parameter
from opticoll.formulations.flows.path_sets import rule_parameters
from opticoll.formulations.parameters import Parameter

if TYPE_CHECKING:
    from collections.abc import Collection

    from opticoll.formulations.alltoall.few_paths import FewPaths
    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.model import Values
    from opticoll.formulations.variables import Array
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json, Setting

#: Flow up to this part of the least capacity on its path is the round-off that solvers leave in their files.
ROUND_OFF = 1e-9
PARAMETERS = (
    *rule_parameters("all"),
    Parameter("routes_per_pair", int, default=8, help="most paths of a pair that have flow", least=1),
    demand_parameter(),
)


def prepared(cls: type[FewPaths], instance: object, *, routes_per_pair: int, **rule: Setting) -> FewPaths:
    """The problem on a topology; errors as :func:`.path_flow.prepare_paths`."""
    return cls(path_flow.prepare_paths(cls.name, instance, rule), routes_per_pair)


def taken(problem: FewPaths, paths: PathSet, flow: object) -> I64:
    """How many paths of every pair have flow."""
    narrow = np.minimum.reduceat(problem.topology.capacity[paths.arcs], paths.start[:-1])
    return np.bincount(paths.pair[np.asarray(flow, dtype=float) > ROUND_OFF * narrow], minlength=paths.pairs)


def repair(problem: FewPaths, values: Values) -> dict[str, F64] | None:
    """Keep the R paths of a pair with most flow, then as for ``alltoall.path-mcf``."""
    f, paths = np.asarray(values["f"], dtype=float), problem.routing.paths_of(values)
    if paths is None:
        return None
    kept, fullest = np.zeros_like(f), path_flow.largest(paths, f, problem.routes_per_pair)
    kept[fullest] = f[fullest]
    return path_mcf_solution.repair(problem, {**values, "f": kept})


def metrics(problem: FewPaths, value: float | None) -> dict[str, Json]:
    """Those of ``alltoall.path-mcf``, and R."""
    return path_mcf_solution.metrics(problem, value) | {"routes_per_pair": problem.routes_per_pair}


def describe(problem: FewPaths, values: Values) -> dict[str, Json]:
    """The most paths with flow of a pair, and the mean."""
    paths = path_flow.known_paths(problem.routing, values)
    count = taken(problem, paths, values["f"])
    return {"most_routes": int(count.max()), "routes": float(count.mean())}


def arrays(problem: FewPaths, names: Collection[str]) -> dict[str, Array]:
    """The arrays of ``alltoall.path-mcf``, and y, which follows from f."""
    found = path_mcf_solution.arrays(problem, names)
    f = found["f"]
    return found | {"y": type(f)(f.axes, required=False)}
