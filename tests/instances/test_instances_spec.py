"""Specs parse and print; instances are frozen, hashed and validated."""

import contextlib
import inspect
import pickle
import subprocess
import sys
import tracemalloc
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.analysis.catalog import instances
from opticoll.errors import BadFile, BadInput, BadSpec, OpticollError
from opticoll.instances import Instance, ServerPool, Topology, parse
from opticoll.instances.spec import FAMILIES, load_families, modules_of

load_families()

EXAMPLES = [row["example"] for row in instances() if row["name"] not in {"file", "mps"} and row["kind"] != "population"]


SOUGHT = """
import sys
from opticoll.instances.spec import FAMILIES, _named_in
_named_in(FAMILIES, sys.argv[1])
print(*(name for name in sys.modules if name.startswith("opticoll.instances.families.")))
"""


@pytest.mark.parametrize("name", ["ring", "unknown"])
def test_every_module_of_families_is_one_in_which_names_are_sought(name):
    """In all of them before a name is unknown, and in no other once it is found."""
    command = [sys.executable, "-c", SOUGHT, name]
    sought = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    known = FAMILIES["ring"].function.__module__
    assert sorted(sought) == ([known] if name == "ring" else modules_of("opticoll.instances.families"))


@pytest.mark.parametrize("spec", EXAMPLES)
def test_examples_parse_and_print(spec):
    instance = parse(spec)
    assert isinstance(instance, Instance)
    again = parse(instance.spec)
    assert again == instance
    assert hash(again) == hash(instance)
    assert again.spec == instance.spec
    assert again.parameters == instance.parameters
    assert len(instance.hash) == 64


def test_every_family_states_its_source():
    for row in instances():
        assert row["summary"], row
        assert "\n" not in row["summary"]
        assert row["kind"] == "modifier" or row["source"], row
        assert row["example"].split(":")[0].split("+")[0] == row["name"] or row["kind"] == "modifier"


@settings(max_examples=24, deadline=None)
@given(st.data())
def test_round_trip_of_drawn_specs(data):
    small = st.integers(2, 9)
    shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda s: max(s) > 1)
    spec = data.draw(
        st.one_of(
            st.builds("ring:{}".format, small),
            st.builds("ring:n={},directed={}".format, small, st.sampled_from(["true", "no", "1"])),
            shapes.map(lambda s: "torus:" + "x".join(map(str, s))),
            shapes.map(lambda s: "mesh:shape=" + "x".join(map(str, s))),
            st.builds("genkautz:{},{},{}".format, small, small, st.sampled_from(["drop", "keep"])),
            st.builds("genkautz:d={},n={}".format, small, small),
            st.builds("xpander:n={},d=4,seed={}".format, st.integers(5, 30), st.integers(0, 10**12)),
            st.builds("dragonfly:a={},h={}".format, st.integers(1, 4), st.integers(1, 3)),
            st.builds("servers:n={},degree=1,traffic=random,seed={}".format, small, small),
        )
    )
    if not spec.startswith("servers"):
        spec += data.draw(
            st.sampled_from(["", "+fail=1", "+fail=0,seed=7", "+scale=0.1", "+host=1.5", "+fail=1+host=2"])
        )
    instance = parse(spec)
    again = parse(instance.spec)
    assert again == instance
    assert (again.spec, again.parameters) == (instance.spec, instance.parameters)


def test_canonical_specs():
    assert parse("ring:n=8").spec == "ring:8"
    assert parse("ring:8,directed=yes").spec == "ring:8,directed"
    assert parse("genkautz:4,16,drop").spec == "genkautz:n=4,d=16"
    assert parse(" torus:4x4+fail=3,seed=2+host=2 ").spec == "torus:4x4+fail=3,seed=2+host=2.0"
    assert dict(parse("genkautz:n=16,d=4+fail=1").parameters) == {
        "n": 16,
        "d": 4,
        "loops": "drop",
        "fail.links": 1,
        "fail.seed": 0,
    }
    twice = dict(parse("complete:6+fail=1+fail=2,seed=3").parameters)
    assert (twice["fail.links"], twice["fail#2.links"], twice["fail#2.seed"]) == (1, 2, 3)


