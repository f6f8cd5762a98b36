"""The command line: stdout and stderr, exit statuses, and imports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import json_outputs
import pytest
from msgspec.structs import replace
from reference import RUN_KEYS

import opticoll as oc
from opticoll.analysis.cli.main import cli, main
from opticoll.analysis.cli.output import show_bounds, show_fields
from opticoll.analysis.rendering import record_lines
from opticoll.analysis.result.schedule_lines import executed_lines, written_lines
from opticoll.analysis.store import Store
from opticoll.formulations.model import FORMS as MODEL_FORMS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "numpy",
    "pandas",
    "scipy",
    "cvxpy",
    "pyomo",
    "duckdb",
    "matplotlib",
    "rich",
    "networkx",
    "highspy",
    "ortools",
    "pyarrow",
    "psutil",
}


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "opticoll", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        timeout=240,
        check=False,
        **options,
    )


def as_json(capfd: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    """What ``--json`` prints: one line, one value, nothing else, no NaN."""
    assert main([*arguments, "--json"]) == status
    out = capfd.readouterr().out
    assert out.count("\n") == 1

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(out, parse_constant=refuse)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["solve", "--help"], ["results", "--help"], ["benchmark"], ["--version"], []]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from opticoll.analysis.cli.main import main; status = main(sys.argv[1:]); "
        "print(sorted(m for m in sys.modules if '.' not in m), file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        timeout=240,
        check=True,
    )
    assert "opticoll" in done.stdout
    assert not HEAVY & set(eval(done.stderr, {}))  # noqa: S307  our own list of names


def test_reading_the_store_ends_without_a_word_on_stderr() -> None:
    assert main(["solve", "alltoall.master", "ring:4", "--method", "highs"]) == 0
    done = command("results")
    assert done.returncode == 0
    assert done.stderr == ""


def test_solve_json_is_the_contract_and_is_stored(capfd: pytest.CaptureFixture[str]) -> None:
    record = as_json(capfd, "solve", "alltoall.master", "ring:4", "--method", "highs-simplex")
    assert set(record) >= RUN_KEYS
    assert set(record["solver"]) == {"name", "version", "algorithm", "options"}
    assert set(record["time"]) >= {"build_s", "compile_s", "solve_s", "verify_s"}
    assert set(record["size"]) == {"variables", "constraints", "nonzeros", "integers"}
    assert (record["proof"], record["verified"], record["n"]) == ("optimal", True, 4)
    assert record["metrics"]["F"] == pytest.approx(0.5)
    assert record["metrics"]["T"] == pytest.approx(2.0)
    (name,) = Store().names()
    assert Store().read(name)["key"] == record["key"]
    values, _ = Store().solution(name)
    assert values["F"] == pytest.approx(0.5)
    (row,) = as_json(capfd, "results")
    assert row["id"] == name
    assert row["solver_options"] == record["solver"]["options"]
    (row,) = as_json(capfd, "results", "SELECT F, gap, time_verify_s, study FROM runs")
    assert row["F"] == pytest.approx(0.5)
    assert row["study"] is None
    assert main(["results"]) == 0
    assert "alltoall.master" in capfd.readouterr().out
    assert main(["results", "--csv", "SELECT n, F FROM runs"]) == 0
    assert capfd.readouterr().out.splitlines()[0] == "n,F"


def test_solve_prints_a_summary(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "solution.json"
    arguments = ["solve", "alltoall.master", "ring:4", "--method", "highs", "--no-store", "--solution", str(file)]
    assert main(arguments) == 0
    out = capfd.readouterr().out
    for word in ("value", "bound", "gap", "proof", "optimal", "highs", "solve", "closed-form"):
        assert word in out
    assert not Store().records.exists()
    result = as_json(capfd, "check", "alltoall.master", "ring:4", str(file))
    assert result["verified"] is True
    document = json.loads(file.read_text())
    document["values"]["g"]["value"] = [2 * v for v in document["values"]["g"]["value"]]
    file.write_text(json.dumps(document))
    result = as_json(capfd, "check", "alltoall.master", "ring:4", str(file), status=3)
    assert result["verified"] is False
    assert main(["check", "alltoall.master", "ring:4", str(file)]) == 3
    assert capfd.readouterr().err.count("\n") == 1


def test_a_metric_hides_no_line() -> None:
    record = oc.solve("alltoall.master", "ring:4").record
    lines = record_lines(replace(record, metrics={"model": "arc", "ranks": 4}))
    assert lines["model"].startswith("stated in matrix")
    assert (lines["model (metric)"], lines["ranks"]) == ("arc", "4")


def printed_lines(capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    """The lines of a solve by their first word."""
    assert main(["solve", *words, "--no-store"]) == 0
    lines = [line.split(maxsplit=1) for line in capfd.readouterr().out.splitlines()]
    return {name: " ".join(rest[0].split()) for name, *rest in reversed(lines) if rest}


def test_the_value_has_a_meaning_and_a_unit(capfd: pytest.CaptureFixture[str]) -> None:
    lines = printed_lines(capfd, "alltoall.master", "ring:4")
    assert lines["meaning"] == "concurrent flow F [link bandwidths / shard]; T = 1/F"
    lines = printed_lines(capfd, "sipml.ocs-circuits", "servers:n=4,degree=4,traffic=random,seed=1")
    assert lines["meaning"] == "time of the slowest transfer [bytes / circuit bandwidth]"
    assert lines["instance"] == "servers:n=4,degree=4,traffic=random,seed=1 (4 vertices)"


def test_a_bound_of_the_duals_is_not_called_like_an_analytic_bound_of_another_value(
    capfd: pytest.CaptureFixture[str],
) -> None:
    lines = printed_lines(capfd, "topoopt.routing", "servers:n=12,degree=4,traffic=dlrm")
    assert lines["bound"].endswith("(any-lengths of the duals)")
    assert printed_lines(capfd, "alltoall.master", "torus:3x3")["bound"].endswith("(any-lengths)")


@pytest.mark.parametrize("limit", ["1e-9", "600"], ids=["while-building", "while-solving"])
def test_a_limit_without_solution_is_status_3_and_a_row(
    limit: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from opticoll.solvers import model_solve as attempt
    from opticoll.solvers.task import Outcome, Termination

    stopped = Outcome(Termination.TIME_LIMIT, message="no solution within the limit")
    monkeypatch.setattr(attempt, "solve_scaled", lambda *arguments, **options: stopped)
    arguments = ["solve", "alltoall.master", "ring:8", "--method", "highs-simplex", "--time-limit", limit]
    assert main([*arguments, "--json"]) == 3
    out, err = capfd.readouterr()
    record = json.loads(out)
    assert record["termination"] == "time-limit"
    assert record["objective"] is None
    assert err.startswith("opticoll: no solution: ended with time-limit")
    assert err.count("\n") == 1
    assert len(list(Store().names())) == 1


def test_the_forms_that_export_takes_are_those_that_help_and_describe_name(capfd, tmp_path: Path) -> None:
    for name in ("export", "solve"):
        assert main([name, "--help"]) == 0
        (line,) = [line for line in capfd.readouterr().out.splitlines() if "--form" in line]
        assert set(line.split()[1].split("|")) == set(MODEL_FORMS)
    file = str(tmp_path / "model.mps")
    for form in as_json(capfd, "describe", "alltoall.master")[0]["forms"]:
        assert main(["export", "alltoall.master", "ring:4", "--to", file, "--form", form]) == 0
    assert main(["export", "alltoall.link-mcf", "ring:4", "--to", file, "--form", "matrix"]) == 2
    assert "is not stated in 'matrix'; it is in cvxpy, pyomo" in capfd.readouterr().err
    with pytest.raises(oc.BadInput, match="form 'matrix' cannot be changed by hand"):
        oc.model("alltoall.master", "ring:4", form="matrix")


@pytest.mark.parametrize("asked", ["list families", "list topologies", "list instance"])
def test_lists_under_other_names_are_known(capfd: pytest.CaptureFixture[str], asked: str) -> None:
    assert main(asked.split()) == 2
    assert "'instances'" in capfd.readouterr().err


def test_every_json_output_has_a_type_or_is_known_to_have_none() -> None:
    typed = {name.removeprefix("list ") for name in json_outputs.OUTPUTS}
    assert set(commands_with_json(cli)) - typed == json_outputs.UNTYPED


def commands_with_json(command: click.Command, names: tuple[str, ...] = ()) -> Iterator[str]:
    """The commands that take ``--json``."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            one = command.get_command(context, name)
            assert one is not None
            yield from commands_with_json(one, (*names, name))
    if any("--json" in one.opts for one in command.params):
        yield " ".join(names)


