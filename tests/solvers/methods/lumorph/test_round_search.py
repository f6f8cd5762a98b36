"""Rounds and wavelengths: constructions and searches, replayed by the checker over many shapes and collectives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.errors import NotApplicable
from opticoll.formulations.lumorph.collective_bounds import round_bounds, sum_bounds
from opticoll.formulations.rounds.collectives import COLLECTIVES, Collective, collective, phases
from opticoll.formulations.rounds.round_schedule import Limits, direct, violations
from opticoll.instances import parse
from opticoll.solvers import solve
from opticoll.solvers.methods.lumorph.assignment import assign_rounds
from opticoll.solvers.methods.lumorph.constructions import (
    balanced,
    decompositions,
    halving_broadcast,
    line_classes,
    line_load,
    mesh_exchange,
    ring_all_gather,
    shifts,
)
from opticoll.solvers.methods.lumorph.round_search import PhaseSearch, ordered_copies, spread_copies
from opticoll.solvers.task import Proof, Task


def valid(topology, wanted, limits, schedule):
    return schedule is not None and not any(violations(topology, wanted, limits, schedule).values())


def least(topology, wanted, limits):
    return max(int(bound.value) for bound in round_bounds(topology, wanted, limits))


def exchanged(topology):
    """All-to-all with the source of every delivery."""
    wanted = collective("all-to-all", topology.n)
    return wanted, wanted.pre[np.searchsorted(wanted.pre[:, 0], wanted.deliveries[:, 0]), 1]


# constructions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [2, 4, 6, 8, 10, 12, 16, 30, 64])
def test_balanced_permutations_hold_every_pair_once_and_load_a_quarter(c):
    result = balanced(c)
    assert (np.sort(result, axis=1) == np.arange(c)).all()
    assert (np.sort(result, axis=0) == np.arange(c)[:, None]).all()
    load = [line_load(each) for each in result]
    assert set(load) <= {c // 4, -(-c // 4)}
    assert sum(load) == c * c // 4


@pytest.mark.parametrize("c", [3, 5, 8])
def test_line_classes_have_load_one_and_number_the_load(c):
    for each in np.concatenate([shifts(c), balanced(c) if c % 2 == 0 else shifts(c)]):
        classes = line_classes(each)
        for k in range(int(classes.max()) + 1):
            assert line_load(np.where(classes == k, each, np.arange(c))) <= 1
        assert classes.max() + 1 == max(line_load(each), 1)


@pytest.mark.parametrize("c", [5, 7, 11])
def test_an_odd_line_has_every_pair_once_in_one_permutation_more(c):
    parts = decompositions(c, 1)[1]
    assert len(parts) == c + 1
    place, tile = np.nonzero(parts >= 0)
    assert sorted(zip(tile.tolist(), parts[place, tile].tolist(), strict=True)) == [
        (i, j) for i in range(c) for j in range(c)
    ]
    assert max(line_load(each) for each in parts) <= -(-(c + 1) // 4)


@pytest.mark.parametrize("shape", ["4x8", "8x8", "2x16", "4x4", "1x8", "2x2"])
@pytest.mark.parametrize("waveguides", [1, 2, 4, 16])
def test_all_to_all_meets_its_bound_on_power_of_two_meshes(shape, waveguides):
    mesh = parse(f"lightpath:{shape},lasers=1,waveguides={waveguides}")
    wanted, _ = exchanged(mesh)
    limits = Limits(1, waveguides)
    search = PhaseSearch(mesh, wanted, limits, least(mesh, wanted, limits), None, seed=0)
    search.construct()
    assert search.found_by == "exchange"
    assert valid(mesh, wanted, limits, search.best)
    r, c = mesh.shape
    assert search.rounds == max(mesh.n - 1, -(-max(r * (c * c // 4), c * (r * r // 4)) // waveguides))
    assert search.done


@pytest.mark.parametrize(
    ("shape", "waveguides"),
    [
        ("3x5", 1),
        ("3x5", 2),
        ("6x10", 3),
        ("6x10", 5),
        ("4x12", 3),
        ("7x9", 4),
        ("1x2", 1),
        ("5x1", 1),
        ("3x3", 1),
    ],
)
def test_exchange_on_other_meshes_is_a_valid_schedule(shape, waveguides):
    mesh = parse(f"lightpath:{shape},lasers=3,waveguides={waveguides}")
    wanted, source = exchanged(mesh)
    colour, count = mesh_exchange(mesh.shape[0], mesh.shape[1], waveguides)
    target = wanted.deliveries[:, 1]
    assert (np.diag(colour) == -1).all()
    assert colour.max() < count
    search = PhaseSearch(mesh, wanted, Limits(3, waveguides), 0, None, seed=0)
    search.construct()
    assert valid(mesh, wanted, Limits(3, waveguides), search.best)
    assert np.unique(colour[source, target]).size <= count


@pytest.mark.parametrize(
    "spec", ["lightpath:4x8", "lightpath:3x5", "lightpath:5x5+fail=9,seed=1", "petersen", "path:6"]
)
def test_ring_takes_one_round_a_reception_on_one_waveguide(spec):
    topology = parse(spec)
    for ranks, pieces, lasers in ((None, 1, 1), ([0, 2, 5], 4, 2), ([4, 1], 3, 2)):
        wanted = collective("all-gather", topology.n, ranks, pieces=pieces)
        result = ring_all_gather(topology, wanted, lasers)
        assert valid(topology, wanted, Limits(lasers, 1), result)
        p = topology.n if ranks is None else len(ranks)
        assert result.rounds == (p - 1) * -(-pieces // lasers)


def test_ring_refuses_other_collectives_and_one_way_links():
    mesh = parse("lightpath:2x3")
    assert ring_all_gather(mesh, collective("broadcast", 6), 1) is None
    assert ring_all_gather(mesh, collective("all-to-all", 6), 1) is None
    assert ring_all_gather(parse("ring:6,directed"), collective("all-gather", 6), 1) is None


@given(
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
@settings(max_examples=12, deadline=None)
def test_halving_meets_the_spread_bound(rows, columns, lasers, random):
    if rows * columns < 2:
        return
    mesh = parse(f"lightpath:{rows}x{columns},lasers={lasers}")
    ranks = random.sample(range(mesh.n), random.randint(2, mesh.n))
    wanted = collective("broadcast", mesh.n, ranks, root=random.randrange(len(ranks)))
    limits = Limits(lasers, 1)
    result = halving_broadcast(mesh, wanted, lasers)
    assert valid(mesh, wanted, limits, result)
    assert result.rounds == max(bound.value for bound in round_bounds(mesh, wanted, limits) if bound.name == "spread")
    assert halving_broadcast(parse("ring:5"), collective("broadcast", 5), 1) is None


# search -------------------------------------------------------------------------------------------------------------

SPECS = ["lightpath:3x4", "lightpath:4x4+fail=4,seed=2", "ring:7", "petersen", "kautz:d=2,D=2", "hypercube:3"]


@given(st.sampled_from(SPECS), st.integers(1, 3), st.integers(1, 3), st.integers(1, 40), st.integers(0, 2**31))
@settings(max_examples=10, deadline=None)
def test_assigned_circuits_are_valid_and_not_below_the_bound(spec, lasers, waveguides, circuits, seed):
    topology = parse(spec)
    random = np.random.default_rng(seed)
    source = random.integers(topology.n, size=circuits)
    target = (source + random.integers(1, topology.n, size=circuits)) % topology.n
    chunk = np.arange(circuits)
    wanted = Collective(
        "pairs", topology.n, circuits, np.column_stack([chunk, source]), np.column_stack([chunk, target])
    )
    limits = Limits(lasers, waveguides)
    low = least(topology, wanted, limits)
    result = assign_rounds(topology, limits, source, target, least=low, seed=seed)
    order = wanted.deliveries[:, 0]
    schedule = direct(result.round, source, target, chunk, result.wavelength, result.path_start, result.path_arcs)
    assert order.size == circuits
    assert valid(topology, wanted, limits, schedule)
    assert low <= result.rounds <= circuits


def test_assignment_keeps_ports_and_wavelengths_that_are_tied():
    from opticoll.solvers.methods.lumorph.assignment import candidates

    mesh = parse("lightpath:3x3")
    _, source = exchanged(mesh)
    target = exchanged(mesh)[0].deliveries[:, 1]
    routes = candidates(mesh, source, target)
    wave = (routes.targets[routes.pair] + np.arange(routes.paths)) % 3
    result = assign_rounds(mesh, Limits(3, 1), source, target, routes=routes, wave=wave)
    for k in range(source.size):
        path = result.path_arcs[result.path_start[k] : result.path_start[k + 1]].tolist()
        mine = range(int(routes.first[k]), int(routes.first[k + 1]))
        assert any(routes.path(p) == path and wave[p] == result.wavelength[k] for p in mine)
    free = assign_rounds(mesh, Limits(3, 9, ports=None), source, target)
    bound = assign_rounds(mesh, Limits(3, 9), source, target)
    assert free.rounds < 3 <= bound.rounds


def test_assignment_refuses_circuits_without_a_route():
    with pytest.raises(NotApplicable, match="no route"):
        assign_rounds(parse("lightpath:1x3+fail=2,seed=0"), Limits(1), np.array([0]), np.array([2]))
    assert assign_rounds(parse("lightpath:2x2"), Limits(1), np.zeros(0, int), np.zeros(0, int)).rounds == 0


@st.composite
def collectives(draw):
    topology = parse(draw(st.sampled_from(SPECS)))
    random = np.random.default_rng(draw(st.integers(0, 2**31)))
    chunks = draw(st.integers(1, 70))
    held = random.random((chunks, topology.n)) < 0.15
    held[np.arange(chunks), random.integers(topology.n, size=chunks)] = True
    wanted = random.random((chunks, topology.n)) < draw(st.sampled_from([0.2, 0.6, 1.0]))
    return topology, Collective("drawn", topology.n, chunks, np.argwhere(held), np.argwhere(wanted)), random


@given(collectives(), st.integers(1, 4), st.integers(1, 2))
@settings(max_examples=12, deadline=None)
def test_copies_of_any_collective_are_valid_and_not_below_the_bound(drawn, lasers, waveguides):
    topology, wanted, random = drawn
    limits = Limits(lasers, waveguides)
    seed = int(random.integers(2**31))
    result = spread_copies(topology, wanted, limits, seed, 10**6, lambda: 1.0) if wanted.deliveries.size else None
    if result is None:
        assert not wanted.deliveries.size
        return
    assert valid(topology, wanted, limits, result)
    assert least(topology, wanted, limits) <= result.rounds
    again = PhaseSearch(topology, wanted, limits, 0, None, seed=1)
    again.construct()
    assert valid(topology, wanted, limits, again.best)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("lightpath:2x4,lasers=4", "all-gather"),
        ("lightpath:3x4,lasers=6", "all-gather"),
        ("lightpath:2x4,lasers=2", "broadcast"),
        ("ring:6", "all-gather"),
    ],
)
def test_copies_are_scheduled_in_order_by_ejections(spec, name):
    topology = parse(spec)
    wanted, limits = collective(name, topology.n), Limits(getattr(topology, "lasers", 2))
    rounds = least(topology, wanted, limits) + 1
    result = ordered_copies(topology, wanted, limits, rounds, 0, iter([1.0] * 40 + [0.0]).__next__)
    assert valid(topology, wanted, limits, result)
    assert result.rounds <= rounds
    assert ordered_copies(topology, wanted, limits, rounds - 2, 0, iter([1.0] * 3 + [0.0]).__next__) is None


# the method ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in COLLECTIVES if name != "all-to-all"])
def test_every_collective_is_proven_on_a_small_mesh(name):
    run = solve.solve(
        Task("lumorph.rounds", "lightpath:2x4,lasers=2", method="certified-rounds", settings={"collective": name})
    )
    assert run.verified
    assert run.record["metrics"]["unrestricted_proven"]
    assert run.proof is Proof.OPTIMAL, (run.objective, run.bound)
    if name == "all-reduce":  # 4 + 4 rounds by phases; that no other all-reduce takes 7 is not shown
        assert run.objective == 8
        problem = run.plan.problem
        assert max(b.value for b in sum_bounds(run.plan.instance, problem.collective, problem.limits)) == 7
    assert run.record["metrics"]["phase_rounds"] == run.record["metrics"]["phase_bounds"]


def test_fixed_wavelengths_and_failed_links_give_a_verified_gap():
    for spec, given_settings in (
        ("lightpath:3x3,lasers=2", {"wavelengths": "fixed", "collective": "all-to-all"}),
        ("lightpath:3x3,lasers=2", {"wavelengths": "fixed", "collective": "all-gather"}),
        ("lightpath:4x5,lasers=2+fail=4,seed=1", {"collective": "all-to-all"}),
        ("lightpath:4x5,lasers=2+fail=4,seed=1", {"collective": "all-reduce"}),
    ):
        run = solve.solve(
            Task(
                "lumorph.rounds",
                spec,
                method="certified-rounds",
                settings={**given_settings, "search_s": 0.3},
            )
        )
        assert run.verified
        assert run.proof in (Proof.OPTIMAL, Proof.CERTIFIED_GAP)
        assert run.bound <= run.objective


@pytest.mark.parametrize("name", ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"])
@pytest.mark.parametrize("lasers", [1, 4, 16])
def test_routes_of_one_bend_suffice_on_4x4_tiles(name, lasers):
    spec = f"lightpath:4x4,lasers={lasers},waveguides=1"
    run = solve.solve(Task("lumorph.rounds", spec, "certified-rounds", settings={"collective": name, "paths": 2}))
    assert run.verified
    assert run.record["violations"]["candidates"] == 0
    if name == "all-to-all":  # 64 pairs cross from half to half, over 4 waveguides
        assert (run.objective, run.proof) == (-(-16 // lasers), Proof.OPTIMAL)
    else:  # every tile receives 15 shards, in each of two phases for an all-reduce
        assert (run.objective, run.proof) == ((1 + (name == "all-reduce")) * -(-15 // lasers), Proof.OPTIMAL)


@pytest.mark.parametrize("spec", ["lightpath:3x3,lasers=2,waveguides=1", "lightpath:3x3,lasers=2+fail=2,seed=1"])
@pytest.mark.parametrize("routes", [{"paths": 1}, {"routes": "yen", "paths": 3}])
@pytest.mark.parametrize("name", ["all-to-all", "all-gather"])
def test_stated_routes_are_taken_alone(spec, routes, name):
    settings = {"collective": name, "search_s": 0.3, **routes}
    run = solve.solve(Task("lumorph.rounds", spec, "certified-rounds", settings=settings))
    assert run.verified
    assert run.record["violations"]["candidates"] == 0
    assert run.bound <= run.objective


def test_phases_of_a_reduction_are_searched_as_copies():
    parts = phases(collective("all-reduce", 6))
    assert [part.backwards for part in parts] == [True, False]
    assert all(not part.copying.summing for part in parts)


# the grids ----------------------------------------------------------------------------------------------------------

SIZES = ("4x8", "8x8", "8x16", "16x16")


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["all-to-all", "all-gather"])
def test_the_grid_is_proven(size, name):
    for lasers in (1, 4, 8, 16):
        for waveguides in (1, 2, 4, 16, 32):
            spec = f"lightpath:{size},lasers={lasers},waveguides={waveguides}"
            run = solve.solve(
                Task(
                    "lumorph.rounds",
                    spec,
                    method="certified-rounds",
                    settings={"collective": name, "search_s": 120},
                )
            )
            assert run.verified
            assert run.objective == run.bound, spec
