r"""Metrics that compare solvers: verdicts, means, performance profiles, primal integrals and accuracy.

:func:`verdicts` classifies every run as ``solved``, ``inexact``, ``limit``, ``memory``, ``failed``, ``wrong`` or
``unavailable``. Only a solved run has a time. All others are *censored*: slower than their limit, or without a usable
answer; no function uses their seconds as a time. A run that could not be tried at all (missing package, licence too
small, unsupported class of problems) is ``unavailable`` and does not count as slow: such a solver is compared only
over the problems that it ran on. The times ``seconds`` are those of the solver inside its worker, without building,
compiling, the start of the worker and our own checks.

Solvers solve linear programs to different accuracies. A run counts as solved to accuracy eps only if all residuals of
the optimality conditions that we recomputed (:func:`opticoll.solvers.verify.kkt`) are at most eps.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from opticoll.analysis.benchmark.benchmark_set import BestKnown

#: Shift of the geometric mean [s]: the time of starting a solver, below which differences do not count.
SHIFT_S = 0.01
#: Number of time limits that a censored run counts as in penalised means (PAR-10).
PENALTY = 10.0
#: Accuracies at which linear programs are compared.
ACCURACIES = (1e-4, 1e-6, 1e-9)
#: An answer reported as optimal is wrong if it misses the proven value, or feasibility, by more than this multiple of
#: the requested tolerance (relative).
WRONG = 100.0
#: Possible verdicts on a run.
VERDICTS = ("solved", "inexact", "limit", "memory", "failed", "wrong", "unavailable")

#: Terminations by the solver itself without reporting an optimum.
_ENDED = ("iteration-limit", "tolerance-not-reached")


def verdicts(runs: pd.DataFrame, best: Mapping[str, BestKnown], accuracy: float = 1e-6) -> pd.DataFrame:
    """Classify every run.

    Parameters
    ----------
    runs
        Rows of the view ``latest`` with ``problem_name`` and ``linear``, see
        :func:`opticoll.analysis.benchmark.run_comparison.frame`; also ``contestant``, which defaults to the method,
        and ``answered_s``, when an integer program's run ended by the clock of its incumbents, by default the
        solver's time.
    best
        Best known values by the problem's name. The best of these and of the verified values of the runs counts,
        but not past the best bound; likewise for bounds.
    accuracy
        Largest residual of a solved linear program; an integer program's value must be within 1e-6 of the best.

    Returns
    -------
    DataFrame
        One row per run: ``problem``, ``solver``, ``tol`` (requested), ``linear``, ``verdict``, ``seconds`` (NaN unless
        solved), ``limit_s``, ``build_s``, ``compile_s``, ``residual`` (worst KKT residual; NaN if unknown), ``value``
        (verified, else NaN), ``best`` (best known value), ``best_gap`` (relative distance of the value to it),
        ``error`` (largest relative violation or distance from the best known value, whichever is larger), ``allowed``
        (the error beyond which an optimum is wrong: :data:`WRONG` times the requested tolerance),
        ``certified_gap``, ``integral`` (primal integral [s]; NaN if unknown), ``reason`` (why an answer is wrong, else
        None).

        ``wrong``: reported as optimal, but the values violate a constraint, or the value is worse than the best known
        or better than the best bound, by more than ``allowed``; or reported as infeasible despite a verified value, or
        as unbounded despite a bound. ``inexact``: ended by itself and is not wrong, but misses the accuracy; or does
        not claim an optimum, as heuristics do, and no known bound proves its value optimal.
        ``limit``: stopped by the time limit. ``memory``: stopped by the memory limit, or refused because the problem
        does not fit. ``unavailable``: never tried. A proof of infeasibility of our own counts as solved.

        A linear program is judged by its residuals, whether or not the solver reached its tolerance; without duals, by
        its violation and the gap of its value to the best bound that is known, which certifies it. A run stopped
        by the time limit never counts as solved, since the time at which it reached its values is unknown. The
        primal integral of an integer program without a verified value is the whole limit; without incumbents from
        the solver, its answer counts from the end of the run.
    """
    rows = runs.to_dict("records")
    of_problem: dict[str, list[Mapping[Any, Any]]] = {}
    for row in rows:
        of_problem.setdefault(row["problem_name"], []).append(row)
    references = {name: _reference(group, best.get(name)) for name, group in of_problem.items()}
    return pd.DataFrame(
        [_verdict(row, *references[row["problem_name"]], accuracy) for row in rows],
        columns=[
            "problem",
            "solver",
            "tol",
            "linear",
            "verdict",
            "seconds",
            "limit_s",
            "build_s",
            "compile_s",
            "residual",
            "value",
            "best",
            "best_gap",
            "error",
            "allowed",
            "certified_gap",
            "integral",
            "reason",
        ],
    )


def _reference(rows: Sequence[Mapping[Any, Any]], known: BestKnown | None) -> tuple[float, float]:
    """Best value, never past the best bound, and this bound, of runs and the best known values; NaN if none."""
    tried = [row for row in rows if str(row["termination"]) != "unavailable"]  # others may not state their file's sense
    sign = 1.0 if (tried or rows)[0]["sense"] == "min" else -1.0
    values = [value for row in rows if _is_verified(row) and not np.isnan(value := _number(row["objective"]))]
    bounds = [bound for row in rows if not np.isnan(bound := _number(row["bound"]))]
    if known is not None:
        values += [] if known.value is None else [known.value]
        bounds += [] if known.bound is None else [known.bound]
    bound = sign * max((sign * b for b in bounds), default=np.nan)
    value = sign * min((sign * v for v in values), default=np.nan)
    # A value past the bound violates constraints within its tolerance; exact answers must not be worse than it.
    return (value if np.isnan(bound) else sign * max(sign * value, sign * bound)), bound


#: Verdicts on runs without an answer that could be judged, by how they ended.
_WITHOUT_ANSWER = {"unavailable": "unavailable", "time-limit": "limit", "memory-limit": "memory", "refused": "memory"}


def _is_verified(row: Mapping[Any, Any]) -> bool:
    return row["verified"] is True or row["verified"] is np.True_


def _verdict(row: Mapping[Any, Any], best: float, bound: float, accuracy: float) -> dict[str, Any]:
    linear = bool(row["linear"])
    verified = _is_verified(row)
    objective = _number(row["objective"])
    residuals = [_number(row[f"kkt_{part}"]) for part in ("primal", "dual", "gap")]
    residual = float(np.max(residuals))  # NaN if one is unknown
    primal_only = bool(np.isnan(residuals[1]))
    flip = 1.0 if row["sense"] == "min" else -1.0
    worse = flip * _relative(objective - best, best)
    better = flip * _relative(bound - objective, bound)
    violation = _worst_violation(row["violations"])
    certified = abs(_relative(objective - bound, bound))
    error = float(np.max([violation, certified])) if primal_only else residual
    word = str(row["termination"])
    allowed = WRONG * _number(row["requested_tol"])
    off = float(np.nanmax([violation, worse, better, 0.0]))
    missed = not np.isfinite(objective) or off > allowed
    refuting = {"infeasible": best, "unbounded": bound, "infeasible-or-unbounded": best + bound}
    good = linear and error <= accuracy
    if word == "optimal" and not linear:
        good = verified and not worse > 1e-6
    elif word in _ENDED and (primal_only or not linear):  # a heuristic's value, proven optimal by a bound of any run
        good = good or (verified and certified <= min(accuracy, 1e-6))
    verdict = _word(row, refuted=bool(np.isfinite(refuting.get(word, np.nan))), missed=missed, good=good)
    limit = _number(row["requested_time_limit_s"])
    shown = objective if verified else np.nan
    integral = np.nan if linear or verdict == "unavailable" else _integral(row, verdict, best, limit)
    return {
        "problem": row["problem_name"],
        "solver": row.get("contestant", row["method"]),
        "tol": _number(row["requested_tol"]),
        "linear": linear,
        "verdict": verdict,
        "seconds": _number(row["time_solver_s"]) if verdict == "solved" else np.nan,
        "limit_s": limit,
        "build_s": _number(row["time_build_s"]),
        "compile_s": _number(row["time_compile_s"]),
        "residual": residual,
        "value": shown,
        "best": best,
        "best_gap": max(worse, 0.0) if verified else np.nan,
        "error": off,
        "allowed": allowed,
        "certified_gap": _number(row["gap"]),
        "integral": integral,
        "reason": _refutation(word, violation, objective, best, bound, allowed, flip) if verdict == "wrong" else None,
    }


def _refutation(
    word: str, violation: float, objective: float, best: float, bound: float, allowed: float, flip: float
) -> str:
    """Why an answer is wrong: what it claims, which constraint it violates, or by how much its value is off."""
    if word != "optimal":
        return f"claims {word.replace('-', ' ')}"
    if not np.isfinite(objective):
        return "claims an optimum without values"
    if violation > allowed:
        return f"violates constraints by {violation:.3g}"
    if flip * _relative(objective - best, best) > allowed:
        return f"worse than the best known value by {abs(objective - best):.3g}"
    return f"better than the best bound by {abs(objective - bound):.3g}"


def _integral(row: Mapping[Any, Any], verdict: str, best: float, limit: float) -> float:
    """The primal integral of a run; NaN if no best value is known."""
    return primal_integral(_progress(row, verdict), best, limit) if np.isfinite(best) else np.nan


def _word(row: Mapping[Any, Any], *, refuted: bool, missed: bool, good: bool) -> str:
    """The verdict on a run that a known value refutes, whose value is too far off, or whose answer is good."""
    word = str(row["termination"])
    if word in _WITHOUT_ANSWER:
        return _WITHOUT_ANSWER[word]
    if refuted or (missed and word == "optimal"):
        return "wrong"
    if word == "infeasible" and isinstance(row.get("infeasible_by"), str):
        return "solved"
    if word != "optimal" and word not in _ENDED:
        return "failed"
    return "solved" if good and not missed else "inexact"


def _worst_violation(violations: object) -> float:
    """The largest of the violations by constraint, as JSON; infinite if one is unknown."""
    by_constraint = json.loads(violations) if isinstance(violations, str) else {}
    numbers = [_number(v) for v in by_constraint.values()]
    return float(np.max(numbers, initial=0.0)) if not np.isnan(numbers).any() else np.inf


def _relative(difference: float, size: float) -> float:
    """Difference relative to the size; absolute if the size is only round-off."""
    return difference / abs(size) if abs(size) > 1e-9 else difference


def _number(value: Any) -> float:
    return float("nan") if value is None or value is pd.NA else float(value)


def _trail(pairs: Any) -> list[tuple[float, float]]:
    if pairs is None or np.ndim(pairs) == 0:
        return []
    return [(float(pair[0]), float(pair[1])) for pair in pairs]


def _progress(row: Mapping[Any, Any], verdict: str) -> list[tuple[float, float]]:
    """Times and values of a run's incumbents, with its answer at the end; empty without a verified value."""
    if not _is_verified(row):
        return []
    trail = _trail(row["incumbents"])
    if verdict == "solved" or not trail:
        seconds = _number(row.get("answered_s", row["time_solver_s"]))
        limit = _number(row["requested_time_limit_s"])
        trail.append((seconds if seconds < limit or np.isnan(limit) else limit, _number(row["objective"])))
    return trail


