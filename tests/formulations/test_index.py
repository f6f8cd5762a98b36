"""Sparse index sets: every operation against its meaning, line by line."""

from __future__ import annotations

import numpy as np
import pytest

from opticoll.errors import ModelError
from opticoll.formulations.index import Index


def drawn(seed, key="a b", size=40):
    """A table of small numbers with two columns of data."""
    rng = np.random.default_rng(seed)
    names = [*key.split(), "x", "y"]
    return Index.table(key, {name: rng.integers(0, 4, size) for name in names})


def lines(index):
    return [dict(zip(index.columns, line, strict=True)) for line in zip(*index.columns.values(), strict=True)]


@pytest.mark.parametrize("seed", range(5))
def test_a_sum_takes_the_entries_that_agree(seed):
    rows, entries = drawn(seed, "a b"), drawn(seed + 100, "a c", 30)
    cases = {
        "shared name": (rows.of(entries), lambda r, e: r["a"] == e["a"]),
        "a column of the row": (rows.of(entries, c="x"), lambda r, e: r["a"] == e["a"] and e["c"] == r["x"]),
        "in place of the name": (rows.of(entries, c="a"), lambda r, e: e["c"] == r["a"]),
        "numbers": (rows.of(entries, a=rows["b"] - 1), lambda r, e: e["a"] == r["b"] - 1),
        "a condition": (
            rows.of(entries, where=lambda r, e: e["y"] <= r["x"]),
            lambda r, e: r["a"] == e["a"] and e["y"] <= r["x"],
        ),
    }
    for what, (matrix, agree) in cases.items():
        expected = [[float(agree(r, e)) for e in lines(entries)] for r in lines(rows)]
        np.testing.assert_array_equal(matrix.toarray(), expected, err_msg=what)


@pytest.mark.parametrize("seed", range(5))
def test_sets_of_sets(seed):
    table = drawn(seed)
    kept = table.where(table["x"] > 1)
    assert lines(kept) == [line for line in lines(table) if line["x"] > 1]
    ends = kept.by("a b")
    assert ends.labels == sorted({(line["a"], line["b"]) for line in lines(kept)})
    assert ends["count"].tolist() == [kept.labels.count(label) for label in ends.labels]
    other = drawn(seed + 1, "a c").keyed("a c").by("a c")
    both = [(r, e) for r in lines(kept) for e in lines(other) if r["a"] == e["a"]]
    joined = kept.join(other)
    assert sorted(map(str, lines(joined))) == sorted(str({**e, **r}) for r, e in both)
    # selected and joined lines are still entries of the whole table
    np.testing.assert_array_equal(ends.of(kept).toarray()[:, table["x"] <= 1], 0.0)
    assert ends.of(kept).shape == (len(ends), len(table))


def test_grids_masks_and_labels():
    grid = Index.grid(a=2, b=3)
    assert grid.labels == [(i, j) for i in range(2) for j in range(3)]
    mask = np.array([[True, False, True], [False, False, True]])
    assert Index.of_mask("a b", mask).labels == [(0, 0), (0, 2), (1, 2)]
    assert Index.grid(a=3).labels == [0, 1, 2]
    assert len(Index.table("a", {"a": []})) == 0
    assert Index.table("a b", {"a": [1, 2], "b": 7}, {"a": [3], "b": 8}).labels == [(1, 7), (2, 7), (3, 8)]


def test_sets_without_a_shared_name_are_refused():
    with pytest.raises(ModelError, match="share no name"):
        Index.grid(a=2).of(Index.grid(b=2))
    with pytest.raises(ModelError, match="the index set of b has no column 'c'; it has b"):
        Index.grid(a=2).of(Index.grid(b=2), c="a")
    with pytest.raises(ModelError, match="the index set of a has no column 'z'; it has a"):
        Index.grid(a=2).by("z")


def test_keys_beyond_64_bits_are_refused():
    wide = Index.table("a b c", {name: [0, 2**40] for name in "abc"})
    with pytest.raises(OverflowError, match="64 bits"):
        wide.by("a b c")
