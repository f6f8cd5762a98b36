"""Pools with task graphs: traffic, mixtures of experts, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from opticoll.errors import BadSpec
from opticoll.instances import parse
from opticoll.instances.training.task_graph import TRANSFER


def test_a_mixture_of_experts_sends_its_tokens_there_and_twice_as_much_back():
    pool = parse("tasks:moe,n=4,degree=2,tokens=1024")
    graph = pool.graph
    assert graph.tasks == 8 + 24
    assert pool.groups == ()
    each = 1024 * 8 / 4 * 7168
    assert np.array_equal(pool.traffic, 3 * each * (1 - np.eye(4)))
    assert graph.computing == pytest.approx([3e-3] * 4)
    uneven = parse("tasks:moe,n=4,degree=2,tokens=1024,seed=1")
    assert uneven.hash != pool.hash
    assert uneven.graph.computing.sum() == pytest.approx(12e-3)
    assert parse("tasks:moe,n=4,degree=2,tokens=1024,layers=3").graph.tasks == 3 * graph.tasks


def test_the_pool_of_a_model_has_the_traffic_of_its_graph():
    pool = parse("tasks:dlrm,n=4,degree=2")
    assert np.array_equal(pool.point_to_point, pool.graph.transferred)
    assert pool.all_reduce_bytes == pytest.approx(1.5 * 4 * sum(pool.graph.reduced.values()))
    assert int((parse("tasks:random,n=3,degree=1,transfers=7").graph.kind == TRANSFER).sum()) == 7


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("tasks:meo,n=4,degree=2", "unknown model 'meo'.*moe"),
        ("tasks:moe,n=4,degree=2,section=5.3", "moe does not use section"),
        ("tasks:bert,n=4,degree=2,layers=2,seed=1", "bert does not use layers or seed"),
        ("tasks:moe,n=4,degree=2,layers=5000", "exceeds the limit"),
    ],
)
def test_bad_specs_are_refused_in_one_line(spec, words):
    with pytest.raises(BadSpec, match=words):
        parse(spec)
