"""Time-stepped MCF: both builds are one matrix, sum U >= T, aggregation by source is exact, corrupted flows refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from case_families import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import compiled, flow_time, solved
from scipy.optimize import Bounds, LinearConstraint, milp
from strategies import topologies

from opticoll.errors import NotApplicable
from opticoll.formulations import formulation
from opticoll.formulations.alltoall import timestep_mcf as model
from opticoll.formulations.alltoall.time_expansion import step_distances, unroll
from opticoll.formulations.alltoall.timestep_bounds import price_bound
from opticoll.instances import Topology, parse
from opticoll.solvers import solve, verify
from opticoll.solvers.task import Task

relaxed = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAME = "alltoall.timestep-mcf"
SPECS = ("ring:4", "ring:5,directed", "path:4", "star:4", "bipartite:2x3", "genkautz:n=6,d=2", "hypercube:2+host=1.5")


def steps_between(topology, holds):
    """Steps between vertices, by relaxing arcs until nothing changes; an arc out of a vertex of H begins a step."""
    away = np.where(np.eye(topology.n, dtype=bool), 0.0, np.inf)
    for _ in range(topology.n):
        for u, v in zip(topology.tail, topology.head, strict=True):
            away[:, v] = np.minimum(away[:, v], away[:, u] + holds[u])
    return away


def test_flows_per_pair_unless_they_are_many():
    few, many = (formulation("alltoall.timestep-mcf").prepare(parse(spec), {}) for spec in ("torus:4x4", "torus:11x11"))
    assert (few.aggregate, few.shape) == ("commodity", (64, 240, 4))
    assert (many.aggregate, many.shape) == ("source", (484, 121, 10))


@each("relays", ["pass", "step"])
@each("aggregate", ["commodity", "source"])
@each("spec", [*SPECS, "dgx1", "torus:3x3+fail=2,seed=1"])
def test_flows_are_fixed_where_causality_excludes_them(spec, aggregate, relays):
    data, _ = compiled(NAME, spec, aggregate=aggregate, relays=relays)
    topology, groups, L = data.topology, data.groups, data.steps
    away = steps_between(topology, data.holds)
    assert data.holds[topology.terminals].all()
    assert data.holds.sum() == (topology.n if relays == "step" else topology.num_ranks)
    for a, (u, v) in enumerate(zip(topology.tail, topology.head, strict=True)):
        for k, s in enumerate(groups.sources):
            targets = np.flatnonzero(groups.demand[:, k] > 0)
            for t in range(1, L + 1):
                arrives = away[s, u] + data.holds[u] <= t and away[v, targets].min() <= L - t
                back = v == s or (aggregate == "commodity" and u in targets)
                assert data.upper[a, k, t - 1] == (groups.demand[:, k].sum() if arrives and not back else 0)


@pytest.mark.parametrize("spec", SPECS)
def test_never_below_the_fluid_time_and_falling_to_it(spec):
    fluid, diameter = flow_time(spec), int(parse(spec).diameter)
    curve = [solved(NAME, spec, steps=L, aggregate="source")[1] for L in range(diameter, diameter + 4)]
    assert all(value >= fluid * (1 - 1e-9) for value in curve)
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(curve))


@pytest.mark.parametrize(("spec", "steps"), [("hypercube:3", 3), ("bipartite:4x4", 2)])
def test_the_fluid_time_at_the_diameter(spec, steps):
    assert parse(spec).diameter == steps
    for aggregate in ("commodity", "source"):
        assert solved(NAME, spec, steps=steps, aggregate=aggregate)[1] == pytest.approx(flow_time(spec), rel=1e-8)


def test_the_time_falls_with_the_steps_to_that_of_the_fluid():
    for spec, times in (
        ("twisted-hypercube:3", {2: 4.0, 3: 4.0, 4: 4.0, 5: 4.0}),
        ("genkautz:n=16,d=4", {2: 8.0, 3: 53 / 7}),
    ):
        runs = [
            solve.solve(Task("alltoall.timestep-mcf", spec, settings={"steps": steps, "aggregate": "source"}))
            for steps in times
        ]
        assert [run.objective for run in runs] == pytest.approx(list(times.values()))
        assert {str(run.proof) for run in runs} == {"optimal"}
        fluid = solve.solve(Task("alltoall.master", spec)).record["metrics"]["T"]
        assert runs[-1].objective == pytest.approx(fluid)
    assert runs[0].objective / fluid > 1.05


@pytest.mark.parametrize("spec", SPECS)
def test_by_source_is_by_commodity(spec):
    for extra in (0, 1):
        steps = int(parse(spec).diameter) + extra
        values = [solved(NAME, spec, steps=steps, aggregate=a)[1] for a in ("commodity", "source")]
        assert values[0] == pytest.approx(values[1], rel=1e-8)


@relaxed
@given(topologies(5), st.integers(0, 1))
def test_by_source_is_by_commodity_on_random_topologies(topology, extra):
    steps = int(topology.diameter) + extra
    values = [solved(NAME, topology, steps=steps, aggregate=a)[1] for a in ("commodity", "source")]
    assert values[0] == pytest.approx(values[1], rel=1e-7)
    assert values[0] >= flow_time(topology) * (1 - 1e-7)


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
    assert flow_time("path:4") == pytest.approx(4.0)


@relaxed
@given(topologies(5), st.integers(0, 2**32 - 1))
def test_any_prices_bound_any_optimum(topology, seed):
    data, value, values = solved(NAME, topology, steps=int(topology.diameter) + 1, aggregate="source")
    random = np.random.default_rng(seed)
    for prices in (random.random(data.shape[::2]), random.exponential(size=data.shape[::2]) ** 4):
        assert price_bound(data, prices) <= value * (1 + 1e-9)
    for bound in data.bounds():
        assert bound.value <= value * (1 + 1e-7), bound
    noisy = {"f": values["f"] + random.normal(size=data.shape) * 1e-3, "U": values["U"]}
    repaired = data.repair(noisy)
    assert max(data.residuals(repaired).values()) < 1e-9
    assert data.objective(repaired) >= value * (1 - 1e-9)


@pytest.mark.parametrize("spec", ["hypercube:3", "bipartite:4x4", "genkautz:n=12,d=4"])
def test_the_duals_prove_the_optimum(spec):
    for aggregate in ("commodity", "source"):
        run = solve.solve(Task(model.StepFlow.name, spec, method="highs-simplex", settings={"aggregate": aggregate}))
        assert run.proof == "optimal", run.record
        data, form = compiled(NAME, spec, aggregate=aggregate)
        assert data.certify(run.duals).value == pytest.approx(run.objective, rel=1e-9)
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


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"steps": 2}, "distance of a demand is 3"),
    ],
)
def test_refusals(parameters, word):
    with pytest.raises(NotApplicable, match=word):
        model.StepFlow.prepare(parse("hypercube:3"), parameters)


# relays ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["hypercube:3", "genkautz:n=8,d=2", "path:4"])
@pytest.mark.parametrize("host", [0.5, 1.3, 100.0])
def test_arcs_of_a_host_take_no_step_of_their_own(spec, host):
    """A host's limit is a row over all arcs at a vertex of the bare network: an independent statement of the model."""
    topology, augmented = parse(spec), f"{spec}+host={host}"
    L = int(topology.diameter) + 1
    form = compiled(NAME, spec, "pyomo", steps=L, aggregate="source")[1]
    place = {name: block.index.reshape(block.shape) for name, block in form.columns.items()}  # -1: no such flow
    rows = np.zeros((2 * topology.n * L, form.A.shape[1]))
    cells = [(ends == u, t) for ends in (topology.tail, topology.head) for u in range(topology.n) for t in range(L)]
    for row, (arcs, t) in zip(rows, cells, strict=True):
        row[[column for column in place["f"][arcs, :, t].ravel() if column >= 0]] = 1.0
        row[place["U"][t]] = -host
    own = LinearConstraint(form.A, form.row_lower, form.row_upper)
    limits = Bounds(form.col_lower, form.col_upper)
    least = milp(form.cost, constraints=[own, LinearConstraint(rows, ub=0.0)], bounds=limits).fun
    assert solved(NAME, augmented, steps=L, aggregate="source")[1] == pytest.approx(least, rel=1e-7)


