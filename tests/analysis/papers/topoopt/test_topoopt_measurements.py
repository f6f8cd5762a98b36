"""Parts of the measurements of the TopoOpt paper."""

from __future__ import annotations

import pytest

from opticoll.analysis.papers.topoopt import network_claims, time_claims
from opticoll.errors import BadInput
from opticoll.instances.training.training_jobs import compute_time, operators
from opticoll.solvers.methods.topoopt import ring_permutations


def test_loads_of_a_circulant_add_up_to_its_hops():
    for steps in ((1, 11, 117, 127), (1, 3, 11, 37)):
        hops = ring_permutations.mean_hops(128, steps) * 127
        for order in (sorted(steps), sorted(steps)[::-1], None):
            assert sum(network_claims.circulant_loads(128, steps, order).values()) == pytest.approx(hops)
        drawn = network_claims.random_loads(128, steps, 0)
        assert drawn.shape == (128, 4)
        assert drawn.sum() == pytest.approx(128 * hops)


def test_published_computing_times():
    assert compute_time("dlrm-128-tables", 128) == pytest.approx(0.0320612, rel=1e-5)
    assert {operator.name for operator in operators("bert", 16)} >= {"Dense_1024_1024"}
    with pytest.raises(BadInput, match="none of dlrm at 7 samples per GPU on 128 servers; available: bert 16 on 16"):
        operators("dlrm", 7)


def test_equation_1_without_traffic_is_computation():
    alone = time_claims.seconds("bert", 16, 1e30, 1.0, "gradients", "no overlap")
    assert alone == pytest.approx(compute_time("bert", 16))
    assert time_claims.seconds("bert", 16, 1e30, 1.0, "gradients", "full overlap") == pytest.approx(alone)
