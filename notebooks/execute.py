"""Execute the notebooks of this folder and store their outputs without machine-dependent parts.

python notebooks/execute.py [NAME ...]    (default: all)
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
TIMEOUT_S = 600
WIDGET = "application/vnd.jupyter.widget-view+json"


def run(path: Path, working_folder: Path) -> Any:
    """Execute a notebook in a folder and return it with its outputs.

    Raises
    ------
    CellExecutionError
        If a cell raises.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook, timeout=TIMEOUT_S, kernel_name="python3", resources={"metadata": {"path": str(working_folder)}}
    )
    client.execute()
    return notebook


def tidy(notebook: Any) -> Any:
    """Remove parts that differ between runs or need a kernel: times, versions, stderr and widgets."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.clear()
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr" and WIDGET not in o.get("data", {})]
            for output in cell.outputs:
                output.get("metadata", {}).clear()
    return notebook


def main() -> int:
    """Execute and rewrite the given notebooks, or all."""
    import tempfile

    named = [Path(name).resolve() for name in sys.argv[1:]]
    for path in named or sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            notebook = tidy(run(path, Path(folder)))
        nbformat.write(notebook, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
