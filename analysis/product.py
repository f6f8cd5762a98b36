"""``ring:{4,8}`` for ``ring:4`` and ``ring:8``: the product syntax of study files."""

from __future__ import annotations

import itertools
import re

from instances.errors import BadSpec

#: More specs than this out of one text are taken for a slip.
MOST = 10_000

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(\d{1,9}))?")


def expand(text: str) -> list[str]:
    """Every spec that ``text`` stands for, in order.

    ``{a,b,c}`` stands for each of its words, ``{4..16}`` and ``{4..16..4}`` for the numbers of a range, both ends
    included; several braces stand for every combination, the last varying fastest.

    Raises
    ------
    BadSpec
        For braces that are not closed or hold nothing, and for too many combinations.
    """
    pieces = _BRACES.split(text)
    if any(brace in piece for piece in pieces[::2] for brace in "{}"):
        msg = f"instance {text!r}: braces do not match; write for example ring:{{4,8,16}}"
        raise BadSpec(msg)
    choices = [[piece] if i % 2 == 0 else _words(piece, text) for i, piece in enumerate(pieces)]
    count = 1
    for words in choices:
        count *= len(words)
    if count > MOST:
        msg = f"instance {text!r}: stands for {count} instances, at most {MOST} are taken"
        raise BadSpec(msg)
    return ["".join(words) for words in itertools.product(*choices)]


def _words(inside: str, text: str) -> list[str]:
    if match := _RANGE.fullmatch(inside.strip()):
        first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
        if step == 0 or last < first or (last - first) // step >= MOST:
            msg = f"instance {text!r}: {{{inside}}} is no range; write {{FIRST..LAST..STEP}} with FIRST <= LAST"
            raise BadSpec(msg)
        return [str(number) for number in range(first, last + 1, step)]
    words = [word.strip() for word in inside.split(",")]
    if not all(words):
        msg = f"instance {text!r}: {{{inside}}} holds an empty word; write for example {{4,8,16}}"
        raise BadSpec(msg)
    return words
