"""Method ``flow-decomposition``: the flows of the master LP divided among destinations by paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows.path_sets import assemble, to_arrays
from opticoll.formulations.flows.single_source import strip_paths
from opticoll.formulations.flows.weighted_paths import from_flow
from opticoll.formulations.model import Parameter
from opticoll.solvers.methods.alltoall.decomposition import Divided, decomposed, refuse_restricted
from opticoll.solvers.methods.method import Answer, Method

if TYPE_CHECKING:
    from opticoll.instances.topology import F64
    from opticoll.solvers.methods.method import Context


def path_flows(context: Context, g: F64, F: float) -> Divided:
    """Split every source's flow into paths, and add them up by commodity."""
    topology, flow = context.instance, context.data.flow
    flows = np.zeros((topology.arcs, flow.groups))
    paths = longest = 0
    for i, source in enumerate(np.unique(flow.sources).tolist()):
        context.remaining()
        columns = np.flatnonzero(flow.sources == source)
        targets, amount = context.data.targets[columns], context.data.amount[columns] * F
        split = strip_paths(topology, source, g[:, i], targets, amount)
        for column, stripped in zip(columns.tolist(), split, strict=True):
            for path in stripped:
                flows[path.arcs, column] += path.amount
                longest = max(longest, len(path.arcs))
            paths += len(stripped)
    metrics = {"paths": paths, "paths_per_commodity": paths / flows.shape[1], "longest_path": longest}
    return Divided({"f": flows, "F": np.asarray(F)}, "path stripping", metrics)


def run_flow_decomposition(context: Context) -> Answer:
    """The link MCF, or its paths, by splitting every source's flow, without child LPs.

    The optimum of the link MCF is that of the master LP, which is solved first. A single-source flow without cycles
    decomposes into at most N + m paths from the source (Ford & Fulkerson); the paths that end at t carry exactly what t
    receives. For the link MCF they are added up to flows of commodities on arcs, a dense matrix; for the *path* model
    over all simple paths they are the solution themselves, source by source in flat arrays, so thousands of ranks
    fit.
    """
    if context.formulation.name == "alltoall.link-mcf":
        return decomposed(context, path_flows)
    refuse_restricted(context, "flow-decomposition")
    return decomposed(context, split_paths)


METHOD = Method(
    name="flow-decomposition",
    title="Master LP, then flow decomposition",
    summary="per-commodity flows or paths from the master's source flows, without child LPs",
    serves=("alltoall.link-mcf", "alltoall.path-mcf"),
    parameters=(Parameter("master", str, default="auto", help="method for the master LP"),),
    run=run_flow_decomposition,
    bytes_per_variable=16.0,
)


def split_paths(context: Context, g: F64, F: float) -> Divided:
    """Split every source's flow into the weighted paths of the path model."""
    result = from_flow(context.data.flow, g)
    context.remaining()
    pair = np.repeat(np.arange(result.sources.size), np.diff(result.first_path))
    length = np.diff(result.first_arc)
    ends = (result.sources, result.targets)
    paths = assemble(context.instance, result.arcs.astype(np.int64), length, pair, ends)
    values = {"f": result.rate[np.lexsort((length, pair))], "F": np.asarray(result.F), **to_arrays(paths)}
    return Divided(values, "path stripping", result.summary)
