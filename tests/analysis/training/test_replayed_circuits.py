"""Bounds and replays of ``topoopt.circuits`` against the flow simulator, which shares no code with them."""

from __future__ import annotations

import numpy as np
import pytest

from opticoll.analysis.training.flow_simulator import circuit_topology, simulate_flows
from opticoll.analysis.training.network_iteration import ServerNetwork, flows_of
from opticoll.formulations.topoopt.circuits import TaskCircuits
from opticoll.formulations.topoopt.strategy_traffic import BANDWIDTH
from opticoll.instances import parse
from opticoll.solvers.methods.topoopt.circuit_search import replayed


@pytest.mark.parametrize(
    "spec",
    [
        "tasks:moe,n=4,degree=2",
        "tasks:moe,n=5,degree=2,layers=2,seed=1",
        "tasks:moe,n=6,degree=3,seed=2",
        "tasks:dlrm,n=4,degree=2",
        "tasks:bert,n=3,degree=1",
    ],
)
def test_simulated_iterations_keep_to_the_bounds_and_are_near_the_replay(spec):
    pool = parse(spec)
    data = TaskCircuits.prepare(pool, {"intervals": 400})
    bound = max(one.value for one in data.bounds())
    servers = np.arange(pool.n)
    for strides in ((1, 2, 3), (1, 3, 2)):
        around = np.concatenate([np.stack([servers, (servers + k) % pool.n], 1) for k in strides[: pool.degree]])
        network = ServerNetwork(circuit_topology(pool.n, around), BANDWIDTH, 0.0, "even")
        flows = flows_of(pool.graph, network, hopwise=True)
        simulated = 1e3 * simulate_flows(pool.graph, flows, 0.0).length
        x = np.zeros((pool.n, pool.n))
        np.add.at(x, (around[:, 0], around[:, 1]), 1.0)
        ours = float(replayed(data, x)["z"])
        assert min(simulated, ours) >= bound * (1 - 1e-6)
        assert 0.9 <= simulated / ours <= 1.2
