"""Combinatorial certificates: what is written is proven, and no changed file proves a false claim."""

from __future__ import annotations

import copy
import gzip
import inspect
import itertools
import json
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse.csgraph import shortest_path
from slow_cases import marked

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput
from opticoll.formulations import formulation
from opticoll.formulations.model import read_parameters
from opticoll.instances import as_instance
from opticoll.solvers.exact import combinatorial, combinatorial_check, wiring_check
from opticoll.solvers.exact.arguments.argument import arguments
from opticoll.solvers.exact.arguments.layers import cycle_of
from opticoll.solvers.methods import prepared

#: Small problems whose optimum is known, and the method that solves them.
CASES = {
    "routes": ("alltoall.min-congestion", "petersen", "sssp", {}, None),
    "wavelengths": ("optree.one-stage", "wdm-ring:n=5,wavelengths=2", "cycle-cover", {}, 3),
    "rounds": ("lumorph.rounds", "lightpath:2x2,lasers=1", "certified-rounds", {}, 3),
    "scatter": ("lumorph.rounds", "lightpath:2x2,lasers=1", "certified-rounds", {"collective": "scatter"}, 3),
    "wafers": (
        "lumorph.rounds",
        "lightpath:1x2,lasers=1,waveguides=2,wafers=2,fibres=1",
        "certified-rounds",
        {"collective": "all-to-all"},
        4,
    ),
    "layers": ("alltoall.virtual-channels", "ring:5", "layer-assignment", {"layers": "2"}, 2),
    "placement": (
        "sipml.placement",
        "op-graph:chain,splits=2x1x3",
        "degree-aware",
        {"degree": "2", "k": "3"},
        None,
    ),
    "two paths": ("alltoall.min-congestion", "ring:3", "highs", {"kappa": "2"}, Fraction(3, 2)),
    "circuits": ("sipml.ring-wavelengths", "servers:n=3,degree=2,traffic=random,seed=1", "highs", {}, None),
    "switches": ("sipml.ocs-circuits", "servers:n=3,degree=3,traffic=random,seed=1", "highs", {}, None),
    "steps": ("alltoall.sccl", "ring:3,directed", "highs", {}, 3),
    "sums": ("lumorph.sum-rounds", "lightpath:1x2", "highs", {"collective": "reduce"}, 1),
    "design": ("topology.design", "servers:n=4,degree=2", "highs", {}, Fraction(1, 2)),
    "wiring": ("topoopt.topology", "servers:n=3,degree=2,traffic=random,seed=1", "design-search", {}, None),
    "servers": ("topoopt.topology", "servers:n=4,degree=2,traffic=random,seed=1", "design-search", {}, None),
    "orbits": ("alltoall.master", "kautz:d=2,D=2", "highs", {}, Fraction(3, 13)),
    "hosts": ("alltoall.master", "ring:3+host=2.0", "highs", {}, None),
    "directed": ("topology.design", "servers:n=3,degree=1", "highs", {"directed": "true"}, Fraction(1, 3)),
}


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """The certificates of all cases, written and read again."""
    outcome = {}
    folder = tmp_path_factory.mktemp("certificates")
    for name, (name_of, instance, method, settings, _) in CASES.items():
        result = oc.solve(name_of, instance, method=method, **settings)
        path = result.save(folder / f"{name}.proof.json{'.gz' if name == 'rounds' else ''}")
        outcome[name] = (combinatorial_check.read(str(path)), path, result)
    return outcome


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_proven(name, documents):
    document, path, result = documents[name]
    name_of, instance, _, settings, optimum = CASES[name]
    value, bound = combinatorial.stated_ends(formulation(name_of), *combinatorial_check.verify(document))
    low, high = sorted((value, bound))
    assert float(value) == pytest.approx(result.objective)
    if optimum is not None:
        assert (low, high) == (optimum, optimum)
    outcome = oc.check(name_of, instance, path, settings)
    assert outcome["verified"] is True, outcome["reason"]
    assert outcome["objective_exact"] == (str(low) if low == high else None)
    assert outcome["certificate"]["low"] == str(low)
    assert (outcome["bound"], outcome["objective"]) == (float(bound), float(value))


def leaves(part, at=()):
    """The places of all numbers, texts and nulls in a document."""
    if isinstance(part, dict | list):
        for key, inner in part.items() if isinstance(part, dict) else enumerate(part):
            yield from leaves(inner, (*at, key))
    else:
        yield at, part


def changes(value):
    if value is None:
        return [0, 1, "x"]
    if isinstance(value, bool):
        return [not value, 2, None]
    if isinstance(value, str):
        try:
            number = Fraction(value)
        except ValueError:
            return ["routes", "rounds", ""]
        return [str(number + 1), str(number / 2), str(-number), "1e3", "1/0", None]
    return [value + 1, value - 1, -value - 1, value + 0.5, str(value) + "/2", None, [value]]


