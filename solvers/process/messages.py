"""Messages between a process and its worker over a socket: pickled objects, followed by the contents of their arrays.

A message begins with the lengths of its parts. The receiver takes it apart as the bytes arrive, so a sender that is
killed within a message costs only that message. Both ends import the same modules; anything whose module only one of
them may find (what plug-ins and main scripts define) is pickled by itself and sent as bytes.
"""

from __future__ import annotations

import pickle
import socket
import struct
import threading
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Every part begins at a multiple of so many bytes, as solvers expect of arrays.
_ALIGNED = 16
_CHUNK = 2**20
#: With it, the end of the other process is an error, also where a user has set SIGPIPE to end a process; not on macOS.
NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)


def send(end: socket.socket, message: object) -> None:
    """Send a message; waits until the receiver has taken all but what the system buffers.

    Raises
    ------
    TypeError
        As :func:`packed`; nothing is sent.
    OSError
        If the receiver is gone.
    """
    for part in packed(message):
        end.sendall(part, NO_SIGNAL)


def packed(message: object) -> list[bytes | memoryview]:
    """The bytes of a message, in parts to be sent one after the other; arrays are not copied.

    Raises
    ------
    TypeError
        If it cannot be pickled.
    """
    arrays: list[pickle.PickleBuffer] = []
    parts: list[bytes | memoryview]
    try:
        parts = [pickle.dumps(message, protocol=5, buffer_callback=arrays.append), *(one.raw() for one in arrays)]
    except Exception as error:  # any type, by the objects
        msg = f"this cannot be sent to another process: {error}"
        raise TypeError(msg) from error
    head = struct.pack(f"!{len(parts) + 1}Q", len(parts), *map(len, parts))
    padded: list[bytes | memoryview] = [
        piece for part in (head, *parts) for piece in (part, bytes(-len(part) % _ALIGNED))
    ]
    return padded if sum(map(len, parts)) > _CHUNK else [b"".join(padded)]


class Inbox:
    """The messages that arrive at one end of a socket; with ``read_only`` arrays, or such as may be changed."""

    def __init__(self, end: socket.socket, *, read_only: bool = False) -> None:
        self._end, self._read_only = end, read_only
        self._received = bytearray()

    def arrived(self) -> list[Any]:
        """The messages that are complete by now; does not wait.

        Raises
        ------
        pickle.UnpicklingError
            If one is malformed.
        """
        result: list[Any] = []
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

    def _first(self) -> Any | None:
        """Take the first message if all of it has arrived."""
        whole = memoryview(self._received)
        if len(whole) < 8:
            return None
        (count,) = struct.unpack_from("!Q", whole)
        if len(whole) < 8 * (count + 1):
            return None
        sizes = struct.unpack_from(f"!{count + 1}Q", whole)
        starts = list(accumulate([size + -size % _ALIGNED for size in (8 * len(sizes), *sizes[1:])]))
        if len(whole) < starts[-1]:
            return None
        self._received = self._received[starts[-1] :]
        pieces = whole.toreadonly() if self._read_only else whole
        first, *arrays = [pieces[start : start + size] for start, size in zip(starts, sizes[1:], strict=False)]
        try:
            return pickle.loads(first, buffers=arrays)  # noqa: S301 - from our own parent or worker
        except Exception as error:  # any type, by the objects
            msg = f"a message between processes is malformed: {error}"
            raise pickle.UnpicklingError(msg) from error


class Report:
    """Sends the progress of a worker, which its parent keeps even if the worker dies.

    New values replace earlier ones of the same name; the others remain, so a new bound keeps the incumbent. May be
    called from any thread of the solver.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._lock = threading.Lock()

    def __call__(self, values: Mapping[str, Any]) -> None:
        """Send ``values``."""
        with self._lock:
            send(self._end, {"report": dict(values)})
