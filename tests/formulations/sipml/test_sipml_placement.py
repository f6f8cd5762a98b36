"""SiP-ML placement: Algorithm 1 with both repairs, exact placements, bounds, computation graphs."""

from __future__ import annotations

import itertools

import flint
import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import optimum, refused

from opticoll.analysis.papers.sipml.claims import hybrid_traffic
from opticoll.errors import BadInput, NotApplicable
from opticoll.formulations.sipml import ocs_circuits, placement, placement_solution
from opticoll.instances import parse
from opticoll.instances.families.op_graphs import OpGraph
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.sipml.degree_aware import RANGES, Repair, Unrolled, hybrids
from opticoll.solvers.methods.sipml.placement_enumeration import Enumeration
from opticoll.solvers.task import Proof, Task

NAME = "sipml.placement"
FREE = {"replicas": 1, "degree": 99}


def random_graph(rng, n, density=0.4):
    tail, head = np.nonzero(np.triu(rng.random((n, n)) < density, 1))
    return OpGraph(rng.integers(1, 9, n), np.arange(n), tail, head, rng.integers(1, 5, tail.size))


def placed_by(kind, data, moves=10**6):
    state = kind(data, moves)
    if not state.place():
        return None
    device = np.array(state.device)
    return {"device": device.astype(float), "start": placement_solution.starts(data, device, np.arange(data.n))}


def brute_force(data):
    """Every order along the dependencies with every choice of GPUs."""
    graph, best = data.graph, np.inf
    before = [set(graph.tail[graph.head == v].tolist()) for v in range(data.n)]
    orders = [o for o in itertools.permutations(range(data.n)) if all(before[v] <= set(o[:i]) for i, v in enumerate(o))]
    for chosen in itertools.product(range(data.devices), repeat=data.n):
        device = np.array(chosen)
        if not any(placement._beyond(data, device).values()):
            for order in orders:
                begun = placement_solution.starts(data, device, np.array(order))
                best = min(best, float((begun + graph.duration).max()))
    return best


PARAMETERS = (
    {"k": 2, "degree": 2},
    {"k": 3, "degree": 2},
    {"k": 3, "degree": 2, "rule": "degree"},
    {"k": 2, **FREE},
    {"k": 3, "degree": 2, "rule": "degree", "bandwidth": 1e6},
    {"k": 3, "degree": 2, "bandwidth": 1e6},
)


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_exhaustive_search_is_brute_force(parameters):
    rng = np.random.default_rng(len(str(parameters)))
    for n in (3, 4, 5, 5):
        data = placement.Placement.prepare(random_graph(rng, n), parameters)
        search = Enumeration(data, 10**6)
        assert search.search()
        assert search.best == pytest.approx(brute_force(data))
        values = {"device": search.device.astype(float), "start": search.start}
        assert max(data.residuals(values).values()) == 0
        assert data.objective(values) == search.best
        assert all(bound.value <= search.best for bound in data.bounds())
        assert data.objective(placed_by(Unrolled, data)) >= search.best


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_milp_is_exhaustive_search(parameters):
    data = placement.Placement.prepare(random_graph(np.random.default_rng(7), 6), parameters)
    form = compile_model(data.cvxpy())
    value, x = optimum(form)
    values = data.repair(form.values(x))
    assert max(data.residuals(values).values()) == 0
    search = Enumeration(data, 10**6)
    assert search.search()
    assert data.objective(values) == pytest.approx(value, rel=1e-5)
    assert search.best == pytest.approx(value, rel=1e-5)


def heavy_graph(rng, n):
    graph = random_graph(rng, n)
    return OpGraph(
        graph.duration, graph.operation, graph.tail, graph.head, graph.volume, rng.integers(1, 9, n), spec="heavy"
    )


def limited(rng, n, share, **parameters):
    """A graph and a memory this share between what the sub-operations need at least and what one GPU for all needs."""
    graph = heavy_graph(rng, n)
    held = placement.Placement.prepare(graph, parameters).occupied
    least = max(held.max(), held.sum() / parameters["k"])
    return placement.Placement.prepare(graph, {**parameters, "memory": (least + share * (held.sum() - least)) / 2**30})


MEMORY = (
    {"k": 2, "degree": 2},
    {"k": 3, "degree": 2, "bandwidth": 1e6},
    {"k": 3, "degree": 3, "rule": "degree"},
    {"k": 2, **FREE, "bandwidth": 5e5},
)