def test_a_step_is_one_link():
    """Paper, section 3.2.3: three steps and the fluid time where arcs of hosts as steps take nine and 7.67."""
    spec = "hypercube:3+host=2"
    assert flow_time(spec) == pytest.approx(6.0)
    assert solved(NAME, spec, aggregate="source")[1] == pytest.approx(6.0)
    data, value, _ = solved(NAME, spec, aggregate="source", relays="step")
    assert (data.steps, value) == (9, pytest.approx(23 / 3))
    assert solved(NAME, "hypercube:2+host=9,relay=nic")[0].steps == 1, "NICs forward within the step"


@pytest.mark.parametrize("spec", ["hypercube:2+host=1.5", "hypercube:2+host=0.8,relay=nic"])
def test_what_a_relay_keeps_is_refused(spec):
    data, _, values = solved(NAME, spec, steps=3, aggregate="source")
    assert max(data.residuals(values).values()) < 1e-8
    a, k, t = next(
        (a, k, t) for a, k, t in np.argwhere(values["f"] > 1e-3) if not data.holds[data.topology.head[a]] and t < 2
    )
    late = {name: array.copy() for name, array in values.items()}
    out = data.topology.tail == data.topology.head[a]
    late["f"][out, k, t + 1] += late["f"][out, k, t]
    late["f"][out, k, t] = 0.0
    assert data.residuals(late)["passing"] > verify.FEASIBLE
    noise = np.random.default_rng(3).normal(size=data.shape) * 1e-3
    repaired = data.repair({"f": values["f"] + noise, "U": values["U"]})
    assert max(data.residuals(repaired).values()) < 1e-9
    assert price_bound(data, np.random.default_rng(4).random(data.shape[::2])) <= data.objective(values)


@pytest.mark.parametrize(("spec", "steps", "open_"), [("star:4", 2, True), ("star:4", 3, False), ("ring:5", 2, False)])
def test_a_bound_says_whether_one_step_more_may_take_less(spec, steps, open_):
    """Three leaves exchange nine shards through the hub in three steps, in two of them it is idle for a third."""
    run = solve.solve(Task("alltoall.timestep-mcf", spec, settings={"steps": steps}))
    more = run.record.metrics["more_steps"]
    longer = solve.solve(Task("alltoall.timestep-mcf", spec, settings={"steps": steps + 1}))
    assert (more is not None) == open_ == (longer.objective < run.objective * (1 - 1e-6))
    if open_:
        assert more == f"steps={steps + 1} may take less: any number of steps takes at least 3"
