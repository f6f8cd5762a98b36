"""Rows of an LP file in the plain form that programs write, read many at once.

Plain rows begin with a label on a line of its own or with other words, and are words between blanks::

    row = label ":" {[sign] [number] name} relation [sign] number

in which the sign may touch its number. Everything else is for :mod:`opticoll.instances.readers.lp_reader`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.instances.readers.text_blocks import words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.instances.readers.text_blocks import Words

RELATIONS = {"<": "<", "<=": "<", "=<": "<", ">": ">", ">=": ">", "=>": ">", "=": "="}
#: Relations that some programs read otherwise.
NOTED = frozenset({"=<", "=>"})
#: Kinds of words.
_SIGN, _NUMBER, _RELATION, _LABEL, _NAME = range(5)
#: Which kind may follow which; what depends on more than two words is checked besides.
_FOLLOWS = np.zeros((5, 5), dtype=bool)
for _first, _then in (
    (_SIGN, (_NUMBER, _NAME)),
    (_NUMBER, (_NAME, _LABEL)),
    (_RELATION, (_SIGN, _NUMBER)),
    (_LABEL, (_SIGN, _NUMBER, _NAME)),
    (_NAME, (_SIGN, _NUMBER, _RELATION)),
):
    _FOLLOWS[_first, _then] = True


def _table(characters: str) -> NDArray[np.bool_]:
    table = np.zeros(256, dtype=bool)
    table[list(characters.encode())] = True
    return table


_SIGNS, _DIGITS, _RELATIVE = _table("+-"), _table("0123456789."), _table("<>=")
#: Characters that no plain row has, and ones that a name does not have.
_NEVER, _NOT_IN_NAMES = _table("*/^\\"), _table("+-<>=:")


@dataclass
class PlainRows:
    """Rows of a block of lines.

    Parameters
    ----------
    text
        The lines that hold them.
    labels, label_lines, relations, sides
        Name of every row, the line of its label from 0, ``<``, ``=`` or ``>``, and the number after it.
    names
        The different columns in the order of their first terms.
    name, name_lines, row, values
        Column of every term as position in ``names``, its line from 0, its row and its coefficient.
    """

    text: str
    labels: list[str]
    label_lines: NDArray[np.int64]
    relations: list[str]
    sides: NDArray[np.float64]
    names: list[str]
    name: NDArray[np.int64]
    name_lines: NDArray[np.int64]
    row: NDArray[np.int64]
    values: NDArray[np.float64]


def plain_rows(block: str) -> PlainRows | None:
    """The rows at the beginning of a block, up to the last line that begins with a label; None if they are not plain.

    Names are not checked beyond their characters, and not at all within brackets.
    """
    words = words_of(block)
    if words is None or _NEVER[words.codes].any():
        return None
    kind = _kinds(words)
    begins = words.first[:-1][words.first[:-1] < words.first[1:]]
    heads = begins[kind[begins] == _LABEL]
    side, whole = _sides(kind, _SIGNS[words.codes[words.starts]])
    heads = heads[heads <= whole]  # the row of the last one may go on in the next block
    if heads.size < 2 or heads[0] or heads.size < np.count_nonzero(kind[: heads[-1] + 1] == _LABEL):
        return None
    size = int(heads[-1])
    kind, side, starts = kind[:size], side[:size], words.starts[:size]
    values, relations = words.numbers(np.flatnonzero(kind == _NUMBER)), _relations(words, kind)
    if values is None or relations is None or not _are_names(words.codes, starts, words.ends[:size], kind):
        return None
    factor = np.ones(size)
    factor[kind == _NUMBER] = values
    factor[(kind == _SIGN) & (words.codes[starts] == ord("-"))] = -1.0
    after = np.append(False, kind[:-1] == _SIGN) & (kind == _NUMBER)
    factor[after] *= factor[np.flatnonzero(after) - 1]
    names = np.flatnonzero(kind == _NAME)
    before = kind[names - 1]
    labels = np.flatnonzero(kind == _LABEL)
    line = np.searchsorted(words.breaks, starts)
    distinct, name = words.distinct(names)
    return PlainRows(
        text=block[: int(words.breaks[line[-1]]) + 1],
        labels=[text[:-1] for text in words.texts(labels)],
        label_lines=line[labels],
        relations=relations,
        sides=factor[side],
        names=distinct,
        name=name,
        name_lines=line[names],
        row=np.searchsorted(labels, names) - 1,
        values=np.where((before == _SIGN) | (before == _NUMBER), factor[names - 1], 1.0),
    )


def _kinds(words: Words) -> NDArray[np.int8]:
    """Kind of every word by its first character and its last."""
    initials, alone = words.codes[words.starts], words.ends == words.starts + 1
    signed = _SIGNS[initials]
    kind = np.full(initials.size, _NAME, dtype=np.int8)
    kind[(words.codes[words.ends - 1] == ord(":")) & ~alone] = _LABEL
    kind[_RELATIVE[initials]] = _RELATION
    kind[signed & alone] = _SIGN
    second = words.codes[words.starts + 1]
    kind[_DIGITS[initials] | (signed & ~alone & _DIGITS[second])] = _NUMBER
    return kind


def _relations(words: Words, kind: NDArray[np.int8]) -> list[str] | None:
    spellings, place = words.distinct(np.flatnonzero(kind == _RELATION))
    found = [RELATIONS.get(text, "") if text not in NOTED else "" for text in spellings]
    return [found[k] for k in place.tolist()] if all(found) else None


def _are_names(
    codes: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], kind: NDArray[np.int8]
) -> bool:
    """Whether names and labels have no characters of operators, except the colon that ends a label."""
    places = np.flatnonzero(_NOT_IN_NAMES[codes[: int(ends[-1])]])
    word = np.searchsorted(starts, places, side="right") - 1
    named = (kind[word] == _NAME) | ((kind[word] == _LABEL) & (places < ends[word] - 1))
    return not named.any()


def _sides(kind: NDArray[np.int8], signed: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], int]:
    """Which words are right-hand sides, and the first word that may not be followed by the next one."""
    related = kind == _RELATION
    side = np.zeros(kind.size, dtype=bool)
    side[1:] = related[:-1]
    side[2:] |= related[:-2] & (kind[1:-1] == _SIGN)
    side &= kind != _SIGN
    first, then = kind[:-1], kind[1:]
    allowed = _FOLLOWS[first, then]
    allowed &= ~((first == _SIGN) & signed[1:])  # + -1 x
    allowed &= ~((first == _NAME) & (then == _NUMBER)) | signed[1:]  # x 1 y
    allowed &= (first != _NUMBER) | (side[:-1] == (then == _LABEL))
    allowed &= ~side[1:] | (then == _NUMBER)
    return side, kind.size - 1 if allowed.all() else int(np.argmin(allowed))