@each("parameters", MEMORY)
@each("share", [0.0, 0.1, 0.4])
def test_memory_by_brute_force_by_search_and_by_the_program(parameters, share):
    """All orders and GPUs whose memory suffices; the program and the search find the same, or that there is none."""
    rng = np.random.default_rng(int(10 * share) + len(str(parameters)))
    for n in (3, 4, 5):
        data = limited(rng, n, share, **parameters)
        graph, best = data.graph, np.inf
        before = [set(graph.tail[graph.head == v].tolist()) for v in range(n)]
        orders = [o for o in itertools.permutations(range(n)) if all(before[v] <= set(o[:i]) for i, v in enumerate(o))]
        needs = 2 * graph.weights + np.array([graph.volume[graph.head == v].sum() for v in range(n)])
        for chosen in itertools.product(range(data.devices), repeat=n):
            device = np.array(chosen)
            held = max(needs[device == g].sum() for g in range(data.devices))
            if held <= data.memory * (1 + 1e-9) and not any(placement._beyond(data, device).values()):
                ends = [placement_solution.starts(data, device, np.array(order)) + graph.duration for order in orders]
                best = min(best, *(float(end.max()) for end in ends))
        search = Enumeration(data, 10**6)
        assert search.search()
        assert search.best == pytest.approx(best)
        if not np.isfinite(best):
            continue
        values = {"device": search.device.astype(float), "start": search.start}
        assert max(data.residuals(values).values()) == 0
        assert all(bound.value <= best for bound in data.bounds())
        for kind in (Unrolled, Repair):
            result = placed_by(kind, data)
            if result is not None:
                assert max(data.residuals(result).values()) == 0
                assert data.objective(result) >= best * (1 - 1e-9)
    form = compile_model(data.cvxpy())
    if np.isfinite(best):
        value, x = optimum(form)
        assert value == pytest.approx(best, rel=1e-5)
        assert max(data.residuals(data.repair(form.values(x))).values()) == 0


def test_memory_forces_delays_and_is_checked():
    """Two sub-operations of 3 bytes each, one byte between them, and GPUs of 4 bytes: they must be apart."""
    graph = OpGraph([2.0, 3.0], [0, 1], [0], [1], [1.0], [3.0, 2.0])
    parameters = {"k": 2, "degree": 2, "bandwidth": 1e6, "states": 1}
    tight = placement.Placement.prepare(graph, {**parameters, "memory": 4 / 2**30})
    assert tight.occupied.tolist() == [3.0, 3.0]
    chain = next(bound for bound in tight.bounds() if bound.name == "critical-path")
    assert chain.value == pytest.approx(6.0)
    roomy = placement.Placement.prepare(graph, {**parameters, "memory": 6 / 2**30})
    for data, end in ((tight, 6.0), (roomy, 5.0)):
        search = Enumeration(data, 1000)
        assert search.search()
        assert search.best == pytest.approx(end)
    together = {"device": np.zeros(2), "start": np.array([0.0, 2.0])}
    assert max(roomy.residuals(together).values()) == 0
    assert tight.residuals(together)["memory"] == pytest.approx(0.5)
    with pytest.raises(NotApplicable, match=r"at least 2\.794e-09 GiB per GPU"):
        placement.Placement.prepare(graph, {**parameters, "memory": 2 / 2**30})


def test_a_tolerance_of_the_solver_is_no_contradiction():
    """4 and 4 on one GPU, 5 on the other: HiGHS may overlap the first two by 1e-8, which the repair takes back."""
    graph = OpGraph([4.0, 5.0, 4.0], [0, 1, 2], [], [], [])
    run = solve.solve(Task(NAME, graph, method="highs", settings={"k": 2, "degree": 2}))
    assert (run.proof, run.objective) == (Proof.OPTIMAL, 8.0)


