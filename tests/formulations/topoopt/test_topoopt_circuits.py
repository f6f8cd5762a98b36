"""Circuits for a task graph: values by hand, bounds against all circuits, the checker, the replay, refusals."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from slow_cases import marked

from opticoll.errors import BadInput, MethodMismatch, NotApplicable
from opticoll.formulations.topoopt.circuits import TaskCircuits
from opticoll.formulations.topoopt.circuits_bounds import one_after_another
from opticoll.instances import parse
from opticoll.instances.training.task_graph import TaskGraphDraft
from opticoll.instances.training.task_pool import TaskPool
from opticoll.solvers.methods.topoopt.circuit_search import best_shares, replayed
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Proof, Task

NAME = "topoopt.circuits"


def one_transfer(degree: int) -> TaskPool:
    """1 ms on server 0, 12.5 MB to server 1 (1 ms over a circuit of 100 Gb/s), 2 ms there."""
    draft = TaskGraphDraft(2)
    sent = draft.transfer(0, 1, 12.5e6, [draft.compute(0, 1e-3)])
    draft.compute(1, 2e-3, [sent])
    return TaskPool(draft.finished(), degree)


@pytest.mark.parametrize(("degree", "makespan"), [(1, 4.0), (2, 3.5)])
def test_one_transfer_takes_its_bytes_over_all_ports(degree, makespan):
    run = solve(Task(NAME, one_transfer(degree)))
    assert run.objective == pytest.approx(makespan)
    assert run.proof == "optimal"
    for bound in TaskCircuits.prepare(one_transfer(degree)).bounds()[:2]:
        assert bound.value == pytest.approx(makespan)


def test_two_configurations_are_worth_their_delay():
    """0 sends to 1, which sends on to 2, 1 ms each; then 2 to 0. One port: a ring serves all three."""
    draft = TaskGraphDraft(3)
    first = draft.transfer(0, 1, 12.5e6)
    second = draft.transfer(0, 2, 12.5e6, [first])
    draft.transfer(0, 1, 12.5e6, [second])
    pool = TaskPool(draft.finished(), 1)
    static = solve(Task(NAME, pool))
    assert static.objective == pytest.approx(3.0)  # over 0 -> 1 -> 2, everything at full rate
    for delay, makespan in ((0.0, 3.0), (0.5, 3.5)):
        settings = {"configurations": 2, "intervals": 2, "delay": delay}
        assert solve(Task(NAME, pool, settings=settings)).objective == pytest.approx(makespan)


def test_a_second_configuration_gives_other_circuits():
    """Each of three sends to the next, then to the one before: two hops there for one configuration, one for two."""
    draft = TaskGraphDraft(3)
    join = draft.join([draft.transfer(s, (s + 1) % 3, 12.5e6) for s in range(3)])
    for s in range(3):
        draft.transfer(s, (s - 1) % 3, 12.5e6, [join])
    pool = TaskPool(draft.finished(), 1)
    settings = {"configurations": 2, "delay": 0.25}
    assert solve(Task(NAME, pool, "highs", settings=settings)).objective == pytest.approx(2.25)
    static = solve(Task(NAME, pool, "circuit-search", settings={"patience": 5}))
    assert (static.objective, static.proof) == (pytest.approx(3.0), "optimal")


def all_circuits(n: int, degree: int):
    """Every number of circuits between servers with at most ``degree`` out of and into each."""
    rows = [
        [list(row) for row in product(range(degree + 1), repeat=n) if sum(row) <= degree and not row[u]]
        for u in range(n)
    ]
    for chosen in product(*rows):
        x = np.array(chosen, dtype=float)
        if (x.sum(axis=0) <= degree).all():
            yield x


@pytest.mark.parametrize("intervals", [7, 0])
@pytest.mark.parametrize(
    ("degree", "seed"), [marked(degree, seed, slow=(degree + seed) % 2 == 0) for degree in (1, 2) for seed in range(6)]
)
def test_bounds_hold_for_all_circuits_and_the_optimum_lies_between(seed, degree, intervals):
    """2 E - 1 = 7 intervals are as good as any number; 0: one for every wave, for which there is one more bound."""
    pool = parse(f"tasks:random,n=3,degree={degree},transfers=4,seed={seed}")
    data = TaskCircuits.prepare(pool, {"intervals": intervals})
    found = [values for x in all_circuits(3, degree) if (values := replayed(data, x)) is not None]
    assert found
    for values in found:
        assert max(data.residuals(values).values()) <= 1e-9
    best, bound = min(float(values["z"]) for values in found), max(bound.value for bound in data.bounds())
    assert bound <= best + 1e-9
    run = solve(Task(NAME, pool, "highs", settings={"intervals": intervals}, time_limit_s=60))
    assert run.verified
    assert bound - 1e-6 <= run.objective <= best + 1e-6


def test_replays_end_in_the_intervals_that_there_are():
    pool = parse("tasks:moe,n=4,degree=2,layers=2,seed=3")
    x = np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), 2, axis=1)
    times = []
    for intervals in (4, 6, 60):
        data = TaskCircuits.prepare(pool, {"intervals": intervals})
        values = replayed(data, x)
        assert max(data.residuals(values).values()) <= 1e-9
        times.append(float(values["z"]))
    assert times[2] < times[0]
    with pytest.raises(NotApplicable, match="in 4 waves; set intervals to 4 or more"):
        TaskCircuits.prepare(pool, {"intervals": 3})


@pytest.mark.parametrize(
    ("name", "place", "change", "block"),
    [
        ("z", (), -0.5, "last"),
        ("t", (1,), -30.0, "follow"),
        ("l", (0,), -1.0, "capacity"),
        ("b", (0, 0), -1.0, "all"),
        ("y", (0, 0, 1, 0), 1.0, "out"),
        ("a", (0, 0), -1.0, "shares"),
        ("f", (0, 0, 1, 0), 1.0, "apart"),
    ],
)
def test_the_checker_names_the_block_that_is_violated(name, place, change, block):
    data = TaskCircuits.prepare(parse("tasks:moe,n=3,degree=1"))
    values = replayed(data, np.roll(np.eye(3), 1, axis=1))
    assert max(data.residuals(values).values()) <= 1e-9
    values = {key: array.copy() for key, array in values.items()}
    values[name][place] += change if name != "y" else 1.0
    assert data.residuals(values)[block] > 1e-3


def test_a_transfer_before_what_it_waits_for_is_refused():
    data = TaskCircuits.prepare(parse("tasks:moe,n=2,degree=1"))
    values = replayed(data, np.array([[0.0, 1.0], [1.0, 0.0]]))
    late = {**values, "t": values["t"] - 1.5}
    assert data.residuals(late)["ready"] > 1e-3
    early = {**values, "t": values["t"] - [0.0, 0.5]}  # the experts need 1 ms
    assert data.residuals(early)["wait"] > 1e-3


def test_a_transfer_of_a_few_bytes_is_sent_before_what_waits_for_it():
    """100 bytes to 1, for which 5 ms wait, within 1e-6 of the 10 ms of another transfer."""
    draft = TaskGraphDraft(3)
    draft.transfer(0, 2, 12.5e7)
    draft.compute(1, 5e-3, [draft.transfer(0, 1, 100.0, [draft.compute(0, 9e-3)])])
    data = TaskCircuits.prepare(TaskPool(draft.finished(), 1), {"intervals": 2})
    ring = replayed(data, np.roll(np.eye(3), 1, axis=1))
    assert max(data.residuals(ring).values()) <= 1e-9
    small = int(np.argmin(data.transfers.size))
    without = {name: ring[name].copy() for name in ring}
    without["a"][:, small] = without["b"][:, small] = 0.0
    assert data.residuals(without)["all"] > 1e-6
    short = {**ring, "f": ring["f"].copy()}
    short["f"][0, 0, 0, 1] -= data.transfers.size[small]
    assert data.residuals(short)["balance"] > 1e-6


def test_jobs_on_one_machine():
    heads, sizes, tails = np.array([0.0, 2.0, 9.0]), np.array([3.0, 3.0, 1.0]), np.array([4.0, 4.0, 0.0])
    assert one_after_another(heads, sizes, tails) == 10.0  # 0 + 3 + 3 + 4; the last one ends at 10, too
    assert one_after_another(heads[:1], sizes[:1], tails[:1]) == 7.0


def test_the_search_beats_the_design_for_the_sum_of_traffic():
    task = {"settings": {"intervals": 8}, "seed": 1}
    spec = "tasks:moe,n=4,degree=1,seed=1"
    finder = solve(Task(NAME, spec, "replayed-finder", **task))
    searched = solve(Task(NAME, spec, "circuit-search", **task))
    assert searched.verified
    assert finder.verified
    assert searched.objective < finder.objective
    assert searched.objective >= searched.bound


@pytest.mark.parametrize(("n", "degree", "hops"), [(4, 2, 2.0), pytest.param(8, 4, 2.5, marks=pytest.mark.slow)])
def test_a_mixture_of_experts_takes_its_hops_in_two_waves(n, degree, hops):
    """2 ms, 1 ms, and twice the hops of a shard to every other server over the ports: 1 + 1 + 2, and 4 + 3 * 2."""
    spec = f"tasks:moe,n={n},degree={degree}"
    shard = TaskCircuits.prepare(parse(spec)).transfers.size[0]
    run = solve(Task(NAME, spec, "circuit-search", settings={"patience": 5}))
    assert run.objective == pytest.approx(3 + hops * 3 * shard)
    assert run.proof == "optimal"
    assert run.record.bound_source == "waves"
    more = TaskCircuits.prepare(parse(spec), {"intervals": 9}).bounds()  # experts may compute while others send
    assert max(bound.value for bound in more) == pytest.approx(2 + hops * 3 * shard)


@pytest.mark.parametrize(("delay", "ms"), [("3d-mems", 10.0), ("11.5us", 0.0115), (2, 2.0), ("2.5", 2.5)])
def test_a_delay_is_a_number_of_milliseconds_a_time_or_a_technology(delay, ms):
    assert TaskCircuits.prepare(one_transfer(1), {"configurations": 2, "delay": delay}).delay == ms
    with pytest.raises(BadInput, match=r"delay=-1\.0; give a finite time of at least 0"):
        TaskCircuits.prepare(one_transfer(1), {"delay": -1})


def test_two_configurations_send_a_wave_each():
    """12.5 MB to and fro over one port, 1 ms each, and 0.25 ms between: the second wave needs other circuits."""
    draft = TaskGraphDraft(2)
    draft.transfer(1, 0, 12.5e6, [draft.transfer(0, 1, 12.5e6)])
    data = TaskCircuits.prepare(TaskPool(draft.finished(), 1), {"intervals": 1, "configurations": 2, "delay": 0.25})
    assert {bound.name: bound.value for bound in data.bounds()} == pytest.approx({"path": 2, "ports": 2, "waves": 2.25})


def test_the_best_routes_of_a_wave_are_faster_than_equal_shares():
    """0 to 1 over 2 and 3, 2 ms of a circuit, and 3 to 1, 1 ms: 3 ms over the two circuits into 1."""
    draft = TaskGraphDraft(4)
    for s, t in ((0, 1), (0, 1), (3, 1)):
        draft.transfer(s, t, 12.5e6)
    pool, x = TaskPool(draft.finished(), 2), np.zeros((4, 4))
    x[[0, 0, 2, 3], [2, 3, 1, 1]] = 1
    data = TaskCircuits.prepare(pool)
    assert float(replayed(data, x)["z"]) == pytest.approx(2.0)  # half of 0's bytes over 3
    context = SimpleNamespace(data=data, part=Task, solve=solve)
    paths = best_shares(context, x)
    assert paths.sum(axis=0)[3, 1] == pytest.approx(1.5)
    best = replayed(data, x, paths)
    assert max(data.residuals(best).values()) <= 1e-9
    assert float(best["z"]) == pytest.approx(1.5)


def test_an_all_reduce_is_the_hops_of_its_rings():
    draft = TaskGraphDraft(4)
    draft.all_reduce((0, 1, 2, 3), 12.5e6)
    pool = TaskPool(draft.finished(), 1)
    one, two = (TaskCircuits.prepare(pool, {"rings": rings}).transfers for rings in ("1", "1+3"))
    assert one.size.tolist() == [1.5] * 4
    assert two.size.tolist() == [0.75] * 8
    assert list(zip(two.source.tolist(), two.target.tolist(), strict=True))[4:] == [(0, 3), (3, 2), (2, 1), (1, 0)]
    for rings in ("2", "0", "1+1", "x"):
        with pytest.raises(BadInput):
            TaskCircuits.prepare(pool, {"rings": rings})
    with pytest.raises(BadInput, match="has none; omit rings"):
        TaskCircuits.prepare(one_transfer(1), {"rings": "3"})


def test_what_is_no_task_graph_is_refused():
    with pytest.raises(NotApplicable, match="needs servers with a task graph, such as tasks:moe"):
        TaskCircuits.prepare(parse("servers:n=4,degree=2"))
    with pytest.raises(MethodMismatch, match="sets one configuration, not 2"):
        solve(Task(NAME, "tasks:moe,n=3,degree=1", "circuit-search", settings={"configurations": 2}))


@pytest.mark.parametrize("form", ["pyomo", "cvxpy"])
@pytest.mark.parametrize(
    ("sizes", "computing"), [((1, 2), (1, 2)), ((1, 1), (0, 0)), ((2, 1, 1), (0, 1, 0)), ((1, 2), (0.5, 0.25))]
)
def test_a_chain_takes_the_sum_of_its_times(sizes, computing, form):
    """On one port each; a solver's answer that ends 1e-9 early is repaired, not contradicted by the bound."""
    draft, after = TaskGraphDraft(3), []
    for place, (size, ms) in enumerate(zip(sizes, computing, strict=True)):
        after = [draft.compute(place, ms * 1e-3, after=after)]
        after = [draft.transfer(place, (place + 1) % 3, size * 12.5e6, after=after)]
    run = solve(Task(NAME, TaskPool(draft.finished(), degree=1), form=form))
    assert (run.objective, run.proof) == (pytest.approx(sum(sizes) + sum(computing), rel=1e-12), Proof.OPTIMAL)


