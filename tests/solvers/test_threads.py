"""Solves in any number of threads, and what opticoll leaves untouched in the process that uses it."""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cvxpy as cp
import pyomo.environ as pyo
import pytest

import opticoll as oc
from opticoll.errors import BadInput
from opticoll.solvers.compile import pyomo_models
from opticoll.solvers.process.worker import ROOT

FIVE: list[tuple[str, str, dict[str, Any]]] = [
    ("alltoall.link-mcf", "ring:{}", {}),
    ("alltoall.master", "ring:{}", {"form": "cvxpy"}),
    ("alltoall.path-mcf", "ring:{}", {"form": "pyomo"}),
    ("topology.design", "servers:n={},degree=2,traffic=alltoall", {}),
    ("lumorph.rounds", "lightpath:1x{},lasers=2,waveguides=2", {}),
]


def cells(count: int) -> list[tuple[str, str, dict[str, Any]]]:
    """So many cells of each of five formulations, of four sizes, in a random order."""
    result = [(name, spec.format(3 + k % 4), options) for k in range(count) for name, spec, options in FIVE]
    random.Random(54).shuffle(result)
    return result


def value(cell: tuple[str, str, dict[str, Any]]) -> float | None:
    formulation, instance, options = cell
    return oc.solve(formulation, instance, **options).value


def in_turn(cells: list[tuple[str, str, dict[str, Any]]]) -> list[float | None]:
    known: dict[str, float | None] = {}
    for cell in cells:
        if str(cell) not in known:
            known[str(cell)] = value(cell)
    return [known[str(cell)] for cell in cells]


@pytest.fixture
def switching():
    """Threads take turns fifty times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 50)
    yield
    sys.setswitchinterval(usual)


# Solves ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, pytest.param(48, marks=pytest.mark.slow)])
def test_four_threads_find_what_is_found_in_turn(count: int, switching: None) -> None:
    chosen = cells(count)  # 48 of five formulations: 60 a thread
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(value, chosen))
    assert found == pytest.approx(in_turn(chosen), rel=1e-9)


def user_model(size: int) -> tuple[float, float]:
    """The optimum of a problem of the user's, n rows x_i <= i, stated in both layers."""
    x = cp.Variable(size, name="x", nonneg=True)
    stated = cp.Problem(cp.Maximize(cp.sum(x)), [x <= range(1, size + 1)])
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(size), domain=pyo.NonNegativeReals)
    model.most = pyo.Constraint(range(size), rule=lambda m, i: m.x[i] <= i + 1)
    model.total = pyo.Objective(expr=pyo.quicksum(model.x.values()), sense=pyo.maximize)
    one, other = oc.solve(stated).value, oc.solve(model).value
    assert one is not None
    assert other is not None
    return one, other


def test_models_of_users_are_solved_in_threads(switching: None) -> None:
    with ThreadPoolExecutor(4) as pool:
        for size, found in zip(range(1, 13), pool.map(user_model, range(1, 13)), strict=True):
            assert found == pytest.approx((size * (size + 1) / 2,) * 2)


def test_studies_and_models_to_change_run_in_threads(tmp_path: Path, switching: None) -> None:
    def study(folder: int) -> list[float]:
        table = oc.study("alltoall.master", ["ring:3", "ring:4", "ring:5"], store=tmp_path / str(folder % 2))
        return list(table["objective"])

    def changed(capacity: int) -> float | None:
        model = oc.model("alltoall.link-mcf", "ring:4")
        return model.update(capacity=float(capacity)).solve().value

    with ThreadPoolExecutor(4) as pool:
        studies = [pool.submit(study, folder) for folder in range(4)]
        models = [pool.submit(changed, capacity) for capacity in range(1, 7)]
        assert [one.result() for one in models] == pytest.approx([0.5 * k for k in range(1, 7)])
        for one in studies:
            assert one.result() == pytest.approx([1.0, 0.5, 1 / 3])