def test_memory_end_to_end():
    """A memory that just holds an even spread: Algorithm 1 keeps to it or says which sub-operation has no room."""
    spec = "op-graph:model=transformer,layers=2,parts=4,hidden=256"
    named = {"k": "4", "degree": "4", "replicas": "1"}
    whole = placement.Placement.prepare(parse(spec), {"k": 4, "degree": 4, "replicas": 1})
    total = whole.occupied.sum() / 2**30
    run = solve.solve(Task(NAME, spec, method="degree-aware", settings={**named, "memory": str(total * 0.5)}))
    assert run.verified
    assert np.bincount(run.values["device"].astype(int), whole.occupied).max() <= total * 2**30 * 0.5
    run = solve.solve(Task(NAME, spec, method="degree-aware", settings={**named, "memory": str(total * 0.2501)}))
    assert run.verified or "memory for sub-operation" in run.record["message"]
    never = OpGraph([1, 1, 1], [0, 1, 2], [], [], [], [2, 2, 2])
    asked = {"k": "2", "degree": "2", "replicas": "1", "memory": str(3 / 2**30), "states": "1"}
    run = solve.solve(Task(NAME, never, method="placement-enumeration", settings=asked))
    assert run.termination == "infeasible"


def test_hybrids_by_hand_and_by_what_they_leave_out():
    """Every divisor of N: the makespan is Algorithm 1's, the ring adds 2 (l-1)/l of the fullest GPU's parameters."""
    spec = "op-graph:model=dlrm,layers=1,hidden=64"
    tried = hybrids(spec, 12, 24, degree=4, bandwidth=1e9)
    assert [(one.k, one.replicas) for one in tried] == [(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]
    for one in tried:
        asked = {"k": one.k, "degree": 4, "replicas": one.replicas, "bandwidth": 1e9}
        data = placement.Placement.prepare(parse(f"{spec},parts={one.k},batch={24 // one.replicas}"), asked)
        results = [placed for kind in (Unrolled, Repair) if (placed := placed_by(kind, data, 20 * data.n)) is not None]
        best = min(results, key=lambda placed: data.objective(placed))
        assert one.makespan == data.objective(best)
        held = np.bincount(best["device"].astype(int), data.graph.weights).max()
        assert one.all_reduce == pytest.approx(2 * (one.replicas - 1) / one.replicas * held / 1e9 * 1e6)
        assert one.time == one.makespan + one.all_reduce
    assert [one.k for one in hybrids(spec, 12, 8, degree=4, bandwidth=1e9)] == [3, 6, 12]
    assert [one.k for one in hybrids(spec, 4, 4, degree=1, bandwidth=1e9)] == [1, 4]
    small = hybrids(spec, 4, 4, degree=4, bandwidth=1e9, memory=1.2 * 4 * 64e6 * 4 / 4 / 2**30)
    assert [one.k for one in small] != [1, 2, 4]
    with pytest.raises(NotApplicable, match="bandwidth=0"):
        hybrids(spec, 4, 4, degree=3, bandwidth=0)


def test_closed_forms():
    """One part before m parts: 1 + ceil(m / (Delta + 1)); the paper's example has four on three GPUs."""
    for m, degree, makespan in ((4, 3, 3.0), (4, 4, 2.0), (3, 3, 2.0), (6, 3, 3.0), (7, 4, 3.0)):
        for rule in placement_solution.RULES:
            parameters = {"k": 4, "degree": degree, "rule": rule}
            search = Enumeration(
                placement.Placement.prepare(parse(f"op-graph:model=chain,splits=1x{m}"), parameters), 10**6
            )
            assert search.search()
            assert search.best == makespan, (m, degree, rule)
    named = {"k": "4", "degree": "3"}
    run = solve.solve(Task(NAME, "op-graph:model=chain,splits=1x4", method="placement-enumeration", settings=named))
    assert (run.objective, run.proof) == (3.0, Proof.OPTIMAL)
    one = solve.solve(Task(NAME, "op-graph:model=chain,splits=2x1x3", settings={"k": "1"}))
    assert (one.objective, one.proof) == (6.0, Proof.OPTIMAL)


@settings(max_examples=24, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), k=st.integers(1, 9), degree=st.integers(2, 6))
def test_unrolled_repair_always_ends_within_reach(seed, n, k, degree):
    rng = np.random.default_rng(seed)
    parameters = {"k": min(k, n), "degree": degree, "bandwidth": float(rng.choice([0.0, 1e6]))}
    data = placement.Placement.prepare(random_graph(rng, n, rng.uniform(0.02, 0.6)), parameters)
    values = placed_by(Unrolled, data)
    assert max(data.residuals(values).values()) == 0
    value = data.objective(values)
    assert max(bound.value for bound in data.bounds()) <= value <= data.work * (1 + 1e-9) + data.delay.sum()
    sends, receives = placement_solution.peers_of(data, values["device"].astype(int))
    assert max(sends.max(), receives.max()) <= data.delta
    other = placed_by(Repair, data, 500)
    if other is not None:
        assert max(data.residuals(other).values()) == 0


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), power=st.integers(-20, 20))
def test_units_and_rotations_do_not_matter(seed, power):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 12)
    data = placement.Placement.prepare(graph, {"k": 5, "degree": 3})
    values = placed_by(Unrolled, data)
    turned = {**values, "device": (values["device"] + 2) % 5}
    assert max(data.residuals(turned).values()) == 0
    scaled = OpGraph(graph.duration * 2.0**power, graph.operation, graph.tail, graph.head, graph.volume)
    other = placement.Placement.prepare(scaled, {"k": 5, "degree": 3})
    assert other.objective(placed_by(Unrolled, other)) == data.objective(values) * 2.0**power
    for ours, theirs in zip(data.bounds(), other.bounds(), strict=True):
        assert theirs.value == pytest.approx(ours.value * 2.0**power)