def test_hashes_are_stable():
    assert Topology(3, [0, 1, 2], [1, 2, 0]).hash == (
        "97e594640156cfc93ac7b033bfb059462de881464d0e45910ba2426e0c232236"
    )
    assert parse("ring:3,directed").hash == Topology(3, [0, 1, 2], [1, 2, 0]).hash
    assert parse("genkautz:n=16,d=4").hash == "a9f2d8eb6ece37afda8d7fca7105bcaf225f8b2e509c0f10841e306df1736220"
    assert (
        parse("wdm-ring:n=8,wavelengths=2").hash == "3a5196e907522e1370e4b14015518ed852c0f91557c3bb624e057011f9ba4418"
    )
    assert parse("servers:n=4,degree=2").hash == "2039aa084693d607a5030c5c0a8d88b7d0f780b644d1a7091e329dd234dbf2aa"


@settings(max_examples=40)
@given(st.permutations(range(8)))
def test_hash_ignores_arc_order_but_not_labelling(order):
    base = parse("path:8")
    shuffled = Topology(8, np.roll(base.tail, order[0]), np.roll(base.head, order[0]))
    assert shuffled == base
    renamed = base.relabelled(order)
    assert (renamed == base) == (list(order) in (list(range(8)), list(range(7, -1, -1))))
    assert renamed.relabelled(np.argsort(order)) == base
    assert renamed.labels[order[3]] == "3"


def test_parallel_arcs_and_capacity_order():
    one = Topology(2, [0, 0, 1], [1, 1, 0], [2.0, 1.0, 1.0])
    two = Topology(2, [1, 0, 0], [0, 1, 1], [1.0, 1.0, 2.0])
    assert one == two
    assert one.capacity.tolist() == [1.0, 2.0, 1.0]
    assert one != Topology(2, [0, 0, 1], [1, 1, 0])
    assert one != "ring:2"


@pytest.mark.parametrize("spec", ["torus:3x4", "lightpath:2x2", "servers:n=4,degree=2"])
def test_values_are_frozen(spec):
    instance = parse(spec)
    copies = [instance, pickle.loads(pickle.dumps(instance))]  # noqa: S301 - our own bytes
    for value in copies:
        assert value == instance
        with pytest.raises(FrozenInstanceError):
            value.n = 3
        arrays = [a for a in vars(value).values() if isinstance(a, np.ndarray)]
        assert arrays
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
    if isinstance(instance, Topology):
        for array in (instance.hops, instance.out_degree, instance.in_degree):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


def test_arrays_are_copied_on_the_way_in():
    tail = np.array([0, 1])
    topology = Topology(2, tail, tail[::-1])
    tail[0] = 1
    assert topology.tail.tolist() == [0, 1]


