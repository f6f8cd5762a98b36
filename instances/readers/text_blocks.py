"""Lines of a large file one by one, and the words of many lines at once.

Readers of MPS and LP files read most of a large file by :class:`Words` of a block of lines. They do so only where the
block has the plain form that they know, and read every other block line by line; so only the latter path refuses a
file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

#: Characters of the blocks that are read at once: the largest are tried first, and smaller ones where a line is odd.
MOST_BLOCK, LEAST_BLOCK = 1 << 24, 1 << 16
_BLANKS = "\t\n\r "


class Lines:
    """Lines of a text with their numbers from 1, without their ends; ``number`` is that of the line read last.

    ``refuse`` is called where the content is not UTF-8 text.
    """

    def __init__(self, content: bytes, refuse: Callable[[], NoReturn]) -> None:
        self._content, self._refuse, self._decoded = content, refuse, 0
        self._text, self._at, self._size = "", 0, MOST_BLOCK
        self.number = 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self

    def __next__(self) -> tuple[int, str]:
        end = self._text.find("\n", self._at)
        if end < 0:
            self._load()
            end = self._text.find("\n", self._at)
            if end < 0:
                end = len(self._text)
                if end == self._at:
                    raise StopIteration
        line = self._text[self._at : end]
        self._at = end + 1
        self.number += 1
        return self.number, line.rstrip("\r\n")

    def read_blocks(self, read: Callable[[str, int], str]) -> None:
        """Read blocks of whole lines by ``read``: smaller ones where it reads little, until it does of the smallest.

        ``read`` gets a block and the number of its first line, and returns the lines at its beginning that it has read.
        """
        self._size = min(MOST_BLOCK, 4 * self._size)
        while block := self._block(self._size):
            plain = read(block, self.number + 1)
            self._at += len(plain)
            self.number += plain.count("\n")
            if len(plain) < len(block) // 4:
                if self._size == LEAST_BLOCK:
                    return
                self._size = max(LEAST_BLOCK, self._size // 4)

    def _block(self, size: int) -> str:
        """The whole lines that follow, about so many characters; empty if fewer than :data:`LEAST_BLOCK` are left."""
        if len(self._text) - self._at < size:
            self._load(size)
        end = self._text.rfind("\n", self._at, self._at + size) + 1
        return self._text[self._at : end] if end - self._at >= LEAST_BLOCK // 2 else ""

    def _load(self, size: int = LEAST_BLOCK) -> None:
        """Decode so much more of the content, up to the end of a line."""
        first = self._decoded
        last = self._content.find(b"\n", first + size) + 1 or len(self._content)
        try:
            text = self._content[first:last].decode("utf-8")
        except UnicodeDecodeError:
            self._refuse()
        self._text = self._text[self._at :] + text
        self._at, self._decoded = 0, last


@dataclass
class Words:
    """Words of a block of lines, split at blanks.

    Parameters
    ----------
    first
        Position of the first word of every line, and the number w of words, shape ``(lines + 1,)``.
    codes
        Characters of the block, shape ``(characters,)``.
    starts, ends
        First character of every word, and the one after its last, shape ``(w,)``.
    breaks
        Ends of the lines, shape ``(lines,)``.
    """

    first: NDArray[np.int64]
    codes: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    breaks: NDArray[np.int64]
    _pieces: pa.StringArray

    def indented(self) -> int:
        """Number of lines before the first that does not begin with a blank."""
        begins = self.codes[np.append(0, self.breaks[:-1] + 1)]
        return int(np.append(begins > ord(" "), True).argmax())

    def texts(self, at: NDArray[np.int64]) -> list[str]:
        """The words at some positions."""
        texts: list[str] = self._take(at).to_pylist()
        return texts

    def distinct(self, at: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
        """The different words at some positions in the order of the first of each, and the place of each word there."""
        coded = self._take(at).dictionary_encode()
        places = np.frombuffer(coded.indices.buffers()[1], dtype=np.int32, count=at.size)
        return coded.dictionary.to_pylist(), places.astype(np.int64)

    def numbers(self, at: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Words as finite numbers; None if one is not, or is not written as these formats write numbers."""
        texts = self._take(at)
        try:
            values = np.frombuffer(texts.cast("float64").buffers()[1], dtype=np.float64, count=len(texts))
        except ValueError:  # Python reads more spellings, such as +1
            spelt = texts.to_pylist()
            if "_" in "".join(spelt):
                return None
            try:
                values = np.fromiter(map(float, spelt), dtype=float, count=len(spelt))
            except ValueError:
                return None
        return values if np.isfinite(values).all() else None

    def _take(self, at: NDArray[np.int64]) -> pa.StringArray:
        import pyarrow as pa

        places = np.asarray(2 * at, dtype=np.int64)  # through a buffer: pa.array(places) would import pandas
        return self._pieces.take(pa.Array.from_buffers(pa.int64(), places.size, [None, pa.py_buffer(places)]))


def has_repeated(numbers: NDArray[np.int64]) -> bool:
    """Whether a number occurs twice."""
    ordered = np.sort(numbers)
    return bool((ordered[1:] == ordered[:-1]).any())


def words_of(text: str) -> Words | None:
    """The words of whole lines; None if there are none, or other characters than printed ASCII and blanks."""
    import pyarrow as pa

    if not text.isascii():
        return None
    content = text.encode("ascii")
    codes = np.frombuffer(content, dtype=np.uint8)
    blank = codes <= ord(" ")
    if np.count_nonzero(blank) != sum(map(text.count, _BLANKS)):
        return None
    edges = np.flatnonzero(np.diff(blank, prepend=True))  # the text ends with a blank: a start, its end, and so on
    if not edges.size:
        return None
    starts, ends = edges[::2], edges[1::2]
    breaks = np.flatnonzero(codes == ord("\n"))
    first = np.append(0, np.searchsorted(starts, breaks))
    offsets = pa.py_buffer(edges.astype(np.int32))
    pieces = pa.StringArray.from_buffers(edges.size - 1, offsets, pa.py_buffer(content))  # words and gaps in turn
    return Words(first, codes, starts, ends, breaks, pieces)
