"""The command ``lab``."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(arguments: tuple[str, ...]) -> int:
    """Open JupyterLab on the notebooks.

    ARGUMENTS, such as --no-browser, are passed on to JupyterLab.
    """
    import subprocess
    from importlib.util import find_spec

    from opticoll.analysis.checkout import CHECKOUT

    folder = next((f for f in (CHECKOUT / "notebooks", Path("notebooks")) if f.is_dir()), None)
    if folder is None:
        click.get_current_context().fail(
            f"lab: no folder notebooks in {CHECKOUT} or here; run the command from a checkout of opticoll"
        )
    if find_spec("jupyterlab") is None:
        click.get_current_context().fail("lab: the package jupyterlab is not installed; pip install jupyterlab")
    return subprocess.run([sys.executable, "-m", "jupyterlab", str(folder), *arguments], check=False).returncode
