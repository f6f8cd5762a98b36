"""The results store: whole records or none, typed, read-only to queries."""

from __future__ import annotations

import errno
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from case_families import each

from opticoll.analysis.rendering import frame_rows
from opticoll.analysis.store import Store, schema, tables
from opticoll.errors import BadFile, BadInput
from opticoll.shared_files import AlreadyStored, publish
from opticoll.solvers.run import Run
from opticoll.solvers.task import Proof, Record, Task, Termination, plain

if TYPE_CHECKING:
    from pathlib import Path


def make_run(key: str = "k" * 64, **changes: Any) -> Run:
    record = {
        "key": key,
        "formulation": "alltoall.master",
        "instance": "ring:4",
        "n": np.int64(4),
        "arcs": 8,
        "method": "highs",
        "solver": {"name": "highs", "version": "1", "algorithm": "simplex", "options": {"threads": 2}},
        "termination": Termination.OPTIMAL,
        "proof": Proof.OPTIMAL,
        "objective": np.float64(0.5),
        "bound": 0.5,
        "gap": 0.0,
        "verified": np.bool_(True),
        "violations": {"balance": 0.0},
        "metrics": {"F": 0.5, "T": 2.0},
        "time": {"build_s": 0.1, "compile_s": 0.1, "solve_s": 0.25, "verify_s": None},
        "incumbents": [(0.1, 0.4), (0.2, 0.5)],
        **changes,
    }
    values = {"g": np.arange(6.0).reshape(2, 3), "F": np.array(0.5)}
    return Run(Task("alltoall.master", "ring:4"), Record.read(record), values=values, duals={"g": np.ones(2)})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "store").mkdir()
    return Store(tmp_path / "store")


def test_default_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTICOLL_STORE", raising=False)
    assert Store().root == tmp_path / "results"
    monkeypatch.setenv("OPTICOLL_STORE", str(tmp_path / "elsewhere"))
    assert Store().root == tmp_path / "elsewhere"
    assert Store(tmp_path / "given").root == tmp_path / "given"
    assert not list(tmp_path.iterdir())


def test_empty_store_has_typed_views(store: Store) -> None:
    frame = store.sql("SELECT objective, n, F, started FROM latest")
    assert frame.empty
    assert list(frame.columns) == ["objective", "n", "F", "started"]
    assert not list(store.root.iterdir())


