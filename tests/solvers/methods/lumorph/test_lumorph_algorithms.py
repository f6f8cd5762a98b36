"""LuMorph's algorithms: every pattern realised on a machine passes the independent check, and counts what it must."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_cases import marked

from opticoll.errors import BadInput, NotApplicable
from opticoll.formulations.lumorph.circuits import read_circuits
from opticoll.formulations.lumorph.mesh_cuts import exchange_overlap
from opticoll.formulations.lumorph.rounds import RoundModel
from opticoll.formulations.lumorph.sum_rounds import SumModel
from opticoll.formulations.parameters import read_parameters
from opticoll.formulations.rounds.collectives import Collective, collective
from opticoll.formulations.rounds.round_schedule import Limits, violations
from opticoll.instances import parse
from opticoll.solvers.methods import methods
from opticoll.solvers.methods.lumorph.assignment import assign_rounds
from opticoll.solvers.methods.lumorph.collective_algorithms import (
    ALGORITHMS,
    calls,
    cycle_order,
    greedy_rounds,
    independent_sets,
    layer_to_layer,
    pattern_of,
    square_order,
    square_radices,
)
from opticoll.solvers.methods.lumorph.index_algorithm import index_pattern
from opticoll.solvers.methods.lumorph.overlap_search import min_overlap_routes
from opticoll.solvers.methods.lumorph.patterns import (
    binomial_tree,
    depths,
    exchange,
    factors,
    heap_tree,
    least_steps,
    neighbour_exchange,
    recursive,
    ring,
    tree_spread,
    two_trees,
)
from opticoll.solvers.methods.lumorph.realisation import compacted, edge_colours, realised
from opticoll.solvers.methods.method import Context
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task

SPREADING = ("all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce")
VARIANTS = (
    ("recursive", {"radix": 2}),
    ("recursive", {"radix": 4}),
    ("recursive", {"radix": 3, "scheme": "circulant"}),
    ("recursive", {"radix": 4, "order": "far-first"}),
    ("ring", {}),
    ("tree", {}),
    ("tree", {"arity": 0, "batch": 1}),
    ("double-binary-tree", {}),
    ("divide-and-conquer", {}),
    ("neighbour-exchange", {}),
)


def machine(spec, load=1):
    topology = parse(spec)
    return topology, Limits(topology.lasers, topology.waveguides, load=load)


def holds(pattern, p):
    """Shards of every rank after a pattern of copies, by plain replay: ``(p, p)``, or None where one was not held."""
    has = np.eye(p, dtype=bool)
    for step in range(pattern.steps):
        mask = pattern.step == step
        if not has[pattern.source[mask], pattern.chunk[mask]].all():
            return None
        has[pattern.target[mask], pattern.chunk[mask]] = True
    return has


# patterns -----------------------------------------------------------------------------------------------------


@given(st.integers(2, 40), st.integers(2, 9))
@settings(max_examples=24, deadline=None)
def test_recursive_patterns_deliver_every_shard_once_in_the_fewest_steps(p, radix):
    for scheme in ("auto", "circulant"):
        pattern = recursive(p, radix, scheme)
        assert pattern.steps == least_steps(p, radix)
        assert pattern.transfers == p * (p - 1)
        assert holds(pattern, p).all()
    peers = recursive(p, radix)
    step, source, target, _ = peers.pairs(p)
    assert np.bincount(step * p + source).max() <= radix - 1
    assert np.bincount(step * p + target).max() <= radix - 1


@given(st.lists(st.integers(2, 5), min_size=1, max_size=4), st.booleans())
@settings(max_examples=16, deadline=None)
def test_exchanges_of_any_radices_deliver_every_shard_once(radices, near):
    pattern = exchange(radices, near=near)
    p = int(np.prod(radices))
    assert pattern.steps == len(radices)
    assert pattern.transfers == p * (p - 1)
    assert holds(pattern, p).all()


def test_amounts_of_recursive_exchange_are_the_papers():
    # Appendix B: N = 16, a peer gets B/16 in the first step, B/4 in the second; three peers make the volume 15/16 B.
    pattern = recursive(16, 4)
    step, _, _, chunks = pattern.pairs(16)
    assert [set(chunks[step == t].tolist()) for t in range(2)] == [{1}, {4}]
    assert 3 * (1 + 4) == 15 == pattern.transfers // 16
    assert not np.isclose(1 / 16 + 1 / 4, 15 / 16)


def test_neighbours_spread_to_all_in_half_as_many_steps():
    for p in (2, 4, 6, 10, 16):
        pattern = neighbour_exchange(p)
        assert pattern.steps == p // 2
        assert holds(pattern, p).all()
        assert set(np.unique((pattern.target - pattern.source) % p)) <= {1, p - 1}
        assert np.bincount(pattern.step).tolist() == [p] + [2 * p] * (p // 2 - 1)


@given(st.integers(2, 60))
@settings(max_examples=12, deadline=None)
def test_ring_and_trees_spread_to_all(p):
    assert ring(p).steps == p - 1
    assert holds(ring(p), p).all()
    for parent in (heap_tree(p), heap_tree(p, 3), binomial_tree(p), *two_trees(p)):
        owners = np.random.default_rng(p).permutation(p)
        spread = tree_spread(parent, owners, np.arange(p) % 3).renamed(np.arange(p), owners)
        assert spread.transfers == p * (p - 1)
        assert holds(spread, p).all()
        assert depths(parent).max() <= 2 * np.log2(p) + 1


def test_leaves_of_one_of_two_trees_are_inner_in_the_other():
    for p in range(3, 70):
        one, other = (np.bincount(parent[parent >= 0], minlength=p) for parent in two_trees(p))
        both = np.flatnonzero((one > 0) & (other > 0))
        assert both.tolist() == ([] if p % 2 == 0 else [0])
        assert max(one.max(), other.max()) <= 2


def test_factors_are_fewest_and_fit():
    assert factors(256, 4) == (4, 4, 4, 4)
    assert factors(128, 4) == (4, 4, 4, 2)
    assert factors(36, 6) == (6, 6)
    assert factors(12, 4) == (4, 3)
    assert factors(10, 4) is None
    assert factors(1, 4) == ()
    for p in range(2, 200):
        result = factors(p, 6)
        if result:
            assert int(np.prod(result)) == p
            assert max(result) <= 6


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: recursive(10, 4, "exchange"), "prime factor"),
        (lambda: ring(10_000), "too large"),
    ],
)
def test_invalid_patterns_are_refused(make, word):
    with pytest.raises(BadInput, match=word):
        make()


# the index all-to-all -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "radix"), [(8, 2), (8, 3), (7, 2), (9, 4), (16, 4)])
def test_index_all_to_all_takes_log_steps_and_forwards_what_algorithm_1_forbids(p, radix):
    topology = parse(f"lightpath:1x{p},lasers={p},waveguides={p}")
    limits = Limits(p, p, load=None)
    wanted = collective("all-to-all", p)
    pattern = index_pattern(wanted, radix)
    assert pattern.steps == least_steps(p, radix)
    schedule = realised(topology, limits, pattern)
    result = violations(topology, wanted, limits, schedule)
    # Every chunk whose distance has q digits takes q - 1 receptions that nobody wants: (3) counts exactly those.
    digits = [sum(d > 0 for d in _digits(k, radix)) for k in range(1, p)]
    assert result.pop("redundant") == p * sum(q - 1 for q in digits) > 0
    assert set(result.values()) == {0.0}
    relays = np.column_stack([schedule.transfer_chunk, schedule.transfer_target])
    allowed = Collective("relayed", p, wanted.chunks, wanted.pre, np.concatenate([wanted.post, relays]))
    assert set(violations(topology, allowed, limits, schedule).values()) == {0.0}


def _digits(k, radix):
    while k:
        yield k % radix
        k //= radix


# realised on machines -----------------------------------------------------------------------------------------


#: Machines, each with the load of the quick test.
MACHINES = {
    "lightpath:1x2,lasers=3": 1,
    "lightpath:2x2,lasers=4,waveguides=2": 3,
    "lightpath:3x3,lasers=4": 1,
    "lightpath:4x4,lasers=16,waveguides=4": 3,
    "lightpath:2x4,lasers=5+fail=1,seed=1": None,
}


@pytest.mark.parametrize(
    ("spec", "load"),
    [marked(spec, load, slow=load != MACHINES[spec]) for spec in MACHINES for load in (1, 3, None)],
)
def test_every_algorithm_passes_the_independent_check(spec, load):
    topology, limits = machine(spec, load)
    done = 0
    for name in SPREADING:
        wanted = collective(name, topology.n, pieces=2)
        for algorithm, parameters in VARIANTS:
            if algorithm == "divide-and-conquer" and spec.split(",")[0] in ("lightpath:1x2", "lightpath:3x3"):
                with pytest.raises(NotApplicable, match="2x2 squares"):
                    pattern_of(algorithm, wanted, topology, limits, **parameters)
                continue
            if algorithm == "neighbour-exchange" and topology.n % 2:
                with pytest.raises(NotApplicable, match="must be even, not 9; use ring"):
                    pattern_of(algorithm, wanted, topology, limits, **parameters)
                continue
            pattern, _ = pattern_of(algorithm, wanted, topology, limits, **parameters)
            schedule = realised(topology, limits, pattern)
            result = violations(topology, wanted, limits, schedule)
            assert not any(result.values()), (name, algorithm, parameters, result)
            done += 1
    assert done >= 5 * 8


@pytest.mark.parametrize("routing", ["min-overlap", "random"])
def test_routes_of_either_kind_are_valid_and_repeat(routing):
    topology, limits = machine("lightpath:4x4,lasers=16,waveguides=1", None)
    wanted = collective("all-reduce", topology.n)
    for radix in (2, 4):
        pattern, _ = pattern_of("recursive", wanted, topology, limits, radix=radix)
        schedule = realised(topology, limits, pattern, routing=routing, seed=3)
        assert not any(violations(topology, wanted, limits, schedule).values())
        again = realised(topology, limits, pattern, routing=routing, seed=3)
        assert all(np.array_equal(schedule.values()[k], again.values()[k]) for k in schedule.values())


@pytest.mark.parametrize(("shape", "radix"), [("8x8", 2), ("4x16", 4), ("8x8", 4), ("2x16", 2)])
def test_steps_are_the_circuit_lists_and_split_below_their_overlap(shape, radix):
    # The lists of lumorph.min-overlap and their closed form of the least overlap on a mesh, whatever the wavelengths.
    topology, limits = machine(f"lightpath:{shape},lasers=16,waveguides=1", None)
    pattern, _ = pattern_of("recursive", collective("all-gather", topology.n), topology, limits, radix=radix)
    step, source, target, _ = pattern.pairs(topology.n)
    overlap, steps = [], []
    for t in range(pattern.steps):
        result = read_circuits(f"recursive:{radix}:{t}", topology, 0, "here")
        mask = step == t
        assert set(zip(result.sources.tolist(), result.targets.tolist(), strict=True)) == set(
            zip(source[mask].tolist(), target[mask].tolist(), strict=True)
        )
        overlap.append(exchange_overlap(result, topology.shape))
        steps.append(min_overlap_routes(topology, source[mask], target[mask]).routes)
    for waveguides in range(1, max(overlap) + 1):
        one = Limits(1, waveguides, ports=radix - 1)
        rounds = sum(assign_rounds(topology, one, each.sources, each.targets, routes=each).rounds for each in steps)
        assert rounds >= sum(-(-most // waveguides) for most in overlap)
        assert (rounds == pattern.steps) == (max(overlap) <= waveguides)


def test_lanes_share_the_lasers_in_proportion():
    topology, limits = machine("lightpath:8x8,lasers=16,waveguides=8", None)
    for radix, lanes in ((2, 16), (4, 5), (8, 2)):
        pattern, _ = pattern_of("recursive", collective("all-gather", 64), topology, limits, radix=radix)
        schedule = realised(topology, limits, pattern)
        pairs = (schedule.circuit_round * 64 + schedule.circuit_source) * 64 + schedule.circuit_target
        assert set(np.unique(pairs, return_counts=True)[1].tolist()) == {lanes}


def test_whole_buffers_are_summed_once_also_where_a_step_must_be_split():
    for spec in (
        "lightpath:4x4,lasers=16,waveguides=8",
        "lightpath:4x4,lasers=3,waveguides=1",
        "lightpath:6x6,lasers=4",
    ):
        topology, limits = machine(spec, None)
        wanted = collective("all-reduce", topology.n)
        pattern, _ = pattern_of("divide-and-conquer", wanted, topology, limits, whole=True)
        schedule = realised(topology, limits, pattern)
        assert not any(violations(topology, wanted, limits, schedule).values())
        assert schedule.rounds >= pattern.steps == len(square_radices(*topology.shape))
    strict = Limits(4, 1)
    topology = parse("lightpath:2x4,lasers=4")
    wanted = collective("all-reduce", 8)
    pattern, _ = pattern_of("divide-and-conquer", wanted, topology, strict, whole=True)
    assert not any(violations(topology, wanted, strict, realised(topology, strict, pattern)).values())


def test_an_exchange_of_sums_that_fits_into_no_round_is_refused():
    topology = parse("lightpath:2x2,lasers=3")
    pattern, _ = pattern_of("divide-and-conquer", collective("all-reduce", 4), topology, Limits(3, 1), whole=True)
    with pytest.raises(NotApplicable, match="do not fit into one round"):
        realised(topology, Limits(1, 1), pattern)


def test_torn_exchanges_of_sums_are_caught():
    topology, limits = machine("lightpath:2x2,lasers=16,waveguides=4", None)
    wanted = collective("all-reduce", 4)
    pattern, _ = pattern_of("divide-and-conquer", wanted, topology, limits, whole=True)
    torn = realised(topology, limits, dataclasses.replace(pattern, step=pattern.source // 2, steps=2, whole=False))
    assert violations(topology, wanted, limits, torn)["redundant"] > 0


@given(st.permutations(range(8)), st.sampled_from(VARIANTS[:8]))
@settings(max_examples=15, deadline=None)
def test_relabelled_ranks_are_as_good(order, variant):
    topology, limits = machine("lightpath:2x4,lasers=4,waveguides=2", 1)
    wanted = collective("all-gather", 8, ranks=order)
    pattern, _ = pattern_of(variant[0], wanted, topology, limits, **variant[1])
    assert not any(violations(topology, wanted, limits, realised(topology, limits, pattern)).values())


def test_random_multigraphs_are_coloured_with_their_degree():
    random = np.random.default_rng(1)
    for _ in range(30):
        n, edges = int(random.integers(2, 12)), int(random.integers(1, 60))
        u, v = random.integers(0, n, edges), random.integers(0, n, edges)
        colour = edge_colours(u, v, n)
        assert colour.max() + 1 == max(np.bincount(u).max(), np.bincount(v).max())
        for ends in (u, v):
            assert np.unique(ends * edges + colour).size == edges


@pytest.mark.parametrize("name", SPREADING)
@pytest.mark.parametrize(
    "spec",
    ["lightpath:2x4,lasers=2", pytest.param("lightpath:4x4,lasers=4,waveguides=2", marks=pytest.mark.slow)],
)
def test_compacted_schedules_pass_the_check_and_take_no_more_rounds(spec, name):
    topology, limits = machine(spec)
    wanted = collective(name, topology.n, pieces=3)
    fewer = 0
    for algorithm, parameters in VARIANTS:
        if parameters.get("radix", 0) > limits.wavelengths + 1:
            continue
        pattern, _ = pattern_of(algorithm, wanted, topology, limits, **parameters)
        schedule = realised(topology, limits, pattern)
        short = compacted(topology, limits, schedule)
        assert not any(violations(topology, wanted, limits, short).values()), (algorithm, parameters)
        assert short.rounds <= schedule.rounds
        fewer += short.rounds < schedule.rounds
    assert fewer or name in ("broadcast", "reduce", "all-reduce")  # trees that do both at once are left alone


@pytest.mark.parametrize("spec", ["lightpath:2x2,lasers=2,waveguides=2", "lightpath:2x2,lasers=4,waveguides=2"])
def test_compaction_keeps_sums_and_copies_apart(spec):
    # Three chunks a shard leave room in the last round of sums, which the model's second phase has no claim to.
    topology, limits = machine(spec)
    wanted = collective("all-reduce", 4, pieces=3)
    for algorithm in ("recursive", "divide-and-conquer"):
        pattern, _ = pattern_of(algorithm, wanted, topology, limits)
        short = compacted(topology, limits, realised(topology, limits, pattern))
        assert not any(violations(topology, wanted, limits, short).values())
        assert short.transfer_round[short.transfer_adds].max() < short.transfer_round[~short.transfer_adds].min()
        assert short.rounds >= 2 * -(-9 // limits.wavelengths)


# embeddings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 2), (4, 4), (2, 3), (3, 4), (5, 2), (8, 16), (1, 6), (3, 3)])
def test_rings_follow_a_hamiltonian_cycle_where_the_grid_has_one(shape):
    order = cycle_order(np.arange(shape[0] * shape[1]), shape)
    assert sorted(order.tolist()) == list(range(order.size))
    row, column = np.divmod(order, shape[1])
    hop = np.abs(np.diff(row, append=row[0])) + np.abs(np.diff(column, append=column[0]))
    assert (hop[:-1] == 1).all()
    assert (hop[-1] == 1) == (min(shape) >= 2 and shape[0] * shape[1] % 2 == 0)


def test_squares_come_first():
    assert square_radices(4, 8) == (4, 2, 2, 2)
    assert square_radices(6, 4) == (4, 2, 3)
    assert square_order(4, 4)[:8].tolist() == [0, 1, 4, 5, 2, 3, 6, 7]


@pytest.mark.parametrize("lasers", [1, 2, 3, 16])
def test_two_by_two_squares_are_optimal(lasers):
    # ceil(3 / L) rounds: each of four GPUs has three shards to receive.
    topology, limits = machine(f"lightpath:2x2,lasers={lasers}")
    wanted = collective("all-gather", 4)
    given_ = {"radix": 2} if lasers < 3 else {"radix": 4}
    pattern, _ = pattern_of("recursive", wanted, topology, limits, **given_)
    assert realised(topology, limits, pattern).rounds == -(-3 // lasers)


# LayerToLayer -------------------------------------------------------------------------------------------------


@given(st.integers(2, 12), st.integers(1, 60), st.integers(1, 5), st.integers(0, 9))
@settings(max_examples=16, deadline=None)
def test_greedy_rounds_respect_the_lasers_of_both_ends(n, transfers, lasers, seed):
    random = np.random.default_rng(seed)
    source = random.integers(0, n, transfers)
    target = (source + random.integers(1, n, transfers)) % n
    when = greedy_rounds(source, target, lasers, seed=seed)
    assert (when >= 0).all()
    for ends in (source, target):
        assert np.bincount(when * n + ends).max() <= lasers
    busiest = max(np.bincount(source).max(), np.bincount(target).max())
    assert when.max() + 1 >= -(-busiest // lasers)
    printed = greedy_rounds(source, target, lasers, limit="receivers", seed=seed)
    assert printed.max() + 1 == -(-np.bincount(target).max() // lasers)


def test_algorithm_3_as_printed_asks_one_sender_for_more_lasers_than_it_has():
    wanted = collective("scatter", 16)
    printed, mended = (layer_to_layer(wanted, 4, limit=limit) for limit in ("receivers", "both"))
    assert printed.steps == 1
    assert mended.steps == 4 == -(-15 // 4)
    assert np.bincount(printed.source).max() == 15
    topology, limits = machine("lightpath:4x4,lasers=4,waveguides=4")
    for pattern in (printed, mended):
        schedule = realised(topology, limits, pattern)
        assert not any(violations(topology, wanted, limits, schedule).values())
        assert schedule.rounds >= 4


@pytest.mark.parametrize("name", ["scatter", "gather", "all-to-all", "all-gather", "broadcast", "reduce", "all-reduce"])
def test_layer_to_layer_does_every_collective(name):
    topology, limits = machine("lightpath:2x4,lasers=3,waveguides=2")
    wanted = collective(name, 8, pieces=2 if name == "broadcast" else 1)
    schedule = realised(topology, limits, layer_to_layer(wanted, 3, seed=5), seed=5)
    assert not any(violations(topology, wanted, limits, schedule).values())


# several all-reduces ------------------------------------------------------------------------------------------


def all_reduces(n, groups):
    """One all-reduce on every group of vertices, one chunk for each of its members."""
    owners = [group for group in groups for _ in group]
    both = np.array([(chunk, v) for chunk, group in enumerate(owners) for v in sorted(group)])
    return Collective("all-reduces", n, len(owners), both, both, summing=True)


def test_disjoint_all_reduces_run_concurrently_and_others_in_sequence():
    topology, limits = machine("lightpath:4x4,lasers=4,waveguides=4", None)
    groups = [[0, 1, 2, 3], [4, 5, 6, 7], [3, 4, 8], [8, 9, 10, 11, 12], [13, 14]]
    wanted = all_reduces(16, groups)
    pattern, batches = pattern_of("recursive", wanted, topology, limits, radix=4)
    assert sorted(k for batch in batches for k in batch) == list(range(5))
    for batch in batches:
        members = [v for k in batch for v in groups[k]]
        assert len(members) == len(set(members))
    schedule = realised(topology, limits, pattern)
    assert not any(violations(topology, wanted, limits, schedule).values())
    one_by_one = sum(
        realised(topology, limits, pattern_of("recursive", all_reduces(16, [g]), topology, limits, radix=4)[0]).rounds
        for g in groups
    )
    assert schedule.rounds < one_by_one


@given(st.integers(0, 50), st.integers(1, 12))
@settings(max_examples=12, deadline=None)
def test_independent_sets_are_maximal_and_cover_every_call(seed, count):
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 8, count, endpoint=True).tolist()
    groups = [np.sort(random.choice(16, size, replace=False)) for size in sizes]
    batches = independent_sets(groups, 16)
    assert sorted(k for batch in batches for k in batch) == list(range(count))
    for number, batch in enumerate(batches):
        used = np.concatenate([groups[k] for k in batch])
        assert used.size == np.unique(used).size
        for later in (k for rest in batches[number + 1 :] for k in rest):
            assert np.isin(groups[later], used).any()


def test_calls_are_read_from_pre_and_post():
    kinds = {
        name: [call.kind for call in calls(collective(name, 5))]
        for name in ("broadcast", "all-gather", "reduce", "reduce-scatter", "all-reduce", "scatter", "gather")
    }
    assert kinds["broadcast"] == kinds["all-gather"] == ["spread"]
    assert kinds["reduce"] == kinds["reduce-scatter"] == ["sum"]
    assert kinds["all-reduce"] == ["all-reduce"]
    assert set(kinds["scatter"]) == set(kinds["gather"]) == {"transfer"}
    odd = Collective("odd", 4, 1, np.array([[0, 0], [0, 1]]), np.array([[0, 2], [0, 3]]), summing=True)
    with pytest.raises(BadInput, match="summed over 2 vertices for 2"):
        calls(odd)


# as methods ---------------------------------------------------------------------------------------------------


def answer(spec, method, kind=RoundModel, **given_):
    """The answer of a method in this process, with its data."""
    own = {parameter.name for parameter in methods()[method].parameters}
    data = kind.prepare(parse(spec), {k: v for k, v in given_.items() if k not in own})
    chosen = read_parameters(methods()[method].parameters, {k: v for k, v in given_.items() if k in own}, method)
    task = Task(kind.name, spec, method=method)
    context = Context(task, data, data.topology, chosen, None, solve, lambda *_: None)
    return data, methods()[method].run(context)


@pytest.mark.parametrize("method", [*ALGORITHMS, "layer-to-layer"])
def test_methods_are_verified_and_never_below_the_bound(method):
    for name in ("all-gather", "reduce-scatter"):
        data, result = answer("lightpath:2x4,lasers=4,waveguides=2", method, collective=name)
        assert not any(data.residuals(result.values).values())
        assert data.objective(result.values) >= max(data.least)


def test_divide_and_conquer_meets_the_bound_where_squares_share_the_lasers():
    record = solve(Task("lumorph.rounds", "lightpath:4x4,lasers=4,waveguides=2", method="divide-and-conquer")).record
    assert record["proof"] == "optimal"
    assert record["objective"] == 4


@pytest.mark.parametrize(
    ("spec", "method", "given_", "word"),
    [
        ("lightpath:2x4,lasers=2", "recursive", {"radix": "4"}, "3 lasers per GPU"),
        ("lightpath:2x5,lasers=4", "recursive", {"radix": "4", "scheme": "exchange"}, "prime factor"),
        ("lightpath:2x4,lasers=4", "recursive", {"collective": "all-to-all"}, "layer-to-layer"),
        ("lightpath:2x4,lasers=4", "tree", {"arity": "1"}, "arity"),
        ("lightpath:3x4,lasers=4", "divide-and-conquer", {}, "2x2 squares"),
        ("lightpath:2x4,lasers=4", "divide-and-conquer", {"whole": "true"}, "no parameter 'whole'"),
        ("lightpath:2x4,lasers=4", "ring", {"wavelengths": "fixed"}, "wavelengths=fixed"),
    ],
)
def test_what_a_method_cannot_do_is_refused(spec, method, given_, word):
    with pytest.raises(BadInput, match=word):
        answer(spec, method, **given_)


def test_co_scheduled_all_reduces_come_from_a_file(tmp_path):
    groups = [[0, 1, 4, 5], [2, 3, 6, 7], [5, 6]]
    result = all_reduces(8, groups)
    chunks = [
        {end: table[table[:, 0] == c, 1].tolist() for end, table in (("pre", result.pre), ("post", result.post))}
        for c in range(result.chunks)
    ]
    path = tmp_path / "calls.json"
    path.write_text(json.dumps({"sum": True, "chunks": chunks}))
    spec = "lightpath:2x4,lasers=4,waveguides=2"
    data, result = answer(spec, "recursive", SumModel, collective=f"file:{path}", radix="4")
    assert not any(data.residuals(result.values).values())
    assert result.metrics["batches"] == 2
