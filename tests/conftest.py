"""Shared by all tests: a separate store for every test, and the same random examples in every run."""

from __future__ import annotations

import faulthandler
import gc
import os
import shutil
import signal
import sys
import time

import pytest

# Hundreds of interpreters start in a run. They read modules compiled once, while tests are collected, also where Python
# is told not to write them; tests themselves do as they are told. Set before Hypothesis, a plug-in of pytest, is
# imported: pytest rewrites its 88 modules, which costs each process of a run seconds unless the result is written.
_writes_no_bytecode = sys.dont_write_bytecode
sys.dont_write_bytecode = False

from hypothesis import HealthCheck, settings  # noqa: E402
from hypothesis.internal.conjecture import providers  # noqa: E402

# A run of the suite says what has changed in the code: it draws the same examples everywhere and always, and neither
# a busy machine nor an earlier run decides it. `pytest --hypothesis-profile explore` looks for new ones.
_steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, database=None)
settings.register_profile("steady", _steady)
settings.register_profile("explore", _steady, derandomize=False, print_blob=True)
settings.load_profile("steady")


def without_constants_of_modules():
    """Hypothesis also draws constants of the modules that are loaded by then.

    So examples would depend on the tests before, and every process would parse some hundred files of ours.
    """
    nothing = providers.Constants()
    providers._get_local_constants = lambda: nothing


# Modules and collected tests stay to the end: the garbage collector need not look at them again and again.
gc.disable()


def pytest_collection_finish():
    if settings.default.derandomize:
        without_constants_of_modules()
    sys.dont_write_bytecode = _writes_no_bytecode
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


#: A test that hangs ends its process after this time [s] or at most a minute less: it fails, and the run goes on.
HANGS = 960.0
_watch = {"set": -HANGS, "stderr": 2}


def pytest_configure(config):
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        _watch["stderr"] = os.dup(2)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Setting the clock starts a thread and ends the last one; pytest does so at every test, which takes longer."""
    if time.monotonic() - _watch["set"] > 60:
        _watch["set"] = time.monotonic()
        faulthandler.dump_traceback_later(HANGS, exit=True, file=_watch["stderr"])


def pytest_unconfigure():
    faulthandler.cancel_dump_traceback_later()
    os.close(_watch["stderr"])


@pytest.fixture(scope="session", autouse=True)
def shared_workers():
    """Tests of many solvers and methods follow one another and share workers.

    As many idle ones as there are solvers save most starts of interpreters.
    """
    from opticoll.solvers.process import worker

    worker.MOST_IDLE = 12


@pytest.fixture(scope="session", autouse=True)
def take_interrupts():
    """Commands that tests start take SIGINT also where the suite runs in the background, which ignores it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def digits_limit():
    """The stand-alone checkers lift Python's limit on the digits of an integer, as a process of their own may."""
    limit = sys.get_int_max_str_digits()
    yield
    sys.set_int_max_str_digits(limit)


@pytest.fixture(scope="session")
def default_store(tmp_path_factory):
    """The store of commands that name none. One place for all tests, as for workers."""
    folder = tmp_path_factory.mktemp("default") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPTICOLL_STORE", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def private_store(default_store):
    """No test may write to the user's results, or read those of another test; a folder that stays empty is kept."""
    default_store.mkdir(exist_ok=True)
    yield default_store
    if not default_store.is_dir() or any(default_store.iterdir()):
        shutil.rmtree(default_store, ignore_errors=True)


@pytest.fixture(scope="module")
def module_store(default_store):
    """A store for all tests of a module that overrides ``private_store`` by it: they need the same optima."""
    default_store.mkdir(exist_ok=True)
    yield default_store
    shutil.rmtree(default_store, ignore_errors=True)


@pytest.fixture
def store(tmp_path):
    """An empty store of the test."""
    from opticoll.analysis.store import Store

    return Store(tmp_path / "store")


@pytest.fixture(autouse=True)
def forgotten_plugins():
    """Plug-ins that a test loads are gone after it: other tests may follow in the same process."""
    from opticoll import plugins

    before = set(plugins._known)
    yield
    for place in set(plugins._known) - before:
        plugins._forget(plugins._known[place])