def test_importing_instances_loads_no_heavy_library():
    heavy = {"scipy", "networkx", "pandas", "xml.etree"}
    code = f"import sys, opticoll.instances as i; i.parse('torus:4x4'); print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("", "unknown family"),
        ("rng:8", "did you mean 'ring'"),
        ("ring", "'n' is missing"),
        ("ring:", "'n' is missing"),
        ("ring:eight", "whole number"),
        ("ring:8.0", "whole number"),
        ("ring:3..8", "a range, where one is taken, is written {3..8}"),
        ("ring:8,", "empty"),
        ("ring:8,8", "true or false"),
        ("ring:8,true,1", "too many"),
        ("ring:n=8,n=8", "given twice"),
        ("ring:8,sise=3", "unknown argument 'sise'"),
        ("torus:4y4", "sizes such as 3x4"),
        ("torus:", "is missing"),
        ("petersen:1", "too many"),
        ("ring:8+fial=1", "did you mean 'fail'"),
        ("ring:8+fail", "is missing"),
        ("ring:8+fail=x", "whole number"),
        ("ring:8+host=nan", "finite"),
        ("ring:8+host=inf", "finite"),
        ("ring:\n8;", "whole number"),
        ("servers:n=4,degree=2,traffic=dlmr", "did you mean 'dlrm'"),
        ("servers:n=4,degree=2,traffic=xyzq", "known"),
        ("servers:n=4,degree=2,volume=0", "volume"),
        ("x" * 5000, "characters"),
    ],
)
def test_bad_specs(spec, expected):
    with pytest.raises(BadSpec) as caught:
        parse(spec)
    message = str(caught.value)
    assert expected in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("ring:1", "at least 2, not 1"),
        ("path:1", "at least 2"),
        ("star:1", "at least 2"),
        ("complete:1", "at least 2"),
        ("bipartite:3", "two"),
        ("bipartite:0x3", "at least 1"),
        ("mesh:0x3", "at least 1"),
        ("mesh:1x1", "at least 2"),
        ("mesh:" + "x".join(["1"] * 40 + ["2"]), "dimensions"),
        ("hypercube:0", "at least 1"),
        ("twisted-hypercube:2", "at least 3"),
        ("circulant:n=8,offsets=0x1", "1..7"),
        ("circulant:n=8,offsets=9", "1..7"),
        ("circulant:n=8,offsets=3x5", "same links"),
        ("circulant:n=8,offsets=3x3,directed", "same links"),
        ("kautz:d=0,D=2", "at least 1"),
        ("kautz:d=2,D=0", "at least 1"),
        ("debruijn:d=1,D=2", "at least 2"),
        ("debruijn:d=2,D=2,loops=both", "loops=drop"),
        ("genkautz:n=1,d=4", "at least 2"),
        ("genkautz:n=8,d=0", "at least 1"),
        ("genkautz:n=8,d=2,loops=maybe", "loops=drop"),
        ("random-regular:n=5,d=3", "odd"),
        ("random-regular:n=4,d=4", "below n=4"),
        ("random-regular:n=4,d=1", "connected"),
        ("random-regular:n=4,d=2,seed=-1", "seed"),
        ("xpander:n=32,d=5", "use n=30 or n=36"),
        ("xpander:n=4,d=4", "below n=4"),
        ("xpander:n=4,d=1", "connected"),
        ("sp-expander:n=4,d=4", "below n=4"),
        ("sp-expander:n=2000,d=4", "smaller"),
        ("dragonfly:a=2,h=1,g=4", "2..3"),
        ("dragonfly:a=0,h=1", "at least 1"),
        ("slimfly:q=2", "at least 3"),
        ("slimfly:q=6", "prime power"),
        ("slimfly:q=15", "prime power"),
        ("lightpath:4", "rows and columns"),
        ("lightpath:2x4,lasers=0", "lasers"),
        ("lightpath:2x4,waveguides=0", "waveguides"),
        ("wdm-ring:n=2,wavelengths=4", "at least 3"),
        ("wdm-ring:n=8,wavelengths=0", "wavelengths"),
        ("wdm-line:n=1,wavelengths=4", "at least 2"),
        ("servers:n=1,degree=1", "at least 2"),
        ("servers:n=4,degree=0", "degree"),
        ("servers:n=4,degree=1+fail=1", "no arcs"),
        ("ring:8+fail=9", "8 links"),
        ("ring:8+fail=-1", "at least 0"),
        ("ring:8+fail=1,seed=-1", "seed"),
        ("ring:8+host=0", "positive"),
        ("ring:8+host=-2.0", "positive"),
        ("ring:8+host=2+host=2", "relay"),
        ("ring:8+scale=0", "positive"),
        ("ring:8+scale=1e308+scale=10", "finite"),
    ],
)
def test_arguments_out_of_range(spec, expected):
    with pytest.raises(BadInput) as caught:
        parse(spec)
    assert expected in str(caught.value)


def changed_examples(value):
    """The example of every family with each of its whole numbers, or all sizes of a list, replaced in turn."""
    for name, family in FAMILIES.items():
        if family.rest:
            continue
        arguments = {key: word for key, word in parse(family.example).arguments.items() if word not in (None, "", ())}
        for one in inspect.signature(family.function).parameters.values():
            annotation = str(getattr(one.annotation, "__name__", one.annotation))
            if annotation.startswith(("int", "Dimensions")):
                wrong = f"{value}x{value}" if annotation.startswith("Dimensions") else value
                words = {**arguments, one.name: wrong}.items()
                yield f"{name}:" + ",".join(
                    f"{key}=" + ("x".join(map(str, word)) if isinstance(word, tuple) else str(word).lower())
                    for key, word in words
                )


@each("spec", list(changed_examples(-1)))
def test_no_number_of_a_family_is_negative(spec):
    with pytest.raises(BadInput):
        parse(spec)


@each(
    "spec",
    ["hypercube:60", "complete:100000", "mesh:100000x100000", "random-regular:n=1000000,d=20"]
    + [spec for value in (10**9, 10**18 - 1) for spec in changed_examples(value)],
)
def test_huge_instances_are_refused_before_anything_is_allocated(spec):
    """Numbers that cost nothing, such as those of wavelengths, are taken."""
    tracemalloc.start()
    try:
        with contextlib.suppress(BadInput):
            parse(spec)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 24


def test_a_modifier_keeps_to_the_limit_of_vertices(monkeypatch):
    monkeypatch.setattr(sys.modules["opticoll.instances.topology"], "MAX_VERTICES", 100)
    assert parse("path:33+host=2").n == 99
    with pytest.raises(BadInput, match="modifier 'host': 102 vertices"):
        parse("path:34+host=2")


