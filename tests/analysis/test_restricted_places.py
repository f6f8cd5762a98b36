"""opticoll where it may write little: a read-only installation, no home folder, no folder for temporary files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from slow_cases import marked

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.store import Store
from opticoll.errors import BadInput

ROOT = Path(__file__).resolve().parents[2]
STUDY = """
name = "tiny"
title = "two cells whose solves call compiled functions"
formulations = ["alltoall.channels"]
instances = ["ring:{4,5}"]
methods = ["auto"]
"""


@pytest.fixture(scope="module")
def read_only(tmp_path_factory):
    """Runs Python on a copy of the package that cannot be written, without a home folder."""
    place = tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "src", place / "site", ignore=shutil.ignore_patterns("*.nb[ci]", "*.egg-info"))
    for folder in [place, *(one for one in place.rglob("*") if one.is_dir())]:
        folder.chmod(0o555)
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if as_root and shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere, and there is no setpriv")
    prefix = ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override"] if as_root else []

    def run(*arguments, **variables):
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "NUMBA_", "OPTICOLL"))
        }
        environment |= {"HOME": str(place / "none"), "PYTHONPATH": str(place / "site"), **variables}
        command = [*prefix, sys.executable, *arguments]
        return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)

    if run("-c", "open('site/opticoll/new', 'x')").returncode == 0:
        pytest.skip("a read-only folder can be written here")
    yield run
    for folder in [place, *(one for one in place.rglob("*") if one.is_dir())]:
        folder.chmod(0o755)


def test_a_study_runs_without_a_cache_of_compiled_functions_and_says_so_once(read_only, tmp_path):
    file = tmp_path / "tiny.toml"
    file.write_text(STUDY, encoding="utf-8")
    done = read_only("-m", "opticoll", "study", str(file), "--store", str(tmp_path / "store"))
    assert done.returncode == 0, done.stderr
    assert "2 done" in done.stdout
    assert done.stderr.count("NUMBA_CACHE_DIR") == 1
    again = read_only("-m", "opticoll", "results", "--store", str(tmp_path / "store"))
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("alltoall.channels") == 2


def test_a_default_store_that_cannot_be_written_is_refused_in_one_line(read_only):
    done = read_only("-m", "opticoll", "solve", "alltoall.link-mcf", "ring:4")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "--store DIR" in done.stderr


def test_a_figure_is_drawn_without_a_home_folder(read_only, tmp_path):
    done = read_only("-m", "opticoll", "figure", "optree-4", "--out", str(tmp_path / "drawn.svg"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "drawn.svg").stat().st_size > 0


@pytest.mark.parametrize("command", ["solve alltoall.link-mcf ring:4 --no-store", "list solvers", "figure optree-4"])
def test_no_folder_for_temporary_files_is_one_line(command):
    code = (
        "import sys, tempfile; tempfile._candidate_tempdir_list = lambda: ['/proc/none'];"
        "from opticoll.analysis.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HOME": "/proc/none"}
    environment = {name: value for name, value in environment.items() if not name.startswith(("MPL", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-c", code, *command.split()], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith("opticoll: ")
    assert "TMPDIR" in last or "MPLCONFIGDIR" in last
    assert "unexpected" not in last


def test_a_plugin_by_a_home_folder_that_does_not_exist_is_refused_in_one_line(monkeypatch):
    from opticoll.errors import BadInput
    from opticoll.plugins import load_plugin

    with pytest.raises(BadInput, match="cannot be read"):
        load_plugin("~no-such-user/mine.py")


def shell(command, **variables):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **variables}
    line = f'opticoll() {{ {sys.executable} -m opticoll "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)


#: Quickly, one of the two for output alone, and all.
CLOSED = {">&-": True, "2>&-": False, ">&- 2>&-": True, "<&- >&- 2>&-": False}


@pytest.mark.parametrize("closed", [marked(closed, slow=slow) for closed, slow in CLOSED.items()])
def test_closed_streams_lose_what_is_printed_and_no_run(closed, tmp_path):
    store, file = tmp_path / "store", tmp_path / "tiny.toml"
    file.write_text(STUDY.replace("{4,5}", "4").replace("alltoall.channels", "alltoall.master"), encoding="utf-8")
    done = shell(f"opticoll study {file} --store {store} {closed}")
    assert (done.returncode, done.stderr) == (0, "")
    assert Store(store).sql("SELECT proof FROM runs")["proof"].tolist() == ["optimal"]


def test_commands_print_where_the_terminal_has_no_unicode(capfd):
    commands = ["bounds ring:4", "list methods", "figure optree-4", "describe alltoall.master --json"]
    code = (
        "import sys; from opticoll.analysis.cli.main import program\n"
        f"def run(command): sys.argv[1:] = command.split(); return program()\nprint([run(one) for one in {commands}])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    *_, document, statuses = done.stdout.splitlines()
    assert statuses == "[0, 0, 0, 0]", done.stderr
    assert done.stdout.isascii()
    capfd.readouterr()
    assert main(commands[-1].split()) == 0
    assert json.loads(document) == json.loads(capfd.readouterr().out)


@pytest.mark.parametrize("command", ["list instances --json", "describe alltoall.master"])
def test_a_reader_that_has_gone_is_one_status_for_every_command(command):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "opticoll", *command.split()],
        stdout=write, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, check=False,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_removed_working_folder_is_named(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    command = 'rmdir . ../gone 2>/dev/null; exec "$0" -m opticoll solve alltoall.master ring:4'
    done = subprocess.run(["sh", "-c", command, sys.executable], cwd=gone, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "opticoll: the working folder has been removed; change to another one\n"


def test_a_removed_working_folder_is_named_in_python(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(BadInput, match="the working folder has been removed; change to another one"):
        oc.solve("alltoall.channels", "ring:5", method="highs")
