r"""How solvers compare: pure functions of the runs of a benchmark, no run counted for more than it showed.

:func:`verdicts` first says of every run what it is: ``solved``, ``inexact``, ``limit``, ``memory``, ``failed``,
``wrong`` or ``unavailable``. Only a solved run has a time. All others are *censored*: known to be slower than their
limit, or to have given nothing; no function here takes their seconds for a time. What could not be tried at all (no
package, no licence for the size, a class of problems that the solver does not take) is ``unavailable`` and no
slowness: a solver with such a gap is compared only over problems that it ran on. The times are ``seconds``: those of
the solver inside its worker, without building, compiling, the worker's start and our own checks.

Linear programs are solved to different accuracies, so their runs count as solved at an accuracy eps only if the
residuals of the optimality conditions that we recomputed (:func:`opticoll.solvers.verify.kkt`) are all at most eps.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from opticoll.analysis.benchmark.benchmark_set import Best

#: Shift of the geometric mean [s]: below it, times hardly count.
SHIFT_S = 1.0
#: A censored run counts as this many limits in penalised means (PAR-10).
PENALTY = 10.0
#: Accuracies that linear programs are compared at.
ACCURACIES = (1e-4, 1e-6, 1e-9)
#: An answer claimed optimal is wrong if it misses the proven value, or feasibility, by more (relative).
WRONG = 1e-4
#: A verdict for every run.
VERDICTS = ("solved", "inexact", "limit", "memory", "failed", "wrong", "unavailable")

#: Ended by the solver itself without the claim of an optimum.
_ENDED = ("iteration-limit", "tolerance-not-reached")


def verdicts(runs: pd.DataFrame, best: Mapping[str, Best], accuracy: float = 1e-6) -> pd.DataFrame:
    """Say of every run what it showed.

    Parameters
    ----------
    runs
        Rows of the view ``latest`` with ``problem_name`` and ``linear``, see
        :func:`opticoll.analysis.benchmark.benchmark_set.select`.
    best
        Proven values by the problem's name; where one is missing, the best verified value of the runs and the
        best bound among them stand in.
    accuracy
        What a linear program must be solved to; an integer program's value must be within 1e-6 of the best.

    Returns
    -------
    DataFrame
        A row for every run: ``problem``, ``solver``, ``tol`` (asked), ``linear``, ``verdict``, ``seconds`` (NaN unless
        solved), ``limit_s``, ``build_s``, ``compile_s``, ``residual`` (worst KKT residual; NaN if unknown), ``value``
        (verified, else NaN), ``best`` (best known value), ``best_gap`` (relative distance of the value to it),
        ``certified_gap``, ``integral`` (primal integral [s]; NaN if unknown).

        ``wrong``: claimed optimal, and our check refuses the values by more than 1e-4, or the value is worse than
        the best known or better than the best bound by more than 1e-4; or a problem with a verified value called
        infeasible, one with a bound called unbounded. ``inexact``: ended, not wrong, but not to the accuracy.
        ``limit``: stopped by the time limit. ``memory``: by the limit of memory, or refused since it could not fit.
        ``unavailable``: never tried.

        A linear program counts by the residuals it reached, whether its tolerance was reached or not; only a run
        cut off by the time limit never counts as solved, since when it reached what it has is not known.
        The primal integral of an integer program without a verified value is the whole limit; where the solver told
        no incumbent, its answer counts as found when it ended.
    """
    references = {name: _reference(here, best.get(str(name))) for name, here in runs.groupby("problem_name")}
    return pd.DataFrame(
        [_verdict(row, *references[row["problem_name"]], accuracy) for row in runs.to_dict("records")],
        columns=["problem", "solver", "tol", "linear",
                 "verdict", "seconds", "limit_s", "build_s", "compile_s", "residual",
                 "value", "best", "best_gap", "certified_gap", "integral"],
    )  # fmt: skip


def _reference(here: pd.DataFrame, known: Best | None) -> tuple[float, float]:
    """Best known value and best bound of a problem, from its runs and what is known of it; NaN where there is none."""
    sign = 1.0 if here["sense"].iloc[0] == "min" else -1.0
    values = list(here.loc[here["verified"].astype("boolean").fillna(value=False), "objective"].dropna())
    bounds = list(here["bound"].dropna())
    if known is not None:
        values += [] if known.value is None else [known.value]
        bounds += [] if known.bound is None else [known.bound]
    value = sign * min((sign * v for v in values), default=np.nan)
    return value, sign * max((sign * b for b in bounds), default=np.nan)


def _verdict(row: Mapping[Any, Any], best: float, bound: float, accuracy: float) -> dict[str, Any]:
    linear = bool(row["linear"])
    verified = row["verified"] is True or row["verified"] is np.True_
    objective = _number(row["objective"])
    residuals = [_number(row[f"kkt_{part}"]) for part in ("primal", "dual", "gap")]
    residual = float(np.max(residuals))  # NaN if one is unknown
    flip = 1.0 if row["sense"] == "min" else -1.0
    worse = flip * _relative(objective - best, best)
    better = flip * _relative(bound - objective, bound)
    told = json.loads(row["violations"]) if isinstance(row["violations"], str) else {}
    violations = [_number(v) for v in told.values()]
    violation = float(np.max(violations, initial=0.0)) if not np.isnan(violations).any() else np.inf
    word = str(row["termination"])
    missed = not np.isfinite(objective) or violation > WRONG or worse > WRONG or better > WRONG
    refuting = {"infeasible": best, "unbounded": bound, "infeasible-or-unbounded": best + bound}
    if word == "unavailable":
        verdict = "unavailable"
    elif word == "time-limit":
        verdict = "limit"
    elif word in ("memory-limit", "refused"):
        verdict = "memory"
    elif np.isfinite(refuting.get(word, np.nan)):
        verdict = "wrong"
    elif word in _ENDED:
        verdict = "solved" if linear and residual <= accuracy and not missed else "inexact"
    elif word != "optimal":
        verdict = "failed"
    elif missed:
        verdict = "wrong"
    elif linear:
        verdict = "solved" if residual <= accuracy else "inexact"
    else:
        verdict = "solved" if verified and not worse > 1e-6 else "inexact"
    seconds = _number(row["time_solver_s"])
    limit = _number(row["requested_time_limit_s"])
    integral = np.nan
    if not linear and verdict != "unavailable" and np.isfinite(best):
        trail = _trail(row["incumbents"]) if verified else []
        if verified and (verdict == "solved" or not trail):
            trail.append((seconds if seconds < limit else limit, objective))
        integral = primal_integral(trail, best, limit)
    return {
        "problem": row["problem_name"], "solver": row["method"], "tol": _number(row["requested_tol"]), "linear": linear,
        "verdict": verdict,
        "seconds": seconds if verdict == "solved" else np.nan, "limit_s": limit,
        "build_s": _number(row["time_build_s"]), "compile_s": _number(row["time_compile_s"]), "residual": residual,
        "value": objective if verified else np.nan, "best": best,
        "best_gap": max(worse, 0.0) if verified else np.nan, "certified_gap": _number(row["gap"]),
        "integral": integral,
    }  # fmt: skip


def _relative(difference: float, size: float) -> float:
    """Relative to the size; of a size that is nothing but round-off, the difference itself."""
    return difference / abs(size) if abs(size) > 1e-9 else difference


def _number(value: Any) -> float:
    return float("nan") if value is None or value is pd.NA else float(value)


def _trail(pairs: Any) -> list[tuple[float, float]]:
    if pairs is None or np.ndim(pairs) == 0:
        return []
    return [(float(pair[0]), float(pair[1])) for pair in pairs]


def one_run_each(table: pd.DataFrame) -> pd.DataFrame:
    """One run of every solver on every problem, where it ran to several tolerances.

    The fastest that is solved; where none is, the one to the tightest tolerance.
    """
    solved = (table["verdict"] == "solved").rename("_solved")
    ordered = table.assign(_solved=~solved, _time=table["seconds"].fillna(0.0)).sort_values(
        ["_solved", "_time", "tol"], kind="stable"
    )
    kept = ordered.drop_duplicates(["problem", "solver"]).drop(columns=["_solved", "_time"])
    return kept.sort_values(["problem", "solver"], ignore_index=True)


# means --------------------------------------------------------------------------------------------------------------


def shifted_geometric_mean(seconds: ArrayLike, shift: float = SHIFT_S) -> float:
    r"""Take :math:`(\prod_i (t_i + s))^{1/n} - s`; NaN of nothing.

    Raises
    ------
    ValueError
        If a time is not a number: a censored run has none.
    """
    values = np.asarray(seconds, dtype=float)
    if np.isnan(values).any():
        msg = "a censored run has no time; penalise it or leave it out"
        raise ValueError(msg)
    return float(np.exp(np.log(values + shift).mean()) - shift) if values.size else float("nan")


def penalised(table: pd.DataFrame, penalty: float = PENALTY) -> pd.Series[float]:
    """Give the seconds of every run, censored ones as ``penalty`` times their limit (PAR-k)."""
    return table["seconds"].where(table["verdict"] == "solved", penalty * table["limit_s"]).astype(float)


def commonly_solved(table: pd.DataFrame, solvers: Sequence[str]) -> list[str]:
    """Problems that every one of the solvers solved."""
    solved = table[(table["verdict"] == "solved") & table["solver"].isin(solvers)]
    counts = solved.groupby("problem")["solver"].nunique()
    return sorted(counts.index[counts == len(set(solvers))]) if len(solvers) else []


def run_by_all(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the problems that every solver of the table ran on, where any two of them can be compared."""
    ran = table[table["verdict"] != "unavailable"]
    counts = ran.groupby("problem")["solver"].nunique()
    return ran[ran["problem"].isin(counts.index[counts == ran["solver"].nunique()])].reset_index(drop=True)


