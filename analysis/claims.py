"""The claims ledger: the papers' numbers, what we measure for them, and the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from instances.errors import BadInput
from instances.spec import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Claims by id; each function returns the object that ``opticoll claims --json`` prints. None registered yet.
CLAIMS: dict[str, Callable[[], dict[str, Any]]] = {}


def ledger(identifiers: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The claims asked for, all of them if none is named.

    Raises
    ------
    BadInput
        For an id that is not in the ledger.
    """
    for name in identifiers:
        if name not in CLAIMS:
            hint = nearest(name, CLAIMS) if CLAIMS else "no claims are registered yet"
            msg = f"no claim {name!r}; {hint}"
            raise BadInput(msg)
    return [CLAIMS[name]() for name in (identifiers or CLAIMS)]
