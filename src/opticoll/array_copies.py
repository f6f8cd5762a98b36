"""Copies between arrays in compiled functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.compiled import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray


@compiled(nogil=True)
def copy_into(target: NDArray[Any], source: NDArray[Any]) -> None:
    """``target[:] = source`` for arrays of one shape, whose error message numba would compile for seconds."""
    for place in range(source.size):
        target.flat[place] = source.flat[place]
