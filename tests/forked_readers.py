"""HiGHS and SCIP read files in forks of one process that has loaded them, not in a new interpreter for every file.

Every test reads so (``conftest.py``) unless the process of the readers is its subject.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.instances.readers import matrix_reader, second_readings
from opticoll.solvers.isolation import call_isolated

if TYPE_CHECKING:
    from pathlib import Path

#: The product's own way, which starts an interpreter.
own_process = second_readings._run
MODULES = ("highspy", "pyscipopt", "opticoll.instances.readers.matrix_reader", "opticoll.solvers.isolation")


def read_in_fork(folder: Path, files: dict[str, Path], where: str) -> str:
    """As :func:`opticoll.instances.readers.second_readings._run`."""
    tasks = [f"{witness.lower()}={file}" for witness, file in files.items()]
    call_isolated(f"{__name__}:read", {"folder": str(folder), "tasks": tasks}, modules=MODULES)
    return "its process ended"


def read(report: Any, **arguments: Any) -> dict[str, Any]:
    """Read the files; runs in a worker."""
    matrix_reader.main(arguments["folder"], *arguments["tasks"])
    return {}
