"""Time-stepped MCF: both builds are one matrix, sum U >= T, aggregation by source is exact, corrupted flows refused."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import assert_one_matrix, optimum
from strategies import topologies

from opticoll.analysis.cli import main
from opticoll.formulations import formulation
from opticoll.formulations.alltoall import timestep_mcf as model
from opticoll.formulations.alltoall.timestep_mcf import step_distances, unroll
from opticoll.formulations.model import NotApplicable
from opticoll.instances import BadInput, Topology, parse
from opticoll.solvers import runner, verify
from opticoll.solvers.compile import compile_model
from opticoll.solvers.task import Task

relaxed = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SPECS = ("ring:4", "ring:5,directed", "path:4", "star:4", "bipartite:2x3", "genkautz:n=6,d=2", "hypercube:2+host=1.5")


def compiled(spec, form="cvxpy", **parameters):
    topology = parse(spec) if isinstance(spec, str) else spec
    data = model.prepare(topology, parameters)
    return data, compile_model(model.FORMULATION.build[form](data))


def solved(spec, **parameters):
    data, form = compiled(spec, **parameters)
    value, x = optimum(form)
    return data, value, form.values(x)


def fluid_time(spec):
    topology = parse(spec) if isinstance(spec, str) else spec
    master = formulation("alltoall.master")
    return 1 / optimum(compile_model(master.build["matrix"](master.prepare(topology, {}))))[0]


@pytest.mark.parametrize("aggregate", ["commodity", "source"])
@pytest.mark.parametrize("spec", SPECS)
def test_pyomo_and_cvxpy_are_one_matrix(spec, aggregate):
    steps = int(parse(spec).diameter) + 1
    forms = [compiled(spec, form, steps=steps, aggregate=aggregate)[1] for form in ("pyomo", "cvxpy")]
    assert_one_matrix(*forms)


@pytest.mark.parametrize("spec", SPECS)
def test_never_below_the_fluid_time_and_falling_to_it(spec):
    fluid, diameter = fluid_time(spec), int(parse(spec).diameter)
    curve = [solved(spec, steps=L, aggregate="source")[1] for L in range(diameter, diameter + 4)]
    assert all(value >= fluid * (1 - 1e-9) for value in curve)
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(curve))


@pytest.mark.parametrize(("spec", "steps"), [("hypercube:3", 3), ("bipartite:4x4", 2)])
def test_the_fluid_time_at_the_diameter(spec, steps):
    assert parse(spec).diameter == steps
    for aggregate in ("commodity", "source"):
        assert solved(spec, steps=steps, aggregate=aggregate)[1] == pytest.approx(fluid_time(spec), rel=1e-8)


def test_the_curve_over_the_steps():
    from opticoll.analysis.papers.alltoall.figures import curve

    rows = curve("twisted-hypercube:3", range(2, 6))
    assert [row["steps"] for row in rows] == [2, 3, 4, 5]
    assert all(row["T_steps"] == pytest.approx(4.0) and row["proof"] == "optimal" for row in rows)
    rows = curve("genkautz:n=16,d=4", range(2, 4))
    assert [row["T_steps"] for row in rows] == pytest.approx([8.0, 53 / 7])
    assert rows[1]["over_fluid"] == pytest.approx(1.0)
    assert rows[0]["over_fluid"] > 1.05


@pytest.mark.parametrize("spec", SPECS)
def test_by_source_is_by_commodity(spec):
    for extra in (0, 1):
        steps = int(parse(spec).diameter) + extra
        values = [solved(spec, steps=steps, aggregate=a)[1] for a in ("commodity", "source")]
        assert values[0] == pytest.approx(values[1], rel=1e-8)


@relaxed
@given(topologies(5), st.integers(0, 1))
def test_by_source_is_by_commodity_on_random_topologies(topology, extra):
    steps = int(topology.diameter) + extra
    values = [solved(topology, steps=steps, aggregate=a)[1] for a in ("commodity", "source")]
    assert values[0] == pytest.approx(values[1], rel=1e-7)
    assert values[0] >= fluid_time(topology) * (1 - 1e-7)


def test_what_enters_in_place_of_what_stays_is_no_aggregation():
    """(19) summed over a source's destinations as printed: one unit serves all it passes, on path:4 3 instead of 4."""
    from scipy.optimize import linprog

    topology, L = parse("path:4"), 5
    m, n = topology.arcs, topology.n
    at = np.arange(m * n * L).reshape(m, n, L)
    cost = np.concatenate([np.zeros(at.size), np.ones(L)])
    rows, right = [], []
    for t in range(L):
        for a in range(m):
            row = np.zeros(cost.size)
            row[at[a, :, t]], row[at.size + t] = 1.0, -1.0
            rows.append(row)
            right.append(0.0)
    for s in range(n):
        for u in range(n):
            if u == s:
                continue
            arrives = np.zeros(cost.size)
            arrives[at[topology.head == u, s, :]] = -1.0
            rows.append(arrives)
            right.append(-1.0)
            for t in range(L):
                row = np.zeros(cost.size)
                row[at[topology.tail == u, s, : t + 1]] = 1.0
                row[at[topology.head == u, s, :t]] = -1.0
                rows.append(row)
                right.append(0.0)
    literal = linprog(cost, A_ub=np.array(rows), b_ub=right).fun
    assert literal == pytest.approx(3.0)
    assert fluid_time("path:4") == pytest.approx(4.0)