def attempted_all(table: pd.DataFrame) -> list[str]:
    """Solvers that ran on every problem of the table; the others cannot be compared over all of them."""
    ran = table[table["verdict"] != "unavailable"].groupby("solver")["problem"].nunique()
    return sorted(ran.index[ran == table["problem"].nunique()])


def summary(table: pd.DataFrame, shift: float = SHIFT_S, penalty: float = PENALTY) -> pd.DataFrame:
    """Compare solvers over one class of problems.

    Parameters
    ----------
    table
        Verdicts, one run for every problem and solver.

    Returns
    -------
    DataFrame
        A row for every solver that ran, the most solved first: ``problems`` (ran on), the count of every verdict,
        ``mean_penalised_s`` (shifted geometric mean, a censored run at ``penalty`` limits; NaN unless it ran on
        every problem), ``mean_common_s`` over the ``common`` problems that all who ran on every problem and solved
        one solved (NaN for those who did not run on all), ``mean_solved_s`` over its own solved ones (no
        comparison: of other problems for everyone), ``median_integral_s``.
    """
    everywhere = attempted_all(table)
    solved = table[table["verdict"] == "solved"]
    compared = [name for name in everywhere if (solved["solver"] == name).any()]
    common = commonly_solved(table, compared)
    rows = []
    for solver, here in table[table["verdict"] != "unavailable"].groupby("solver"):
        mine = here[here["verdict"] == "solved"]
        shared = mine[mine["problem"].isin(common)]["seconds"]
        rows.append(
            {
                "solver": solver,
                "problems": len(here),
                **{word: int((here["verdict"] == word).sum()) for word in VERDICTS[:-1]},
                "mean_penalised_s": shifted_geometric_mean(penalised(here, penalty), shift)
                if solver in everywhere else np.nan,
                "mean_common_s": shifted_geometric_mean(shared, shift) if solver in compared else np.nan,
                "common": len(common),
                "mean_solved_s": shifted_geometric_mean(mine["seconds"], shift),
                "median_integral_s": float(here["integral"].median()) if here["integral"].notna().any() else np.nan,
            }
        )  # fmt: skip
    found = pd.DataFrame(rows)
    return found if found.empty else found.sort_values(["solved", "mean_penalised_s", "solver"],
                                                       ascending=[False, True, True], ignore_index=True)  # fmt: skip


