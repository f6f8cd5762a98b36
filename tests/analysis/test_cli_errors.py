"""Everything a user can get wrong: one line, the right exit status, an untouched store, no traceback."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from case_families import each

from opticoll.analysis.cli.main import main
from opticoll.analysis.store import Store
from opticoll.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

MASTER = ["solve", "alltoall.master"]
RING = [*MASTER, "ring:4"]

FILES = {
    "words.txt": "this is\nno topology at all\n",
    "empty.txt": "",
    "apart.txt": "0 1 1\n1 0 1\n2 3 1\n3 2 1\n",
    "broken.json": '{"n": 3, ',
    "no_study.toml": "name = ",
    "odd_study.toml": 'name = "odd"\nformulation = ["alltoall.master"]\n',
    "bad_cell.toml": 'name = "x"\nformulations = ["alltoall.master"]\ninstances = ["ring:0"]\nmethods = ["highs"]\n',
    "solution.json": "{}",
}

BAD = {
    "export with an unknown parameter": ["export", *MASTER[1:], "ring:4", "--to", "m.mps", "--set", "foo=1"],
    "unknown family": [*MASTER, "rin:4"],
    "very long spec": [*MASTER, "ring:" + "9" * 5000],
    "disconnected": [*MASTER, "file:apart.txt"],
    "malformed JSON": [*MASTER, "file:broken.json"],
    "no such file": [*MASTER, "file:nowhere.txt"],
    "a folder as file": [*MASTER, "file:."],
    "unknown formulation": ["solve", "alltoall.mastre", "ring:4"],
    "instance before formulation": ["solve", "ring:4", "alltoall.master"],
    "unknown method": [*RING, "--method", "highz"],
    "solver of another class": [*RING, "--method", "cp-sat"],
    "misspelt solver option": [*RING, "--method", "highs", "--set", "mip_rel_gpa=0"],
    "bad parameter value": ["solve", "alltoall.link-mcf", "ring:4", "--set", "printed=maybe"],
    "setting without value": [*RING, "--set", "printed"],
    "setting twice": [*RING, "--set", "a=1", "--set", "a=2"],
    "unknown form": [*RING, "--form", "ampl"],
    "negative time limit": [*RING, "--time-limit", "-5"],
    "zero time limit": [*RING, "--time-limit", "0"],
    "negative memory limit": [*RING, "--memory-limit", "-1"],
    "zero tolerance": [*RING, "--tol", "0"],
    "negative seed": [*RING, "--seed", "-1"],
    "no threads": [*RING, "--threads", "0"],
    "store and no store": [*RING, "--store", "x", "--no-store"],
    "a file as store": [*RING, "--store", "empty.txt"],
    "claims in a file as store": ["claims", "alltoall.out-of-reach", "--store", "empty.txt"],
    "very long name of a solution": [*RING, "--solution", "x" * 300],
    "very long name of a store": [*RING, "--store", "x" * 300],
    "solver option that is ours": [*RING, "--method", "highs-simplex", "--set", "solution_file=x"],
    "solution in no folder": [*RING, "--solution", "nowhere/x.json"],
    "missing argument of solve": ["solve", "alltoall.master"],
    "unknown option": [*RING, "--methd", "highs"],
    "unknown command": ["solv"],
    "unknown kind": ["list", "solver"],
    "check of no file": ["check", "alltoall.master", "ring:4", "nowhere.json"],
    "check of no solution": ["check", "alltoall.master", "ring:4", "solution.json"],
    "export without name": ["export", "alltoall.master", "ring:4"],
    "export to another kind": ["export", "alltoall.master", "ring:4", "--to", "x.txt"],
    "export to no folder": ["export", "alltoall.master", "ring:4", "--to", "nowhere/x.mps"],
    "unknown study": ["study", "smok"],
    "missing study file": ["study", "nowhere.toml"],
    "very long name of a study": ["study", "x" * 300 + ".toml"],
    "broken study": ["study", "no_study.toml"],
    "study with an unknown key": ["study", "odd_study.toml"],
    "study with a bad cell": ["study", "bad_cell.toml"],
    "study with no jobs": ["study", "smoke", "--jobs", "0"],
    "study in two places": ["study", "smoke", "--jobs", "2", "--dask", "tcp://localhost:1"],
    "bounds of nothing": ["bounds", "rin:4"],
    "bounds of an unknown formulation": ["bounds", "ring:4", "--formulation", "x"],
    "unknown claim": ["claims", "no.such.claim"],
    "wrong SQL": ["results", "SELEC 1"],
    "writing SQL": ["results", "COPY runs TO 'out.csv'"],
    "reading SQL": ["results", "SELECT * FROM read_text('empty.txt')"],
    "two formats": ["results", "--json", "--csv"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    for name, text in FILES.items():
        (work / name).write_text(text)
    monkeypatch.chdir(work)
    return work


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*MASTER, "ring:{3..5}"], "braces stand for several instances; give one, or use them in `opticoll sweep`"),
        (["solve", "matrix.program", "mps:m.mps,sens=max"], "unknown option 'sens=max'; known: sense=min, sense=max"),
        (
            [*RING[:1], "alltoall.path-mcf", "ring:4", "--set", "k=1_0"],
            "parameter 'k' must be a whole number, not '1_0'",
        ),
        (["design", "n=6", "degree=2", "--time-limit", "nan"], "design: time_limit: must be a positive number"),
        (["benchmark", "archive"], "No such command 'archive'; known: compare, export, list, run, submit; see"),
        (["benchmark", "submit", "nofile.sol"], "File 'nofile.sol' does not exist"),
        (["benchmark", "submit", "words.txt"], "unknown problem 'words.txt'; `opticoll benchmark list` shows all"),
        (["benchmark", "list", "link-mcf-hypercube"], "did you mean 'link-mcf-hypercube-3'?"),
        (
            ["benchmark", "run", "link-mcf-hypercube-3", "--solver", "my-primal"],
            "is read from a file that OPTICOLL_SOLVERS names",
        ),
    ],
)
def test_errors_name_the_way_out(arguments, message, folder, capfd):
    assert main(arguments) == 2
    err = capfd.readouterr().err
    assert message in err
    assert err.count("\n") == 1


@each("name", BAD)
def test_bad_input(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = BAD[name]
    if arguments[0] in {"solve", "check", "bounds"} and "--no-store" not in arguments:
        arguments = [*arguments, "--json"]
    status = main(arguments)
    out, err = capfd.readouterr()
    assert status == 2
    assert out == ""
    assert err.startswith("opticoll: ")
    assert err.count("\n") == 1
    assert len(err) < 1000
    assert not {"Traceback", "unexpected"} & set(err.replace(":", " ").split())
    assert not Store().records.exists()
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


def test_a_missing_solver_is_status_4(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    from opticoll.solvers.adapters import adapter

    monkeypatch.setattr(type(adapter("scip")), "installed", lambda self: False)
    assert main([*RING, "--method", "scip"]) == 4
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "scip" in err
    assert not Store().records.exists()


def test_an_unexpected_error_is_one_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    from opticoll.solvers import solve

    def fail(*arguments: object, **options: object) -> None:
        message = "two\nlines"
        raise ZeroDivisionError(message)

    monkeypatch.setattr(solve, "solve", fail)
    for value in ("", "0", "false"):
        monkeypatch.setenv("OPTICOLL_DEBUG", value)
        assert main(RING) == 1
        out, err = capfd.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert "ZeroDivisionError: two lines; set OPTICOLL_DEBUG=1" in err
    monkeypatch.setenv("OPTICOLL_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(RING)


#: Ctrl-C when a module is looked for; what loads it may end with an error of its own, as modules in C do.
INTERRUPTED_WHILE_LOADING = """
import importlib.abc, os, signal, sys, time
from opticoll.__main__ import program

