"""Lower bounds on rounds: never above the optimum, exact where they should be, invariant under relabelling."""

from __future__ import annotations

import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.formulations.lumorph.collective_bounds import priced_bound, round_bounds, single_demand
from opticoll.formulations.lumorph.sufficient_rounds import sufficient_rounds
from opticoll.formulations.lumorph.transfer_sets import RoundProgram
from opticoll.formulations.rounds.collectives import Collective, collective
from opticoll.formulations.rounds.round_schedule import Limits
from opticoll.instances import Topology, parse
from opticoll.instances.photonics import WaferFibres
from opticoll.solvers import solve
from opticoll.solvers.task import Task

#: Two wafers of two tiles in a row.
WAFERS = "lightpath:1x2,wafers=2,fibres=2"


def named(topology, wanted, limits):
    return {bound.name: bound.value for bound in round_bounds(topology, wanted, limits)}


def exhaustive(topology, wanted, limits, most=6):
    """The optimum by breadth-first search over what everybody holds (tiny cases, one route between two vertices)."""
    from scipy.sparse.csgraph import dijkstra

    n, room = topology.n, limits.room(topology)
    _, before = dijkstra(topology.length_matrix(np.ones(topology.arcs)), unweighted=True, return_predecessors=True)
    arc_of = {(u, v): a for a, (u, v) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))}

    def route(s, d):
        arcs = []
        while d != s:
            arcs.append(arc_of[int(before[s, d]), d])
            d = int(before[s, d])
        return arcs

    routes = {(s, d): route(s, d) for s in range(n) for d in range(n) if s != d}
    want = {(c, v) for c, v in wanted.deliveries.tolist()}
    start = frozenset((c, v) for c, v in wanted.pre.tolist())

    def fill(moves, k, used, got, out):
        """All sets of moves that fit in one round (receivers in turn; ``used`` counts by wavelength)."""
        if k == len(moves):
            out.add(frozenset(got))
            return
        fill(moves, k + 1, used, got, out)
        c, s, d = moves[k]
        if (c, d) in got:
            return
        for w in range(limits.wavelengths):
            keys = [("s", w, s), ("d", w, d), *[("a", w, a) for a in routes[s, d]]]
            if all(used.get(key, 0) < (room[key[2]] if key[0] == "a" else 1) for key in keys):
                more = dict(used)
                for key in keys:
                    more[key] = more.get(key, 0) + 1
                fill(moves, k + 1, more, got | {(c, d)}, out)

    frontier = {start}
    for rounds in range(most + 1):
        if any(want <= state for state in frontier):
            return rounds
        following = set()
        for state in frontier:
            moves = [(c, s, d) for c, d in sorted(want - state) for s in range(n) if s != d and (c, s) in state]
            out = set()
            fill(moves, 0, {}, frozenset(), out)
            best = [got for got in out if not any(got < other for other in out)]
            following |= {state | got for got in best}
        frontier = {state for state in following if not any(state < other for other in following)}
    msg = "more rounds than tried"
    raise AssertionError(msg)


@each("name", ["broadcast", "scatter", "gather", "all-gather", "all-to-all"])
@each(
    ("spec", "limits"),
    [
        ("path:3", Limits(1)),
        ("path:3", Limits(2)),
        ("path:3", Limits(1, 2)),
        ("star:3", Limits(1)),
    ],
)
def test_never_above_the_optimum_of_exhaustive_search(spec, limits, name):
    topology = parse(spec)
    if topology.n > 3 and name.startswith("all"):
        pytest.skip("too many states")
    wanted = collective(name, topology.n)
    best = exhaustive(topology, wanted, limits)
    result = named(topology, wanted, limits)
    assert max(result.values()) <= best, result


@given(st.integers(0, 2**31), st.integers(1, 2), st.integers(1, 2))
@settings(max_examples=6, deadline=None)
def test_never_above_the_optimum_of_drawn_collectives(seed, lasers, waveguides):
    random = np.random.default_rng(seed)
    topology = parse(["path:3", "path:4", "star:3", WAFERS][seed % 4])
    chunks = int(random.integers(1, 4))
    held = random.random((chunks, topology.n)) < 0.3
    held[np.arange(chunks), random.integers(topology.n, size=chunks)] = True
    wanted = Collective("drawn", topology.n, chunks, np.argwhere(held), np.argwhere(random.random(held.shape) < 0.6))
    fibres = None if topology.spec != WAFERS else WaferFibres(int(random.integers(1, 4)), 4, 2)
    limits = Limits(lasers, waveguides, fibres=fibres)
    if len(wanted.deliveries) > 6:
        return
    best = exhaustive(topology, wanted, limits, most=12)
    assert max(named(topology, wanted, limits).values()) <= best
    prices = random.random(topology.arcs) * (random.random(topology.arcs) < 0.7)
    assert priced_bound(topology, wanted, limits, prices).value <= best
    program = RoundProgram(topology, wanted, limits, 1, 2, "straight", fixed=False, symmetry=False)
    assert sufficient_rounds(program) >= best


