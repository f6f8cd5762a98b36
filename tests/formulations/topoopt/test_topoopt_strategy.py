"""Strategies layer by layer: enumeration, one matrix, traffic as the jobs have it, and the alternating optimisation."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import optimum, refused

from opticoll.errors import BadInput
from opticoll.formulations.topoopt import strategy, strategy_traffic
from opticoll.formulations.topoopt.circuit_design_solution import residuals as design_residuals
from opticoll.instances import parse
from opticoll.instances.servers import ServerPool
from opticoll.instances.training.training_jobs import JOBS, TABLE, traffic_of, training_job
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.topoopt.alternating import (
    alternate,
    chain,
    first_strategy,
    planned,
    time_over,
    way_loads,
)
from opticoll.solvers.methods.topoopt.strategy_front import front
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task

MODELS = tuple(JOBS)


def plane(spec, **given):
    return strategy.Plane.prepare(parse(spec), given)


def roomy(spec, part, **given):
    """The plane with a memory this far between the least and what the fastest strategy takes."""
    data = plane(spec, **given)
    held = np.where(data.allowed, data.held, np.inf)
    least = data.count @ held.min(axis=1)
    fastest = np.argmin(np.where(data.allowed, data.cost, np.inf), axis=1)
    most = data.count @ held[np.arange(len(fastest)), fastest]
    return plane(spec, memory=float(least + part * max(most - least, 0.0)) * (1 + 1e-9) / 2**30, **given)


def brute(data):
    """Least time of all strategies, one part after the other."""
    kinds = [k for k, parts in enumerate(data.count.tolist()) for _ in range(parts)]
    best = np.inf
    for ways in product(*(np.flatnonzero(data.allowed[k]).tolist() for k in kinds)):
        held = sum(data.held[k, c] for k, c in zip(kinds, ways, strict=True))
        if data.memory <= 0 or held <= data.memory * (1 + 1e-9):
            best = min(best, data.computing + sum(data.cost[k, c] for k, c in zip(kinds, ways, strict=True)))
    return best


@each("model", MODELS)
@each("part", [None, 0.0, 0.5])
def test_front_and_program_agree_for_every_model(model, part):
    spec = f"servers:n=6,degree=2,traffic={model}"
    data = plane(spec) if part is None else roomy(spec, part)
    times, memories, result = front(data)
    assert data.residuals({"x": result[0]}) == pytest.approx(
        dict.fromkeys(("parts", "integer", "nonnegative", "allowed", "memory"), 0.0), abs=1e-9
    )
    assert times[0] == pytest.approx(data.objective({"x": result[0]}), rel=1e-12)
    assert memories[0] == pytest.approx((data.held * result[0]).sum())
    value, _ = optimum(compile_model(data.cvxpy()))
    assert times[0] == pytest.approx(value, rel=1e-6)
    for bound in data.bounds():
        assert bound.value <= times[0] * (1 + 1e-9), bound.name
        if bound.exact:
            assert bound.value == pytest.approx(times[0])


@pytest.mark.parametrize("part", [-0.1, 0.3, 0.7, 1.0])
def test_the_front_is_what_enumeration_finds(part):
    data = plane("servers:n=4,degree=2,traffic=vgg,section=6", alpha=3.0)
    kinds, count = data.kinds[-3:] + data.kinds[:2], np.array([2, 1, 1, 1, 2])
    small = replace(data, kinds=kinds, count=count)
    held = np.where(small.allowed, small.held, np.inf)
    low, high = count @ held.min(axis=1), count @ small.held[:, 0]
    small = replace(small, memory=low + part * (high - low))
    expected = brute(small)
    times, _, _ = front(small)
    if np.isfinite(expected):
        assert times[0] == pytest.approx(expected)
    else:
        assert not times.size


MEASURED = [
    ("dlrm", "5.6", 16),
    pytest.param("candle", "5.6", 16, marks=pytest.mark.slow),
    ("bert", "5.6", 16),
    ("vgg", "5.6", 16),
    ("ncf", "5.3", 128),
]


@pytest.mark.parametrize(("model", "section", "n"), MEASURED)
def test_measured_operators_add_their_times_to_eq_1(model, section, n):
    """Least time of every kind over its ways from the table itself; data parallelism takes the published total."""
    spec = f"servers:n={n},degree=4,traffic={model},section={section}"
    data = plane(spec, operators="measured")
    times, _, result = front(data)
    value, _ = optimum(compile_model(data.pyomo()))
    assert times[0] == pytest.approx(value, rel=1e-6)
    assert data.describe({"x": result[0]})["computing_time"] <= times[0]
    whole = first_strategy(data)
    batch = training_job(model, section).batch
    with TABLE.open() as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["model"], row["servers"], row["samples_per_gpu"]) == (model, str(n), str(batch))
        ]
    least, alone = {}, 0.0
    for row in rows:
        seconds = (float(row["forward_ms"]) + float(row["backward_ms"])) / 1e3
        sizes = row["operator"].split("_")
        if sizes[0] == "Embed" or row["parts"] == row["servers"]:
            alone += seconds * (-(-int(row["occurrences"]) // n) if sizes[0] == "Embed" else int(row["occurrences"]))
        if sizes[0] == "Embed":
            seconds *= -(-int(row["occurrences"]) // n)
        elif sizes[0] in {"Dense", "MultiHeadAttention"}:
            units = {"102416": 16, "76812": 12}.get(sizes[-1], int(sizes[-1]))
            seconds = seconds * int(row["parts"]) / n if units % (n // int(row["parts"])) == 0 else np.inf
            seconds *= int(row["occurrences"])
        else:
            seconds = seconds * int(row["occurrences"]) if int(row["parts"]) == n else np.inf
        least[row["operator"]] = min(seconds, least.get(row["operator"], np.inf))
    assert data.describe({"x": whole})["computing_time"] == pytest.approx(alone)
    free = plane(spec, operators="measured", bandwidth=1e30)
    assert front(free)[0][0] == pytest.approx(sum(least.values()), rel=1e-9)


def test_the_plane_of_measured_operators_depends_on_strategy_and_network():
    """On a fast network BERT's attention is split, since it computes faster; on a slow one it is not."""
    spec = "servers:n=16,degree=4,traffic=bert,section=5.6"
    slow, fast = (plane(spec, operators="measured", bandwidth=b) for b in (1e8, 1e13))
    split = [float(front(data)[2][0][:, 1:].sum()) for data in (slow, fast)]
    assert split[0] < split[1]
    best, _ = alternate(fast, rounds=3, steps=400, seed=0, tick=lambda _: None)
    assert front(fast)[0][0] * (1 - 1e-9) <= best.time < planned(fast, first_strategy(fast)).time * 0.9