def members(bits):
    return {g for g in range(64) if bits >> g & 1}


@pytest.mark.parametrize(
    ("parents", "text", "printed", "spanned"),
    [
        ((2,), {2, 3, 4}, {2, 3, 4}, {2, 3, 4}),
        ((2, 3), {3, 4}, {3, 4}, {2, 3, 4, 5}),
        ((7, 0), {0, 1}, set(), set(range(8))),  # neighbours on the circle, not on the line of numbers
        ((6, 7), {7, 0}, {7, 0}, {6, 7, 0, 1}),
        ((1, 5), set(), set(), {1, 2, 3, 4, 5, 6, 7}),
    ],
)
def test_ranges_of_algorithm_1_by_hand(parents, text, printed, spanned):
    """Eight GPUs, Delta = 2: in reach of all parents; [max, min + 2] and [min, max + 2] of their numbers."""
    last, n = len(parents), 9
    graph = OpGraph(np.ones(n), np.arange(n), np.arange(last), np.full(last, last), np.ones(last))
    data = placement.Placement.prepare(graph, {"k": 8, "degree": 3})
    assert data.delta == 2
    for name, expected in (("text", text), ("printed", printed), ("spanned", spanned)):
        state = Repair(data, 10, name)
        state.device[:last] = parents
        assert members(state.candidates(last)) == expected


@settings(max_examples=16, deadline=None)
@given(st.integers(0, 10**6))
def test_every_range_gives_placements_within_the_distance(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(7, 14)))
    data = placement.Placement.prepare(graph, {"k": int(rng.integers(3, 7)), "degree": int(rng.integers(2, 4))})
    for name in RANGES:
        state = Repair(data, 10**4, name)
        if state.place():
            device = np.array(state.device)
            values = {
                "device": device.astype(float),
                "start": placement_solution.starts(data, device, np.arange(data.n)),
            }
            assert max(data.residuals(values).values()) == 0
        for v in range(data.n):
            if all(state.device[u] >= 0 for u in state.inputs(v)):
                narrow = Repair(data, 1, "printed")
                narrow.device = list(state.device)
                assert members(narrow.candidates(v)) <= members(narrow.reachable(v))


def test_the_paper_s_repair_gives_up_by_name():
    spec = "op-graph:model=resnet,layers=3,parts=16"
    settings_ = {"k": "16", "degree": "4", "repair": "paper"}
    run = solve.solve(Task(NAME, spec, method="degree-aware", settings={**settings_, "moves": "5"}))
    assert run.values is None
    assert run.termination == "iteration-limit"
    assert "use repair=best" in run.record["message"]
    run = solve.solve(Task(NAME, spec, method="degree-aware", settings={"k": "16", "degree": "4"}))
    assert run.verified
    assert run.record["metrics"]["repairs"]["unrolled"]["converged"]
    assert run.proof == Proof.CERTIFIED_GAP