def test_round_trip(store: Store) -> None:
    name = store.save(make_run(), started=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    row = store.sql("SELECT * FROM runs").iloc[0]
    assert row["id"] == name
    assert (row["F"], row["T"], row["time_solve_s"], row["n"]) == (0.5, 2.0, 0.25, 4)
    assert row["solver_name"] == "highs"
    assert json.loads(row["solver_options"]) == {"threads": 2}
    assert math.isnan(row["time_verify_s"])
    assert row["started"] == datetime(2026, 1, 2, 3, 4, 5)
    assert [list(pair) for pair in row["incumbents"]] == [[0.1, 0.4], [0.2, 0.5]]
    assert row["host"]
    assert row["python"]
    assert row["cpus"] >= 1
    values, duals = store.solution(name)
    assert np.array_equal(values["g"], np.arange(6.0).reshape(2, 3))
    assert values["F"].shape == ()
    assert np.array_equal(duals["g"], np.ones(2))


def test_rows_hold_what_the_record_holds_in_every_column_of_json(store: Store) -> None:
    start = {"source": "earlier.json", "objective": 0.4, "used": ["highs", "cbc"], "kept": False}
    claims = {"objective": 0.5, "bound": 0.5, "status": "Optimal"}
    store.save(make_run(start=start, solver_claims=claims, plugins={"mine": "1"}))
    (row,) = frame_rows(store.sql("SELECT start_used, solver_claims, plugins, solver_options, violations FROM runs"))
    assert row["start_used"] == ["highs", "cbc"]
    assert row["solver_claims"] == claims
    assert row["plugins"] == {"mine": "1"}
    assert row["solver_options"] == {"threads": 2}
    assert row["violations"] == {"balance": 0.0}


def test_unknown_is_null_never_a_number(store: Store) -> None:
    run = make_run(gap=math.nan, bound=math.inf, objective=None, arcs=None, metrics={"F": None, "T": -math.inf})
    name = store.save(run)
    text = (store.records / f"{name}.json").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    nulls = store.sql("SELECT gap IS NULL, bound IS NULL, objective IS NULL, arcs IS NULL, T IS NULL FROM runs")
    assert nulls.to_numpy().all()


def test_every_field_is_there_and_typed(store: Store) -> None:
    name = store.save(make_run())
    written = json.loads((store.records / f"{name}.json").read_text())
    assert set(written) == {*schema.columns(), "checksum"}
    assert (written["schema"], written["kkt"]) == (schema.VERSION, None)
    assert written["size"].keys() == {"variables", "constraints", "nonzeros", "integers"}
    assert store.read(name) == schema.StoredRecord.read(written)


@pytest.mark.parametrize(
    ("field", "value"),
    [("n", "four"), ("n", 4.5), ("n", True), ("objective", "0.5"), ("verified", 1), ("solver", "highs")],
)
def test_wrong_types_are_refused_and_leave_nothing(store: Store, field: str, value: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match=rf"\$\.{field}"):
        store.save(make_run(**{field: value}))
    assert not list(store.names())


def test_a_solve_gets_a_name_of_its_own_and_a_cell_has_one(store: Store) -> None:
    names = {store.save(make_run()), store.save(make_run()), store.save(make_run(), attempt=1)}
    assert len(names) == 3
    file = store.records / f"{'k' * 64}.1.json"
    before = file.read_bytes()
    with pytest.raises(AlreadyStored):
        store.save(make_run(objective=0.7), attempt=1)
    assert file.read_bytes() == before
    assert len(list(store.names())) == 3
    assert len(list(store.solutions.glob("*.npz"))) == 3
    assert not list(store.root.rglob(".tmp-*"))


def test_latest_is_the_best_run_of_each_key(store: Store) -> None:
    store.save(make_run("a", termination="crashed", verified=False, proof="none", gap=None), attempt=1)
    store.save(make_run("a", proof="certified-gap", gap=0.1), attempt=2)
    store.save(make_run("a", proof="optimal", gap=0.0))
    store.save(make_run("a", termination="unavailable", verified=False, proof="none", gap=None))
    store.save(make_run("b", termination="time-limit", verified=False, proof="bound-only"), attempt=1)
    frame = store.sql("SELECT key, proof, answer FROM latest ORDER BY key")
    assert frame.to_numpy().tolist() == [["a", "optimal", True], ["b", "bound-only", False]]
    assert len(store.sql("SELECT * FROM runs")) == 5


def test_answers_and_attempts(store: Store) -> None:
    store.save(make_run("a", termination="crashed"), attempt=1)
    store.save(make_run("b", termination="time-limit"), attempt=1)
    store.save(make_run("c", termination="optimal"))
    store.save(make_run("d", termination="unavailable"), attempt=1)
    store.save(make_run("e", termination="optimal", objective=math.nan, verified=False), attempt=1)
    store.save(make_run("f", termination="infeasible", verified=False, infeasible_by="ports"), attempt=1)
    answered = set(store.answered(set("abcdefg")))
    assert answered == set(store.sql("SELECT key FROM runs WHERE answer")["key"]) == {"b", "c", "f"}
    assert [r["termination"] for r in store.attempts("a")] == ["crashed"]
    assert store.attempts("g") == []


@pytest.mark.parametrize("word", ["crashed", "error", "interrupted", "unavailable", None])
def test_a_failure_is_not_an_answer_even_with_a_value(word: str | None) -> None:
    assert not schema.is_answer(Record(termination=word, verified=True))


@pytest.mark.parametrize("ending", ["optimal", "infeasible", "time-limit", "memory-limit"])
def test_only_what_is_verified_or_proven_infeasible_is_an_answer(ending: str) -> None:
    assert not schema.is_answer(Record(termination=ending, verified=False))
    assert not schema.is_answer(Record(termination=ending))
    assert schema.is_answer(Record(termination=ending, verified=True))
    assert schema.is_answer(Record(termination=ending, verified=False, infeasible_by="ports"))


def test_a_run_at_its_limit_is_shown_rather_than_a_crash_after_it(store: Store) -> None:
    store.save(make_run("a", termination="time-limit", verified=False, proof="none", gap=None), attempt=1)
    store.save(make_run("a", termination="crashed", verified=False, proof="none", gap=None), attempt=2)
    assert store.sql("SELECT termination, answer FROM latest").to_numpy().tolist() == [["time-limit", False]]


def test_what_a_run_needed_has_a_record_of_its_own(store: Store) -> None:
    needed = make_run("a", formulation="alltoall.master", proof="certified-gap", objective=0.25)
    run = make_run("b", formulation="alltoall.child", needed={"key": "a", "proof": "certified-gap"})
    run = replace(run, needed=needed)
    name = store.save(run, attempt=1, study="s")
    basis = store.read(name)["needed"]
    assert basis["key"] == "a"
    assert store.read(basis["id"])["objective"] == 0.25
    assert store.read(basis["id"])["study"] == "s"
    assert np.array_equal(store.solution(basis["id"])[0]["g"], needed.values["g"])
    assert len(list(store.names())) == 2


@each(
    "sql",
    [
        "DROP VIEW runs",
        "CREATE TABLE t AS SELECT 1",
        "INSERT INTO records SELECT * FROM records",
        "DELETE FROM records",
        "UPDATE records SET n = 1",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "ATTACH 'PLACE/db.duckdb'",
        "COPY (SELECT 1) TO 'PLACE/out.csv'",
        "COPY runs TO 'PLACE/out.parquet' (FORMAT parquet)",
        "EXPORT DATABASE 'PLACE/dump'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM secret_frame",
        "SELECT 1; DROP VIEW runs",
        "SELECT nothing FROM runs",
        "SELEC 1",
        "",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO 'PLACE/out.csv'",
        "CALL force_checkpoint()",
        "PREPARE p AS SELECT 1",
    ],
)
def test_queries_only_read(store: Store, sql: str, tmp_path: Path) -> None:
    import pandas as pd

    secret_frame = pd.DataFrame({"a": [1]})
    store.save(make_run())
    before = sorted(p for p in tmp_path.rglob("*"))
    with pytest.raises(BadInput):
        store.sql(sql.replace("PLACE", str(tmp_path)))
    assert sorted(p for p in tmp_path.rglob("*")) == before
    assert len(secret_frame) == 1


@pytest.mark.parametrize(
    "sql", ["FROM runs", "WITH x AS (SELECT n FROM runs) SELECT * FROM x", "DESCRIBE runs", "EXPLAIN SELECT 1"]
)
def test_reading_statements_are_taken(store: Store, sql: str) -> None:
    store.save(make_run())
    assert len(store.sql(sql))


def test_a_folder_with_wildcards_in_its_name(tmp_path: Path) -> None:
    store = Store(tmp_path / "a[b]*c?")
    store.save(make_run())
    assert len(store.sql("FROM runs")) == 1


def test_half_written_files_are_never_read(store: Store) -> None:
    store.save(make_run())
    (store.records / ".tmp-host-1-abc").write_text('{"id": "x", "n": 4')
    assert len(store.sql("FROM runs")) == 1
    assert len(list(store.names())) == 1


def break_record(path: Path, how: str) -> None:
    """Make a record's file one that is none."""
    line = path.read_bytes()
    path.unlink()
    changed = {
        "empty": b"",
        "torn": line[: len(line) // 2],
        "torn at its end": line[:-20],
        "no object": b"[1]\n",
        "another value": line.replace(b'"objective":', b'"objective":1'),
        "not text": b"\xff\xfe\n",
    }
    if how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(changed[how])


BROKEN = [
    "empty",
    "torn",
    "torn at its end",
    "no object",
    "another value",
    "not text",
    "folder",
    "pipe",
]


@pytest.mark.parametrize("how", BROKEN)
def test_a_damaged_record_is_left_out_and_named(store: Store, how: str, caplog: pytest.LogCaptureFixture) -> None:
    store.save(make_run())
    name = store.save(make_run(), attempt=1)
    break_record(store.records / f"{name}.json", how)
    assert len(store.sql("FROM runs")) == 1
    [warning] = caplog.messages
    assert f"{name}.json is not a record (" in warning
    assert warning.endswith("; move it out of the store")
    assert "\n" not in warning
    assert store.attempts("k" * 64) == [None]
    assert list(store.answered({"k" * 64})) == ["k" * 64]  # by the other one
    with pytest.raises(BadFile, match="is not a record"):
        store.read(name)


def test_a_record_s_checksum_is_that_of_its_bytes(store: Store) -> None:
    name = store.save(make_run())
    line = (store.records / f"{name}.json").read_bytes()
    assert schema.sound(line) == line
    for place in range(0, len(line) - 2, 7):
        changed = bytearray(line)
        changed[place] ^= 1
        with pytest.raises((ValueError, TypeError, msgspec.MsgspecError)):
            schema.sound(bytes(changed))


def test_a_damaged_solution_is_an_error(store: Store) -> None:
    name = store.save(make_run())
    path = store.solutions / str(store.read(name).solution)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(BadFile, match="cannot be read"):
        store.solution(name)


def test_a_query_leaves_no_copy_of_the_store(store: Store) -> None:
    store.save(make_run())
    code = (
        "import os, signal, sys\nfrom opticoll.analysis.store import Store\n"
        "import opticoll.analysis.store.tables as query\n"
        "inner = query._gather\n"
        "def gather(*both):\n    inner(*both)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "query._gather = gather\nStore(sys.argv[1]).sql('FROM runs')\n"
    )
    place = store.root.parent / "temporary"
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code, str(store.root)], env=os.environ | {"TMPDIR": str(place)}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert not list(place.iterdir()) or not hasattr(os, "memfd_create")


def test_records_of_the_future_are_refused(store: Store) -> None:
    name = store.save(make_run())
    record = schema.StoredRecord.read(plain(store.read(name)) | {"schema": schema.VERSION + 1})
    (store.records / "future.json").write_bytes(schema.encode(record))
    with pytest.raises(BadFile, match="upgrade opticoll"):
        store.sql("FROM runs")


def test_sweep_removes_only_what_was_left_behind(store: Store) -> None:
    name = store.save(make_run())
    old = time.time() - 3 * 24 * 3600
    for folder, left in (
        (store.records, ".tmp-a-1-x"),
        (store.solutions, "gone.1~ab.npz"),
        (store.solutions, f"{name}~zz.npz"),
    ):
        (folder / left).write_bytes(b"x")
        os.utime(folder / left, (old, old))
    (store.records / ".tmp-b-2-y").write_bytes(b"young")
    kept = store.solutions / store.read(name)["solution"]
    os.utime(kept, (old, old))
    assert store.sweep() == 3
    assert kept.exists()
    assert (store.records / ".tmp-b-2-y").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match="is not writable"):
        Store(tmp_path / "store").check_writable()