def gap_over_time(runs: pd.DataFrame, table: pd.DataFrame, points: int = 200) -> pd.DataFrame:
    """Mean primal gap of the incumbents over time, for integer programs.

    Parameters
    ----------
    runs, table
        Runs as for :func:`verdicts`, and their verdicts in the same order.
    points
        Number of times, spaced logarithmically from a hundredth of a second to the last event.

    Returns
    -------
    DataFrame
        ``solver``, ``seconds``, ``gap``: the mean of :func:`primal_gap` over the problems that all of the solvers
        ran on (:func:`run_by_all`), 1 before the first incumbent.
    """
    integer = table[~table["linear"].astype(bool) & (table["verdict"] != "unavailable")]
    shared = set(run_by_all(integer)["problem"]) if len(integer) else set()
    trails: dict[str, list[tuple[list[tuple[float, float]], float]]] = {}
    for row, verdict in zip(runs.to_dict("records"), table.to_dict("records"), strict=True):
        ran = verdict["verdict"] != "unavailable" and verdict["problem"] in shared
        if not verdict["linear"] and ran and np.isfinite(verdict["best"]):
            trail = [pair for pair in _progress(row, verdict["verdict"]) if np.isfinite(pair[0])]
            trails.setdefault(verdict["solver"], []).append((trail, verdict["best"]))
    events = [moment for mine in trails.values() for trail, _ in mine for moment, _ in trail]
    if not events:
        return pd.DataFrame(columns=["solver", "seconds", "gap"])
    times = np.geomspace(1e-2, max(1.1 * max(events), 0.1), points)
    rows = []
    for solver, mine in sorted(trails.items()):
        gaps = np.ones((len(mine), times.size))
        for curve, (trail, best) in zip(gaps, mine, strict=True):
            for moment, value in trail:
                curve[times >= moment] = primal_gap(value, best)
        rows += [(solver, float(t), float(g)) for t, g in zip(times, gaps.mean(axis=0), strict=True)]
    return pd.DataFrame(rows, columns=["solver", "seconds", "gap"])


