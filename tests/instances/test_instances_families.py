"""Published invariants of every family: order, size, degree, diameter, connectivity, isomorphisms."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import multigraph

from opticoll.errors import BadInput
from opticoll.instances import LightpathMesh, ServerPool, Topology, WdmLine, WdmRing, parse
from opticoll.instances.spec import family_of
from opticoll.instances.symmetry import arc_image, automorphisms, orbits_of
from opticoll.instances.topology import link_groups


def undirected(topology: Topology) -> nx.Graph:
    assert set(zip(topology.tail, topology.head, strict=True)) == set(zip(topology.head, topology.tail, strict=True))
    return nx.Graph(list(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)))


def folded(dimension: int) -> nx.Graph:
    """The hypercube of one dimension more, with opposite nodes made one."""
    last = 2 ** (dimension + 1) - 1
    links = [(u, u ^ 1 << k) for u in range(last + 1) for k in range(dimension + 1)]
    return nx.Graph([(min(u, last - u), min(v, last - v)) for u, v in links])


@pytest.mark.parametrize(
    ("spec", "n", "arcs", "degree", "diameter"),
    [
        ("ring:2", 2, 2, {1}, 1),
        ("ring:3", 3, 6, {2}, 1),
        ("ring:8", 8, 16, {2}, 4),
        ("ring:9", 9, 18, {2}, 4),
        ("ring:8,directed", 8, 8, {1}, 7),
        ("path:4", 4, 6, {1, 2}, 3),
        ("star:6", 6, 10, {1, 5}, 2),
        ("complete:5", 5, 20, {4}, 1),
        ("bipartite:4x4", 8, 32, {4}, 2),
        ("bipartite:1x3", 4, 6, {1, 3}, 2),
        ("petersen", 10, 30, {3}, 2),
        ("mesh:4x4", 16, 48, {2, 3, 4}, 6),
        ("mesh:2x3x4", 24, 92, {3, 4, 5}, 6),
        ("torus:3x4", 12, 48, {4}, 3),
        ("torus:2x2", 4, 8, {2}, 2),
        ("torus:1x5", 5, 10, {2}, 2),
        ("torus:3x3x3", 27, 162, {6}, 3),
        ("torus:2x3x4", 24, 120, {5}, 4),
        ("hypercube:1", 2, 2, {1}, 1),
        ("hypercube:3", 8, 24, {3}, 3),
        ("hypercube:6", 64, 384, {6}, 6),
        ("twisted-hypercube:3", 8, 24, {3}, 2),
        ("twisted-hypercube:4", 16, 64, {4}, 3),
        ("twisted-hypercube:7", 128, 896, {7}, 6),
        ("circulant:n=12,offsets=1x5", 12, 48, {4}, 3),
        ("circulant:n=12,offsets=1x6", 12, 36, {3}, 3),
        ("circulant:n=7,offsets=1x2x4,directed", 7, 21, {3}, 2),
        ("kautz:d=2,D=2", 6, 12, {2}, 2),
        ("kautz:d=1,D=5", 2, 2, {1}, 1),
        ("kautz:d=3,D=3", 36, 108, {3}, 3),
        ("kautz:d=4,D=1", 5, 20, {4}, 1),
        ("debruijn:d=2,D=3", 8, 14, {1, 2}, 3),
        ("debruijn:d=3,D=3,loops=keep", 27, 81, {3}, 3),
        ("dgx1", 8, 32, {4}, 2),
        ("twisted-torus:4x4x8", 128, 768, {6}, 6),
        ("twisted-torus:4x4x8,twist=3x4", 128, 768, {6}, 5),
        ("twisted-torus:4x8x8", 256, 1536, {6}, 6),
        ("twisted-torus:1x8,twist=3", 8, 32, {4}, 2),
        ("twisted-torus:2x4,twist=2", 8, 32, {4}, 2),
        ("folded-hypercube:2", 4, 12, {3}, 1),
        ("folded-hypercube:4", 16, 80, {5}, 2),
        ("folded-hypercube:7", 128, 1024, {8}, 4),
        ("dragonfly:a=4,h=2", 36, 180, {5}, 3),
        ("dragonfly:a=4,h=2,g=3", 12, 60, {5}, 2),
        ("dragonfly:a=1,h=4", 5, 20, {4}, 1),
        ("lightpath:2x4", 8, 20, {2, 3}, 4),
        ("wdm-ring:n=16,wavelengths=2", 16, 32, {2}, 8),
        ("wdm-line:n=16,wavelengths=2", 16, 30, {1, 2}, 15),
    ],
)
def test_order_size_degree_diameter(spec, n, arcs, degree, diameter):
    topology = parse(spec)
    assert (topology.n, topology.arcs, topology.num_ranks) == (n, arcs, n)
    assert set(topology.out_degree.tolist()) == degree
    assert np.array_equal(np.sort(topology.in_degree), np.sort(topology.out_degree))
    assert topology.diameter == diameter
    assert topology.connected


@pytest.mark.parametrize(
    ("spec", "graph"),
    [
        ("ring:9", nx.cycle_graph(9)),
        ("path:7", nx.path_graph(7)),
        ("star:7", nx.star_graph(6)),
        ("complete:6", nx.complete_graph(6)),
        ("bipartite:3x5", nx.complete_bipartite_graph(3, 5)),
        ("petersen", nx.petersen_graph()),
        ("hypercube:4", nx.hypercube_graph(4)),
        ("mesh:3x4x2", nx.grid_graph((3, 4, 2))),
        ("torus:3x4", nx.grid_graph((3, 4), periodic=True)),
        ("torus:2x4", nx.grid_graph((2, 4), periodic=True)),
        ("torus:3x3x4", nx.grid_graph((3, 3, 4), periodic=True)),
        ("circulant:n=12,offsets=1x5", nx.circulant_graph(12, [1, 5])),
        ("circulant:n=10,offsets=2x5", nx.circulant_graph(10, [2, 5])),
        ("slimfly:q=5", nx.hoffman_singleton_graph()),
        ("twisted-torus:4x4,twist=0", nx.grid_graph((4, 4), periodic=True)),
        ("twisted-torus:2x3x4,twist=0x0x0", nx.grid_graph((2, 3, 4), periodic=True)),
        ("twisted-torus:1x13,twist=5", nx.circulant_graph(13, [1, 5])),
        ("twisted-torus:1x1x9,twist=0x2x4", nx.circulant_graph(9, [1, 2, 4])),
        ("folded-hypercube:4", folded(4)),
    ],
)
def test_isomorphic_to_networkx(spec, graph):
    assert nx.is_isomorphic(undirected(parse(spec)), graph)


@settings(max_examples=40)
@given(st.integers(2, 60), st.integers(1, 12))
def test_genkautz_loops_and_degrees(n, d):
    kept = parse(f"genkautz:n={n},d={d},loops=keep")
    g = math.gcd(d + 1, n)
    assert (kept.tail == kept.head).sum() == g * (d // g)
    assert kept.arcs == n * d
    assert (kept.out_degree == d).all()
    assert (kept.in_degree == d).all()
    dropped = parse(f"genkautz:n={n},d={d}")
    assert dropped.arcs == n * d - g * (d // g)
    assert not (dropped.tail == dropped.head).any()
    parallel = len(set(zip(kept.tail.tolist(), kept.head.tolist(), strict=True))) < kept.arcs
    assert parallel == (d > n)


def test_genkautz_arcs_are_those_of_imase_and_itoh():
    topology = parse("genkautz:n=16,d=4,loops=keep")
    wanted = sorted((i, (-4 * i - j) % 16) for i in range(16) for j in range(1, 5))
    assert list(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)) == wanted


@settings(max_examples=40)
@given(st.integers(2, 300), st.integers(2, 6))
def test_genkautz_diameter(n, d):
    topology = parse(f"genkautz:n={n},d={d}")
    assert topology.connected
    bound = next(k for k in range(20) if d**k >= n)
    assert topology.diameter <= max(bound, 1)


@pytest.mark.parametrize(("d", "D"), [(2, 1), (2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (4, 2)])
def test_kautz_is_a_generalized_kautz(d, D):
    kautz = parse(f"kautz:d={d},D={D}")
    assert kautz.diameter == D
    same = parse(f"genkautz:n={d**D + d ** (D - 1)},d={d}")
    assert nx.is_isomorphic(multigraph(kautz), multigraph(same))


def test_kautz_words_overlap_along_arcs():
    topology = parse("kautz:d=3,D=4")
    assert len(set(topology.labels)) == topology.n
    for u, v in zip(topology.tail, topology.head, strict=True):
        assert topology.labels[u][1:] == topology.labels[v][:-1]
    for word in topology.labels:
        assert all(a != b for a, b in itertools.pairwise(word))
    assert parse("kautz:d=10,D=2").labels[0] == "0.1"


def test_debruijn_words_overlap_and_constant_words_loop():
    topology = parse("debruijn:d=3,D=4,loops=keep")
    for u, v in zip(topology.tail, topology.head, strict=True):
        assert topology.labels[u][1:] == topology.labels[v][:-1]
    loops = topology.tail[topology.tail == topology.head]
    assert [topology.labels[v] for v in loops] == ["0000", "1111", "2222"]
    assert parse("debruijn:d=3,D=4").diameter == 4


@pytest.mark.parametrize(
    "q", [3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, *(pytest.param(q, marks=pytest.mark.slow) for q in (25, 27))]
)
def test_slimfly_is_mckay_miller_siran(q):
    topology = parse(f"slimfly:q={q}")
    delta = {0: 0, 1: 1, 3: -1}[q % 4]
    assert topology.n == 2 * q * q
    assert set(topology.out_degree.tolist()) == {(3 * q - delta) // 2}
    assert topology.diameter == 2
    undirected(topology)


@each("q", [2, 3, 4, 5, 7, 8, 9, 11, 13, 16])
def test_polarfly_links_orthogonal_points(q):
    """Two lines of a projective plane meet in one point: two nodes have one common neighbour, loops counted."""
    topology = parse(f"polarfly:q={q}")
    n, quadrics = q * q + q + 1, topology.out_degree == q
    assert (topology.n, quadrics.sum(), topology.diameter) == (n, q + 1, 2)
    assert (topology.out_degree[~quadrics] == q + 1).all()
    undirected(topology)
    links = np.diag(quadrics.astype(int))
    links[topology.tail, topology.head] += 1
    assert (links @ links == 1 + q * np.eye(n)).all()


@each("q", [2, 3, 5, 7])
def test_neighbours_of_polarfly_are_orthogonal_modulo_a_prime(q):
    topology = parse(f"polarfly:q={q}")
    points = np.array([list(map(int, label.split("."))) for label in topology.labels])
    assert {tuple(point) for point in points} == {
        point for point in itertools.product(range(q), repeat=3) if next((c for c in point if c), 0) == 1
    }
    u, v = np.nonzero((points @ points.T % q == 0) & ~np.eye(len(points), dtype=bool))
    assert np.array_equal(topology.tail * len(points) + topology.head, u * len(points) + v)


@each("q", [3, 5, 7, 8, 9, 13, 16])
def test_declared_symmetries_of_polarfly_hold(q):
    """They join all quadrics, and all other points of each of the two kinds for odd q, or all but one for even q."""
    topology = parse(f"polarfly:q={q}")
    family, arguments = family_of(topology)
    images = [np.asarray(image) for image in family.automorphisms(**arguments)]
    assert all(arc_image(topology, image) is not None for image in images)
    others = [q * (q + 1) // 2, q * (q - 1) // 2] if q % 2 else [1, q * q - 1]
    assert sorted(np.bincount(orbits_of(np.array(images), topology.n))) == sorted([q + 1, *others])


@settings(max_examples=60)
@given(st.data())
def test_twisted_tori_are_tori_with_shifted_wraps(data):
    """Link by link from the definition; translations make them vertex-transitive."""
    shape = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=3).filter(lambda s: math.prod(s) > 1))
    k = len(shape)
    shifts = {(i, j): data.draw(st.integers(0, shape[j] - 1)) for i in range(k) for j in range(i + 1, k)}
    words = ["x".join(map(str, numbers)) for numbers in (shape, shifts.values())]
    topology = parse(f"twisted-torus:{words[0]},twist={words[1]}")
    links = set()
    for point in itertools.product(*map(range, shape)):
        for i in range(k):
            at = list(point)
            at[i] += 1
            for j in range(i, k):
                while at[j] >= shape[j]:
                    at[j] -= shape[j]
                    at = [x + shifts.get((j, m), 0) for m, x in enumerate(at)]
            links |= {(point, tuple(at)), (tuple(at), point)} if tuple(at) != point else set()
    names = [tuple(map(int, label.split("."))) for label in topology.labels]
    assert {(names[u], names[v]) for u, v in zip(topology.tail, topology.head, strict=True)} == links
    assert topology.arcs == len(links)
    assert topology.connected
    assert np.unique(orbits_of(automorphisms(topology, searched=False)[0], topology.n)).size == 1


@each(
    ("spec", "message"),
    [
        ("twisted-torus:8x4x4,twist=4x4", "the shift 4 along a dimension of size 4 must lie in 0..3; list short"),
        ("twisted-torus:4x4x8,twist=4", "twist=4 does not fit 3 dimensions; number of shifts: 2 or 3"),
        ("twisted-torus:4x4,twist=1x1", "number of shifts: 1"),
        ("twisted-torus:8,twist=1", "does not fit 1 dimension; number of shifts: none, or use two sizes"),
        ("twisted-torus:3x4", "3x4 has no usual twist, as kxkx2k and kx2kx2k have; write twist=SHIFTS"),
        ("twisted-torus:4x4", "has no usual twist"),
        ("twisted-torus:0x4,twist=1", "each size: must be a whole number of at least 1"),
        ("twisted-torus:1x1,twist=0", "product of the sizes: must be a whole number of at least 2"),
        ("twisted-torus:4x4,twist=a", "must be sizes such as 3x4, not 'a'"),
        ("twisted-torus:999999x99,twist=1", "exceed the limits"),
        ("polarfly:q=6", "q=6 must be a prime power, such as 2, 3, 4, 5, 7, 8, 9, 11"),
        ("polarfly:q=1", "must be a whole number of at least 2"),
        ("polarfly:q=1000", "exceed the limits"),
        ("folded-hypercube:1", "must be a whole number of at least 2"),
        ("folded-hypercube:64", "exceed the limit"),
    ],
)
def test_impossible_arguments_of_these_families_are_refused_in_one_line(spec, message):
    with pytest.raises(BadInput) as caught:
        parse(spec)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_usual_twist_is_that_of_every_short_dimension():
    for usual, written in (("4x4x8", "4x4x8,twist=0x4x4"), ("2x4x4", "2x4x4,twist=2x2"), ("3x6", "3x6,twist=3")):
        assert parse(f"twisted-torus:{usual}") == parse(f"twisted-torus:{written}")
    assert parse("twisted-torus:4x8x8,twist=4x4") == parse("twisted-torus:4x8x8,twist=4x4x0")
    assert parse("twisted-torus:twist=3x4,shape=4x4x8").spec == "twisted-torus:4x4x8,twist=3x4"


@pytest.mark.parametrize("dimension", [3, 4, 5, 6, 8])
def test_twisted_cube_shortens_the_diameter_by_one(dimension):
    twisted, straight = parse(f"twisted-hypercube:{dimension}"), parse(f"hypercube:{dimension}")
    assert twisted.diameter == straight.diameter - 1 == dimension - 1
    assert not nx.is_bipartite(undirected(twisted))
    assert twisted.hops.sum() < straight.hops.sum()


def test_dragonfly_joins_every_two_groups_once():
    topology = parse("dragonfly:a=4,h=2")
    group = np.arange(36) // 4
    a, b = group[topology.tail], group[topology.head]
    between = np.zeros((9, 9), dtype=int)
    np.add.at(between, (a, b), 1)
    assert (between == 1 + 11 * np.eye(9)).all()  # 12 arcs in a complete group of four
    assert (np.bincount(topology.tail[a != b]) == 2).all()


@settings(max_examples=40)
@given(st.integers(1, 5), st.integers(1, 4), st.data())
def test_dragonfly_uses_no_port_twice(a, h, data):
    g = data.draw(st.integers(2, a * h + 1))
    topology = parse(f"dragonfly:a={a},h={h},g={g}")
    assert topology.connected
    across = topology.tail // a != topology.head // a
    assert np.bincount(topology.tail[across], minlength=topology.n).max() <= h
    between = np.zeros((g, g), dtype=int)
    np.add.at(between, (topology.tail[across] // a, topology.head[across] // a), 1)
    assert (between == (a * h // (g - 1)) * (1 - np.eye(g))).all()


def test_boxes_behind_nvswitch():
    topology = parse("nvswitch:boxes=2,gpus=4")
    assert (topology.n, topology.num_ranks, topology.arcs) == (11, 8, 32)
    assert topology.terminals.tolist() == list(range(8))
    leaving = np.bincount(topology.tail, topology.capacity, 11)
    assert (leaving[:8] == 500).all()
    assert leaving[8:].tolist() == [1800, 1800, 400]
    assert topology.labels[7:] == ("gpu[1,3]", "switch[0]", "switch[1]", "network")
    alone = parse("nvswitch:boxes=1,gpus=4,inside=2")
    assert (alone.n, alone.arcs, set(alone.capacity)) == (5, 8, {2.0})
    for spec in ("nvswitch:boxes=0", "nvswitch:boxes=2,gpus=1", "nvswitch:boxes=2,outside=0"):
        with pytest.raises(BadInput):
            parse(spec)


def test_dgx1_has_six_nvlinks_a_gpu():
    topology = parse("dgx1")
    assert (np.bincount(topology.tail, weights=topology.capacity) == 6).all()
    assert topology.capacity.sum() == 48
    pairs = dict(zip(zip(topology.tail.tolist(), topology.head.tolist(), strict=True), topology.capacity, strict=True))
    assert all(pairs[v, u] == c for (u, v), c in pairs.items())
    assert {(u, v) for u, v in pairs if (u < 4) != (v < 4)} == {(u, (u + 4) % 8) for u in range(8)}
    for quad in (range(4), range(4, 8)):
        assert all((u, v) in pairs for u in quad for v in quad if u != v)


#: Sizes and degrees of the families of random regular graphs.
REGULAR = {
    "random-regular": [(2, 1), (6, 2), (20, 2), (10, 3), (12, 4), (32, 4), (9, 6), (10, 9), (64, 5)],
    "xpander": [(5, 4), (6, 4), (7, 4), (32, 4), (33, 4), (40, 4), (24, 3), (3, 2), (17, 2), (20, 6)],
}


@pytest.mark.parametrize(("family", "n", "d"), [(family, *size) for family in REGULAR for size in REGULAR[family]])
def test_random_graphs_are_regular_simple_connected(family, n, d):
    for seed in range(12):
        topology = parse(f"{family}:n={n},d={d},seed={seed}")
        graph = undirected(topology)
        assert topology.arcs == n * d == 2 * graph.number_of_edges()
        assert set(topology.out_degree.tolist()) == {d}
        assert topology.connected


def test_xpander_is_a_lift_of_the_complete_graph():
    topology = parse("xpander:n=40,d=4,seed=3")
    meta = np.zeros((5, 5), dtype=int)
    np.add.at(meta, (topology.tail // 8, topology.head // 8), 1)
    assert (meta == 8 * (1 - np.eye(5))).all()


ONE_WAY, TWO_WAY = [(2, 1), (5, 1), (5, 4), (7, 2), (20, 4)], [(2, 1), (4, 3), (6, 2), (7, 4), (20, 3)]


@pytest.mark.parametrize(
    ("n", "d", "two_way"),
    [(*size, two_way) for two_way in (False, True) for size in [*(TWO_WAY if two_way else ONE_WAY), (64, 4), (30, 12)]],
)
def test_sp_expander_is_regular_simple_strongly_connected(n, d, two_way):
    for seed in range(6):
        topology = parse(f"sp-expander:n={n},d={d},seed={seed}" + ",two_way" * two_way)
        arcs = set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
        assert len(arcs) == topology.arcs == n * d
        assert not (topology.tail == topology.head).any()
        assert set(topology.out_degree.tolist()) == set(topology.in_degree.tolist()) == {d}
        assert topology.connected
        assert not two_way or arcs == {(v, u) for u, v in arcs}


def test_two_way_sp_expander_is_seeded_and_spreads_better_than_random_graphs():
    specs = [f"sp-expander:n=64,d=4,seed={seed},two_way" for seed in (1, 2, 1)]
    draws = [parse(spec) for spec in specs]
    assert draws[0].hash == draws[2].hash != draws[1].hash
    assert draws[0].hash != parse("sp-expander:n=64,d=4,seed=1").hash
    hops = np.mean([parse(f"sp-expander:n=64,d=4,seed={seed},two_way").hops.mean() for seed in range(5)])
    others = np.mean([parse(f"random-regular:n=64,d=4,seed={seed}").hops.mean() for seed in range(5)])
    assert hops < others
    with pytest.raises(BadInput, match="even n"):
        parse("sp-expander:n=5,d=3,two_way")


def test_sp_expander_distances_are_near_those_of_genkautz():
    formed, kautz = parse("sp-expander:n=128,d=4,seed=1"), parse("genkautz:n=128,d=4")
    assert formed.hops.mean() < 1.1 * kautz.hops.mean()
    assert formed.diameter <= kautz.diameter + 2


@pytest.mark.parametrize("family", ["random-regular", "xpander", "sp-expander"])
def test_seeds_determine_the_draw(family):
    draws = [parse(f"{family}:n=30,d=4,seed={seed}").hash for seed in (1, 2, 1)]
    assert draws[0] == draws[2] != draws[1]


def test_machines_carry_their_parameters():
    mesh = parse("lightpath:2x4,lasers=8,waveguides=3")
    assert isinstance(mesh, LightpathMesh)
    assert (mesh.lasers, mesh.waveguides, tuple(mesh.shape)) == (8, 3, (2, 4))
    assert mesh.labels[5] == "1.1"
    ring, line = parse("wdm-ring:n=1024,wavelengths=64"), parse("wdm-line:n=8,wavelengths=2")
    assert isinstance(ring, WdmRing)
    assert isinstance(line, WdmLine)
    assert (ring.n, ring.wavelengths, line.wavelengths) == (1024, 64, 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("lightpath:2x4", "lightpath:2x4,waveguides=2"),
        ("lightpath:2x4", "lightpath:2x4,lasers=2"),
        ("lightpath:2x4", "mesh:2x4"),
        ("wdm-ring:n=8,wavelengths=2", "wdm-ring:n=8,wavelengths=3"),
        ("wdm-ring:n=8,wavelengths=2", "ring:8"),
        ("servers:n=4,degree=2", "servers:n=4,degree=3"),
        ("servers:n=4,degree=2", "servers:n=4,degree=2,volume=1.0"),
    ],
)
def test_extra_parameters_enter_the_hash(one, other):
    assert parse(one) != parse(other)
    assert parse(one).hash != parse(other).hash


def test_server_traffic(tmp_path):
    everyone = parse("servers:n=5,degree=2,traffic=alltoall,volume=3.0")
    assert isinstance(everyone, ServerPool)
    assert (everyone.traffic == 3.0 * (1 - np.eye(5))).all()
    drawn = parse("servers:n=40,degree=4,traffic=random,seed=1")
    assert drawn == parse("servers:n=40,degree=4,traffic=random,seed=1")
    assert drawn != parse("servers:n=40,degree=4,traffic=random,seed=2")
    assert drawn.traffic.sum() / (40 * 39) == pytest.approx(1e6, rel=0.1)
    assert not np.diagonal(drawn.traffic).any()
    path = tmp_path / "t.csv"
    path.write_text("# bytes\n0,1,2\n3,0,4.5\n5,6e3,0\n")
    read = parse(f"servers:n=3,degree=1,traffic=file:{path}")
    assert read.traffic.tolist() == [[0, 1, 2], [3, 0, 4.5], [5, 6000, 0]]
    assert parse(read.spec) == read
    assert dict(read.parameters)["traffic"] == f"file:{path}"


def test_dlrm_traffic_is_that_of_topoopt_section_2():
    traffic = parse("servers:n=16,degree=4,traffic=dlrm").traffic
    mib32 = 32 * 2**20
    assert traffic[5, 6] == 4e9
    assert traffic[0, 1] == 4e9 + mib32
    assert traffic[8, 2] == traffic[2, 8] == mib32
    assert traffic[0, 3] == traffic[13, 8] == 2 * mib32
    assert traffic[1, 5] == 0
    replicated = parse("servers:n=16,degree=4,traffic=dlrm-replicated").traffic
    assert replicated.sum() == 16 * 44e9
    assert (np.count_nonzero(replicated, axis=1) == 1).all()
    for n in (2, 3, 12, 30):
        assert not np.diagonal(parse(f"servers:n={n},degree=4,traffic=dlrm").traffic).any()


@settings(max_examples=20)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda s: 1 < math.prod(s) < 80))
def test_torus_degree_and_diameter(shape):
    topology = parse("torus:" + "x".join(map(str, shape)))
    degree = sum(2 if s > 2 else s - 1 for s in shape)
    assert set(topology.out_degree.tolist()) == {degree}
    assert topology.diameter == sum(s // 2 for s in shape)
    _, links = link_groups(topology.tail, topology.head, topology.capacity)
    assert links == topology.arcs // 2


@pytest.mark.parametrize("spec", ["lightpath:2x4", "lightpath:1x5", "lightpath:5x1", "lightpath:4x4+fail=2,seed=1"])
def test_hops_of_a_mesh_of_tiles_are_those_of_its_arcs(spec):
    mesh = parse(spec)
    assert mesh.intact == ("fail" not in spec)
    plain = Topology(mesh.n, mesh.tail, mesh.head, mesh.capacity)
    np.testing.assert_array_equal(mesh.hops, plain.hops)
    odd = mesh.with_arcs([*mesh.tail[1:], 0], [*mesh.head[1:], mesh.n - 1], [1.0] * mesh.arcs)
    assert not odd.intact


@pytest.mark.parametrize(("n", "k"), [(1, 0), (40, 1), (300, 2), (2000, 3)])
def test_orbits_are_numbered_by_their_smallest_element(n, k):
    rng = np.random.default_rng(n)
    for moved in (n // 4, n):
        images = np.tile(np.arange(n), (k, 1))
        for image in images:
            chosen = rng.permutation(n)[:moved]
            image[chosen] = np.roll(chosen, 1)
        graph = nx.Graph([(v, int(image[v])) for image in images for v in range(n)])
        graph.add_nodes_from(range(n))
        orbits = sorted(map(sorted, nx.connected_components(graph)))
        expected = {v: number for number, orbit in enumerate(orbits) for v in orbit}
        assert orbits_of(images, n).tolist() == [expected[v] for v in range(n)]