def test_corrupted_placements_are_refused():
    data = placement.Placement.prepare(parse("op-graph:model=transformer,layers=2,parts=4"), {"k": 6, "degree": 3})
    good = placed_by(Unrolled, data)
    assert max(data.residuals(good).values()) == 0
    last = int(np.argmax(good["start"]))

    def wrong(name, at, value):
        bad = {key: array.copy() for key, array in good.items()}
        bad[name][at] = value
        return bad

    assert data.residuals(wrong("start", last, 0.0))["precede"] > 0
    assert data.residuals(wrong("start", 0, -1.0))["start"] > 0
    assert data.residuals(wrong("device", 0, (good["device"][0] + 3) % 6))["reach"] > 0
    for bad in (0.5, -1.0, 6.0, np.nan):
        assert refused(data, wrong("device", 1, bad))
    second = int(np.flatnonzero((good["device"] == good["device"][0]) & (data.graph.operation == 0))[-1])
    if second:
        assert data.residuals(wrong("start", second, 0.0))["overlap"] > 0
    squeezed = {**good, "start": np.zeros(data.n)}
    assert data.residuals(squeezed)["overlap"] > 0
    assert data.residuals({**good, "C": np.asarray(0.01)})["finish"] > 0
    degree = placement.Placement.prepare(data.graph, {"k": 6, "degree": 2, "rule": "degree"})
    spread = {**good, "device": np.arange(data.n) % 6.0}
    assert max(degree.residuals(spread)[name] for name in ("sends", "receives")) > 0
    for bad in ({}, {"device": good["device"]}, {"a": np.zeros((2, 2)), "S": good["start"]}):
        assert refused(data, bad)


def test_hybrid_traffic_keeps_the_degree():
    """k GPUs in l groups send to no more than D others, so D switches carry them."""
    for spec in ("op-graph:model=transformer,layers=3,parts=8", "op-graph:model=dlrm,layers=2,parts=8"):
        data = placement.Placement.prepare(parse(spec), {"k": 8, "degree": 3, "replicas": 3})
        device = placed_by(Unrolled, data)["device"].astype(int)
        pool = hybrid_traffic(data, device, 3)
        assert pool.n == 24
        circuits = ocs_circuits.OcsCircuits.prepare(pool)
        assert circuits._refute() is None
        inner = data.graph.volume[device[data.graph.tail] != device[data.graph.head]].sum()
        ring = 24 / 8 * data.graph.weights.sum() * 2 * 2 / 3
        assert pool.traffic.sum() == pytest.approx(3 * inner + ring)


@pytest.mark.parametrize(("model", "layers"), [("transformer", 3), ("resnet", 2), ("dlrm", 2), ("random", 20)])
@pytest.mark.parametrize("broadcast", [False, True])
def test_graphs_keep_work_bytes_and_order(model, layers, broadcast):
    spec = f"op-graph:model={model},layers={layers}"
    text = f",broadcast={'true' if broadcast else 'false'}"
    whole, split = (parse(f"{spec},parts={parts}{text}") for parts in (1, 6))
    assert split.duration.sum() == pytest.approx(whole.duration.sum())
    assert split.weights.sum() == pytest.approx(whole.weights.sum())
    assert split.operation[-1] == whole.operation[-1] == whole.n - 1
    assert (split.tail < split.head).all()
    if not broadcast:
        assert split.volume.sum() == pytest.approx(whole.volume.sum(), rel=1e-9) or model == "resnet"
    assert parse(split.spec) == split
    assert parse(split.spec).hash == split.hash != whole.hash
    counts = np.bincount(split.operation)
    assert counts.max() == 6
    assert parse(f"{spec},quantum=1e12{text}").n == whole.n


def test_every_product_is_split_by_the_dimension_that_moves_fewer_bytes():
    """Few samples: inputs are smaller than parameters, and products are split by channel; many: by sample."""
    spec = "op-graph:model=transformer,layers=1,parts=4,quantum=1e-6,hidden=1024"
    tokens = {batch: batch * 512 for batch in (1, 64)}
    for batch, wide in ((1, True), (64, False)):
        graph = parse(f"{spec},batch={batch},choose=true")
        sample, channel = (parse(f"{spec},batch={batch},broadcast={flag}") for flag in ("false", "true"))
        # The third product (operation 3) takes h numbers a token, and has 4 h^2 parameters, at two bytes each.
        assert (tokens[batch] * 1024 < 4 * 1024**2) == wide
        into = [int(((g.operation[g.head] == 3) & (g.operation[g.tail] == 2)).sum()) for g in (graph, sample, channel)]
        assert into == [16 if wide else 4, 4, 16]
        held = graph.weights[graph.operation == 3]
        assert held == pytest.approx([4 * 1024**2 * 2 / (4 if wide else 1)] * 4)
    still = parse(f"{spec},batch=1,choose=true,training=false")
    assert still.dependencies == parse(f"{spec},batch=1,training=false").dependencies
    for bad in (f"{spec},choose=true,broadcast=true", "op-graph:model=random,layers=4,choose=true"):
        with pytest.raises(BadInput, match="choose=true does not apply to"):
            parse(bad)