def performance_profile(table: pd.DataFrame) -> pd.DataFrame:
    r"""Dolan and Moré's profiles: the share of problems that a solver solves within a factor of the fastest.

    :math:`\rho_s(\tau) = |\{p : t_{ps} \le \tau \min_{s'} t_{ps'}\}| / |P|` over all problems P of the table, those
    that nobody solved included, for the solvers s that ran on all of P (:func:`attempted_all`), the fastest being the
    fastest of these: what a solver could not try says nothing of its speed. Compare the others over
    :func:`run_by_all`. A run without a time is infinitely slow; times below a millisecond count as one.

    Returns
    -------
    DataFrame
        The steps: ``solver``, ``ratio`` (from 1), ``share`` (at that ratio and up to the next).
    """
    problems = sorted(set(table["problem"]))
    everywhere = attempted_all(table)
    solved = table[(table["verdict"] == "solved") & table["solver"].isin(everywhere)]
    times = solved.pivot_table(index="problem", columns="solver", values="seconds", aggfunc="min")
    ratios = times.clip(lower=1e-3).div(times.clip(lower=1e-3).min(axis=1), axis=0)
    rows: list[tuple[str, float, float]] = []
    for solver in everywhere:
        mine = np.sort(ratios[solver].dropna().to_numpy()) if solver in ratios else np.zeros(0)
        steps = np.unique(np.concatenate([[1.0], mine]))
        reached = np.searchsorted(mine, steps, side="right")
        rows += [(solver, float(r), float(k) / len(problems)) for r, k in zip(steps, reached, strict=True)]
    return pd.DataFrame(rows, columns=["solver", "ratio", "share"])


