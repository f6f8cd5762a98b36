"""Wirings of pods: every bound against all wirings of small pods, solutions of every method, and what is refused."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from math import factorial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import flow_time, optimum

import opticoll as oc
from opticoll.errors import NotApplicable
from opticoll.formulations.topology.pod import PodWiring
from opticoll.formulations.topology.pod_bounds import all_to_all_reach, cube_links, cut_time, reach_time
from opticoll.formulations.topology.pod_solution import wiring as wiring_in
from opticoll.instances import parse
from opticoll.instances.families.pods import moved_wirings, pod_of, without_cables
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.topology.pod_loads import SQUARINGS, load_norm, worst_norm
from opticoll.solvers.methods.topology.pod_search import classes, group_wirings


def problem(spec, **given):
    return PodWiring.prepare(parse(spec), given)


def least_of_all(data):
    """The least T over all wirings, one after the other, but those whose distances exclude them."""
    count, best = int(data.matching[-1]) + 1, np.inf
    for chosen in itertools.product(itertools.permutations(range(data.cubes)), repeat=count):
        wiring = np.array(chosen)[data.matching].reshape(3, -1, data.cubes)
        pod = pod_of(wiring, data.side)
        cases = [
            pod if w < 0 else without_cables(pod, wiring, data.side, divmod(w, data.side**2))
            for w in data.lost.tolist()
        ]
        sent = data.demand > 0
        hops = max(float((data.demand[sent] * one.hops[sent]).sum() / max(one.arcs, 1)) for one in cases)
        if hops < best:
            best = min(best, max(flow_time(one, data.demand) for one in cases))
    return best


SMALL = [
    ("pod:cubes=2,side=1", {}),
    ("pod:cubes=3,side=1", {}),
    ("pod:cubes=3,side=1", {"survive": 1}),
    ("pod:cubes=3,side=1", {"demand": "permutation:2"}),
    ("pod:cubes=3,side=1", {"demand": [[0, 0, 0], [1, 0, 2], [3, 1, 0]]}),  # a cube that sends nothing
    ("pod:cubes=1,side=2", {"places": "free", "survive": 1}),
    ("pod:cubes=2,side=2", {}),
    ("pod:cubes=2,side=2", {"demand": "permutation:8"}),  # also turned with the cubes
]


@pytest.mark.parametrize(("spec", "given"), SMALL)
def test_enumeration_is_exact_and_every_bound_holds(spec, given):
    data = problem(spec, **given)
    best = least_of_all(data)
    found = oc.solve("topology.pod", spec, method="pod-enumeration", **given)
    assert found.proof == "optimal"
    assert best == pytest.approx(found.T, rel=1e-6)
    for bound, _ in (cut_time(data), reach_time(data)):
        assert bound <= best * (1 + 1e-9)
    searched = oc.solve("topology.pod", spec, method="pod-search", **given)
    assert best * (1 - 1e-6) <= searched.T <= best * (1 + 1e-6)


def test_classes_keep_the_demand():
    """Without symmetries of the demand 17 permutations of 4 cubes or inverses of one, in any order of dimensions."""
    demand = np.random.default_rng(1).random((4, 4)) * (1 - np.eye(4))
    assert len(list(classes(problem("pod:cubes=4,side=1", demand=demand), lambda: None))) == 17 * 18 * 19 // 6
    chips = np.random.default_rng(1).random((16, 16)) * (1 - np.eye(16))
    assert len(list(classes(problem("pod:cubes=2,side=2", demand=chips), lambda: None))) == 2**3


def test_wirings_need_not_join_cubes_that_exchange_nothing():
    """Two pairs of cubes, each over six links in each direction of its own; joining all four costs a fifth more."""
    pairs = np.eye(4)[[1, 0, 3, 2]]
    found = oc.solve("topology.pod", "pod:cubes=4,side=1", method="pod-enumeration", demand=pairs)
    assert found.proof == "optimal"
    assert pytest.approx(1 / 6) == found.T


@pytest.mark.slow
def test_all_4096_wirings_of_two_cubes_of_side_2():
    data = problem("pod:cubes=2,side=2", places="free")
    found = oc.solve("topology.pod", "pod:cubes=2,side=2", places="free", method="pod-enumeration")
    assert least_of_all(data) == pytest.approx(found.T, rel=1e-6)


def moved_demand(demand, image, order):
    """The demand between the chips that were ``image[a]`` of cube c and are now a of cube ``order[c]``."""
    size, moved = len(image), np.full_like(demand, np.nan)
    chips = [(order[c] * size + a, c * size + image[a]) for c in range(len(order)) for a in range(size)]
    for new, old in chips:
        for other, before in chips:
            moved[new, other] = demand[old, before]
    return moved


@pytest.mark.parametrize(("spec", "given"), SMALL)
def test_classes_stand_for_all_wirings(spec, given):
    """The orbits of the listed wirings, counted one by one, add up to all."""
    data = problem(spec, **given)
    k, listed = data.cubes, list(classes(data, lambda: None))
    orders = [np.array(order) for order in itertools.permutations(range(k))]
    orbits = [
        {
            order[moved[:, :, np.argsort(order)]].tobytes()
            for image, moved in moved_wirings(one, data.side)
            for order in orders
            if (data.demand == moved_demand(data.demand, image, order)).all()
        }
        for one in listed
    ]
    assert sum(map(len, orbits)) == len(set().union(*orbits)) == factorial(k) ** (int(data.matching[-1]) + 1)


@st.composite
def pods(draw, cubes=5, sides=(1, 2)):
    side, k = draw(st.sampled_from(sides)), draw(st.integers(2, cubes))
    same, random = draw(st.booleans()), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    some = np.array([random.permutation(k) for _ in range(3 if same else 3 * side**2)])
    return side, same, np.repeat(some, 3 * side**2 // len(some), axis=0).reshape(3, side**2, k)


@given(pods(sides=(1,)), st.integers(0, 100), st.booleans())
@settings(max_examples=25)
def test_bounds_hold_for_every_wiring(drawn, seed, survive):
    """For random demands and losses, against T by a plain LP."""
    side, same, wiring = drawn
    k = wiring.shape[2]
    demand = np.random.default_rng(seed).integers(0, 4, size=(k * side**3,) * 2).astype(float)
    np.fill_diagonal(demand, 0.0)
    data = PodWiring(k, side, same, survive, demand)
    pod = pod_of(wiring, side)
    lost = [w for w in data.lost.tolist() if w >= 0]
    cases = [without_cables(pod, wiring, side, divmod(w, side**2)) for w in lost] or [pod]
    worst = max(flow_time(one, demand) for one in cases)
    for bound, _ in (cut_time(data), reach_time(data)):
        assert float(bound) <= worst * (1 + 1e-9)


@given(pods(cubes=4, sides=(2, 3)))
@settings(max_examples=15)
def test_walks_reach_no_later_than_the_shortest_paths_of_any_wiring(drawn):
    """Summed over all pairs, under hops: the bound of reach, in the terms in which it is proven."""
    side, same, wiring = drawn
    pod, k = pod_of(wiring, side), wiring.shape[2]
    if not pod.connected:
        return
    n, links = k * side**3, 6 * k * side**3
    data = PodWiring(k, side, same, False, 1.0 - np.eye(n) + np.eye(n, k=1))  # a demand that varies: by hops
    hops = pod.hops + np.eye(n, k=1) * pod.hops
    assert float(reach_time(data)[0]) * links <= hops.sum() + 1e-9


@pytest.mark.parametrize(
    ("spec", "places"), [("pod:cubes=2,side=2", "same"), ("pod:cubes=2,side=2", "free"), ("pod:cubes=4,side=1", "free")]
)
def test_reach_is_at_least_the_linear_relaxation(spec, places):
    data = problem(spec, places=places)
    form = compile_model(data.cvxpy())
    relaxed = 1 / optimum(replace(form, integer=np.zeros_like(form.integer)))[0]
    assert 0 < relaxed <= float(reach_time(data)[0]) * (1 + 1e-6)


def test_bounds_of_cubes_of_64_chips():
    """One cube is a torus, whose time is 32; two cubes send 64 x 64 shards over 96 ports."""
    assert all_to_all_reach(1, 4, same=False)[0] == 32
    assert all_to_all_reach(2, 4, same=True)[0] == Fraction(218, 3)
    assert cut_time(problem("pod:cubes=2"))[0] == Fraction(64 * 64, 96)
    assert cut_time(problem("pod:cubes=2", survive=1))[0] == Fraction(64 * 64, 94)


def test_the_published_twist_of_two_cubes_is_the_best_of_its_kind():
    """Of all wirings with one permutation for every dimension; places of their own are faster."""
    found = oc.solve("topology.pod", "pod:cubes=2", method="pod-enumeration")
    assert found.proof == "optimal"
    assert found.value == pytest.approx(3 / 220, rel=1e-9)
    assert found.record.metrics["pod"] == "pod:cubes=2,wiring=1/1/1"


def test_the_loss_of_a_switch_costs_what_its_topology_says():
    found = oc.solve("topology.pod", "pod:cubes=3,side=1", survive=1, method="pod-search")
    spec = found.record.metrics["pod"]
    worst = max(oc.solve("alltoall.master", f"{spec}+fail=switch:{d}.0").T for d in range(3))
    assert worst == pytest.approx(found.T, rel=1e-6)


@given(pods(cubes=4))
@settings(max_examples=20)
def test_loads_are_those_of_equal_splits(drawn):
    """The norm of networkx's betweenness of links, which splits every pair over its shortest paths equally."""
    side, _, wiring = drawn
    pod, walks = pod_of(wiring, side), cube_links(side, same=False, lost=-1)
    follow = np.ascontiguousarray(wiring.reshape(3 * side**2, -1))
    norm = load_norm(walks.head, walks.letter, follow, np.argsort(follow, axis=1), False, SQUARINGS[0])
    if not pod.connected or len(set(zip(pod.tail.tolist(), pod.head.tolist(), strict=True))) < pod.arcs:
        return  # parallel links share the load of one edge of networkx
    graph = nx.DiGraph(list(zip(pod.tail.tolist(), pod.head.tolist(), strict=True)))
    loads = np.array(list(nx.edge_betweenness_centrality(graph, normalized=False).values()))
    power = 2 ** SQUARINGS[0]
    assert norm == pytest.approx(((loads**power).sum() / (6 * pod.n)) ** (1 / power), rel=1e-9)