@pytest.mark.slow
@pytest.mark.parametrize("name", ["all-gather", "all-to-all", "broadcast", "all-reduce"])
@pytest.mark.parametrize("spec", ["lightpath:2x2,lasers=1", "lightpath:2x2,lasers=2", "lightpath:2x3,lasers=2"])
def test_never_above_what_branch_and_bound_proves(spec, name):
    """The program without our bounds; on these meshes all routes that matter are candidates."""
    run = solve.solve(
        Task(
            "lumorph.rounds",
            spec,
            method="highs",
            settings={"collective": name, "bounds": "false", "paths": 4},
            time_limit_s=600,
        )
    )
    assert run.objective is not None
    again = solve.solve(Task("lumorph.rounds", spec, method="certified-rounds", settings={"collective": name}))
    assert again.bound <= run.objective
    assert again.objective <= run.objective


def test_known_values():
    mesh = parse("lightpath:4x8")
    assert named(mesh, collective("all-to-all", 32), Limits(1, 1))["cut"] == 64
    assert named(mesh, collective("all-to-all", 32), Limits(1, 4))["cut"] == 16
    assert named(mesh, collective("all-to-all", 32), Limits(1, 4))["receptions"] == 31
    assert named(mesh, collective("all-gather", 32), Limits(8, 1))["receptions"] == 4
    assert named(mesh, collective("broadcast", 32), Limits(1))["spread"] == 5
    assert named(mesh, collective("broadcast", 32), Limits(16))["spread"] == 2
    assert named(mesh, collective("scatter", 32), Limits(4))["sole holder"] == 8
    assert named(mesh, collective("gather", 32), Limits(4))["receptions"] == 8
    # Eight pieces leave the root one a round; the last one then still has to double from 2 to 32 holders.
    assert named(mesh, collective("broadcast", 32, pieces=8), Limits(1))["sole holder"] == 8 + 5 - 1
    # Distances: sum over pairs of a 1 x n line is n (n^2 - 1) / 3, over 2 (n - 1) arcs.
    line = parse("lightpath:1x9")
    assert named(line, collective("all-to-all", 9), Limits(1))["arc use"] == np.ceil(9 * 80 / 3 / 16)


def test_cuts_are_found_off_the_straight_lines():
    """Two triangles joined by one link: the cut is that link, whatever the order of the vertices."""
    u, v = np.array([0, 1, 2, 3, 4, 5, 2]), np.array([1, 2, 0, 4, 5, 3, 3])
    bells = Topology(6, np.concatenate([u, v]), np.concatenate([v, u]))
    assert named(bells, collective("all-to-all", 6), Limits(1))["cut"] == 9
    assert named(bells, collective("all-gather", 6), Limits(1))["cut"] == 3
    found = next(one for one in round_bounds(bells, collective("all-to-all", 6), Limits(1)) if one.name == "cut")
    assert found.detail["inside"] in ([0, 1, 2], [3, 4, 5])
    big = parse("lightpath:8x8+fail=20,seed=3")
    order = np.random.default_rng(0).permutation(64)
    other = big.relabelled(order)
    wanted = collective("all-to-all", 64)
    assert named(other, wanted, Limits(1))["cut"] >= 0.8 * named(big, wanted, Limits(1))["cut"]


@pytest.mark.parametrize("name", ["all-gather", "all-to-all", "scatter", "broadcast"])
def test_reflections_change_nothing_and_more_of_anything_never_raises_a_bound(name):
    mesh = parse("lightpath:3x4+fail=2,seed=5")
    tiles = np.arange(12).reshape(3, 4)
    wanted = collective(name, 12)
    for order in (tiles[::-1].ravel(), tiles[:, ::-1].ravel()):
        other = mesh.with_arcs(order[mesh.tail], order[mesh.head], mesh.capacity)
        one, two = named(mesh, wanted, Limits(2)), named(other, wanted.relabelled(order), Limits(2))
        assert one == two
    for more in (
        Limits(3),
        Limits(2, 2),
        Limits(2, 1, ports=2),
        Limits(2, 1, load=2),
        Limits(2, ports=None, load=None),
    ):
        result = named(mesh, wanted, more)
        assert all(result[key] <= value for key, value in named(mesh, wanted, Limits(2)).items())


def test_demand_of_single_deliveries_is_separated():
    wanted = Collective("mixed", 3, 3, [[0, 0], [1, 0], [2, 0], [2, 1]], [[0, 2], [1, 1], [1, 2], [2, 2]])
    demand, rest = single_demand(wanted)
    assert demand.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert rest.tolist() == [1, 2]


def test_nothing_to_deliver_takes_no_round():
    wanted = Collective("still", 2, 1, [[0, 0]], [[0, 0]])
    (bound,) = round_bounds(parse("path:2"), wanted, Limits(1))
    assert (bound.value, bound.exact) == (0.0, True)
