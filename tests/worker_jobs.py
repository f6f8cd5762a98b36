"""Jobs that tests give to workers. A process imports them anew for each job, so this module imports little."""

from __future__ import annotations

from typing import Any


def by_highs(arguments: dict[str, Any], arrays: Any, report: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Optimum of a file."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(arguments["path"]).name == "kOk"
    assert highs.getLp().sense_ == highspy.ObjSense.kMinimize
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.run()
    return {"value": highs.getInfo().objective_function_value}, {}


def by_scip(arguments: dict[str, Any], arrays: Any, report: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """As :func:`by_highs`."""
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(arguments["path"])
    assert model.getObjectiveSense() == "minimize"
    model.optimize()
    model.writeBestSol(arguments["sol"])
    return {"value": model.getObjVal()}, {}


def by_gurobi(arguments: dict[str, Any], arrays: Any, report: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """As :func:`by_highs`; None beyond the size of the licence of the package."""
    import gurobipy

    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.read(arguments["path"], env) as model:
        if max(model.NumVars, model.NumConstrs) > 2000:
            return {"value": None}, {}
        model.Params.MIPGap = 0
        model.optimize()
        model.write(arguments["sol"])
        return {"value": model.ObjVal}, {}


def solve_many(arguments: dict[str, Any], arrays: Any, report: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Solve several saved forms with one adapter in one process.

    ``arrays`` hold form ``i`` under ``i:NAME``; returns objective and x of each.
    """
    from opticoll.solvers.isolation import solve_here
    from opticoll.solvers.standard_form import assemble
    from opticoll.solvers.task import SolveRequest

    values: dict[str, Any] = {}
    result: dict[str, Any] = {}
    for i in range(arguments["count"]):
        prefix = f"{i}:"
        form = assemble({k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)})
        outcome = solve_here(form, arguments["adapter"], SolveRequest(rel_tol=arguments.get("rel_tol", 1e-7)))
        values[str(i)] = [str(outcome.termination), outcome.objective, outcome.message]
        if outcome.x is not None:
            result[f"x{i}"] = outcome.x
        if outcome.row_duals is not None:
            result[f"y{i}"] = outcome.row_duals
    return values, result


def hold(arguments: Any, arrays: Any, report: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hold so many MB for a moment too short to be watched."""
    import numpy as np

    np.ones(int(arguments["mb"] * 1e6) // 8)
    return {}, {}


def hold_below(arguments: Any, arrays: Any, report: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hold some, and let a worker of its own hold more."""
    import numpy as np

    from opticoll.solvers.isolation import call_isolated

    mine = np.ones(int(arguments["own"] * 1e6) // 8)
    inner = call_isolated(f"{__name__}:hold", arguments)
    return {"inner": inner.peak_memory_mb, "kept": float(mine[0])}, {}