@each("model", ["candle", "bert", "vgg", "resnet50"])
@each("shards", [0, 2, 4])
def test_uniform_strategies_have_the_traffic_of_the_jobs(model, shards):
    data = plane(f"servers:n=8,degree=4,traffic={model}")
    way = data.ways.index(f"shards={shards}") if shards else 0
    x = np.zeros(data.allowed.shape, dtype=np.int64)
    for k, parts in enumerate(data.count.tolist()):
        x[k, way if data.allowed[k, way] else 0] = parts
    made = data.job_pool(x)
    matrix, groups = traffic_of(training_job(model), 8, "hybrid" if shards else "data", shards or 2)
    expected = ServerPool(8, 4, matrix, groups=groups)
    np.testing.assert_allclose(made.point_to_point, expected.point_to_point)
    np.testing.assert_allclose(made.traffic, expected.traffic)
    assert (data.reduced * x).sum() == pytest.approx(expected.all_reduce_bytes)


@settings(max_examples=8, deadline=None)
@given(st.floats(1e-3, 1e3), st.sampled_from(MODELS))
def test_time_falls_with_bandwidth_and_rises_with_computing(factor, model):
    spec = f"servers:n=4,degree=2,traffic={model}"
    base = front(plane(spec))[0][0]
    assert front(plane(spec, bandwidth=strategy_traffic.BANDWIDTH * factor))[0][0] == pytest.approx(base / factor)
    assert front(plane(spec, computing=factor))[0][0] == pytest.approx(base + factor)


