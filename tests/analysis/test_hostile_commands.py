"""A hostile user, a full disk or a missing store on the command line: a one-line error, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import soak
from full_disks import no_file_above

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.store import Store
from opticoll.analysis.study import study_file
from opticoll.analysis.study.running import run_study
from opticoll.errors import BadFile, BadInput
from opticoll.solvers.process.executor import InProcess
from opticoll.solvers.solution_json import check
from opticoll.solvers.task import Termination

SOLVE = ("solve", "alltoall.master", "ring:3", "--method", "highs-simplex")


def test_an_answer_is_printed_if_the_store_is_full(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    def full(*given: Any, **named: Any) -> str:
        msg = "store: cannot write: No space left on device; choose another folder by"
        raise BadInput(msg, remedy={"store": "DIR"})

    monkeypatch.setattr(Store, "save", full)
    file = tmp_path / "answer.json"
    assert main([*SOLVE, "--json", "--solution", str(file)]) == 2
    out, err = capfd.readouterr()
    assert json.loads(out)["verified"] is True
    assert json.loads(file.read_text())["objective"] == pytest.approx(1.0)
    assert "No space left on device; choose another folder by --store DIR" in err


def test_a_failed_output_is_reported_and_the_run_is_kept(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    assert main([*SOLVE, "--json", "--store", str(store.root), "--solution", "/dev/full"]) == 2
    out, err = capfd.readouterr()
    assert "/dev/full" in err
    if out:  # not refused before the solve
        assert json.loads(out)["verified"] is True
        assert len(store.sql("FROM runs")) == 1


def test_a_file_that_cannot_be_written_whole_leaves_the_earlier_one(tmp_path: Path) -> None:
    network = oc.topology({(f"node {i}", f"node {j}"): 1.0 for i in range(5) for j in range(5) if i != j})
    model = oc.model("alltoall.link-mcf", network)
    result = model.solve()
    writers = {
        "solution.json": result.save,
        "schedule.xml": result.schedule().save,
        "loads.pdf": result.plot().save,
        "network.graphml": lambda path: oc.save_topology(network, path),
        "model.mps": model.export,
    }
    for name, save in writers.items():
        (tmp_path / name).write_text("earlier")
        with no_file_above(1000), pytest.raises(BadInput, match="File too large"):
            save(tmp_path / name)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(writers, "earlier")


def test_an_output_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    oc.solve("alltoall.master", "ring:3").save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["objective"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 100_000, "is not TOML"),
        ("repetitions = 100_000_000_000\n", "more than"),
        ('instances = ["ring:{1..1000000}", "ring:{1..1000000}"]\n', "has more than"),
    ],
)
def test_endless_studies_are_refused_at_once(text: str, message: str, tmp_path: Path) -> None:
    head = 'name = "s"\ntitle = "t"\nformulations = ["alltoall.master"]\nmethods = ["highs"]\n'
    given = text if "instances" in text else text + 'instances = ["ring:3"]\n'
    (tmp_path / "s.toml").write_text(head + given)
    before = time.process_time()
    with pytest.raises(BadInput, match=message):
        study_file.load(tmp_path / "s.toml")
    assert time.process_time() - before < 60


def test_a_short_schedule_may_not_move_millions_of_chunks(tmp_path: Path) -> None:
    step = '<step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="{count}"/>'
    block = '<tb id="0" send="-1" recv="-1" chan="0">{step}</tb>'
    rank = f'<gpu id="{{v}}" i_chunks="4000000" o_chunks="4000000" s_chunks="0">{block}</gpu>'
    head = '<algo name="a" proto="Simple" nchannels="1" nchunksperloop="4000000" ngpus="4" coll="alltoall">'
    ranks = "".join(rank.format(v=v, step=step.format(count=1_000_000)) for v in range(4))
    file = tmp_path / "s.xml"
    file.write_text(f"{head}{ranks}</algo>")
    with pytest.raises(BadFile, match="cnt=1000000 is outside"):
        check("alltoall.master", "ring:4", file)


def test_messages_have_no_escape_sequences(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "alltoall.master", "ring:3\x1b[31m", "--no-store"]) == 2
    assert "\x1b" not in capfd.readouterr().err


def test_endless_sql_ends(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "SELECT count(*) FROM range(10000000000000) a, range(1000) b", "--time-limit", "0.5"]) == 2
    err = capfd.readouterr().err
    assert "stopped after 0.5 s" in err
    assert "--time-limit" in err


def test_sql_that_is_not_text_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "SELECT '\ud800'"]) == 2
    assert "UTF-8" in capfd.readouterr().err


def _study(tmp_path: Path) -> study_file.Study:
    (tmp_path / "s.toml").write_text(soak.STUDY.split("[limits]")[0])
    return study_file.load(tmp_path / "s.toml")


def test_a_torn_record_of_a_study_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    study, store = _study(tmp_path), Store(tmp_path / "store")
    run_study(study, store, InProcess())
    path = store.records / f"{study.cells[0].key}.1.json"
    path.write_bytes(path.read_bytes()[:100])
    again = run_study(study, store, InProcess())
    assert (again.count("done"), again.count("skipped")) == (1, len(study.cells) - 1)
    assert (store.records / f"{study.cells[0].key}.2.json").exists()
    assert "is not a record" in caplog.text
    assert len(store.sql("FROM latest")) == len(study.cells)


def test_a_signal_ends_a_study_with_a_line(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'name = "s"\nformulations = ["lumorph.rounds"]\ninstances = ["lightpath:4x4,lasers=4"]\nmethods = ["highs"]\n'
        '[limits]\ntime_limit_s = 600\n[settings]\ncollective = "all-to-all"\n'
    )
    words = [sys.executable, "-m", "opticoll", "study", f"{tmp_path}/s.toml", "--store", f"{tmp_path}/store"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, preexec_fn=soak.heed_signals)
    begun = time.monotonic()
    while not soak.working(process.pid) and process.poll() is None and time.monotonic() < begun + 240:
        time.sleep(0.2)
    os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=240)
    assert err == f"opticoll: interrupted with 1 cell to go; run `opticoll study {tmp_path}/s.toml` again to resume\n"
    assert process.returncode == 128 + signal.SIGTERM


def test_a_signal_within_an_exec_ends_a_command_with_its_status(tmp_path: Path) -> None:
    """Classes are made by it while modules load; ``python -m`` would end by SIGINT."""
    lines = ["import os, signal, time", "os.kill(os.getpid(), signal.SIGTERM)", "time.sleep(60)"]
    (tmp_path / "mine.py").write_text(f"exec({chr(10).join(lines)!r})\n")
    words = [sys.executable, "-m", "opticoll", "list", "solvers", "--plugin", f"{tmp_path}/mine.py"]
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=soak.heed_signals)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "opticoll: interrupted\n")


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)],
    ids=lambda number: number.name,
)
def test_a_signal_keeps_the_incumbent(number: signal.Signals, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    words = ("solve", "lumorph.rounds", "lightpath:4x4,lasers=4", "--method", "highs", "--set", "collective=all-to-all")
    process = soak.started(*words, "--store", str(store.root), "--json", "--time-limit", "600")
    begun = time.monotonic()
    while not soak.working(process.pid) and process.poll() is None and time.monotonic() < begun + 240:
        time.sleep(0.2)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=240)
    assert "Traceback" not in err
    assert number.name in err
    assert process.returncode in (0, 3)
    assert json.loads(out)["termination"] in (Termination.INTERRUPTED, Termination.OPTIMAL)
    assert len(store.sql("FROM runs")) == 1