def repeated_runs(table: pd.DataFrame) -> pd.DataFrame:
    """Combine all repetitions into one row per solver and problem.

    A problem counts as solved if every repetition solved it, as wrong if one answer was wrong, and otherwise gets the
    most frequent verdict of those that did not solve it. Repetitions that could not be tried do not count
    if there are others.

    Returns
    -------
    DataFrame
        The columns of :func:`verdicts`, times being medians and errors the largest, and ``runs``, ``solved_runs``,
        ``seconds_min``, ``seconds_max`` (NaN unless solved).
    """
    keys, extra = ["problem", "solver"], ["runs", "solved_runs", "seconds_min", "seconds_max"]
    columns = [*table.columns, *extra]
    alone = ~table.duplicated(keys, keep=False)
    once = table[alone]
    solved = once["verdict"] == "solved"
    seconds = once["seconds"].where(solved)
    once = once.assign(
        seconds=seconds, runs=1, solved_runs=solved.astype(int), seconds_min=seconds, seconds_max=seconds
    )
    combined = [_combined(group) for _, group in table[~alone].groupby(keys, sort=True)]
    parts = [part for part in (once, pd.DataFrame(combined, columns=columns)) if len(part)]
    return pd.concat(parts).sort_values(keys, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _combined(group: pd.DataFrame) -> dict[str, Any]:
    """The row of :func:`repeated_runs` for the repetitions of a solver on a problem."""
    tried = group[group["verdict"] != "unavailable"]
    counted = group if tried.empty else tried
    solved = counted["verdict"] == "solved"
    others = counted.loc[~solved, "verdict"]
    verdict = "wrong" if (others == "wrong").any() else "solved" if others.empty else str(others.mode().iloc[0])
    ends = (counted["seconds"].min(), counted["seconds"].max()) if verdict == "solved" else (np.nan, np.nan)
    values = counted.sort_values("best_gap", na_position="last")["value"]
    medians: dict[Any, Any] = {name: counted[name].dropna().median() for name in ("build_s", "compile_s", "integral")}
    largest: dict[Any, Any] = {name: counted[name].max() for name in ("residual", "best_gap", "error", "certified_gap")}
    first: dict[Any, Any] = counted[counted["verdict"] == verdict].iloc[0].to_dict()
    return {
        **first,
        **medians,
        **largest,
        "verdict": verdict,
        "value": values.iloc[0],
        "seconds": counted["seconds"].dropna().median() if verdict == "solved" else np.nan,
        "runs": len(counted),
        "solved_runs": int(solved.sum()),
        "seconds_min": ends[0],
        "seconds_max": ends[1],
    }


def one_run_each(table: pd.DataFrame) -> pd.DataFrame:
    """One run per solver and problem: the fastest solved run, or else the one with the tightest tolerance."""
    solved = (table["verdict"] == "solved").rename("_solved")
    ordered = table.assign(_solved=~solved, _time=table["seconds"].fillna(0.0)).sort_values(
        ["_solved", "_time", "tol"], kind="stable"
    )
    kept = ordered.drop_duplicates(["problem", "solver"]).drop(columns=["_solved", "_time"])
    return kept.sort_values(["problem", "solver"], ignore_index=True)


# means --------------------------------------------------------------------------------------------------------------


def shifted_geometric_mean(seconds: ArrayLike, shift: float = SHIFT_S) -> float:
    r"""Shifted geometric mean :math:`(\prod_i (t_i + s))^{1/n} - s`; NaN without times.

    Raises
    ------
    ValueError
        If a time is NaN, as that of a censored run.
    """
    values = np.asarray(seconds, dtype=float)
    if np.isnan(values).any():
        msg = "seconds: a censored run has no time; penalise or omit it"
        raise ValueError(msg)
    return float(np.exp(np.log(values + shift).mean()) - shift) if values.size else float("nan")


def penalised(table: pd.DataFrame) -> pd.Series[float]:
    """Seconds of every run; censored runs count as :data:`PENALTY` times their limit (PAR-k)."""
    return table["seconds"].where(table["verdict"] == "solved", PENALTY * table["limit_s"]).astype(float)


def commonly_solved(table: pd.DataFrame, solvers: Sequence[str]) -> list[str]:
    """Problems that all of the solvers solved."""
    solved = table[(table["verdict"] == "solved") & table["solver"].isin(solvers)]
    counts = solved.groupby("problem")["solver"].nunique()
    return sorted(counts.index[counts == len(set(solvers))]) if len(solvers) else []


def run_by_all(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the problems that every solver of the table ran on."""
    ran = table[table["verdict"] != "unavailable"]
    counts = ran.groupby("problem")["solver"].nunique()
    return ran[ran["problem"].isin(counts.index[counts == ran["solver"].nunique()])].reset_index(drop=True)


def attempted_all(table: pd.DataFrame) -> list[str]:
    """Solvers that ran on every problem of the table; only these can be compared over all problems."""
    ran = table[table["verdict"] != "unavailable"].groupby("solver")["problem"].nunique()
    return sorted(ran.index[ran == table["problem"].nunique()])


def summary(table: pd.DataFrame, shift: float = SHIFT_S) -> pd.DataFrame:
    """Compare solvers over one class of problems.

    Parameters
    ----------
    table
        Verdicts, one run per problem and solver.

    Returns
    -------
    DataFrame
        One row per solver that ran, most solved first: ``problems`` (number run), the count of every verdict,
        ``mean_penalised_s`` (shifted geometric mean with censored runs at :data:`PENALTY` limits; NaN unless the solver
        ran on every problem), ``mean_common_s`` over the ``common`` problems (solved by every solver that ran on all
        problems and solved at least one; NaN for other solvers), ``mean_solved_s`` over the problems that the solver
        itself solved (not comparable between solvers), ``median_integral_s``.
    """
    everywhere = attempted_all(table)
    solved = table[table["verdict"] == "solved"]
    compared = [name for name in everywhere if (solved["solver"] == name).any()]
    common = commonly_solved(table, compared)
    rows = []
    for solver, group in table[table["verdict"] != "unavailable"].groupby("solver"):
        mine = group[group["verdict"] == "solved"]
        shared = mine[mine["problem"].isin(common)]["seconds"]
        penalties = penalised(group)
        known = solver in everywhere and bool(penalties.notna().all())  # without a limit there is no penalty
        rows.append(
            {
                "solver": solver,
                "problems": len(group),
                **{word: int((group["verdict"] == word).sum()) for word in VERDICTS[:-1]},
                "mean_penalised_s": shifted_geometric_mean(penalties, shift) if known else np.nan,
                "mean_common_s": shifted_geometric_mean(shared, shift) if solver in compared else np.nan,
                "common": len(common),
                "mean_solved_s": shifted_geometric_mean(mine["seconds"], shift),
                "median_integral_s": float(group["integral"].median()) if group["integral"].notna().any() else np.nan,
            }
        )
    order = ["solved", "mean_penalised_s", "solver"]
    frame = pd.DataFrame(rows)
    return frame if frame.empty else frame.sort_values(order, ascending=[False, True, True], ignore_index=True)


def performance_profile(table: pd.DataFrame) -> pd.DataFrame:
    r"""Performance profiles: the share of problems that a solver solves within a factor of the fastest solver.

    Dolan & Moré, Math. Program. 91(2), 2002:
    :math:`\rho_s(\tau) = |\{p : t_{ps} \le \tau \min_{s'} t_{ps'}\}| / |P|` over all problems P of the table,
    including those that no solver solved, for the solvers s that ran on all of P (:func:`attempted_all`); the fastest
    is the fastest of these. Compare the other solvers over :func:`run_by_all`. A run without a time counts as
    infinitely slow; times below a millisecond count as a millisecond.

    Returns
    -------
    DataFrame
        The steps: ``solver``, ``ratio`` (from 1), ``share`` (from that ratio up to the next).
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


# sensitivity ------------------------------------------------------------------------------------------------------


def sensitivity(table: pd.DataFrame, variants: pd.Series[Any]) -> pd.DataFrame:
    """How means and ranks change with what should not matter: seeds, and orders of rows and columns.

    Parameters
    ----------
    table
        Verdicts.
    variants
        The variant of every run, such as seed and order.

    Returns
    -------
    DataFrame
        A row per solver that ran every variant of the same problems: ``variants``, ``problems``, the least and the
        largest penalised mean ``mean_min_s``, ``mean_max_s``, and rank ``rank_min``, ``rank_max`` of all variants.
    """
    runs = table.assign(variant=variants.to_numpy())
    runs = runs[runs["verdict"] != "unavailable"]
    count = runs.groupby(["solver", "problem"])["variant"].nunique()
    varied = count[count == runs["variant"].nunique()].reset_index()
    solvers = varied["solver"].nunique()
    shared = varied.groupby("problem")["solver"].nunique()
    runs = runs[runs["problem"].isin(shared.index[shared == solvers]) & runs["solver"].isin(set(varied["solver"]))]
    columns = ["solver", "variants", "problems", "mean_min_s", "mean_max_s", "rank_min", "rank_max"]
    if runs.empty or runs["variant"].nunique() < 2:
        return pd.DataFrame(columns=columns)
    means = pd.DataFrame(
        {
            variant: {
                solver: shifted_geometric_mean(penalised(one_run_each(mine))) for solver, mine in part.groupby("solver")
            }
            for variant, part in runs.groupby("variant")
        }
    )
    ranks = means.rank(method="min")
    rows = [
        (
            solver,
            means.shape[1],
            runs["problem"].nunique(),
            means.loc[solver].min(),
            means.loc[solver].max(),
            int(ranks.loc[solver].min()),
            int(ranks.loc[solver].max()),
        )
        for solver in means.mean(axis=1).sort_values(kind="stable").index
    ]
    return pd.DataFrame(rows, columns=columns)


# gaps at a limit ----------------------------------------------------------------------------------------------------


def gaps_at_limit(table: pd.DataFrame) -> pd.DataFrame:
    """Runs stopped by the time limit, with the gap of their value to the best known; NaN without a value.

    Returns
    -------
    DataFrame
        ``problem``, ``solver``, ``limit_s``, ``value``, ``best``, ``best_gap`` (relative), ``certified_gap`` (to
        our own proven bound).
    """
    selected = table[table["verdict"] == "limit"]
    return selected[["problem", "solver", "limit_s", "value", "best", "best_gap", "certified_gap"]].reset_index(
        drop=True
    )


def primal_gap(value: float, best: float) -> float:
    """Berthold's primal gap: distance over the larger absolute value; 0 if equal, 1 for opposite signs."""
    if value == best:
        return 0.0
    if value * best < 0:
        return 1.0
    return abs(value - best) / max(abs(value), abs(best))


def primal_integral(incumbents: Iterable[tuple[float, float]], best: float, horizon: float) -> float:
    """Integral of the incumbent's primal gap over time (Berthold, Oper. Res. Lett. 41(6), 2013).

    Parameters
    ----------
    incumbents
        Seconds since the start and objective, in order of time; the gap is 1 before the first.
    best
        Best known value.
    horizon
        End of the integral [s]; later incumbents do not count.

    Returns
    -------
    float
        Seconds, from 0 (optimal from the start) to ``horizon`` (no incumbent).
    """
    total, since, gap = 0.0, 0.0, 1.0
    for moment, value in incumbents:
        at = min(max(moment, since), horizon)
        total += gap * (at - since)
        since, gap = at, primal_gap(value, best)
    return total + gap * (horizon - since)


def wrong_answers(table: pd.DataFrame) -> pd.DataFrame:
    """Answers that our check refutes."""
    columns = ["problem", "solver", "reason", "tol", "value", "best", "error", "allowed", "residual"]
    return table.loc[table["verdict"] == "wrong", columns].reset_index(drop=True)


# accuracy -------------------------------------------------------------------------------------------------------------


def by_accuracy(
    runs: pd.DataFrame,
    best: Mapping[str, BestKnown],
    combined: Callable[[pd.DataFrame], pd.DataFrame] = one_run_each,
) -> pd.DataFrame:
    """Compare solvers of linear programs at matched achieved accuracy.

    A run counts at eps if its worst recomputed KKT residual is at most eps, whatever its requested tolerance; of
    several runs of a solver, the fastest that reached eps counts, unless ``combined`` combines them differently.

    Returns
    -------
    DataFrame
        :func:`summary` at every eps, with the column ``accuracy``.
    """
    tables = []
    for accuracy in ACCURACIES:
        table = combined(verdicts(runs, best, accuracy))
        tables.append(summary(table[table["linear"].astype(bool)]).assign(accuracy=accuracy))
    return pd.concat(tables, ignore_index=True)
