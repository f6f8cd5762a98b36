"""Ten notebooks that teach: a question each, no outputs in git, two exercises with answers; they run to the end."""

import ast
import base64
import importlib.util
import re
from pathlib import Path

import pytest
from light_imports import without_grammars

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
#: What a notebook may import; of opticoll the public interface alone.
IMPORTS = {
    "import opticoll as oc",
    "import cvxpy as cp",
    "import matplotlib.pyplot as plt",
    "import numpy as np",
    "import pandas as pd",
    "import pyomo.environ as pyo",
}
MOST_COLUMNS, MOST_LINES = 88, 5
#: Widest picture [dots]: 7.6 inches of 100 dots, which a page of the site shows almost in full size.
PAGE = 770
#: An absolute path of some machine: its home, its temporary folder, the checkout.
MACHINE = re.compile(
    r"(?<![\w.])/(home|root|tmp|work|Users|var|opt|usr|mnt)/[\w.]|[A-Z]:\\\\|" + re.escape(str(Path.cwd()))
)

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path):
    return without_grammars("nbformat").read(path, as_version=4)


def code_cells(path: Path) -> list[str]:
    """The cells of code as Python, but for files that they write."""
    cells = [cell.source for cell in read(path).cells if cell.cell_type == "code"]
    ours = [cell for cell in cells if not cell.startswith("%%")]
    return ["\n".join(line for line in cell.splitlines() if not line.startswith("%")) for cell in ours]


def executor():
    spec = importlib.util.spec_from_file_location("notebooks_execute", FOLDER / "execute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_ten_notebooks_each_with_a_question():
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"{number:02}" for number in range(1, 11)]
    titles = [read(path).cells[0].source.splitlines()[0] for path in NOTEBOOKS]
    assert all(title.startswith("# ") and title.endswith("?") for title in titles), titles


@every_notebook
def test_git_has_no_outputs(path):
    notebook = read(path)
    without_grammars("nbformat").validate(notebook)
    assert not MACHINE.search(path.read_text(encoding="utf-8"))
    stripped = executor().strip(read(path))
    assert notebook == stripped, f"run python notebooks/execute.py --strip {path.name}"


@every_notebook
def test_lines_fit_a_page(path):
    long = [line for cell in read(path).cells for line in cell.source.splitlines() if len(line) > MOST_COLUMNS]
    assert not long


@every_notebook
def test_imports_are_those_of_a_user(path):
    nodes = [node for cell in code_cells(path) for node in ast.walk(ast.parse(cell))]
    found = [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    assert set(found) <= IMPORTS
    assert "import opticoll as oc" in found
    assert len(found) == len(set(found))
    assert not re.search(r"opticoll\.\w+ import|import opticoll\.", path.read_text(encoding="utf-8"))


@every_notebook
def test_helpers_are_short(path):
    """A class is a model, the subject of its section; a function is a helper."""
    top = [node for cell in code_cells(path) for node in ast.parse(cell).body]
    helpers = [node for node in top if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in helpers if node.end_lineno - node.lineno + 1 > MOST_LINES] == []


@every_notebook
def test_two_exercises_with_folded_answers_end_it(path):
    module = executor()
    cells = read(path).cells
    exercises, *answers = cells[-3:]
    assert re.search(r"^## Exercises$", exercises.source, re.M)
    assert re.findall(r"^(\d)\. ", exercises.source.split("## Exercises")[1], re.M) == ["1", "2"]
    for number, answer in enumerate(answers, start=1):
        assert answer.cell_type == "code"
        assert answer.source.startswith(f"# Answer {number}. ")
        assert answer.metadata == {"tags": [module.ANSWER], "jupyter": module.FOLDED}
    assert not [cell for cell in cells[:-2] if cell.metadata], "only answers are folded"


@every_notebook
def test_links_lead_somewhere(path):
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)#\s]+)\)", text)
    assert not [link for link in links if "://" not in link and not (FOLDER / link).exists()]


def test_an_execution_is_kept_until_the_cells_change(tmp_path, monkeypatch):
    nbformat = without_grammars("nbformat")
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    module = executor()
    runs = []

    def run(path, working_folder):
        runs.append(path)
        assert working_folder.is_dir()
        notebook = module.strip(nbformat.read(path, as_version=4))
        notebook.cells[0].outputs = [
            new_output("stream", name="stderr", text="a line of the log"),
            new_output("display_data", data={module.WIDGET: {}}),
            new_output("display_data", data={"text/plain": "", "text/html": "<pre></pre>"}),
            new_output("execute_result", data={"text/plain": "2"}),
        ]
        return notebook

    monkeypatch.setattr(module, "run", run)
    path = tmp_path / "01-test.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("1 + 1", id="a")]), path)
    first = module.executed(path, tmp_path / "kept")
    assert [output.data for output in first.cells[0].outputs] == [{"text/plain": "2"}]
    assert module.executed(path, tmp_path / "kept") == first
    assert len(runs) == 1
    nbformat.write(new_notebook(cells=[new_code_cell("1 + 2", id="a")]), path)
    module.executed(path, tmp_path / "kept")
    module.executed(path, tmp_path / "kept", anew=True)
    assert len(runs) == 3


def test_strip_removes_what_jupyter_adds():
    without_grammars("nbformat")
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    module = executor()
    cell = new_code_cell("1", execution_count=3, outputs=[new_output("stream", text="1")])
    cell.metadata.update({"execution": {"a": "b"}, "tags": [module.ANSWER], "jupyter": module.FOLDED})
    stripped = module.strip(
        new_notebook(cells=[cell], metadata={"widgets": {}, "language_info": {"name": "python", "version": "3"}})
    )
    assert stripped.cells[0].outputs == []
    assert stripped.cells[0].execution_count is None
    assert set(stripped.cells[0].metadata) == {"tags", "jupyter"}
    assert stripped.metadata["language_info"] == {"name": "python"}


def says_something(cell) -> bool:
    """Whether a cell ends in a table or a drawing of opticoll."""
    last = cell.source.splitlines()[-1]
    return bool(re.search(r"\.style\.|\.style$|\.plot\(|^oc\.plot_topology", last)) and not last.startswith(
        ("plt.", "axes.")
    )


def width_of(output) -> int:
    """Width of a picture on the page: as stated or, of one that matplotlib's own back end draws, its pixels."""
    stated = output.metadata.get("image/png", {})
    return stated.get("width") or int.from_bytes(base64.b64decode(output.data["image/png"])[16:20])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@every_notebook
def test_notebook_runs(path, tmp_path, monkeypatch):
    """No cell raises or logs, tables are styled, and pictures fit the page."""
    store, work = tmp_path / "store", tmp_path / "work"
    store.mkdir()  # a store that is named must be there
    monkeypatch.setenv("OPTICOLL_STORE", str(store))
    work.mkdir()
    done = executor().run(path, work)
    outputs = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    shown = [output for output in outputs if "data" in output]
    silent = [
        cell.source for cell in done.cells if cell.cell_type == "code" and says_something(cell) and not cell.outputs
    ]
    assert not silent, "outputs were lost"
    assert not [output for output in shown if re.search(r">\s*nan\s*<", output.data.get("text/html", ""))]
    assert not [output for output in shown if 'class="dataframe"' in output.data.get("text/html", "")]
    widths = [width_of(output) for output in shown if "image/png" in output.data]
    assert widths
    assert max(widths) <= PAGE