def test_a_bound_that_overflows_does_not_deny_a_solution(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "huge.csv").write_text("src,dst,capacity\na,b,1e308\nb,a,1e308\n")
    assert main(["bounds", f"file:{tmp_path / 'huge.csv'}"]) == 0
    out = capfd.readouterr().out
    assert " inf " in out
    assert "no solution" not in out
    empty = as_json(capfd, "bounds", "ring:8")
    show_bounds([{**empty[0], "sense": "lower", "value": float("inf")}])
    assert "no solution" in capfd.readouterr().out


def test_bounds(capfd: pytest.CaptureFixture[str]) -> None:
    rows = as_json(capfd, "bounds", "ring:8")
    for row in rows:
        assert (row["quantity"], row["sense"]) == ("F", "upper")
        assert row["T"] == pytest.approx(1 / row["F"])
    values = [row["value"] for row in rows]
    assert values == sorted(values)
    assert any(row["exact"] and row["F"] == pytest.approx(0.125) for row in rows)
    routing = [row for row in as_json(capfd, "bounds", "servers:n=5,degree=2,traffic=dlrm") if row["F"] is not None]
    assert routing
    assert all(row["T"] is None for row in routing), "the served fraction of a load is not a time"
    named = {row["formulation"] for row in as_json(capfd, "bounds", "lightpath:2x4,lasers=4")}
    assert {"alltoall.master", "lumorph.rounds", "lumorph.min-overlap"} <= named
    assert "optree.tree" in {row["formulation"] for row in as_json(capfd, "bounds", "wdm-ring:n=8,wavelengths=4")}
    assert main(["bounds", "petersen"]) == 0
    assert "moore" in capfd.readouterr().out
    chosen = as_json(capfd, "bounds", "pod:cubes=2", "--formulation", "topology.pod")
    assert {row["name"]: row["T_exact"] for row in chosen} == {"cube-cut": "128/3", "reach": "218/3"}