# what is left at a limit --------------------------------------------------------------------------------------------


def gaps_at_limit(table: pd.DataFrame) -> pd.DataFrame:
    """Runs stopped by the time limit: how far their value is from the best known, NaN where they had none.

    Returns
    -------
    DataFrame
        ``problem``, ``solver``, ``limit_s``, ``value``, ``best``, ``best_gap`` (relative), ``certified_gap`` (to the
        bound that we could prove ourselves).
    """
    here = table[table["verdict"] == "limit"]
    return here[["problem", "solver", "limit_s", "value", "best", "best_gap", "certified_gap"]].reset_index(drop=True)


def primal_gap(value: float, best: float) -> float:
    """Berthold's primal gap: distance over the larger of the two sizes; 0 of equal ones, 1 across signs."""
    if value == best:
        return 0.0
    if value * best < 0:
        return 1.0
    return abs(value - best) / max(abs(value), abs(best))


def primal_integral(incumbents: Iterable[tuple[float, float]], best: float, horizon: float) -> float:
    """Integrate the primal gap of the incumbent over time (Berthold, Oper. Res. Lett. 41(6), 2013).

    Parameters
    ----------
    incumbents
        Seconds since the start and objective, in the order they were found; the gap is 1 before the first.
    best
        Best known value.
    horizon
        End of the integral [s]; what is found later does not count.

    Returns
    -------
    float
        Seconds, from 0 (optimal at once) to ``horizon`` (nothing found).
    """
    total, since, gap = 0.0, 0.0, 1.0
    for moment, value in incumbents:
        at = min(max(moment, since), horizon)
        total += gap * (at - since)
        since, gap = at, primal_gap(value, best)
    return total + gap * (horizon - since)


def wrong_answers(table: pd.DataFrame) -> pd.DataFrame:
    """Answers that our check refutes."""
    columns = ["problem", "solver", "value", "best", "best_gap", "residual"]
    return table.loc[table["verdict"] == "wrong", columns].reset_index(drop=True)


# accuracy -------------------------------------------------------------------------------------------------------------


def by_accuracy(runs: pd.DataFrame, best: Mapping[str, Best], accuracies: Sequence[float] = ACCURACIES) -> pd.DataFrame:
    """Compare solvers of linear programs at matched achieved accuracy.

    A run counts at eps if its worst recomputed KKT residual is at most eps, whatever tolerance it was asked for; of
    several runs of a solver the fastest counts that reached eps. :func:`summary` at every eps, with the column
    ``accuracy``.
    """
    found = []
    for accuracy in accuracies:
        table = one_run_each(verdicts(runs, best, accuracy))
        told = summary(table[table["linear"].astype(bool)])
        found.append(told.assign(accuracy=accuracy))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()