@pytest.mark.parametrize(("cubes", "side"), [(4, 2), (3, 2), (2, 3)])
def test_the_worst_norm_is_that_of_all_losses(cubes, side):
    """Of networks without the switch, whose cubes are still alike; it ends above a limit, with that switch first."""
    walks, rng = cube_links(side, same=False, lost=-1), np.random.default_rng(0)
    steps = rng.integers(1, cubes, size=(3 * side**2, 1))
    follow = (np.arange(cubes) + steps) % cubes
    links = follow, np.argsort(follow, axis=1)
    lost = np.arange(3 * side**2)
    each = [
        load_norm(one.head, one.letter, *links, False, SQUARINGS[0])
        for one in (cube_links(side, same=False, lost=switch) for switch in lost.tolist())
    ]
    assert worst_norm(walks.head, walks.letter, *links, SQUARINGS[0], lost, np.inf) == pytest.approx(
        max(each), rel=1e-9
    )
    assert sorted(lost) == list(range(3 * side**2))
    assert each[lost[0]] == pytest.approx(max(each), rel=1e-9)
    assert worst_norm(walks.head, walks.letter, *links, SQUARINGS[0], np.array([-1]), np.inf) < max(each)
    assert worst_norm(walks.head, walks.letter, *links, SQUARINGS[0], lost, 0.0) == pytest.approx(max(each), rel=1e-9)