def test_a_random_graph_is_the_same_on_every_processor():
    """Times are powers of ten to the last digit (ball arithmetic); NumPy's power depends on the processor."""
    graph = parse("op-graph:model=random,layers=400,parts=1,hidden=1,batch=1,training=false,seed=3")
    random, size = np.random.default_rng(3), 100e6  # flop/us
    for v, duration in enumerate(graph.duration):
        time, _ = random.uniform(0.0, 1.0, 2)
        with flint.ctx.workprec(200):
            power = float((flint.arb(10) ** flint.arb(float(time))).mid())
        assert duration == power / size
        near = min(v, 5)
        count = min(near, int(random.integers(1, 4)))
        if v:
            random.choice(np.arange(v - near, v), size=count, replace=False)


def test_quantum_sets_the_parts():
    graph = parse("op-graph:model=transformer,layers=1,parts=64,quantum=50,training=false")
    counts = np.bincount(graph.operation)
    times = np.bincount(graph.operation, graph.duration)
    assert (counts == np.clip(np.round(times / 50), 1, 64)).all()


@each(
    ("make", "message"),
    [
        (lambda: parse("op-graph:model=nothing"), "unknown model 'nothing'"),
        (lambda: parse("op-graph:model=transformer,splits=1x2"), "no other model accepts it"),
        (lambda: parse("op-graph:model=chain"), "splits"),
        (lambda: parse("op-graph:model=chain,splits=1x0"), "at least 1 part"),
        (lambda: parse("op-graph:model=transformer,quantum=-1"), "quantum"),
        (lambda: parse("op-graph:model=transformer,layers=100000,parts=100000"), "use fewer"),
        (lambda: parse("op-graph:model=chain,splits=900000x900000"), "exceed the limits"),
        (lambda: OpGraph([1, 1], [0, 1], [1], [0], [1]), "violates the order"),
        (lambda: OpGraph([1, 0], [0, 1], [0], [1], [1]), "positive number of microseconds"),
        (lambda: OpGraph([1, 1], [0, 1], [0], [2], [1]), "outside"),
        (lambda: OpGraph([1, 1], [0, 1], [0, 0], [1, 1], [1, 1]), "twice"),
        (lambda: OpGraph([1, np.nan], [0, 1], [0], [1], [1]), "positive number"),
        (lambda: OpGraph([1, 1], [1, 0], [0], [1], [1]), "consecutive"),
        (lambda: OpGraph([1, 1], [0, 1], [0], [1], [-1]), "bytes"),
        (lambda: placement.Placement.prepare(parse("ring:8")), "needs a computation graph"),
        (lambda: placement.Placement.prepare(parse("op-graph:model=chain,splits=1x2"), {"degree": 1}), "degree=1"),
        (
            lambda: placement.Placement.prepare(parse("op-graph:model=chain,splits=1x2"), {"k": 4}),
            "a group of k=4 GPUs for 3",
        ),
    ],
)
def test_bad_input_is_one_line(make, message):
    with pytest.raises(BadInput, match=message):
        make()


def test_without_a_limit_it_is_list_scheduling():
    """Graham: at most 2 - 1/k times the bound where any GPU may send to any other and nothing takes time to send."""
    spec = "op-graph:model=resnet,layers=2,parts=8"
    run = solve.solve(Task(NAME, spec, method="degree-aware", settings={"k": "8", "degree": "8"}))
    assert run.objective <= (2 - 1 / 8) * run.bound
    assert run.record["metrics"]["repair"] == "paper"


@pytest.mark.slow
def test_twenty_thousand_sub_operations():
    data = placement.Placement.prepare(parse("op-graph:model=transformer,layers=128,parts=32"), {"k": 32, "degree": 5})
    assert data.n > 19_000
    values = placed_by(Unrolled, data)
    assert max(data.residuals(values).values()) == 0
