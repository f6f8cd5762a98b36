"""Let Ctrl-C, or the stop button of a notebook, end a solve and keep what it has found."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds after a Ctrl-C that ended a solve in which another one ends everything, such as the loop around it.
TWICE_S = 2.0
_last_stop = -math.inf


@contextmanager
def stoppable(notify: Callable[[str], None], *, ended_too: bool = True) -> Iterator[threading.Event]:
    """Let Ctrl-C stop the solve and keep its incumbent, and a second Ctrl-C end it at once.

    Within :data:`TWICE_S` the second one also ends the next solve, if that has begun meanwhile: the loop around both.

    Parameters
    ----------
    notify
        Called with a line when the solve is stopped.
    ended_too
        Whether SIGTERM and SIGHUP stop it as well.
    """
    stop = threading.Event()

    def say(line: str) -> None:
        try:
            notify(line)
        except RuntimeError:  # the signal came while this thread wrote to the same stream: another one waits for it
            threading.Thread(target=notify, args=(line,)).start()

    def interrupted(number: int, frame: object) -> None:
        global _last_stop
        before, _last_stop = _last_stop, time.monotonic()
        if stop.is_set() or _last_stop - before <= TWICE_S:
            raise KeyboardInterrupt
        say(
            f"stopping; the incumbent is kept (Ctrl-C again discards it, and within {TWICE_S:g} s ends what runs "
            "around this solve, such as a loop)"
        )
        stop.set()  # last, since it may end what this thread does at once

    def ended(number: int, frame: object) -> None:
        if not stop.is_set():
            say(f"stopping on {signal.Signals(number).name}; the incumbent is kept")
            stop.set()

    handlers = {signal.SIGINT: interrupted}
    if ended_too:
        handlers[signal.SIGTERM] = ended
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # not under nohup
            handlers[signal.SIGHUP] = ended
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stoppable_here(stop: threading.Event | None) -> Iterator[threading.Event | None]:
    """As :func:`stoppable` in an interactive session; elsewhere, and with an event of the caller's, nothing changes.

    A script ends on Ctrl-C as any other, and so does a session with a handler of its own.
    """
    main = threading.current_thread() is threading.main_thread()
    usual = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if stop is not None or not usual or not interactive():
        yield stop
    else:
        with stoppable(lambda line: print(f"opticoll: {line}", file=sys.stderr), ended_too=False) as event:
            yield event


def interactive() -> bool:
    """Whether somebody types into this process: a Python or IPython prompt, or a notebook."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or _ipython() is not None


def in_notebook() -> bool:
    """Whether the process is the kernel of a notebook."""
    return getattr(_ipython(), "kernel", None) is not None


def _ipython() -> object:
    """The IPython session, if there is one. Nothing is imported."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()