@pytest.mark.parametrize(("cubes", "side"), [(4, 1), (6, 1), (4, 2), (3, 3)])
def test_cubes_of_a_group_are_alike(cubes, side):
    """Sources of one cube stand for all: the norm is the same with the sources of all cubes."""
    walks = cube_links(side, same=False, lost=-1)
    rng = np.random.default_rng(0)
    for same in (True, False):
        for power, norm, wiring in group_wirings(
            cubes, side, same=same, survive=False, rng=rng, starts=2, moves=20, tick=lambda: None
        ):
            follow = np.ascontiguousarray(wiring.reshape(-1, cubes))
            every = load_norm(walks.head, walks.letter, follow, np.argsort(follow, axis=1), False, power)
            assert norm == pytest.approx(every, rel=1e-9)
            assert not same or (wiring == wiring[:, :1]).all()


def test_a_search_that_is_ended_keeps_what_it_has_found():
    def ended(calls):
        left = iter([None] * calls)

        def tick():
            if next(left, TimeoutError) is TimeoutError:
                raise TimeoutError

        return list(islice(group_wirings(3, 2, same=False, survive=False, rng=rng, starts=1, moves=80, tick=tick), 1))

    rng = np.random.default_rng(0)
    for calls in (0, 1):  # before a group, and before the first piece of its annealing
        with pytest.raises(TimeoutError):
            ended(calls)
    (_, norm, wiring), *_ = ended(2)
    assert wiring.shape == (3, 4, 3)
    assert np.isfinite(norm)


