"""Execute the notebooks of this folder for the site, or strip what git does not keep of them.

python notebooks/execute.py [NAME ...]            execute anew (default: all) into docs/generated/notebooks
python notebooks/execute.py --strip [NAME ...]    remove outputs, and metadata that Jupyter adds, from the notebooks
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat

FOLDER = Path(__file__).resolve().parent
EXECUTED = FOLDER.parent / "docs" / "generated" / "notebooks"
TIMEOUT_S = 600
WIDGET = "application/vnd.jupyter.widget-view+json"
#: Tag of a cell that answers an exercise, and the metadata that fold it in JupyterLab.
ANSWER = "answer"
FOLDED = {"source_hidden": True, "outputs_hidden": True}


def run(path: Path, working_folder: Path) -> Any:
    """Execute a notebook in a folder and return it with its outputs.

    Raises
    ------
    CellExecutionError
        If a cell raises.
    """
    from nbclient import NotebookClient

    notebook = strip(nbformat.read(path, as_version=4))
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        iopub_timeout=60,  # on a busy machine outputs come late
        raise_on_iopub_timeout=True,
        kernel_name="python3",
        resources={"metadata": {"path": str(working_folder)}},
    )
    client.execute()
    return notebook


def strip(notebook: Any) -> Any:
    """Remove outputs, execution counts, and all metadata but the kernel, tags and folding."""
    notebook.metadata = nbformat.NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    for cell in notebook.cells:
        cell.metadata = nbformat.NotebookNode({k: v for k, v in cell.metadata.items() if k in {"tags", "jupyter"}})
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def tidy(notebook: Any) -> Any:
    """Remove outputs that say nothing on a page: widgets, the log, lines of progress."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _joined([output for output in cell.outputs if not _passing(output)])
    return notebook


def _joined(outputs: list[Any]) -> list[Any]:
    """Outputs in which what was printed between those that were removed is one again."""
    result: list[Any] = []
    for output in outputs:
        if result and output.output_type == result[-1].output_type == "stream":
            result[-1].text += output.text
        else:
            result.append(output)
    return result


def _passing(output: Any) -> bool:
    """Whether an output was for the time of the execution alone."""
    if output.get("name") == "stderr" or WIDGET in output.get("data", {}):
        return True
    return output.output_type == "display_data" and not output.data.get("text/plain", "").strip()


def source_hash(path: Path) -> str:
    """What an execution depends on: the cells of a notebook."""
    cells = nbformat.read(path, as_version=4).cells
    text = json.dumps([[cell.cell_type, cell.source, cell.metadata.get("tags", [])] for cell in cells])
    return hashlib.sha256(text.encode()).hexdigest()


def executed(path: Path, folder: Path = EXECUTED, *, anew: bool = False) -> Any:
    """The notebook with its outputs: those kept in ``folder`` if its cells are the same, else executed now."""
    kept, wanted = folder / path.name, source_hash(path)
    if kept.exists() and not anew:
        notebook = nbformat.read(kept, as_version=4)
        if notebook.metadata.get("source") == wanted:
            return notebook
    with tempfile.TemporaryDirectory() as working_folder:
        notebook = tidy(run(path, Path(working_folder)))
    notebook.metadata["source"] = wanted
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, kept)
    return notebook


def main(arguments: list[str]) -> int:
    """Execute or strip the given notebooks, or all."""
    named = [Path(name).resolve() for name in arguments if name != "--strip"]
    for path in named or sorted(FOLDER.glob("*.ipynb")):
        if "--strip" in arguments:
            nbformat.write(strip(nbformat.read(path, as_version=4)), path)
        else:
            executed(path, anew=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
