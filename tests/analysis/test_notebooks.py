"""Every notebook runs from top to bottom, and its committed outputs are complete and clean."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
#: An absolute path of some machine: its home, its temporary folder, the checkout.
MACHINE = re.compile(
    r"(?<![\w.])/(home|root|tmp|work|Users|var|opt|usr|mnt)/[\w.]|[A-Z]:\\\\|" + re.escape(str(Path.cwd()))
)


#: Show the public interface alone.
PUBLIC = ("01-quick-start", "08-your-own")
#: Run with every change; the others are for `make bench`.
QUICK = ("01-quick-start", "08-your-own")


def read(path: Path):
    import nbformat  # a second of processor time, for these tests alone

    return nbformat.read(path, as_version=4)


def executor():
    place = NOTEBOOKS[0].parent / "execute.py"
    spec = importlib.util.spec_from_file_location("notebooks_execute", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_notebooks():
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"{number:02}" for number in range(1, len(NOTEBOOKS) + 1)]
    assert set(QUICK) <= {path.stem for path in NOTEBOOKS}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=() if p.stem in QUICK else pytest.mark.slow) for p in NOTEBOOKS]
)
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
    import nbformat

    notebook = read(path)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert any(cell.outputs for cell in code)
    assert all(cell.execution_count for cell in code), "run notebooks/execute.py"
    outputs = [output for cell in code for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    assert not [cell for cell in notebook.cells if cell.metadata.get("execution")], "timing noise"
    assert executor().WIDGET not in text, "a widget shows nothing without its kernel"
    assert not re.search(r"\\u001b\[", text), "codes of a terminal"


@pytest.mark.parametrize("path", [p for p in NOTEBOOKS if p.stem not in PUBLIC], ids=lambda path: path.stem)
def test_widgets_run_what_was_called_plainly(path):
    code = "\n".join(c.source for c in read(path).cells if c.cell_type == "code")
    offered = re.findall(r"interact_manual\(\s*(\w+)", code)
    assert bool(offered) == ("ipywidgets" in code)
    for name in offered:
        before = code[: code.index("interact_manual(" + name)]
        assert re.search(rf"(?m)^(\w+ = )?{name}\(", before), name


def imports(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a notebook and of the files that it writes, but for those inside functions."""
    cells = [cell.source for cell in read(path).cells if cell.cell_type == "code"]
    trees = [ast.parse("\n".join(line for line in cell.splitlines() if not line.startswith("%"))) for cell in cells]
    return [node for tree in trees for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_interface_is_enough(name):
    """These notebooks import opticoll and nothing else; modelling layers and solvers inside functions only."""
    path = NOTEBOOKS[0].with_name(f"{name}.ipynb")
    assert {ast.unparse(node) for node in imports(path)} == {"import opticoll as oc"}
    assert not re.search(r"opticoll\.\w+ import|import opticoll\.", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "path", [p for p in NOTEBOOKS if p.stem not in {"08-your-own", "11-questions"}], ids=lambda path: path.stem
)
def test_notebook_defines_no_model(path):
    source = "\n".join(c.source for c in read(path).cells if c.cell_type == "code")
    assert not re.search(r"import (cvxpy|pyomo)|\b(Variable|ConcreteModel|Problem)\(", source)
