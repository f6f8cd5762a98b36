"""Every notebook runs from top to bottom, and its committed outputs are there and clean."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))
#: An absolute path of some machine: its home, its temporary folder, the checkout.
MACHINE = re.compile(
    r"(?<![\w.])/(home|root|tmp|work|Users|var|opt|usr|mnt)/[\w.]|[A-Z]:\\\\|" + re.escape(str(Path.cwd()))
)


def executor():
    place = NOTEBOOKS[0].parent / "execute.py"
    spec = importlib.util.spec_from_file_location("notebooks_execute", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("OPTICOLL_STORE", str(tmp_path / "store"))
    work = tmp_path / "work"
    work.mkdir()
    done = executor().run(path, work)
    errors = [o for cell in done.cells for o in cell.get("outputs", []) if o.output_type == "error"]
    assert not errors


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_outputs(path):
    text = path.read_text(encoding="utf-8")
    assert not MACHINE.search(text), MACHINE.search(text)
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert any(cell.outputs for cell in code)
    assert all(cell.execution_count for cell in code), "run notebooks/execute.py"
    outputs = [output for cell in code for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    assert not [cell for cell in notebook.cells if cell.metadata.get("execution")], "timing noise"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_defines_no_model(path):
    source = "\n".join(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code")
    assert not re.search(r"import (cvxpy|pyomo)|\b(Variable|ConcreteModel|Problem)\(", source)