def test_pyomo_logs_what_other_threads_do_while_a_model_is_compiled(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("pyomo.core")
    before = list(logger.filters)
    with caplog.at_level(logging.WARNING), pyomo_models._unlogged(), ThreadPoolExecutor(1) as pool:
        logger.warning("ours")
        pool.submit(logger.warning, "theirs").result()
    logger.warning("afterwards")
    assert caplog.messages == ["theirs", "afterwards"]
    assert logger.filters == before
    model = pyo.ConcreteModel()
    model.x = pyo.Var()
    model.p = pyo.Param(mutable=True)
    model.o = pyo.Objective(expr=model.p * model.x)
    caplog.clear()
    with pytest.raises(BadInput, match="objective 'o'"):
        oc.solve(model)
    assert not caplog.messages


# What is left untouched ------------------------------------------------------------------------------------------

#: Solves for the first time while another thread imports modules after so many seconds.
IMPORTS = """
import importlib, json, sys, threading, time
form, delay = sys.argv[1], float(sys.argv[2])
names = ["scipy.stats", "scipy.spatial", "scipy.integrate", "numpy.testing", "users_own"]
found = {}

def imports():
    time.sleep(delay)
    for name in names:
        module = importlib.import_module(name)
        found[name] = [module.__spec__.name, type(module).__name__, len(vars(module)) > 10, module is sys.modules[name]]

def watch():
    while not ended.is_set():
        for name in names:
            module = sys.modules.get(name)
            if module is not None and (type(module).__name__ != "module" or not vars(module).get("__file__")):
                found[name] = "a stand-in"
                return
        time.sleep(0.001)

ended = threading.Event()
import opticoll as oc
threads = [threading.Thread(target=imports), threading.Thread(target=watch)]
for thread in threads:
    thread.start()
begun = time.monotonic()
value = oc.solve("alltoall.link-mcf", "ring:4", form=form).value
took = time.monotonic() - begun
threads[0].join()
ended.set()
threads[1].join()
print(json.dumps({"value": value, "found": found, "took": took, "names": names}))
"""


def interpreter_prints(code: str, *words: str, folder: Path) -> dict[str, Any]:
    """What a new interpreter prints that runs ``code`` in a folder, whose modules it finds."""
    path = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.path.insert(0, {str(folder)!r})\n"
    command = [sys.executable, "-P", "-c", path + code, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("form", [pytest.param("pyomo", marks=pytest.mark.slow), "cvxpy"])
@pytest.mark.parametrize("delays", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_other_threads_import_the_real_modules_during_the_first_solve(delays: int, form: str, tmp_path: Path) -> None:
    (tmp_path / "users_own.py").write_text("".join(f"x{k} = {k}\n" for k in range(20)))
    took = 0.0
    for number in range(delays):  # over the whole of the first solve, as long as that took last
        answer = interpreter_prints(IMPORTS, form, str(took * number / delays), folder=tmp_path)
        took = answer["took"]
        assert answer["value"] == pytest.approx(0.5)
        assert answer["found"] == {name: [name, "module", True, True] for name in answer["names"]}


#: What a library must leave as it is, before and after the use of opticoll.
STATE = """
import faulthandler, gc, json, locale, logging, os, signal, sys, threading, warnings
import cvxpy, pyomo.core, matplotlib, numpy, scipy.sparse
numbers = [one for one in signal.valid_signals()]
def state():
    return {
        "environment": dict(os.environ), "path": list(sys.path), "folder": os.getcwd(), "argv": list(sys.argv),
        "finders": [str(one) for one in sys.meta_path], "path hooks": len(sys.path_hooks),
        "loader": str(vars(__import__("importlib.machinery").machinery.SourceFileLoader).get("get_code")),
        "hooks": [str(one) for one in (sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook)],
        "signals": {int(one): str(signal.getsignal(one)) for one in numbers},
        "timers": [signal.getitimer(one) for one in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)],
        "locale": locale.setlocale(locale.LC_ALL), "floating point": numpy.geterr(), "printing": str(
            numpy.get_printoptions()), "garbage": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
        "warnings": [str(one) for one in warnings.filters], "recursion": sys.getrecursionlimit(),
        "digits": sys.get_int_max_str_digits(), "plots": dict(matplotlib.rcParams).__repr__(),
        "logging": {name: [logging.getLogger(name).level, str(logging.getLogger(name).handlers),
            logging.getLogger(name).propagate, str(logging.getLogger(name).filters)]
            for name in (None, "opticoll", "pyomo", "pyomo.core", "cvxpy", "numba", "distributed", "matplotlib")},
        "switching": sys.getswitchinterval(), "tracing": [str(sys.gettrace()), str(sys.getprofile())],
        "faults": faulthandler.is_enabled(), "threads": threading.active_count(),
    }
before = state()
import opticoll as oc
for name in oc.__all__:
    getattr(oc, name)
imported = state()
oc.solve("alltoall.link-mcf", "ring:4", form="pyomo", time_limit=60)
oc.solve("alltoall.master", "ring:4", form="cvxpy", memory_limit=60)
try:
    oc.solve("alltoall.link-mcf", "torus:6x6", method="highs", time_limit=0.01)
except Exception as error:
    pass
oc.solve("alltoall.link-mcf", "ring:4", exact=True)
oc.bounds("torus:3x3")
repr(oc.solve("lumorph.rounds", "lightpath:2x2,lasers=2,waveguides=2"))
oc.figure("lumorph-5")
after = state()
differ = {name: [before[name], other[name]] for other in (imported, after) for name in before
          if before[name] != other[name]}
print(json.dumps(differ))
"""


def test_imports_and_solves_leave_the_process_as_it_was(tmp_path: Path) -> None:
    assert interpreter_prints(STATE, folder=tmp_path) == {}
