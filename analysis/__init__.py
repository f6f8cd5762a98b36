"""Results: the store, studies, claims, metrics, plots, the report and the command line."""

from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


@cache
def opticoll_version() -> str | None:
    """Version of the installed distribution; of the checkout if none is installed; None if neither is there."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("opticoll")
    except PackageNotFoundError:
        pass
    import tomllib

    try:
        stated = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return None
    return str(stated)
