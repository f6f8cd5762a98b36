"""Places of labels beside the vertices of a drawing, where they cover neither vertices nor each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from opticoll.analysis.plots.style import label

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    F64 = NDArray[np.float64]

#: Directions tried around the one away from the middle, in turns of a circle.
_TURNS = (0.0, 0.125, -0.125, 0.25, -0.25, 0.375, -0.375, 0.5)
#: Letters of a name that is shortened, from the most to the least.
_LENGTHS = (18, 10, 6)
#: Letters of a shortened name, and smallest size [points], in a row.
_SHORT, _SMALLEST = 8, 5.5
#: Width and height of a letter over the font size.
_WIDE, _HIGH = 0.58, 1.15


@dataclass(frozen=True)
class Box:
    """A rectangle on the page [points]."""

    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def around(cls, x: float, y: float, width: float, height: float) -> Box:
        """The rectangle of a size around a point."""
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    def meets(self, other: Box) -> bool:
        """Whether two rectangles overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.bottom < other.top and other.bottom < self.top


@dataclass(frozen=True)
class Label:
    """A label of a vertex: its text, font size [points], and offset of its middle from the vertex [points].

    ``upright`` texts are turned by a quarter, to be read from below.
    """

    vertex: int
    text: str
    size: float
    offset: tuple[float, float]
    upright: bool = False


def text_size(text: str, size: float) -> tuple[float, float]:
    """Width and height of a line of text, about [points]."""
    return _WIDE * size * max(len(text), 1), _HIGH * size


def place_labels(
    place: F64, names: Sequence[str], taken: Sequence[Box], reach: float, sizes: Sequence[float]
) -> Iterator[Label]:
    """The labels that fit, in the largest size in which all do, shortened if need be; of the last try, those that fit.

    Parameters
    ----------
    place
        Vertices on the page [points], ``(n, 2)``.
    names
        A name per vertex.
    taken
        Rectangles that stay free: those of the vertices.
    reach
        Distance of a label from its vertex [points].
    sizes
        Font sizes to try, from the largest [points].
    """
    found: list[Label] = []
    for length in _LENGTHS:
        for size in sizes:
            found = _placed(place, [label(name, length) for name in names], taken, reach, size)
            if len(found) == sum(map(bool, names)):
                yield from found
                return
    yield from found


def _placed(place: F64, names: Sequence[str], taken: Sequence[Box], reach: float, size: float) -> list[Label]:
    boxes, found = list(taken), []
    middle = place.mean(axis=0)
    for vertex, (at, name) in enumerate(zip(place, names, strict=True)):
        away = math.atan2(at[1] - middle[1], at[0] - middle[0]) if (at != middle).any() else math.pi / 2
        width, height = text_size(name, size)
        for turn in _TURNS:
            angle = away + 2 * math.pi * turn
            x, y = math.cos(angle), math.sin(angle)
            offset = (x * (reach + width / 2), y * (reach + height / 2))
            box = Box.around(at[0] + offset[0], at[1] + offset[1], width, height)
            if name and not any(box.meets(other) for other in boxes):
                boxes.append(box)
                found.append(Label(vertex, name, size, offset))
                break
    return found


def row_labels(
    place: F64, names: Sequence[str], level: NDArray[np.int64], reach: float, sizes: Sequence[float]
) -> Iterator[Label]:
    """Labels of vertices in rows: below the lowest row, above the others, in one size a row; none where none fits.

    Names that are too long side by side are upright in the lowest row, and shortened in the others.

    Parameters
    ----------
    place, names, reach, sizes
        As for :func:`place_labels`.
    level
        Row of every vertex, ``(n,)``; 0 is the lowest.
    """
    for row in sorted(set(level.tolist())):
        members = [v for v in range(len(names)) if level[v] == row and names[v]]
        across = sorted(float(place[v, 0]) for v in members)
        room = min((right - left for left, right in pairwise(across)), default=math.inf)
        texts = {v: label(names[v], _LENGTHS[0]) for v in members}
        size, upright = _largest(texts, room, (*sizes, _SMALLEST)), False
        if size is None and row == 0:
            size, upright = next((one for one in sizes if text_size("", one)[1] + 1 <= room), None), True
        elif size is None:
            texts = {v: label(names[v], _SHORT) for v in members}
            size = _largest(texts, room, (*sizes, _SMALLEST))
        if size is None:
            continue
        for v, text in texts.items():
            wide, high = text_size(text, size)
            away = reach + (wide if upright else high) / 2
            yield Label(v, text, size, (0.0, away if row else -away), upright)


def _largest(texts: Mapping[int, str], room: float, sizes: Sequence[float]) -> float | None:
    """The largest size in which every text is narrower than the room; None if there is none."""
    longest = max(texts.values(), key=len, default="")
    return next((size for size in sizes if text_size(longest, size)[0] + 1 <= room), None)
