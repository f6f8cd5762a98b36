"""Records of an earlier version are read with the same values as by that version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opticoll.analysis.rendering import frame_rows
from opticoll.analysis.report.findings import best_runs
from opticoll.analysis.store import Store, schema
from opticoll.solvers.task import plain

#: Twelve records (LP, MILP, heuristics, limits, infeasible, unavailable), and what their own version read from them.
FOLDER = Path(__file__).resolve().parents[2] / "data" / "old-store"
STORE = Store(FOLDER)
EXPECTED: dict[str, list[dict[str, Any]]] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


def rows_of(table: str) -> list[dict[str, Any]]:
    if table == "report":
        return plain(frame_rows(best_runs(STORE)))  # type: ignore[no-any-return]
    return plain(frame_rows(STORE.sql(f"SELECT * FROM {table} ORDER BY id")))  # type: ignore[no-any-return]


@pytest.mark.parametrize("table", EXPECTED)
def test_tables_are_the_same(table: str) -> None:
    rows, expected = rows_of(table), EXPECTED[table]
    assert [{name: row[name] for name in expected[0]} for row in rows] == expected
    assert set(rows[0]) - set(expected[0]) == {
        "needed",
        "plugins",
        "repaired",
        "model_built",
        "model_form",
        "model_reason",
        "model_variables",
        "objective_exact",
        "requested_exact",
        "time_exact_s",
        "time_solver_cpu_s",
        "superseded",
    }
    common = [name for name in rows[0] if name in expected[0]]
    assert common == list(expected[0])


def test_records_are_the_same_and_survive_being_written_again() -> None:
    for name in STORE.names():
        text = (FOLDER / "records" / f"{name}.json").read_text(encoding="utf-8")
        written, record = json.loads(text), STORE.read(name)
        again = plain(record)
        early = (written["extra"] or {}).get("needed")
        assert (again.pop("needed") or {}).items() >= (early or {}).items()
        assert again.pop("repaired") is None
        assert set(again.pop("model").values()) == {None}
        assert again["time"].pop("solver_cpu_s") is None
        assert again.pop("objective_exact") is again["requested"].pop("exact") is again["time"].pop("exact_s") is None
        for field in ("kkt", "solver_claims"):  # an object of nulls, or null
            assert plain(again.pop(field) or {}).items() <= (written.pop(field) or {}).items()
        assert again == {**dict.fromkeys(again), **written}
        assert schema.stored(plain(record)) == record


def test_a_needed_run_kept_in_extra_is_a_column() -> None:
    frame = STORE.sql("SELECT needed->>'formulation' AS basis FROM runs WHERE needed IS NOT NULL")
    assert frame["basis"].tolist() == ["alltoall.min-congestion"]
