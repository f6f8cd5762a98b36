"""Certificates of best wirings: no changed file proves a false claim, and the checker misses no wiring."""

from __future__ import annotations

import copy
import gzip
import itertools
import json
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse.csgraph import shortest_path

from opticoll.analysis.benchmark import wiring_check

#: Three servers with one circuit each: the other of the two wirings has the load 6.
DOCUMENT = {
    "certificate": 1,
    "kind": "wiring",
    "problem": {"servers": 3, "ports": 1, "traffic": [[0, 1, 5], [1, 2, 1], [2, 0, "1"]]},
    "solution": {"circuits": [[0, 1], [1, 2], [2, 0]], "flows": [[0, 0, 5], [1, 1, 1], [2, 2, 1]]},
    "argument": {
        "load": 5,
        "order": [0, 1, 2],
        "lengths": [[[0, 1, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 1], [0, 0, 0], [0, 0, 0]]],
    },
    "claim": [5, 5],
}


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


def test_no_changed_certificate_proves_a_false_claim():
    """Whatever is accepted for the same problem holds its optimum, 5."""
    refused = tried = 0
    for at, value in leaves({key: part for key, part in DOCUMENT.items() if key != "problem"}):
        for other in changes(value):
            tried += 1
            try:
                low, high = wiring_check.verify(changed(DOCUMENT, at, other))
            except wiring_check.Refused:
                refused += 1
                continue
            assert low is None or low <= 5, (at, value, other)
            assert high is None or high >= 5, (at, value, other)
    assert refused > 0.6 * tried


def test_a_document_without_a_part_or_with_another_is_refused():
    for part in ("problem", "solution", "argument"):
        for key in DOCUMENT[part]:
            less = copy.deepcopy(DOCUMENT)
            del less[part][key]
            with pytest.raises(wiring_check.Refused):
                wiring_check.verify(less)
        more = copy.deepcopy(DOCUMENT)
        more[part]["further"] = 0
        with pytest.raises(wiring_check.Refused):
            wiring_check.verify(more)
    for missing in ("solution", "argument"):
        half = {**DOCUMENT, missing: None}
        with pytest.raises(wiring_check.Refused):
            wiring_check.verify(half)
        ends = list(DOCUMENT["claim"])
        ends[missing == "solution"] = None
        assert wiring_check.verify({**half, "claim": ends})
    with pytest.raises(wiring_check.Refused, match="no certificate has value"):
        wiring_check.verify({**DOCUMENT, "value": 2})
    with pytest.raises(wiring_check.Refused, match="says nothing about the optimal value"):
        wiring_check.verify({**DOCUMENT, "claim": [None, None]})


def test_an_argument_that_leaves_out_a_wiring_or_a_length_is_refused():
    argument = DOCUMENT["argument"]
    for other in (
        {**argument, "lengths": []},
        {**argument, "lengths": [np.zeros((3, 3), int).tolist()]},
        {**argument, "order": [0, 1]},
        {**argument, "order": [0, 1, 1]},
        {**argument, "load": 6},
        {**argument, "lengths": [[[0, 1], [1, 0]]]},
        {**argument, "lengths": argument["lengths"][:1]},
        {**argument, "lengths": argument["lengths"][1:]},
    ):
        with pytest.raises(wiring_check.Refused):
            wiring_check.verify({**DOCUMENT, "argument": other, "claim": [other["load"], 5]})
    hops = {**argument, "load": 2, "lengths": []}  # each of 7 bytes crosses one of 3 circuits at least
    assert wiring_check.verify({**DOCUMENT, "argument": hops, "claim": [2, None]})


def test_the_checker_is_a_program_that_needs_python_alone(tmp_path):
    good, packed, bad = tmp_path / "a.proof.json", tmp_path / "a.proof.json.gz", tmp_path / "bad.proof.json"
    good.write_text(json.dumps(DOCUMENT))
    packed.write_bytes(gzip.compress(good.read_bytes()))
    bad.write_text(json.dumps({**DOCUMENT, "claim": [2, 2]}))

    def run(*names: object) -> tuple[int, str, str]:
        command = [sys.executable, "-E", "-s", "-S", wiring_check.__file__, *map(str, names)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    for path in (good, packed):
        assert run(path) == (0, "proven: the optimal value is 5\n", "")
    for path in (bad, tmp_path / "none.proof.json"):
        status, out, err = run(path)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert err.startswith("not proven: ")
    assert run()[0] == 1


@pytest.mark.parametrize("wrong", ["", "[" * 10_000, '{"certificate": NaN}', "\x00", " " * (wiring_check.BYTES + 1)])
def test_other_files_are_refused(wrong, tmp_path):
    path = tmp_path / "a.proof.json.gz"
    path.write_bytes(gzip.compress(wrong.encode()))
    with pytest.raises(wiring_check.Refused):
        wiring_check.verify(wiring_check.read(str(path)))


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


def test_the_smallest_maximum_load_is_that_over_all_wirings():
    """Every wiring is routed by SciPy."""
    demand = np.zeros((3, 3))
    for s, t, size in DOCUMENT["problem"]["traffic"]:
        demand[s, t] = Fraction(size)
    assert sorted(routed(count, demand) for count in all_wirings(3, 1)) == pytest.approx([5.0, 6.0], rel=1e-9)


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