def changed(document, at, value):
    other = copy.deepcopy(document)
    inner = other
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return other


@pytest.mark.parametrize(
    "name",
    [marked(name, slow=name == "wafers") for name in CASES if name not in ("routes", "servers")],
)
def test_no_changed_certificate_proves_a_false_claim(name, documents, tmp_path):
    """A changed problem is another one's, which check refuses; what else is accepted still holds the optimum."""
    document, _, _ = documents[name]
    name_of, instance, _, settings, optimum = CASES[name]
    if optimum is not None and formulation(name_of).sense == "max":  # F, where the file states T
        optimum = 1 / optimum
    least, most = combinatorial_check.verify(document) if optimum is None else (optimum, optimum)
    problems = refused = tried = 0
    for at, value in leaves(
        {key: document[key] for key in ("certificate", "kind", "problem", "solution", "argument", "claim")}
    ):
        for other in changes(value):
            mutated = changed(document, at, other)
            tried += 1
            try:
                low, high = combinatorial_check.verify(mutated)
            except combinatorial_check.Refused:
                refused += 1
                continue
            if at[0] == "problem":
                problems += 1
                if problems <= 12 and name_of != "alltoall.virtual-channels":
                    path = tmp_path / "changed.proof.json"
                    path.write_text(json.dumps(mutated))
                    result = oc.check(name_of, instance, path, settings)
                    assert result["verified"] is False, (at, value, other)
                    assert "another problem" in result["reason"]
                continue
            assert low is None or low <= most, (at, value, other)
            assert high is None or high >= least, (at, value, other)
            if at[0] == "claim":
                assert low is None or low <= least
                assert high is None or high >= most
    assert refused > 0.6 * tried


@pytest.mark.parametrize(
    "wrong",
    ["", "[]", "null", "{}", '{"certificate": 1}', "[" * 10_000, '{"certificate": NaN}', "\x00", "1e999"],
)
def test_other_files_are_refused_in_one_line(wrong, tmp_path, capfd):
    path = tmp_path / "a.proof.json"
    path.write_text(wrong)
    assert main(["check", "lumorph.rounds", "lightpath:2x2", str(path)]) in (2, 3)
    assert capfd.readouterr().err.count("\n") == 1


def test_a_document_without_a_part_or_with_another_is_refused(documents):
    for name, (document, _, _) in documents.items():
        for part in ("problem", "solution", "argument"):
            for key in document[part]:
                less = copy.deepcopy(document)
                del less[part][key]
                with pytest.raises(combinatorial_check.Refused):
                    combinatorial_check.verify(less)
            more = copy.deepcopy(document)
            more[part]["further"] = 0
            with pytest.raises(combinatorial_check.Refused):
                combinatorial_check.verify(more)
        for missing in ("solution", "argument"):
            half = {**document, missing: None}
            with pytest.raises(combinatorial_check.Refused):
                combinatorial_check.verify(half)
            ends = list(document["claim"])
            ends[missing == "solution"] = None
            assert combinatorial_check.verify({**half, "claim": ends}), name


def test_formulations_and_parameters_without_one_are_refused(tmp_path, capfd):
    with pytest.raises(BadInput, match="has no combinatorial certificate; write its proof in VIPR"):
        combinatorial.argument_of(formulation("alltoall.link-mcf"), None)
    model = formulation("lumorph.rounds")
    parameters = read_parameters(model.parameters, {"collective": "reduce"}, model.name)
    with pytest.raises(BadInput, match="with these parameters"):
        combinatorial.argument_of(model, prepared(model, as_instance("lightpath:2x2"), parameters))
    model = formulation("topoopt.topology")
    for instance, given in (
        ("servers:n=4,degree=2", {"objective": "bandwidth-tax"}),
        ("servers:n=4,degree=2", {"parallel": 1}),
        ("servers:n=4,degree=2,traffic=dlrm", {}),
    ):
        parameters = read_parameters(model.parameters, given, model.name)
        with pytest.raises(BadInput, match="with these parameters"):
            combinatorial.argument_of(model, prepared(model, as_instance(instance), parameters))
    assert not list(tmp_path.iterdir())
    assert main(["solve", "alltoall.master", "ring:3", "--certificate", str(tmp_path / "a.json")]) == 2


def test_a_certificate_of_another_instance_or_kind_is_refused(documents):
    _, path, _ = documents["rounds"]
    assert "another problem" in oc.check("lumorph.rounds", "lightpath:2x3,lasers=1", path)["reason"]
    assert "proves rounds, not routes" in oc.check("optree.one-stage", "wdm-ring:n=5,wavelengths=2", path)["reason"]
    _, path, _ = documents["layers"]
    assert "another problem" in oc.check("alltoall.virtual-channels", "ring:6", path, {"layers": 2})["reason"]


