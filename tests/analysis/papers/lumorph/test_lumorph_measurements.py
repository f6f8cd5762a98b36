"""Parts of the measurements of the LuMorph paper."""

from __future__ import annotations

import pytest

from opticoll.instances.published.lumorph_numbers import all_reduces, figure


def test_the_tables_have_the_published_totals():
    totals = {
        model: [(c.calls, c.size) for c in all_reduces(model, 256) if c.participants > 1]
        for model in ("bert", "ncf", "inception")
    }
    assert {m: sum(k for k, _ in rows) for m, rows in totals.items()} == {"bert": 134, "ncf": 17, "inception": 190}
    assert {m: sum(k * size for k, size in rows) for m, rows in totals.items()} == {
        "bert": 805_507_076,
        "ncf": 537_010_184,
        "inception": 87_155_368,
    }
    assert sum(c.calls for c in all_reduces("ncf", 256) if c.participants == 1) == 128


def test_a_panel_that_the_tables_do_not_have_is_an_error():
    with pytest.raises(KeyError, match="no curves of figure 7 32_gpus"):
        figure("7", "32_gpus")
