"""Wafers joined by fibres: arcs with a room of their own in schedules, bounds, programs, methods and overlap."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import gcd

import numpy as np
import pytest
from case_families import each
from reference import simple_paths

from opticoll.errors import BadInput, MethodMismatch, NotApplicable
from opticoll.formulations.lumorph import mesh_cuts, min_overlap
from opticoll.formulations.lumorph.collective_bounds import round_bounds, sum_bounds
from opticoll.formulations.lumorph.mesh_symmetries import delivery_symmetries
from opticoll.formulations.lumorph.rounds import RoundModel
from opticoll.formulations.lumorph.sum_rounds import SumModel
from opticoll.formulations.lumorph.transfer_sets import RoundProgram
from opticoll.formulations.rounds.collectives import collective
from opticoll.formulations.rounds.round_schedule import Limits, violations
from opticoll.instances import parse
from opticoll.instances.readers.files import save_topology
from opticoll.instances.symmetry import automorphisms
from opticoll.solvers import solve
from opticoll.solvers.methods.lumorph.assignment import assign_rounds
from opticoll.solvers.methods.lumorph.collective_algorithms import pattern_of
from opticoll.solvers.methods.lumorph.constructions import mesh_exchange
from opticoll.solvers.methods.lumorph.overlap_search import min_overlap_routes
from opticoll.solvers.methods.lumorph.realisation import realised
from opticoll.solvers.task import Task


def machine(spec):
    """The tiles and the limits of a round."""
    mesh = parse(spec)
    return mesh, Limits(mesh.lasers, mesh.waveguides, fibres=mesh.scarce_fibres)


# The instance ----------------------------------------------------------------------------------------------------


def test_fibres_join_the_last_column_of_a_wafer_and_the_first_of_the_next():
    mesh = parse("lightpath:2x3,lasers=2,waveguides=4,wafers=3,fibres=2")
    assert (mesh.n, tuple(mesh.shape), mesh.wafers, mesh.fibres) == (18, (2, 9), 3, 2)
    assert mesh.labels[:4] == ("0.0.0", "0.0.1", "0.0.2", "1.0.0")
    assert mesh.labels[-1] == "2.1.2"
    between = mesh.scarce_fibres.joins(mesh)
    ends = {(mesh.labels[u], mesh.labels[v]) for u, v in zip(mesh.tail[between], mesh.head[between], strict=True)}
    one_way = {(f"{w}.{r}.2", f"{w + 1}.{r}.0") for w in range(2) for r in range(2)}
    assert ends == one_way | {(v, u) for u, v in one_way}
    assert mesh.capacity[between].tolist() == [0.5] * 8
    assert set(mesh.capacity[~between]) == {1.0}
    assert np.array_equal(mesh.wafer_of[mesh.tail] != mesh.wafer_of[mesh.head], between)
    plain = parse("mesh:2x9")
    assert np.array_equal(mesh.tail, plain.tail)
    assert np.array_equal(mesh.head, plain.head)


def test_symmetries_keep_the_wafers():
    mesh = parse("lightpath:2x2,waveguides=3,wafers=3,fibres=2")
    images, _ = automorphisms(mesh)
    fibres = {(u, v) for u, v in zip(mesh.tail, mesh.head, strict=True) if mesh.wafer_of[u] != mesh.wafer_of[v]}
    assert len({tuple(image) for image in images.tolist()}) == 3
    for image in images:
        assert {(image[u], image[v]) for u, v in fibres} == fibres


@pytest.mark.parametrize("spec", ["lightpath:2x2,wafers=2,fibres=3", "lightpath:2x2,wafers=2,fibres=3+fail=2,seed=1"])
def test_wafers_are_saved_and_lose_links(spec, tmp_path):
    mesh = parse(spec)
    save_topology(mesh, tmp_path / "wafers.json")
    again = parse(f"file:{tmp_path / 'wafers.json'}")
    assert again.labels == mesh.labels
    assert np.array_equal(again.capacity, mesh.capacity)
    between = mesh.wafer_of[mesh.tail] != mesh.wafer_of[mesh.head]
    assert np.array_equal(mesh.scarce_fibres.joins(mesh), between)
    assert np.array_equal(Limits(1, 1, fibres=mesh.scarce_fibres).room(mesh), np.where(between, 3, 1))


@pytest.mark.parametrize("rest", ["fibres=2", "wafers=0", "wafers=2,fibres=-1", "wafers=2,lasers=0"])
def test_numbers_that_mean_nothing_are_refused(rest):
    with pytest.raises(BadInput):
        parse(f"lightpath:2x2,{rest}")


def test_a_different_number_of_waveguides_is_set_in_the_instance():
    """``waveguides`` and the programs of the authors know one number for all arcs."""
    spec = "lightpath:1x2,wafers=2,fibres=2"
    for chosen in ({"waveguides": 2}, {"program": "coded"}):
        with pytest.raises(NotApplicable, match="fibres"):
            RoundModel.prepare(parse(spec), chosen)
    assert RoundModel.prepare(parse("lightpath:1x2,wafers=2"), {"waveguides": 2}).limits == Limits(16, 2)


def test_as_many_fibres_as_waveguides_make_one_mesh():
    """All that depends on the arcs' room is then that of the plain mesh."""
    joined, limits = machine("lightpath:2x2,lasers=2,waveguides=3,wafers=2")
    plain, others = machine("lightpath:2x4,lasers=2,waveguides=3")
    assert limits == others
    for name in ("all-to-all", "all-gather"):
        wanted = collective(name, 8)
        assert [b.value for b in round_bounds(joined, wanted, limits)] == [
            b.value for b in round_bounds(plain, wanted, limits)
        ]


