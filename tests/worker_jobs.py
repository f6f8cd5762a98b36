"""Jobs that tests give to workers. A process imports them anew for each job, so this module imports little."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

CALLS: list[str] = []


def by_highs(report: Any, **arguments: Any) -> dict[str, Any]:
    """Optimum of a file."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(arguments["path"]).name == "kOk"
    assert highs.getLp().sense_ == highspy.ObjSense.kMinimize
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.run()
    return {"value": highs.getInfo().objective_function_value}


def by_scip(report: Any, **arguments: Any) -> dict[str, Any]:
    """As :func:`by_highs`."""
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(arguments["path"])
    assert model.getObjectiveSense() == "minimize"
    model.optimize()
    model.writeBestSol(arguments["sol"])
    return {"value": model.getObjVal()}


def by_gurobi(report: Any, **arguments: Any) -> dict[str, Any]:
    """As :func:`by_highs`; None beyond the size of the licence of the package."""
    import gurobipy

    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.read(arguments["path"], env) as model:
        if max(model.NumVars, model.NumConstrs) > 2000:
            return {"value": None}
        model.Params.MIPGap = 0
        model.optimize()
        model.write(arguments["sol"])
        return {"value": model.ObjVal}


def solve_many(report: Any, **arguments: Any) -> list[Any]:
    """The outcomes of several forms with one adapter in one process."""
    from opticoll.solvers.process.isolation import solve_here
    from opticoll.solvers.task import SolveRequest

    request = SolveRequest(rel_tol=arguments.get("rel_tol", 1e-7))
    return [solve_here(form, arguments["adapter"], request) for form in arguments["forms"]]


def hold(report: Any, **arguments: Any) -> dict[str, Any]:
    """Hold so many MB for a moment too short to be watched."""
    import numpy as np

    np.ones(int(arguments["mb"] * 1e6) // 8)
    return {}


def hold_below(report: Any, **arguments: Any) -> dict[str, Any]:
    """Hold some, and let a worker of its own hold more."""
    import numpy as np

    from opticoll.solvers.process.isolation import call_isolated

    mine = np.ones(int(arguments["own"] * 1e6) // 8)
    inner = call_isolated(f"{__name__}:hold", arguments)
    return {"inner": inner.peak_memory_mb, "kept": float(mine[0])}


def double(report: Any, **arguments: Any) -> dict[str, Any]:
    return {"twice": 2 * arguments["value"], "pid": os.getpid(), "x": 2 * arguments["x"]}


def environment(report: Any, **arguments: Any) -> dict[str, Any]:
    return {"threads": os.environ["OMP_NUM_THREADS"]}


def folder(report: Any, **arguments: Any) -> dict[str, Any]:
    return {"folder": str(Path.cwd())}


def importing(report: Any, **arguments: Any) -> dict[str, Any]:
    before = sorted(set(arguments["modules"]) & set(sys.modules))
    for name in arguments["modules"]:
        import_module(name)
    return {"before": before}


def misbehave(report: Any, **arguments: Any) -> dict[str, Any]:
    import numpy as np

    report({"bound": 9.0})
    report({"objective": 5.0, "x": np.arange(3.0)})
    report({"bound": 8.0})
    how = arguments["how"]
    if how == "state":
        CALLS.append(how)
        return {"calls": len(CALLS), "pid": os.getpid()}
    if how == "thread":
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        return {"pid": os.getpid()}
    if how == "daemon":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        return {"daemon": child.pid}
    if how == "abort":
        print("last words", flush=True)
        os.abort()
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(7)
    if how == "spin":
        from opticoll.solvers.process.isolation import timer

        with timer(signal.ITIMER_PROF, 0.1):
            while True:
                pass
    if how == "raise":
        raise ValueError(how)
    if how == "grow":
        hog = []
        while True:
            hog.append(np.ones(2_000_000))
            time.sleep(0.01)
    if how == "leap":
        np.ones(40_000_000_000)
    if how == "child grows":
        code = "import time, numpy as np\nhog = np.ones(60_000_000)\ntime.sleep(600)"
        subprocess.run([sys.executable, "-c", code], check=True)
    if how == "typed":
        from opticoll.errors import SolverUnavailable

        raise SolverUnavailable(how, remedy={"method": "highs"})
    if how == "typed by a user":
        from opticoll.errors import BadOption

        class OwnError(BadOption):
            pass

        raise OwnError(how, option="jobs", value=2)
    time.sleep(600)
    return {}


def nest(report: Any, **arguments: Any) -> dict[str, Any]:
    from opticoll.solvers.process.isolation import call_isolated

    def relay(values: dict[str, Any]) -> None:
        report({"inner": values["pid"], "outer": os.getpid()})

    answer = call_isolated(f"{__name__}:tell_and_sleep", {"seconds": arguments["seconds"]}, on_progress=relay)
    return {"inner": answer.values}


def tell_and_sleep(report: Any, **arguments: Any) -> dict[str, Any]:
    report({"pid": os.getpid()})
    time.sleep(arguments["seconds"])
    return {"pid": os.getpid()}


def scratch_and_hang(report: Any, **arguments: Any) -> dict[str, Any]:
    from opticoll import shared_files

    with shared_files.scratch_folder() as folder:
        (folder / "file").write_text("content")
        report({"folder": str(folder)})
        time.sleep(600)
    return {}


def write_to_an_argument(report: Any, **arguments: Any) -> dict[str, Any]:
    arguments["x"][0] = 1.0
    return {}


def return_a_function(report: Any, **arguments: Any) -> dict[str, Any]:
    return {"x": lambda: None}


def fork_and_answer(report: Any, **arguments: Any) -> dict[str, Any]:
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    return {"child": child}


def surroundings(report: Any, **arguments: Any) -> dict[str, Any]:
    """The environment, the session, the files and a signal's handler of this process."""
    try:
        os.fstat(arguments["file"])
        known = True
    except OSError:
        known = False
    variables = {"later": os.environ.get("SET_LATER"), "threads": os.environ.get("OMP_NUM_THREADS")}
    alarmed = callable(signal.getsignal(signal.SIGALRM))
    return {**variables, "session": os.getsid(0), "open": known, "alarmed": alarmed}