def test_a_repaired_schedule_is_exact_and_no_repair_sends_what_waits_at_once():
    data = TaskCircuits.prepare(parse("tasks:moe,n=3,degree=1"))
    values = solve(Task(NAME, "tasks:moe,n=3,degree=1")).values
    noise = np.random.default_rng(0)
    rough = {name: array * (1 + 1e-6 * noise.standard_normal(np.shape(array))) for name, array in values.items()}
    repaired = data.repair(rough)
    assert repaired is not None
    assert max(data.residuals(repaired).values()) <= 1e-12
    assert data.objective(repaired) == pytest.approx(data.objective(values), rel=1e-5)
    assert data.repair({**values, "a": np.ones_like(values["a"])}) is None
    assert data.repair({**values, "b": np.zeros_like(values["b"])}) is None
    assert data.repair({**values, "y": np.zeros_like(values["y"])}) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.5, 5.0), "task 0, server: must be"),
        ((0, 1, "12MB"), "task 0, amount: must be"),
        ((0, 1, 5.0, "x"), "task 0, after: must be a list"),
        ((0, 1, 5.0, 0), "task 0, after: must be a list"),
    ],
)
def test_a_draft_refuses_what_is_no_task(arguments, message):
    with pytest.raises(BadInput, match=message):
        TaskGraphDraft(3).transfer(*arguments)


def test_transfers_of_less_than_a_nanosecond_are_refused():
    draft = TaskGraphDraft(3)
    draft.transfer(0, 1, 1e9)
    draft.transfer(1, 2, 5.0)
    with pytest.raises(NotApplicable, match="5 bytes from server 1 to 2 take less than a nanosecond"):
        TaskCircuits.prepare(TaskPool(draft.finished(), degree=1))