# Rounds ----------------------------------------------------------------------------------------------------------


def all_to_all_by_hand(rows, columns, wafers, lasers, fibres):
    """N tiles on either side of a boundary exchange N M pairs over rows F L circuits of a round."""
    most = 0
    for left in range(1, wafers):
        pairs = left * rows * columns * (wafers - left) * rows * columns
        most = max(most, -(-pairs // (rows * fibres * lasers)))
    return max(most, -(-(rows * columns * wafers - 1) // lasers))


@each("fibres", [1, 2, 3, 4, 8])
@each("shape", [(4, 8, 2), (2, 4, 4)])
def test_the_fibre_cut_of_an_all_to_all(shape, fibres):
    rows, columns, wafers = shape
    mesh, limits = machine(f"lightpath:{rows}x{columns},lasers=4,waveguides=8,wafers={wafers},fibres={fibres}")
    best = max(bound.value for bound in round_bounds(mesh, collective("all-to-all", mesh.n), limits))
    assert best == all_to_all_by_hand(rows, columns, wafers, 4, fibres)


@pytest.mark.parametrize(
    ("rows", "columns", "waveguides", "fibres"),
    [
        *((2, 8, 1, fibres) for fibres in (1, 3)),
        *((4, 4, 2, fibres) for fibres in (1, 3)),
        (2, 8, 4, 1),
        (2, 8, 4, 2),
        pytest.param(2, 8, 4, 3, marks=pytest.mark.slow),
    ],
)
def test_the_construction_meets_the_fibre_cut_in_the_middle(rows, columns, waveguides, fibres):
    """XY routes of balanced permutations: colours are rounds of one laser."""
    mesh, limits = machine(f"lightpath:{rows}x{columns // 2},lasers=1,waveguides={waveguides},wafers=2,fibres={fibres}")
    _, colours = mesh_exchange(rows, columns, waveguides, min(waveguides, fibres))
    least = max(bound.value for bound in round_bounds(mesh, collective("all-to-all", mesh.n), limits))
    assert colours >= least
    if fibres < waveguides:
        assert colours == all_to_all_by_hand(rows, columns // 2, 2, 1, fibres) == least


def test_a_circuit_too_many_between_wafers_is_a_violation():
    mesh, limits = machine("lightpath:1x2,lasers=2,waveguides=3,wafers=2,fibres=1")
    wanted = collective("all-to-all", 4)
    run = solve.solve(Task("lumorph.rounds", mesh.spec, "certified-rounds", settings={"collective": "all-to-all"}))
    assert (run.objective, run.bound) == (2, 2)
    data = RoundModel.prepare(mesh, {"collective": "all-to-all"})
    schedule = data.rounds(run.values)
    assert not any(violations(mesh, wanted, limits, schedule).values())
    flat = replace(schedule, circuit_wavelength=np.zeros_like(schedule.circuit_wavelength))
    counted = violations(mesh, wanted, limits, flat)["waveguides"]
    between = mesh.scarce_fibres.joins(mesh)
    room = np.where(between, 1, 3)
    excess = 0
    for r in range(schedule.rounds):
        arcs = np.concatenate([schedule.path(k) for k in np.flatnonzero(schedule.circuit_round == r)])
        excess += np.maximum(np.bincount(arcs.astype(int), minlength=mesh.arcs) - room, 0).sum()
    assert counted == excess > 0
    assert violations(mesh, wanted, replace(limits, fibres=None), flat)["waveguides"] < counted
    load = data.links(run.values)
    assert sorted(set(load.capacity.tolist())) == [2.0, 6.0]


@pytest.mark.parametrize("name", ["all-to-all", "all-gather", "all-reduce"])
@pytest.mark.parametrize("fibres", [1, 3])
def test_the_methods_respect_the_fibres(name, fibres):
    mesh, limits = machine(f"lightpath:2x2,lasers=2,waveguides=2,wafers=2,fibres={fibres}")
    run = solve.solve(Task("lumorph.rounds", mesh.spec, "certified-rounds", settings={"collective": name}))
    assert run.verified
    assert run.objective == run.bound
    assert run.plan.problem.limits.fibres.number == fibres
    wanted = collective(name, mesh.n)
    for algorithm in ("recursive", "ring") if name != "all-to-all" else ():
        pattern, _ = pattern_of(algorithm, wanted, mesh, limits)
        schedule = realised(mesh, limits, pattern)
        assert not any(violations(mesh, wanted, limits, schedule).values())


def test_first_fit_counts_every_arc_by_itself():
    mesh, limits = machine("lightpath:1x2,lasers=1,waveguides=2,wafers=2,fibres=1")
    # Four circuits to the other wafer need four rounds, two within each wafer need one.
    source, target = np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3])
    assert assign_rounds(mesh, limits, source, target, least=4).rounds == 4
    wide = replace(limits, fibres=replace(limits.fibres, number=2))
    assert assign_rounds(mesh, wide, source, target, least=2).rounds == 2


def test_squares_are_refused_across_a_boundary():
    with pytest.raises(MethodMismatch, match="even number of columns"):
        solve.solve(Task("lumorph.sum-rounds", "lightpath:2x3,wafers=2,fibres=2", "squares"))
    run = solve.solve(
        Task(
            "lumorph.sum-rounds", "lightpath:2x2,lasers=4,wafers=2,fibres=2", "squares", settings={"square": "exchange"}
        )
    )
    assert run.verified


def test_the_bounds_of_sums_know_the_fibre_cut():
    mesh, limits = machine("lightpath:1x2,lasers=1,waveguides=4,wafers=2,fibres=1")
    bounds = {b.name: b for b in sum_bounds(mesh, collective("all-reduce", 4, pieces=4), limits)}
    assert bounds["cut"].value == 16  # all 16 chunks are contributed to on both wafers
    assert SumModel.prepare(mesh, {}).limits.fibres.number == 1


@pytest.mark.parametrize("fibres", [1, 4])
def test_forwarding_over_fibres(fibres):
    """Two chips a wafer, one laser: doubling joins both wafers by two circuits each way, in one round or in two."""
    spec = f"lightpath:1x2,lasers=1,waveguides=2,wafers=2,fibres={fibres}"
    run = solve.solve(Task("lumorph.forwarded-rounds", spec, "index-algorithm"))
    assert run.verified
    assert run.objective == (3 if fibres == 1 else 2)


def test_only_symmetries_that_keep_the_fibres_break_it():
    """A square of two wafers may be turned only if its fibres are as many as its waveguides."""
    counts = []
    for fibres in (1, 2):
        mesh, limits = machine(f"lightpath:2x1,lasers=1,waveguides=1,wafers=2,fibres={fibres}")
        program = RoundProgram(mesh, collective("all-gather", 4), limits, 4, 2, "straight", fixed=False, symmetry=True)
        counts.append(len(delivery_symmetries(program)))
    assert counts == [7, 3]


# Overlap ---------------------------------------------------------------------------------------------------------


def brute_force(data):
    """The least load per capacity over all choices of simple paths."""
    topology, (s, d) = data.topology, data.commodities
    choices = [simple_paths(topology, u, v) for u, v in zip(s.tolist(), d.tolist(), strict=True)]
    loads = (np.bincount(np.concatenate(choice), minlength=topology.arcs) for choice in product(*choices))
    return min(max(Fraction(int(n), int(c)) for n, c in zip(load, topology.capacity, strict=True)) for load in loads)


@pytest.mark.parametrize("seed", range(6))
def test_the_overlap_of_small_wafers_is_that_of_brute_force(seed):
    random = np.random.default_rng(seed)
    waveguides, fibres = random.permutation([1, 2, 3, 4, 6])[:2].tolist()
    shape = ("2x1", "1x2")[seed % 2]
    spec = f"lightpath:{shape},waveguides={waveguides},wafers=2,fibres={fibres}"
    chosen = {"circuits": "all"} if seed % 3 else {"seed": seed + 3}
    data = min_overlap.Overlap.prepare(parse(spec), chosen)
    common = gcd(waveguides, fibres)
    assert set(data.topology.capacity) == {waveguides // common, fibres // common}
    if chosen == {"circuits": "all"} and shape == "2x1":
        data = min_overlap.unit_data(parse(spec), *(ends[:8] for ends in data.commodities))
    truth = brute_force(data)
    for bound in data.bounds():
        assert Fraction(bound.value) <= truth
    lengths = random.exponential(size=data.topology.arcs) ** 2
    assert Fraction(mesh_cuts.length_bound(data, lengths)) <= truth
    routes = min_overlap_routes(parse(spec), *data.commodities)
    assert routes.load >= float(truth) * (1 - 1e-12)
    assert routes.bound <= float(truth)


@pytest.mark.parametrize("fibres", [1, 3, 6])
def test_the_routes_between_wafers_are_proven_optimal(fibres):
    """Partners are 8 columns apart: in a row, 8 circuits cross the boundary, and 7 the next arc of each wafer."""
    spec = f"lightpath:4x8,waveguides=4,wafers=2,fibres={fibres}"
    run = solve.solve(Task("lumorph.min-overlap", spec, settings={"circuits": "recursive-doubling:3"}))
    common = gcd(4, fibres)
    assert run.objective == pytest.approx(float(max(Fraction(8 * common, fibres), Fraction(7 * common, 4))))
    assert run.bound == pytest.approx(run.objective)
    load = min_overlap.Overlap.prepare(parse(spec), {"circuits": "recursive-doubling:3"}).links(run.values)
    assert load.utilisation.max() == pytest.approx(1.0)


def test_cuts_round_up_to_loads_that_some_arc_can_have():
    """Three circuits over two arcs of 3 each: one of them carries two."""
    data = min_overlap.Overlap.prepare(parse("lightpath:2x1,waveguides=2,wafers=2,fibres=3"), {"circuits": "all"})
    cut = mesh_cuts.straight_cuts(data.topology, (np.array([0, 0, 2]), np.array([1, 3, 3])), (2, 2))
    assert Fraction(cut.value) <= Fraction(2, 3)
    assert cut.value == pytest.approx(2 / 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_the_program_without_our_bounds_agrees_with_the_methods(seed):
    random = np.random.default_rng(seed)
    shape, name = str(random.choice(["1x2", "2x1", "2x2", "1x3"])), str(random.choice(["all-gather", "all-to-all"]))
    lasers, waveguides, fibres = random.integers(1, 4, size=3).tolist()
    spec = f"lightpath:{shape},lasers={lasers},waveguides={waveguides},wafers=2,fibres={fibres}"
    ours = solve.solve(Task("lumorph.rounds", spec, "certified-rounds", settings={"collective": name}))
    settings = {"collective": name, "bounds": "false"}
    stated = solve.solve(Task("lumorph.rounds", spec, "highs", settings=settings, time_limit_s=120))
    assert stated.bound - 1e-6 <= ours.objective
    assert ours.bound <= stated.objective
    if stated.proof == "optimal":
        assert ours.objective == stated.objective
    routes = {"circuits": str(random.choice(["permutation", "all"]))}
    values = [
        solve.solve(Task("lumorph.min-overlap", spec, method, settings=routes)).objective
        for method in ("highs", "negotiated-rerouting", "exact-routing")
    ]
    assert values[1:] == pytest.approx([values[0]] * 2)
