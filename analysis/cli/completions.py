"""Completion of names in the shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import click


def names_of(*kinds: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """What completes a word by the names of these kinds, as ``opticoll list`` has them; by all names without kinds."""

    def complete(context: click.Context, parameter: click.Parameter, start: str) -> list[str]:
        from opticoll.analysis.catalog import names

        return sorted({row["name"] for row in names(kinds) if row["name"].startswith(start)})

    return complete