class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1.0)
            except KeyboardInterrupt:
                raise ImportError("cannot be loaded") from None

sys.meta_path.insert(0, Interrupting())
sys.exit(program())
"""


def test_a_message_is_one_line_whatever_it_quotes() -> None:
    error = BadInput("no file 'a\nb\r\nc'", option="over", value="x\ny", remedy={"demand": "u\nv"})
    assert str(error) == r"over='x\ny': no file 'a b c' demand='u\nv'"


@pytest.mark.parametrize("module", ["opticoll.analysis.cli.main", "numpy"])
def test_interrupted_while_modules_load_is_one_line(module: str) -> None:
    script = INTERRUPTED_WHILE_LOADING.format(module=module)
    run = subprocess.run([sys.executable, "-c", script, *RING, "--no-store"], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "opticoll: interrupted\n")


def test_interrupted_is_one_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    from opticoll.solvers import solve

    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(solve, "solve", interrupt)
    assert main(RING) == 130
    assert capfd.readouterr().err == "opticoll: interrupted\n"
    assert not Store().records.exists()


def test_a_file_of_one_way_links_is_pointed_out(tmp_path, capfd):
    path = tmp_path / "links.csv"
    path.write_text("src,dst,capacity\na,b,1\nb,c,1\nc,a,2\n")
    for option, noted in (("", True), (",directed=true", False), (",directed=false", False)):
        assert main(["solve", "alltoall.master", f"file:{path}{option}", "--no-store"]) == 0
        assert ("no link of file:" in capfd.readouterr().err) == noted
    path.write_text("src,dst\na,b\nb,a\nb,c\nc,a\n")
    assert main(["solve", "alltoall.master", f"file:{path}", "--no-store"]) == 0
    assert not capfd.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("--time-limit", "10min", "a valid float"),
        ("--memory-limit", "3GB", "a valid float"),
        ("--threads", "two", "a valid integer range"),
        ("--tol", "x", "a valid float"),
    ],
)
def test_a_value_that_is_no_number_is_refused(option, value, wanted, capsys):
    assert main([*RING, option, value]) == 2
    line = f"opticoll: Invalid value for '{option}': '{value}' is not {wanted}; see `opticoll solve --help`\n"
    assert capsys.readouterr().err == line


def test_an_option_without_its_argument_names_the_help_of_its_command(capfd):
    assert main([*RING, "--solution"]) == 2
    line = "opticoll: Option '--solution' requires an argument; see `opticoll solve --help`\n"
    assert capfd.readouterr().err == line
