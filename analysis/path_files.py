"""Weighted paths of solved masters as files: split, written, read back and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from solvers.task import Run


def refuse_early(path: Path, formulation: str) -> None:
    """Refuse before the solve what no paths can be written of.

    Raises
    ------
    BadInput
        For another ending than ``.npz``, or a formulation that is not the master LP.
    """
    from instances.errors import BadInput

    if path.suffix != ".npz":
        msg = f"--paths {path}: weighted paths are written as .npz"
        raise BadInput(msg)
    if formulation != "alltoall.master":
        msg = f"--paths splits the flows of alltoall.master, and not of {formulation}; solve that one"
        raise BadInput(msg)


def write(path: Path, run: Run) -> dict[str, Any]:
    """Split the flow of a verified run, write the paths, read them back and check them.

    Returns
    -------
    ``file``, the numbers of paths, ``F``, and the worst violation of what the file holds.

    Raises
    ------
    BadInput
        If the file cannot be written, or its paths do not hold.
    """
    from formulations.alltoall import weighted_paths
    from instances.errors import BadInput

    assert run.plan is not None
    assert run.values is not None
    topology, data = run.plan.instance, run.plan.data
    paths = weighted_paths.from_flow(data, run.values["g"], str(run.plan.parameters["demand"]))
    try:
        weighted_paths.write(path, topology, paths)
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}"
        raise BadInput(msg) from error
    found = weighted_paths.violations(data, weighted_paths.read(path, data))
    worst = max(found, key=lambda name: found[name])
    if found[worst] > weighted_paths.EXACT:
        msg = f"{path}: the paths violate {worst} by {found[worst]:.3g}; solve to a smaller --tol"
        raise BadInput(msg)
    return {"file": str(path), **paths.summary, "F": paths.F, "violation": found[worst]}