def test_a_long_word_is_printed_whole(capfd: pytest.CaptureFixture[str]) -> None:
    """Such as the spec of a pod, which is copied to another command; what follows stands below it."""
    spec, words = "1/" * 200, "some words " * 20
    show_fields({"pod": f"{spec}   (from the table)", "T": words}, "title")
    title, whole, note, *rest = capfd.readouterr().out.splitlines()
    assert (title, whole, note) == ("title", f"pod  {spec}", "     (from the table)")
    assert all(len(line) <= 200 for line in rest)
    assert " ".join(rest).split() == ["T", *words.split()]


def test_lists(capfd: pytest.CaptureFixture[str]) -> None:
    by_kind = {kind: as_json(capfd, "list", kind) for kind in ("instances", "formulations", "methods", "studies")}
    assert {"name", "example", "summary", "source"} <= set(by_kind["instances"][0])
    assert "ring" in {row["name"] for row in by_kind["instances"]}
    master = next(row for row in by_kind["formulations"] if row["name"] == "alltoall.master")
    assert master["class"] == "LP"
    assert set(master["forms"]) >= {"pyomo", "cvxpy"}
    assert "smoke" in {row["name"] for row in by_kind["studies"]}
    assert by_kind["methods"]
    everything = as_json(capfd, "list")
    assert {"ring", "alltoall.master", "highs", "smoke"} <= {row["name"] for row in everything}
    assert main(["list"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 7
    for kind in by_kind:
        assert main(["list", kind]) == 0
        assert capfd.readouterr().out


def test_list_solvers_probes_licences_and_shows_whose_package_cannot_be_loaded(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_wheel").mkdir()
    (tmp_path / "broken_wheel/__init__.py").write_text("raise ImportError('libfoo.so: not found')\n")
    plugin = tmp_path / "broken.py"
    plugin.write_text(
        "from opticoll.solvers.adapters.interface import Adapter, Capabilities\n"
        "class One(Adapter):\n"
        "    name, title, package, distribution = 'one', 'One', 'broken_wheel', 'broken'\n"
        "    algorithm, capabilities = 'none', Capabilities(lp=True)\n"
        "    def solve(self, form, request, progress): ...\n"
        "class Other(One):\n"
        "    name = 'other'\n"
        "ADAPTER = [One(), Other()]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    rows = {row["name"]: row for row in as_json(capfd, "list", "solvers", "--plugin", str(plugin))}
    for name in ("one", "other"):
        assert not rows[name]["usable"]
        assert "cannot be loaded (libfoo.so: not found)" in rows[name]["licence"]
    assert rows["highs"]["usable"] is True
    assert rows["highs"]["licence"] == "free"
    assert rows["highs"]["capabilities"]["lp"] is True
    assert rows["highs"]["version"]


def test_empty_results(capfd: pytest.CaptureFixture[str]) -> None:
    assert as_json(capfd, "results") == []
    assert main(["results"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert "no runs" in err
    assert not Store().records.exists()


def test_results_show_what_tells_runs_of_one_name_apart(capfd: pytest.CaptureFixture[str]) -> None:
    def columns(*options: str) -> str:
        assert main(["solve", "alltoall.master", "ring:4", *options]) == 0
        capfd.readouterr()
        assert main(["results"]) == 0
        return capfd.readouterr().out.splitlines()[0]

    assert "limit" not in columns("--time-limit", "50")
    shown = columns("--time-limit", "60")
    assert "time limit s" in shown
    assert "plugins" not in shown
    assert "seed" not in shown
    assert "seed" in columns("--seed", "3")


def test_columns_that_do_not_fit_are_printed_one_below_the_other(capfd: pytest.CaptureFixture[str]) -> None:
    for spec in ("ring:4", "ring:5"):
        assert main(["solve", "alltoall.master", spec]) == 0
    capfd.readouterr()
    assert main(["results", 'SELECT *, 1 AS "[red]x" FROM runs ORDER BY n']) == 0
    first, second = capfd.readouterr().out.split("\n\n")
    for block, spec in ((first, "ring:4"), (second, "ring:5")):
        lines = {line.split()[0]: line.partition(line.split()[0])[2] for line in block.splitlines()}
        assert lines["formulation"].strip() == "alltoall.master"
        assert lines["instance"].strip() == spec
        assert lines["requested_time_limit_s"].strip() == "–"
        assert lines["[red]x"].strip() == "1"
    assert main(["results", "SELECT formulation, instance, n FROM runs ORDER BY n"]) == 0
    table = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert table == [
        ["formulation", "instance", "n"],
        ["alltoall.master", "ring:4", "4"],
        ["alltoall.master", "ring:5", "5"],
    ]


TINY = """
name = "tiny"
formulations = ["alltoall.master"]
instances = ["ring:{4,6}"]
methods = ["highs-simplex"]
"""


def test_study_stopped_by_ctrl_c_says_how_to_resume(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    # The last two are not proven within hours, so the study cannot end before it is stopped.
    file.write_text(TINY.replace('"ring:{4,6}"', '"ring:{4..6}", "genkautz:n={190,200},d=4"'))
    process = subprocess.Popen(
        [sys.executable, "-m", "opticoll", "study", str(file), "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        start_new_session=True,
    )
    end = time.monotonic() + 240
    while not list(Store().names()) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    try:
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=240)
    finally:
        process.kill()  # its workers end with it
    assert process.returncode == 130
    assert err.count("\n") == 1
    assert f"opticoll study {file}" in err
    assert 1 <= len(Store().sql("FROM latest WHERE proof = 'optimal'")) <= 3
    assert len(Store().sql("FROM latest")) == len(list(Store().names()))


def test_errors_in_a_process_of_their_own() -> None:
    done = command("solve", "alltoall.master", "rin:4")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "opticoll: instance 'rin:4': unknown family 'rin'; did you mean 'ring'?\n"


def test_compiled_code_cannot_write_to_stdout(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from opticoll.solvers import solve

    real = solve.solve

    def chatty(*arguments: Any, **options: Any) -> Any:
        print("a banner")
        os.write(1, b"a licence line\n")
        return real(*arguments, **options)

    monkeypatch.setattr(solve, "solve", chatty)
    as_json(capfd, "solve", "alltoall.master", "ring:4", "--method", "highs")


def test_lab_says_what_is_missing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("opticoll.analysis.checkout.CHECKOUT", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["lab"]) == 2
    assert "no folder notebooks" in capfd.readouterr().err


def test_ctrl_c_in_a_solve_keeps_what_has_been_found() -> None:
    arguments = [
        "solve",
        "alltoall.master",
        "genkautz:n=100,d=4+fail=3,seed=0",
        "--method",
        "certified-pdhg",
        "--tol",
        "1e-12",
    ]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "opticoll",
            *arguments,
            "--json",
            "--no-store",
            "--time-limit",
            "600",
            "--log",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "gap" in line:  # a flow and a bound are reported
            break
    try:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()  # its worker ends with it
    assert out, (process.returncode, err)
    record = json.loads(out)
    assert "opticoll: stopping; the incumbent is kept" in err
    assert record["termination"] == "interrupted"
    assert record["verified"]
    assert process.returncode == 0
    assert record["bound"] >= record["objective"]


@pytest.mark.parametrize(("over", "message"), [(1 + 4.44e-16, "0 % above"), (1.25, "25 % above"), (0.5, "-50 % above")])
def test_round_off_is_not_printed_as_a_distance_from_the_bound(over: float, message: str) -> None:
    lines = executed_lines({"ranks": 4, "T_bound": 2.0, "over_bound": over})
    assert f"this one is {message}" in lines["T bound"]


@pytest.mark.parametrize(("loss", "message"), [(2.2e-16, "0 %"), (0.005, "0.5 %")])
@pytest.mark.parametrize("program", [{}, {"target": "msccl", "channels": 1, "multiple_of": 4}])
def test_round_off_is_not_printed_as_a_loss(loss: float, message: str, program: dict[str, object]) -> None:
    times = {"time": 3 * (1 + loss), "fluid_time": 3.0, "simulated_time": 3 * (1 + loss)}
    facts = {"file": "s.xml", "chunks": 1, "loss": loss, "time_by_chunks": {}, "delivers": True, **times, **program}
    assert written_lines(facts)["loss"].split("   ")[0] == message