def test_a_corrupted_strategy_is_refused():
    data = roomy("servers:n=4,degree=2,traffic=bert", 0.2)
    good = front(data)[2][0].astype(float)
    more = good.copy()
    more[0, 0] += 1
    changes = [(more, "parts")]
    half = good.copy()
    k = int(np.argmax(data.allowed.sum(axis=1)))
    half[k, np.flatnonzero(data.allowed[k])[:2]] += (0.5, -0.5)
    changes.append((half, "integer"))
    forbidden = good.copy()
    forbidden[tuple(np.argwhere(~data.allowed)[0])] = 1
    changes.append((forbidden, "allowed"))
    heavy = np.zeros_like(good)
    heavy[:, 0] = data.count
    changes.append((heavy, "memory"))
    for x, block in changes:
        assert data.residuals({"x": x})[block] > 1e-3, block
    assert refused(data, {"x": good[:1]})


@pytest.mark.parametrize("model", ["bert", "vgg", "dlrm"])
def test_alternation_keeps_to_the_rules_and_never_beats_the_bound(model):
    data = roomy(f"servers:n=6,degree=2,traffic={model}", 0.5)
    seen = []
    best, rounds = alternate(data, rounds=4, steps=300, seed=1, tick=seen.append)
    again, _ = alternate(data, rounds=4, steps=300, seed=1, tick=lambda _: None)
    assert best.time == again.time
    assert 1 <= rounds <= 4
    assert [plan.time for plan in seen] == sorted((plan.time for plan in seen), reverse=True)
    assert max(data.residuals({"x": best.x}).values()) <= 1e-9
    assert max(design_residuals(data.job_pool(best.x), best.design.values()).values()) <= 1e-9
    assert best.time >= front(data)[0][0] * (1 - 1e-9)
    assert best.time <= planned(data, first_strategy(data)).time
    ideal = front(data)[2][0]
    other, _ = alternate(data, rounds=2, steps=300, seed=1, tick=lambda _: None, start=ideal)
    assert front(data)[0][0] * (1 - 1e-9) <= other.time <= planned(data, ideal).time


def test_the_chain_finds_the_best_strategy_over_fixed_circuits():
    data = plane("servers:n=4,degree=1,traffic=bert")
    circuits = planned(data, first_strategy(data)).design.circuits
    loads = way_loads(data, circuits)
    _, least = chain(data, first_strategy(data), loads, 3000, np.random.default_rng(0))
    spaces = [
        [dict(zip(ways, split, strict=True)) for split in product(range(m + 1), repeat=len(ways)) if sum(split) == m]
        for m, ways in (
            (m, np.flatnonzero(row).tolist()) for m, row in zip(data.count.tolist(), data.allowed, strict=True)
        )
    ]
    best = np.inf
    for chosen in product(*spaces):
        x = np.zeros(data.allowed.shape, dtype=np.int64)
        for k, row in enumerate(chosen):
            for c, parts in row.items():
                x[k, c] = parts
        best = min(best, time_over(data, x, loads))
    assert least == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("method", ["auto", "highs", "alternating"])
def test_methods_end_to_end(method):
    task = Task(
        "topoopt.strategy", "servers:n=6,degree=2,traffic=candle", method, settings={"memory": "10"}, time_limit_s=600
    )
    run = solve(task)
    assert run.verified
    assert run.bound <= run.objective * (1 + 1e-9)
    if method == "auto":
        assert run.record["proof"] == "optimal"
    if method == "alternating":
        assert run.record["metrics"]["iteration_time"] >= run.bound * (1 - 1e-9)


@pytest.mark.parametrize(
    ("spec", "given", "message"),
    [
        ("servers:n=4,degree=2,traffic=random", {}, "not a training job"),
        ("ring:5", {}, "server pool"),
        ("servers:n=4,degree=2,traffic=bert", {"bandwidth": 0}, "bandwidth"),
        ("servers:n=4,degree=2,traffic=bert", {"weight_bytes": 4.0}, "no effect without memory"),
        ("servers:n=4,degree=2,traffic=bert", {"memory": float("nan")}, "memory"),
        ("servers:n=4,degree=2,traffic=dlrm,section=5.3", {"memory": 1.0}, "at least"),
        ("servers:n=4,degree=2,traffic=dlrm", {"operators": "measured"}, "none of dlrm at 128 .* on 4 servers"),
        ("servers:n=128,degree=2,traffic=resnet50", {"operators": "measured"}, "data parallelism alone"),
    ],
)
def test_bad_input_is_refused(spec, given, message):
    with pytest.raises(BadInput, match=message):
        strategy.Plane.prepare(parse(spec), given)