def test_invalid_topologies_are_refused():
    cases = [
        {"n": 0, "tail": [], "head": []},
        {"n": 2, "tail": [0], "head": [2]},
        {"n": 2, "tail": [-1], "head": [0]},
        {"n": 2, "tail": [0, 1], "head": [1]},
        {"n": 2, "tail": [0], "head": [1], "capacity": [0.0]},
        {"n": 2, "tail": [0], "head": [1], "capacity": [float("nan")]},
        {"n": 2, "tail": [0], "head": [1], "capacity": [float("inf")]},
        {"n": 2, "tail": [0], "head": [1], "terminals": [2]},
        {"n": 2, "tail": [0], "head": [1], "labels": ("a",)},
        {"n": 10**9, "tail": [0], "head": [1]},
    ]
    for case in cases:
        with pytest.raises(BadInput):
            Topology(**case)
    for factor in (0.0, -1.0, float("nan")):
        with pytest.raises(BadInput):
            parse("ring:3").scaled(factor)
    with pytest.raises(BadInput):
        parse("ring:3").relabelled([0, 0, 1])


@pytest.mark.parametrize(
    ("traffic", "expected"),
    [
        (np.zeros((2, 3)), "2x3"),
        (np.zeros(3), "not 3x3"),
        (np.eye(3), "itself"),
        (-np.ones((3, 3)) + np.eye(3), "server 0 sends -1.0 to server 1"),
        (np.where(np.eye(3) == 1, 0, np.nan), "server 0 sends nan to server 1"),
        (np.where(np.eye(3) == 1, 0, np.inf), "server 0 sends inf to server 1"),
    ],
)
def test_server_pools_refuse_bad_traffic(traffic, expected):
    with pytest.raises(BadInput, match=expected):
        ServerPool(3, 2, traffic)


@pytest.mark.parametrize("size", [2.5, "2", float("nan"), None])
def test_sizes_are_whole_numbers(size):
    for make in (lambda: ServerPool(3, size, np.zeros((3, 3))), lambda: ServerPool(size, 1, np.zeros((3, 3)))):
        with pytest.raises(BadInput, match="whole number"):
            make()
    assert ServerPool(np.int64(3), np.int32(2), np.zeros((3, 3))).degree == 2
    with pytest.raises(BadInput, match="not a matrix of numbers"):
        ServerPool(3, 1, [[0, "x", 1], [1, 0, 1], [1, 1, 0]])


def test_errors_are_one_family():
    assert issubclass(BadSpec, BadInput)
    assert issubclass(BadFile, BadInput)
    assert issubclass(BadInput, OpticollError)
    assert BadSpec("x").exit_status == 2


def test_derived_topologies():
    ring = parse("ring:5,directed")
    assert ring.reversed().reversed() == ring
    assert ring.reversed() != ring
    assert ring.scaled(2.0).capacity.tolist() == [2.0] * 5
    matrix = ring.incidence().toarray()
    assert (matrix.sum(axis=0) == 0).all()
    assert matrix[1, 0] == 1
    assert matrix[0, 0] == -1
    assert not Topology(3, [0, 1], [1, 0]).connected
    assert Topology(3, [0, 1], [1, 0]).diameter == float("inf")
    assert Topology(3, [0, 1], [1, 0], terminals=[0, 1]).connected


@pytest.mark.parametrize(
    ("spec", "family", "arguments"),
    [
        ("genkautz:n=16,d=4", "genkautz", {"n": 16, "d": 4, "loops": "drop"}),
        ("torus:3x4+fail=1,seed=2", "torus", {"shape": (3, 4), "fail.links": 1, "fail.seed": 2}),
        ("wdm-ring:n=8,wavelengths=4", "wdm-ring", {"n": 8, "wavelengths": 4, "fibres": 1}),
        ("dgx1", "dgx1", {}),
    ],
)
def test_an_instance_tells_its_family_and_arguments(spec, family, arguments):
    instance = parse(spec)
    assert (instance.family, instance.arguments) == (family, arguments)


def test_own_instances_have_no_family():
    ring = parse("ring:5")
    assert (ring.relabelled([1, 0, 2, 3, 4]).family, ring.reversed().family) == (None, None)
    assert ring.relabelled([1, 0, 2, 3, 4]).arguments == {}


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_every_family_records_its_arguments(name):
    """Except those whose example is a file, which is not there."""
    if FAMILIES[name].rest:
        return
    instance = parse(FAMILIES[name].example)
    assert instance.family == name
    assert set(inspect.signature(FAMILIES[name].function).parameters) == set(instance.arguments)
