"""What an argument of a combinatorial certificate states, and numbers in the format of its file.

An argument is the ``ARGUMENT`` of a module of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from opticoll.formulations.rounding import decimal
from opticoll.instances.spec import contributed, modules_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from opticoll.types import Json

    #: A certificate file, whose structure :func:`opticoll.solvers.exact.combinatorial_check.read` has checked.
    Document = Mapping[str, Any]
    Values = Mapping[str, NDArray[np.float64]]
    #: A solution, and arguments of which the one that proves the best bound is taken.
    Parts = tuple[dict[str, Any], list[dict[str, Any]]]


def _never(_data: Any) -> bool:
    return False


def unequal(wanted: Mapping[str, Json], stated: Mapping[str, Json]) -> str:
    """Describe how a file's problem differs from the formulation's; empty if they are equal."""
    names = [key for key in {**wanted, **stated} if wanted.get(key) != stated.get(key)]
    return f"the file states another problem: {', '.join(names)} differ" if names else ""


@dataclass(frozen=True)
class Argument:
    """A kind of combinatorial certificates, and the formulations that have them.

    Parameters
    ----------
    kind
        Key of :data:`opticoll.solvers.exact.combinatorial_check.KINDS`.
    serves
        Names of the formulations.
    problem
        ``data -> problem`` in the format of the file.
    parts
        ``(data, values, duals) -> (solution, arguments)``: a verified solution in that format, and arguments to try.
    refuses
        ``data -> whether`` the formulation has no such certificate with these parameters.
    difference
        ``(data, document) -> text``: how a file disagrees with the formulation, empty if it agrees; by default how its
        problem does.
    """

    kind: str
    serves: tuple[str, ...]
    problem: Callable[[Any], dict[str, Json]]
    parts: Callable[[Any, Values, Values], Parts]
    refuses: Callable[[Any], bool] = _never
    difference: Callable[[Any, Document], str] | None = None

    def differs(self, data: Any, document: Document) -> str:
        """How a file disagrees with the formulation; empty if it agrees."""
        if self.difference is not None:
            return self.difference(data, document)
        return unequal(self.problem(data), document["problem"])


@cache
def arguments() -> dict[str, Argument]:
    """The argument of every formulation that has combinatorial certificates."""
    found = contributed(modules_of(__package__ or ""), "ARGUMENT")
    return {name: argument for argument in found for name in argument.serves}


def word(value: Fraction | None) -> int | str | None:
    """A number in the format of a certificate file."""
    if value is None:
        return None
    return int(value) if value.denominator == 1 else str(value)


def numbers(values: Iterable[float]) -> list[int | str | None]:
    """The shortest decimals of floats, in the format of a certificate file."""
    return [word(decimal(float(value))) for value in values]


def pairs_of(first: NDArray[np.int64], *others: Any) -> list[list[Any]]:
    """Transpose columns into a list of rows."""
    return [list(row) for row in zip(first.tolist(), *others, strict=True)]
