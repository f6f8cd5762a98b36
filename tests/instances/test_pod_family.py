"""Pods: tori and published twists among their wirings, symmetry, and what fails."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.errors import BadFile, BadInput
from opticoll.instances import parse
from opticoll.instances.families.pods import even_shape, lattice, moved_wirings, pod_of, spec_of, wiring_of
from opticoll.instances.spec import FAMILIES, family_of, load_families
from opticoll.instances.symmetry import automorphisms, isomorphism, orbits_of


@st.composite
def wirings(draw, sides=(1, 2, 3)):
    side, k = draw(st.sampled_from(sides)), draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = 3 if draw(st.booleans()) else 3 * side**2
    some = np.array([random.permutation(k) for _ in range(rows)])
    return side, np.repeat(some, 3 * side**2 // rows, axis=0).reshape(3, side**2, k)


@pytest.mark.parametrize(
    ("pod", "other"),
    [
        ("pod:shape=1x1x2", "torus:4x4x8"),
        ("pod:cubes=4", "torus:4x8x8"),
        ("pod:cubes=2,wiring=0.1/1.0/1", "torus:4x8x8+fail=0"),
        ("pod:shape=1x1x2,side=3", "torus:3x3x6"),
        ("pod:shape=3x4x5,side=1", "torus:3x4x5"),
    ],
)
def test_a_pod_is_the_torus_of_its_chips(pod, other):
    pod, torus = parse(pod), parse(other)
    assert (isomorphism(pod, torus) is not None) == (pod.n == torus.n)


def test_ports_meet_at_their_place():
    """Every optical link joins a + port with the - port of the same place, each once; no other link leaves a cube."""
    pod = parse("pod:cubes=5,wiring=1.0.3.4.2/2/4.3.2.1.0")
    chips = [tuple(map(int, label.split("."))) for label in pod.labels]
    optical = [
        (chips[u], chips[v])
        for u, v in zip(pod.tail.tolist(), pod.head.tolist(), strict=True)
        if chips[u][0] != chips[v][0]
    ]
    plus = [(u, v, d) for u, v in optical for d in range(3) if u[1 + d] == 3 and v[1 + d] == 0]
    assert len(optical) == 2 * len(plus)
    permutations = ((1, 0, 3, 4, 2), (2, 3, 4, 0, 1), (4, 3, 2, 1, 0))
    for u, v, d in plus:
        assert [x for axis, x in enumerate(u[1:]) if axis != d] == [x for axis, x in enumerate(v[1:]) if axis != d]
        assert v[0] == permutations[d][u[0]]
    assert len(plus) == 16 * sum(one[c] != c for one in permutations for c in range(5))
    assert set(pod.out_degree.tolist()) == {6}


@given(wirings())
def test_a_spec_states_every_wiring(drawn):
    side, wiring = drawn
    pod = parse(spec_of(wiring, side))
    assert pod == pod_of(wiring, side)
    _, arguments = family_of(pod)
    assert np.array_equal(wiring_of(**arguments), wiring)


def test_a_file_states_a_wiring(tmp_path):
    path = tmp_path / "wiring.json"
    path.write_text("[[1, 0], [0, 1], [1, 0]]")
    assert parse(f"pod:cubes=2,wiring={path}") == parse("pod:cubes=2,wiring=1/0/1")


@given(wirings(sides=(1, 2)))
@settings(max_examples=30)
def test_symmetries_of_the_cube_give_isomorphic_pods(drawn):
    side, wiring = drawn
    pod = pod_of(wiring, side)
    seen = set()
    for image, moved in moved_wirings(wiring, side):
        seen.add(tuple(image.tolist()))
        chips = (side**3 * np.arange(wiring.shape[2])[:, None] + image).ravel()
        assert pod_of(moved, side).relabelled(chips).hash == pod.hash
    assert len(seen) == {1: 1, 2: 48}[side]


@pytest.mark.parametrize(
    ("spec", "orbits"),
    [("pod:cubes=8", 4), ("pod:cubes=2,wiring=twisted", 1), ("pod:cubes=7,wiring=1/2/3", 20), ("pod:shape=1x1x1", 4)],
)
def test_symmetries_that_the_family_knows(spec, orbits):
    """Of a torus those that fix a cube leave four kinds of chips; all are verified."""
    pod = parse(spec)
    images, _ = automorphisms(pod, searched=False)
    assert np.unique(orbits_of(images, pod.n)).size <= orbits


@pytest.mark.parametrize(
    "spec", ["pod:shape=1x1x1", "pod:shape=1x2x3,side=1", "pod:cubes=2,side=2", "pod:shape=1x1x3,side=2"]
)
def test_the_time_of_a_torus(spec):
    """The closed form, against the linear program of an isomorphic topology that states none."""
    import opticoll as oc

    load_families()
    known, arguments = family_of(parse(spec))
    value = known.closed_form(**arguments)
    assert known is FAMILIES["pod"]
    plain = parse(spec).with_changes()
    T = oc.solve("alltoall.master", plain).T
    assert pytest.approx(float(value), rel=1e-7) == T
    assert isinstance(value, Fraction)


@pytest.mark.parametrize(("cubes", "T"), [(2, Fraction(220, 3)), (4, Fraction(184))])
@pytest.mark.slow
def test_published_twists(cubes, T):
    import opticoll as oc

    found = oc.solve("alltoall.master", f"pod:cubes={cubes},wiring=twisted").T
    assert found == pytest.approx(float(T), rel=1e-6)


def test_boxes_and_lattices():
    assert [tuple(even_shape(k)) for k in (1, 2, 4, 8, 16, 64, 12, 7)] == [
        (1, 1, 1), (1, 1, 2), (1, 2, 2), (2, 2, 2), (2, 2, 4), (4, 4, 4), (2, 2, 3), (1, 1, 7),
    ]  # fmt: skip
    assert lattice((1, 1, 2), (0, 1, 1)).tolist() == [[1, 0], [1, 0], [1, 0]]
    x, y, z = lattice((2, 3, 4), (2, 1, 3))
    assert all(np.array_equal(one[other], other[one]) for one, other in ((x, y), (y, z), (x, z)))
    assert lattice((2, 1, 2)).tolist() == [[2, 3, 0, 1], [0, 1, 2, 3], [1, 0, 3, 2]]


@pytest.mark.parametrize(
    ("part", "links", "chips"),
    [("switch:0.5", 3, 0), ("cable:2.15.1", 1, 0), ("cube:2", 0, 64)],
)
def test_what_fails(part, links, chips):
    whole, left = parse("pod:cubes=3,wiring=1/1/2"), parse(f"pod:cubes=3,wiring=1/1/2+fail={part}")
    assert whole.n - left.n == chips
    if chips:  # 144 links inside a cube, and 48 on each side
        assert whole.arcs - left.arcs == 2 * (144 + 96)
        assert not any(label.startswith("2.") for label in left.labels)
    else:
        assert whole.arcs - left.arcs == 2 * links
    assert left.spec == f"pod:cubes=3,wiring=1/1/2+fail={part}"
    assert left.arguments["fail.links"] == part


def test_parts_fail_one_after_another():
    both = parse("pod:cubes=3+fail=cube:1+fail=cable:0.0.0")
    assert both.arcs == parse("pod:cubes=3+fail=cable:0.0.0+fail=cube:1").arcs
    assert parse("pod:cubes=3+fail=cube:0+fail=cable:2.0.0").arcs == parse("pod:cubes=3+fail=cube:0").arcs
    twice = parse("pod:cubes=2,side=2,wiring=0/0/1+fail=cable:0.0.1")
    assert twice.arcs == parse("pod:cubes=2,side=2,wiring=0/0/1").arcs - 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("pod", "give either the shape"),
        ("pod:shape=1x1x2,cubes=2", "give either the shape"),
        ("pod:shape=2x2", "three dimensions"),
        ("pod:cubes=0,shape=0x1x1", "three dimensions"),
        ("pod:cubes=-1", "pod: cubes: must be a whole number of at least 1"),
        ("pod:cubes=2,side=0", "pod: side: must be a whole number of at least 1"),
        ("pod:cubes=3,wiring=twisted", "published for k x k x 2k"),
        ("pod:cubes=3,wiring=1/2", "has 2 permutations"),
        ("pod:cubes=3,wiring=1/0.1.1/2", "number 1 is no permutation"),
        ("pod:cubes=2+fail=switch:3.0", "has no 'switch:3.0'"),
        ("pod:cubes=2+fail=switch:0.16", "places 0..15"),
        ("pod:cubes=2+fail=cable:0.1", "write switch:DIM.PLACE"),
        ("pod:cubes=2+fail=plane:0", "write switch:DIM.PLACE"),
        ("pod:cubes=2+fail=cube:1+fail=cube:1", "has lost this one before"),
        ("pod:cubes=1+fail=cube:0", "has no other cube"),
        ("pod:cubes=2+fail=cube:0,seed=1", "omit the seed"),
        ("ring:5+fail=switch:0.0", "is part of a pod"),
        ("ring:5+fail=some", "must be a whole number, or a part such as switch:0.5"),
    ],
)  # fmt: skip
def test_refused(spec, message):
    with pytest.raises(BadInput, match=message):
        parse(spec)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{}", "list of permutations"), ("[[0, 1.0]]", "list of permutations"), ("[", "write wiring=torus")],
)
def test_files_that_state_none(tmp_path, text, message):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        parse(f"pod:cubes=2,wiring={path}")


def test_no_file():
    with pytest.raises(BadFile, match=r"cannot be read.*write wiring=torus, twisted, permutations"):
        parse("pod:cubes=2,wiring=none.json")