def test_a_process_that_only_checks_knows_every_kind():
    asked = "from opticoll.solvers.exact import combinatorial, combinatorial_check as c; print(*sorted(c.KINDS))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted({argument.kind for argument in arguments().values()})


def test_the_stand_alone_checker_is_short_and_needs_python_alone(documents, tmp_path, capfd):
    sizes = [len(Path(one.__file__).read_text("utf-8").splitlines()) for one in (combinatorial_check, wiring_check)]
    assert sizes[0] <= 680
    assert sizes[1] <= 200
    assert all(len(inspect.getsource(kind).splitlines()) <= 50 for kind in combinatorial_check.KINDS.values())
    copied = tmp_path / "combinatorial_check.py"
    assert main(["check", "--print-checker", "combinatorial"]) == 0
    copied.write_text(capfd.readouterr().out, encoding="utf-8")
    document, path, _ = documents["rounds"]
    (tmp_path / "bad.proof.json").write_text(json.dumps({**document, "claim": [2, 2]}))

    def run(*names: object) -> tuple[int, str, str]:
        command = [sys.executable, "-E", "-s", "-S", str(copied), *map(str, names)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run(path) == (0, "proven: the optimal value is 3\n", "")
    document, path, _ = documents["wiring"]
    assert run(path)[::2] == (1, "not proven: missing: a known kind\n")
    copied = tmp_path / "wiring_check.py"
    assert main(["check", "--print-checker", "wiring"]) == 0
    copied.write_text(capfd.readouterr().out, encoding="utf-8")
    assert run(path) == (0, f"proven: the optimal value is {document['claim'][0]}\n", "")
    for name in ("bad.proof.json", "none.proof.json"):
        status, out, err = run(name)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert err.startswith("not proven: ")
    assert run()[0] == 1


def all_wirings(n, ports):
    """Every wiring without free ports, by trying all rows: numbers of circuits, ``(n, n)``."""
    rows = [row for row in itertools.product(range(ports + 1), repeat=n) if sum(row) == ports]
    for result in itertools.product(*([row for row in rows if row[u] == 0] for u in range(n))):
        count = np.array(result)
        if (count.sum(axis=0) == ports).all():
            yield count


@pytest.mark.parametrize(("n", "ports", "number"), [(4, 1, 9), (5, 1, 44), (3, 2, 3), (4, 2, None)])
def test_all_wirings_are_tried_if_none_is_ruled_out(n, ports, number):
    """Without parallel ports they are the derangements, of which there are 9 and 44."""
    wanted = {tuple(map(tuple, count)) for count in all_wirings(n, ports)}
    results = [
        tuple(tuple(row.count(v) for v in range(n)) for row in rows)
        for rows in wiring_check.wirings(np.zeros((n, n), int).tolist(), ports, list(range(n))[::-1], 1)
    ]
    assert len(results) == len(set(results))
    assert set(results) == wanted
    assert number in (None, len(results))


def test_byte_hops_of_a_part_are_at_most_those_of_every_wiring():
    n, ports, random = 5, 2, np.random.default_rng(3)
    demand = random.integers(0, 9, (n, n)) * (1 - np.eye(n, dtype=int))
    least = wiring_check.least_hops(demand.tolist(), ports)
    tight = 0
    for _ in range(200):
        while True:
            count = sum(np.eye(n, dtype=int)[random.permutation(n)] for _ in range(ports))
            if not count.diagonal().any():
                break
        rows = [tuple(np.repeat(np.arange(n), row).tolist()) for row in count]
        for unknown in random.permutation(n)[: random.integers(0, n + 1)]:
            rows[unknown] = ()
        entering = Counter(v for row in rows for v in row)
        result = least(rows, [v for v in range(n) if entering[v] < ports])
        dist = shortest_path(count > 0, unweighted=True)
        hops = (demand * np.where(demand > 0, dist, 0)).sum()
        assert result <= hops
        if all(rows):
            assert result == hops
        tight += result == hops
    assert 20 <= tight < 200


def test_the_smallest_maximum_load_is_that_over_all_wirings(documents):
    """Every wiring is routed by SciPy."""
    for name in ("wiring", "servers"):
        document, _, _ = documents[name]
        n, ports, traffic = (document["problem"][key] for key in ("servers", "ports", "traffic"))
        demand = np.zeros((n, n))
        for s, t, size in traffic:
            demand[s, t] = Fraction(size)
        least = min(routed(count, demand) for count in all_wirings(n, ports))
        assert float(Fraction(document["claim"][0])) == pytest.approx(least, rel=1e-9)


def routed(count, demand):
    """The least maximum load over these circuits; infinite if some demand has no way."""
    n, unit = len(count), demand.max()
    pairs = np.argwhere(count)
    columns = len(pairs) * n + 1
    carried, kept = np.zeros((len(pairs), columns)), np.zeros((n * n, columns))
    for a, (u, v) in enumerate(pairs):
        carried[a, a * n : (a + 1) * n] = 1.0
        carried[a, -1] = -count[u, v]
        for s in range(n):
            kept[s * n + v, a * n + s] += 1.0
            kept[s * n + u, a * n + s] -= 1.0
    rows = np.flatnonzero(~np.eye(n, dtype=bool).ravel())
    result = linprog(
        np.eye(columns)[-1], A_ub=carried, b_ub=np.zeros(len(pairs)), A_eq=kept[rows], b_eq=demand.ravel()[rows] / unit
    )
    return result.fun * unit if result.status == 0 else np.inf


def test_an_argument_that_leaves_out_a_wiring_or_a_length_is_refused(documents):
    document, _, _ = documents["servers"]
    argument = document["argument"]
    for other in (
        {**argument, "lengths": []},
        {**argument, "lengths": [np.zeros((4, 4), int).tolist()]},
        {**argument, "order": [0, 1, 2]},
        {**argument, "order": [0, 1, 2, 2]},
        {**argument, "load": 2_213_806},
        {**argument, "lengths": [[[0, 1], [1, 0]]]},
        {**argument, "lengths": argument["lengths"][:-1]},
    ):
        with pytest.raises(combinatorial_check.Refused):
            combinatorial_check.verify({**document, "argument": other, "claim": [other["load"], document["claim"][1]]})
    hops = {**argument, "load": 1_700_000, "lengths": []}
    assert combinatorial_check.verify({**document, "argument": hops, "claim": [1_700_000, None]})


def test_a_cycle_is_found_if_there_is_one():
    assert cycle_of(set()) == []
    assert cycle_of({(0, 1), (1, 2), (0, 2), (3, 0)}) == []
    cycle = cycle_of({(0, 1), (1, 2), (2, 3), (3, 1), (3, 4), (5, 1)})
    assert sorted(cycle) == [1, 2, 3]
    assert all(pair in {(1, 2), (2, 3), (3, 1)} for pair in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


@pytest.mark.parametrize("name", ["rounds", "placement", "steps"])
def test_a_claim_of_everything_proves_nothing(name, documents, tmp_path):
    document, _, _ = documents[name]
    name_of, instance, _, settings, _ = CASES[name]
    path = tmp_path / "a.proof.json"
    path.write_text(json.dumps({**document, "claim": [None, None]}))
    with pytest.raises(combinatorial_check.Refused, match="says nothing about the optimal value"):
        combinatorial_check.verify(combinatorial_check.read(str(path)))
    result = oc.check(name_of, instance, path, settings)
    assert (result["verified"], result["bound"], result["certificate"]) == (False, None, None)
    assert "says nothing" in result["reason"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"formulation": "optree.one-stage"}, "is a certificate of optree.one-stage, not of lumorph.rounds"),
        ({"formulation": None}, "states no formulation"),
        ({"instance": "lightpath:2x3,lasers=1"}, "whose hash it does not have"),
        ({"instance": 5}, "whose hash it does not have"),
        ({"instance_hash": "0" * 64}, "different data of the same name"),
        ({"instance_hash": None}, "does not state its instance"),
        ({"instance": "ring:4", "instance_hash": "0" * 64}, "is a certificate for ring:4, not for lightpath:2x2"),
        ({"settings": {"collective": "all-to-all"}}, "collective=all-to-all, but collective=all-gather was requested"),
        ({"settings": {"colour": "red"}}, "colour"),
        ({"settings": []}, "must be an object"),
        ({"value": 2}, "no certificate has value"),
    ],
)
def test_a_header_that_states_another_problem_is_refused(change, reason, documents, tmp_path):
    document, _, _ = documents["rounds"]
    path = tmp_path / "a.proof.json"
    path.write_text(json.dumps({**document, **change}))
    result = oc.check("lumorph.rounds", "lightpath:2x2,lasers=1", path)
    assert (result["verified"], result["certificate"]) == (False, None)
    assert reason in result["reason"]
    assert "\n" not in result["reason"]


def test_a_certificate_needs_no_header(documents, tmp_path):
    document, _, _ = documents["rounds"]
    bare = {key: value for key, value in document.items() if key in combinatorial_check.PARTS | {"certificate"}}
    path = tmp_path / "a.proof.json"
    path.write_text(json.dumps(bare))
    assert oc.check("lumorph.rounds", "lightpath:2x2,lasers=1", path)["verified"]


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path):
    path = tmp_path / "a.proof.json.gz"
    with gzip.open(path, "wb") as stream:
        for _ in range(50):
            stream.write(b" " * 1_000_000)
    with pytest.raises(combinatorial_check.Refused, match="bytes unpacked"):
        combinatorial_check.read(str(path))