@pytest.mark.parametrize("aggregate", ["commodity", "source"])
@pytest.mark.parametrize("spec", ["ring:5", "genkautz:n=6,d=2", "hypercube:2+host=1.5"])
def test_corrupted_flows_are_refused(spec, aggregate):
    data, _, values = solved(spec, steps=int(parse(spec).diameter) + 1, aggregate=aggregate)
    assert max(model.residuals(data, values).values()) < 1e-8

    def refused(change, block):
        broken = {k: v.copy() for k, v in values.items()}
        change(broken)
        found = model.residuals(data, broken)
        assert found[block] > verify.FEASIBLE, found

    a, k, t = np.argwhere(values["f"] > 1e-3)[-1]
    refused(lambda v: v["f"].__setitem__((a, k, t), 0.0), "balance")
    refused(lambda v: v["f"].__setitem__((a, k, t), -1.0), "nonnegative")
    refused(lambda v: v["U"].__setitem__(t, 0.0), "capacity")
    refused(lambda v: v["f"].__setitem__((a, k, t), np.nan), "shape")
    refused(lambda v: v.__setitem__("U", v["U"][:-1]), "shape")
    # All in one step is in balance over the steps, and forwards before it receives.
    together = np.zeros_like(values["f"])
    together[:, :, 0] = values["f"].sum(axis=2)
    refused(lambda v: v.__setitem__("f", together), "causality")
    blocked = np.argwhere(data.upper == 0)[0]
    refused(lambda v: v["f"].__setitem__(tuple(blocked), 0.5), "blocked")


@relaxed
@given(topologies(5), st.integers(0, 2**32 - 1))
def test_any_prices_bound_any_optimum(topology, seed):
    data, value, values = solved(topology, steps=int(topology.diameter) + 1, aggregate="source")
    random = np.random.default_rng(seed)
    for prices in (random.random(data.shape[::2]), random.exponential(size=data.shape[::2]) ** 4):
        assert model.price_bound(data, prices) <= value * (1 + 1e-9)
    for bound in model.bounds(data):
        assert bound.value <= value * (1 + 1e-7), bound
    noisy = {"f": values["f"] + random.normal(size=data.shape) * 1e-3, "U": values["U"]}
    repaired = model.repair(data, noisy)
    assert max(model.residuals(data, repaired).values()) < 1e-9
    assert model.objective(data, repaired) >= value * (1 - 1e-9)


@pytest.mark.parametrize("spec", ["hypercube:3", "bipartite:4x4", "genkautz:n=12,d=4"])
def test_the_duals_prove_the_optimum(spec):
    for aggregate in ("commodity", "source"):
        run = runner.solve(Task(model.NAME, spec, method="highs-simplex", settings={"aggregate": aggregate}))
        assert run.proof == "optimal", run.record
        data, form = compiled(spec, aggregate=aggregate)
        assert model.certify(data, run.duals).value == pytest.approx(run.objective, rel=1e-9)
        assert np.isfinite(verify.dual_bound(form, np.random.default_rng(1).normal(size=form.A.shape[0])))


def test_the_unrolled_graph():
    topology = Topology(3, [0, 0, 0, 1, 2], [1, 1, 2, 2, 0], [1.0, 2.0, 1.0, 1.0, 0.5])
    unrolled = unroll(topology, 3)
    graph = unrolled.graph
    for a in range(topology.arcs):
        for t in range(3):
            at = unrolled.moving[a, t]
            assert graph.tail[at] == t * 3 + topology.tail[a]
            assert graph.head[at] == (t + 1) * 3 + topology.head[a]
            assert graph.capacity[at] == topology.capacity[a]
            assert (unrolled.arc[at], unrolled.step[at]) == (a, t)
    reach = step_distances(topology, np.array([0]), np.ones((topology.arcs, 2)))
    assert reach.tolist() == [[0.0, 1.0, 1.0]]


@pytest.mark.parametrize(("parameters", "word"), [
    ({"steps": 2}, "diameter is 3"), ({"alpha": -1.0}, "alpha"), ({"beta": float("inf")}, "beta"),
])  # fmt: skip
def test_refusals(parameters, word):
    with pytest.raises(NotApplicable, match=word) as caught:
        model.prepare(parse("hypercube:3"), parameters)
    assert "\n" not in str(caught.value)


def test_zero_capacity_is_refused(tmp_path):
    with pytest.raises(BadInput, match="capacity"):
        Topology(2, [0, 1], [1, 0], [1.0, 0.0])
    with pytest.raises(NotApplicable, match="disconnected"):
        model.prepare(Topology(3, [0, 1], [1, 0]), {})


def test_the_command_line(capfd):
    arguments = ["solve", model.NAME, "hypercube:3", "--no-store", "--json", "--set"]
    assert main([*arguments, "steps=4", "--set", "alpha=0.5", "--set", "beta=2", "--set", "aggregate=source"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["proof"] == "optimal"
    assert record["metrics"]["alpha_beta_time"] == pytest.approx(0.5 * 4 + 2 * 4.0)
    for bad in ("steps=2", "aggregate=target", "step=3"):
        assert main([*arguments, bad]) == 2
        assert capfd.readouterr().err.count("\n") == 1
