"""Operations on arrays in compiled functions, which numba keeps on disk; its own are compiled in every process."""

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


@compiled(nogil=True)
def sum_of(values: NDArray[Any]) -> Any:
    """``values.sum()``."""
    result = 0
    for value in values.flat:
        result += value
    return result


@compiled(nogil=True)
def max_of(values: NDArray[Any]) -> Any:
    """``values.max()`` of an array that is not empty and has no NaN."""
    result = values.flat[0]
    for value in values.flat:
        result = max(result, value)
    return result