def test_a_demand_may_be_data_or_a_file_that_names_chips(tmp_path):
    spec, matrix = "pod:cubes=3,side=1", np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [1.0, 0.0, 0.0]])
    chips = parse(spec).labels
    pairs = {(chips[s], chips[t]): matrix[s, t] for s, t in np.argwhere(matrix).tolist()}
    path = tmp_path / "traffic.csv"
    path.write_text("src,dst,amount\n" + "".join(f"{s},{t},{amount}\n" for (s, t), amount in pairs.items()))
    for demand in (matrix, pairs, f"file:{path}"):
        assert (oc.problem("topology.pod", spec, demand=demand).formulation.demand == matrix).all()
        assert (oc.bounds(spec, formulation="topology.pod", demand=demand)["value"] >= 1.8).all()
    assert oc.solve("topology.pod", spec, demand=pairs).value == pytest.approx(1.8)


@pytest.mark.parametrize("shards", [1e-6, 1.0, 1e6])
def test_flows_are_checked_relative_to_what_they_deliver(shards):
    solved = oc.solve("topology.pod", "pod:cubes=3,side=1", demand=shards * (1 - np.eye(3)))
    assert (solved.value, solved.proof) == (pytest.approx(3 / shards), "optimal")
    problem = oc.problem("topology.pod", "pod:cubes=3,side=1", demand=shards * (1 - np.eye(3)))
    for F in (1.05 * solved.value, 1e9 / shards):
        assert problem.residuals({**solved.values, "F": np.array(F)})["balance"] > 0.01


def test_a_solution_tells_its_wiring():
    data = problem("pod:cubes=3,side=2", places="free")
    rng = np.random.default_rng(1)
    chosen = np.array([rng.permutation(3) for _ in range(12)]).reshape(3, 4, 3)
    x = np.zeros((12, 3, 3))
    x[np.arange(12)[:, None], np.arange(3), chosen.reshape(12, 3)] = 1.0
    assert np.array_equal(wiring_in(data, {"x": x}), chosen)


@pytest.mark.parametrize(
    ("spec", "given", "message"),
    [
        ("torus:4x4", {}, "needs a whole pod; write pod:cubes=8"),
        ("pod:cubes=3,side=1+fail=1", {}, "needs a whole pod"),
        ("servers:n=4,degree=2", {}, "needs a whole pod"),
        ("pod:shape=1x1x2", {}, "without shape and wiring"),
        ("pod:cubes=2,wiring=twisted", {}, "without shape and wiring"),
        ("pod:cubes=1,side=1", {}, "a single chip has nothing to send"),
        ("pod:cubes=3,side=1", {"survive": 2}, "survive must be 0 or 1"),
        ("pod:cubes=3,side=1", {"demand": "longest-matching"}, "needs the distances"),
    ],
)
def test_refused(spec, given, message):
    with pytest.raises(NotApplicable, match=message):
        problem(spec, **given)


@pytest.mark.parametrize(
    ("spec", "method", "message"),
    [
        ("pod:cubes=32", "pod-search", "opticoll design pod cubes=32"),
        ("pod:cubes=8", "pod-enumeration", "use pod-search"),
    ],
)
def test_too_large(spec, method, message):
    with pytest.raises(NotApplicable, match=message):
        oc.solve("topology.pod", spec, method=method, time_limit=60)
