"""The checkout that opticoll runs from, and its version."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def opticoll_version() -> str | None:
    """Version of the installed distribution; None if none is installed."""
    try:
        return version("opticoll")
    except PackageNotFoundError:
        return None