def test_a_file_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="is not a folder"):
        Store(tmp_path / "file").check_writable()
    with pytest.raises(BadInput, match="is not a folder"):
        Store(tmp_path / "file" / "below").check_writable()


def test_publish_leaves_nothing_of_a_failed_write(tmp_path: Path) -> None:
    def fail(file: Any) -> None:
        file.write(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        publish(tmp_path / "x.json", fail)
    assert not list(tmp_path.iterdir())


def _race(root: str, number: int, barrier: Any, queue: Any) -> None:
    store = Store(root)
    won = 0
    for attempt in range(1, 41):
        barrier.wait()
        try:
            store.save(make_run(objective=float(number)), attempt=attempt)
            won += 1
        except AlreadyStored:
            pass
    queue.put(won)


def test_two_writers_race_for_every_name_and_one_wins(store: Store) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(2), context.Queue()
    writers = [context.Process(target=_race, args=(str(store.root), i, barrier, queue)) for i in range(2)]
    for writer in writers:
        writer.start()
    won = [queue.get(timeout=240) for _ in writers]
    for writer in writers:
        writer.join()
    assert sum(won) == 40
    assert len(list(store.names())) == 40
    assert len(store.sql("FROM runs")) == 40
    assert len(list(store.solutions.glob("*.npz"))) == 40
    assert not list(store.root.rglob(".tmp-*"))
    for attempt in store.attempts("k" * 64):
        assert attempt is not None
        assert (store.solutions / attempt["solution"]).exists()


@pytest.mark.parametrize(("number", "refused"), [(errno.EROFS, True), (errno.ENOENT, True), (errno.ENOSPC, False)])
def test_a_file_system_that_refuses_what_its_rights_permit_is_refused(number, refused, tmp_path, monkeypatch):
    def mkdtemp(**where):
        raise OSError(number, "no")

    monkeypatch.setattr("opticoll.analysis.store.records.tempfile.mkdtemp", mkdtemp)
    with pytest.raises(BadInput, match="is not writable") if refused else nullcontext():
        Store(tmp_path / "store").check_writable()
    monkeypatch.undo()
    Store(tmp_path / "store").check_writable()
    assert list(tmp_path.iterdir()) == []


def test_several_queries_read_the_records_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    store.save(make_run("a"))
    read: list[int] = []
    gather = tables._gather
    monkeypatch.setattr(tables, "_gather", lambda *where: read.append(1) or gather(*where))
    counts, keys = store.tables("SELECT count(*) AS runs FROM runs", "SELECT key FROM latest")
    assert (counts["runs"].tolist(), keys["key"].tolist(), len(read)) == ([1], ["a"], 1)
    with pytest.raises(BadInput, match="read-only"):
        store.tables("FROM runs", "CREATE TABLE x (a INT)")


def test_threads_read_records_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reading: list[int] = []
    most: list[int] = []
    convert = msgspec.convert

    def slow(values: Any, kind: Any) -> Any:
        reading.append(1)
        most.append(len(reading))
        time.sleep(0.01)
        reading.pop()
        return convert(values, kind)

    monkeypatch.setattr("opticoll.solvers.task.msgspec.convert", slow)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: schema.StoredRecord.read({"id": name, "schema": 1}), "abcdefgh"))
    assert most == [1] * 8


def test_a_store_is_shown_with_its_folder(tmp_path: Path) -> None:
    assert repr(Store(tmp_path)) == f"Store({str(tmp_path)!r})"
