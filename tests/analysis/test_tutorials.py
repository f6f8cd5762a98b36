"""Tutorials and guides: their files are written, their Python runs, their commands print what the pages show.

A block ``python`` or ``toml`` whose first line is a comment with a file name is that file; other ``python`` blocks run
one after another. In ``console`` blocks, every line after a command must be in its output, in this order; ``...``
stands for lines that are left out.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from opticoll.analysis.cli.main import main
from opticoll.solvers import auto

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ([\w-]+\.(?:py|toml))\n")


pytestmark = pytest.mark.usefixtures("forgotten_plugins")


def words(text: str) -> list[str]:
    """Lines with single blanks; rounding errors, such as a gap of 2e-14, are all the same."""
    text = re.sub(r"\b\d(\.\d+)?e-(09|[1-9]\d)\b", "0", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def commands(block: str) -> list[tuple[str, list[str]]]:
    """Commands of a console block with the lines that they print."""
    results: list[tuple[str, list[str]]] = []
    for line in block.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            results.append((line[2:], []))
        elif line.strip() not in ("", "..."):
            results[-1][1].extend(words(line))
    return results


def shell() -> dict[str, str]:
    """The environment of a command: the programs of this Python, and this checkout."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src")}


def follow(text: str, read_output) -> int:
    """Carry out a page in the current folder; return the number of its commands and programs."""
    names: dict[str, object] = {}
    count = 0
    for language, block in BLOCK.findall(text):
        file = FILE.match(block)
        if language in ("python", "toml") and file:
            Path(file[1]).write_text(block, encoding="utf-8")
        elif language == "python":
            exec(compile(block, "page", "exec"), names)
            count += 1
        elif language == "console":
            for command, expected in commands(block):
                read_output()
                program, *arguments = shlex.split(command)
                if program == "opticoll" and ">" not in arguments:
                    status = main(arguments)
                    output = read_output()
                else:
                    done = subprocess.run(command, shell=True, env=shell(), capture_output=True, text=True, check=False)
                    status, output = done.returncode, done.stdout
                assert status == 0 or (status == 3 and "infeasible" in output), f"{command}: {output}"
                printed = iter(words(output))
                for line in expected:
                    assert line in printed, f"{command} does not print {line!r} in this order, but\n{output}"
                count += 1
    return count


def pages(folder: str) -> list[Path]:
    return sorted((ROOT / "docs" / folder).glob("*.md"))


def runs(page: Path) -> bool:
    """Whether a page has programs or commands; pages of figures have none."""
    return any(language in ("python", "console") for language, _ in BLOCK.findall(page.read_text(encoding="utf-8")))


def test_a_wrong_page_is_detected(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    def output():
        return capfd.readouterr().out

    page = "```console\n$ opticoll list instances\n{}\n```\n"
    assert follow(page.format("..."), output) == 1
    with pytest.raises(AssertionError, match="does not print"):
        follow(page.format("no such line"), output)
    with pytest.raises(AssertionError, match="opticoll list nothing"):
        follow("```console\n$ opticoll list nothing\n```\n", output)
    with pytest.raises(ZeroDivisionError):
        follow("```python\n1 / 0\n```\n", output)


@pytest.mark.parametrize("page", pages("extend"), ids=lambda page: page.stem)
def test_tutorial(page, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert follow(page.read_text(encoding="utf-8"), lambda: capfd.readouterr().out) > 0


@pytest.mark.slow
def test_the_solver_of_the_tutorial_passes_the_contract(tmp_path):
    for language, block in BLOCK.findall((ROOT / "docs" / "extend" / "solver.md").read_text(encoding="utf-8")):
        if language == "python" and (file := FILE.match(block)):
            (tmp_path / file[1]).write_text(block, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_linprog.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [one for one in [*pages("guide"), *pages("formulations"), ROOT / "README.md"] if runs(one)],
    ids=lambda page: page.stem,
)
def test_guide(page, tmp_path, monkeypatch, capfd):
    """First tries have ten times the time on the clock, so that a busy machine does not decide what a page shows."""
    for name in ("ATTEMPT_S", "SMALL_ATTEMPT_S", "SMALL_PROOF_S"):
        monkeypatch.setattr(auto, name, 10 * getattr(auto, name))
    monkeypatch.chdir(tmp_path)
    for folder in ("docs", "tests"):  # files that the guides read, and the scripts that they run
        (tmp_path / folder).symlink_to(ROOT / folder)
    assert follow(page.read_text(encoding="utf-8"), lambda: capfd.readouterr().out) > 0
