"""Arrays, loads and figures of solutions of ``alltoall.path-mcf`` and ``alltoall.few-paths``, which ``problem`` is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows import flow_checks, path_flow
from opticoll.formulations.flows.path_flow import arc_load, serve_alike
from opticoll.formulations.flows.path_sets import path_violations
from opticoll.formulations.standard_form import StandardForm, blocks
from opticoll.formulations.variables import BANDWIDTHS, Links

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.alltoall.few_paths import FewPaths
    from opticoll.formulations.alltoall.path_mcf import PathConcurrentFlow
    from opticoll.formulations.model import Values
    from opticoll.formulations.variables import Array
    from opticoll.instances.topology import F64
    from opticoll.types import Json


def metrics(problem: PathConcurrentFlow | FewPaths, value: float | None) -> dict[str, Json]:
    """F, T, the path set by name and size, and the best analytic bound on the optimum over all paths.

    ``unrestricted_proven`` is whether F meets that bound to within 1e-6.
    """
    over_all = min(b.value for b in problem.routing.unrestricted_bounds)
    proven = value is not None and bool(value >= over_all * (1 - 1e-6))
    paths = path_flow.set_metrics(problem.routing, over_all, None if value is None else proven)
    return flow_checks.metrics(problem, value) | paths


def links(problem: PathConcurrentFlow | FewPaths, values: Values) -> Links:
    """Flow over every arc, all paths together."""
    load = arc_load(path_flow.known_paths(problem.routing, values), np.asarray(values["f"], dtype=float))
    return Links(problem.topology, load, problem.topology.capacity, 1.0, BANDWIDTHS, BANDWIDTHS)


def arrays(problem: PathConcurrentFlow | FewPaths, names: Collection[str]) -> dict[str, Array]:
    """The flows f and F, the paths if the solution contains its own, and the duals of ``capacity``."""
    units = BANDWIDTHS, f"{BANDWIDTHS} / shard"
    return path_flow.path_arrays(problem.routing, "f", "F", names, units) | path_flow.dual_arrays(
        problem.routing, "capacity", required=True
    )


def flow_program(problem: PathConcurrentFlow | FewPaths) -> StandardForm:
    """The same problem without a modelling layer, for methods that solve it many times: f, then F."""
    import scipy.sparse as sp

    data = problem.routing
    paths, m = data.paths, data.topology.arcs
    used = paths.used
    at = np.concatenate([paths.pair, paths.pairs + np.searchsorted(used, paths.arcs)])
    column = np.concatenate([np.arange(paths.paths), np.repeat(np.arange(paths.paths), paths.length)])
    flows = sp.csc_array((np.ones(at.size), (at, column)), shape=(paths.pairs + used.size, paths.paths))
    served = np.concatenate([data.amount, np.zeros(used.size)])
    A = sp.hstack([flows, -sp.csc_array(served[:, None])], format="csc")
    cost = np.zeros(paths.paths + 1)
    cost[-1] = 1.0
    capacity = np.full(m, -1, dtype=np.int64)
    capacity[used] = paths.pairs + np.arange(used.size)
    return StandardForm(
        A=A,
        row_lower=np.concatenate([np.zeros(paths.pairs), np.full(used.size, -np.inf)]),
        row_upper=np.concatenate([np.full(paths.pairs, np.inf), data.topology.capacity[used]]),
        col_lower=np.zeros(cost.size),
        col_upper=np.full(cost.size, np.inf),
        cost=cost,
        sense="max",
        columns=blocks({"f": ((paths.paths,), np.arange(paths.paths)), "F": ((), np.array([paths.paths]))}),
        rows=blocks({"serve": ((paths.pairs,), np.arange(paths.pairs)), "capacity": ((m,), capacity)}),
    )


def repair(problem: PathConcurrentFlow | FewPaths, values: Mapping[str, F64]) -> dict[str, F64] | None:
    """Scale to a feasible flow in the same proportions that serves the same fraction of every demand.

    Returns None if the paths are malformed.

    A commodity without any flow is sent over its first path, which is a shortest path of its set.
    """
    data = problem.routing
    f = np.asarray(values["f"], dtype=float)
    paths = data.paths_of(values)
    if paths is None or paths.paths == 0 or path_violations(paths, data.rule) > 0:
        return None
    if (np.bincount(paths.pair, minlength=paths.pairs) == 0).any():
        return None
    share = serve_alike(paths, f) * data.amount[paths.pair]
    load = arc_load(paths, share)
    used = load > 0
    F = float((data.topology.capacity[used] / load[used]).min())
    kept = {name: values[name] for name in ("path_arcs", "path_pair") if name in values}
    return {"f": share * F, "F": np.asarray(F), **kept}
