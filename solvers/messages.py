"""Messages between a process and its worker over a socket: JSON-able values and named arrays.

A message is a header, whose length comes first, followed by the bytes of the arrays. The receiver takes it apart as the
bytes arrive, so a sender that is killed within a message costs only that message.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]
    Message = tuple[dict[str, Any], dict[str, NDArray[Any]]]

#: The lengths of a header and of the arrays after it; arrays begin at multiples of ``_ALIGNED`` bytes.
_LENGTHS = struct.Struct("!QQ")
_ALIGNED = 16
_CHUNK = 2**20


def send(end: socket.socket, values: Mapping[str, object], arrays: Arrays) -> None:
    """Send a message; waits until the receiver has taken all but what the system buffers.

    Raises
    ------
    TypeError
        As :func:`packed`; nothing is sent.
    OSError
        If the receiver is gone.
    """
    for part in packed(values, arrays):
        end.sendall(part)


def packed(values: Mapping[str, object], arrays: Arrays) -> list[bytes | memoryview]:
    """The bytes of a message, in parts to be sent one after the other.

    Raises
    ------
    TypeError
        For arrays of objects or records.
    """
    described: list[tuple[str, int, str, tuple[int, ...]]] = []
    contents: list[memoryview | bytes] = []
    size = 0
    for name, array in arrays.items():
        whole = np.asarray(array, order="C")
        if whole.dtype.hasobject or whole.dtype.names:
            msg = f"array {name!r} has the type {whole.dtype}; only numbers, booleans and strings can be sent"
            raise TypeError(msg)
        described.append((name, size, whole.dtype.str, whole.shape))
        padding = -whole.nbytes % _ALIGNED
        contents += [whole.reshape(-1).view(np.uint8).data, bytes(padding)]
        size += whole.nbytes + padding
    header = json.dumps({"values": dict(values), "arrays": described}, default=_plain).encode()
    header += b" " * (-len(header) % _ALIGNED)
    parts = [_LENGTHS.pack(len(header), size) + header, *contents]
    return parts if size > _CHUNK else [b"".join(parts)]


def _plain(value: Any) -> Any:
    """Convert values that solvers return to JSON: numpy scalars, paths, enumerations."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value)


class Inbox:
    """The messages that arrive at one end of a socket."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._received = bytearray()

    def arrived(self) -> list[Message]:
        """The messages that are complete by now; does not wait."""
        result: list[Message] = []
        while True:
            try:
                chunk = self._end.recv(_CHUNK, socket.MSG_DONTWAIT)
            except (BlockingIOError, ConnectionError):
                return result
            self._received += chunk
            while (message := self._first()) is not None:
                result.append(message)
            if not chunk:
                return result

    def wait(self) -> Message:
        """Wait for a message.

        Raises
        ------
        EOFError
            If the sender is gone.
        """
        while (message := self._first()) is None:
            chunk = self._end.recv(_CHUNK)
            if not chunk:
                raise EOFError
            self._received += chunk
        return message

    def _first(self) -> Message | None:
        """Take the first message if all of it has arrived."""
        whole = self._received
        if len(whole) < _LENGTHS.size:
            return None
        length, size = _LENGTHS.unpack_from(whole)
        start = _LENGTHS.size + length
        if len(whole) < start + size:
            return None
        self._received = whole[start + size :]
        header = json.loads(whole[_LENGTHS.size : start])
        arrays = {}
        for name, offset, kind, shape in header["arrays"]:
            whole_array = np.frombuffer(whole, np.dtype(kind), math.prod(shape), start + offset)
            arrays[name] = whole_array.reshape(shape)
        return header["values"], arrays


class Report:
    """Sends the progress of a worker, which its parent keeps even if the worker dies.

    New values and arrays replace earlier ones of the same name; the others remain, so a new bound keeps the incumbent.
    May be called from any thread of the solver.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._lock = threading.Lock()

    def __call__(self, values: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """Send ``values`` and ``arrays``."""
        with self._lock:
            send(self._end, {"report": dict(values)}, arrays or {})
