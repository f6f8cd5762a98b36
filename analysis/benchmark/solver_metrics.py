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

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import ArrayLike

    from opticoll.analysis.benchmark.benchmark_set import BestKnown

#: Shift of the geometric mean [s]: the time of starting a solver, below which differences do not count.
SHIFT_S = 0.01
#: Number of time limits that a censored run counts as in penalised means (PAR-10).
PENALTY = 10.0
#: An answer reported as optimal is wrong if it misses the proven value, or feasibility, by more than this multiple of
#: the requested tolerance (relative).
WRONG = 100.0
#: Possible verdicts on a run.
VERDICTS = ("solved", "inexact", "limit", "memory", "failed", "wrong", "unavailable")

#: Terminations by the solver itself without reporting an optimum.
_ENDED = ("iteration-limit", "tolerance-not-reached")


class Judged(NamedTuple):
    """A judged run.

    ``tol`` is the requested tolerance; ``seconds`` is NaN unless solved, ``residual`` the worst KKT residual (NaN if
    unknown), ``value`` the verified value (else NaN), ``best`` the best known one, ``best_gap`` their relative
    distance; ``error`` the largest relative violation or distance from the best known value, whichever is larger, and
    ``allowed`` the error beyond which an optimum is wrong: :data:`WRONG` times the tolerance. ``integral`` is the
    primal integral [s] (NaN if unknown), ``reason`` why an answer is wrong, else None.
    """

    problem: str
    solver: str
    tol: float
    linear: bool
    verdict: str
    seconds: float
    limit_s: float
    build_s: float
    compile_s: float
    residual: float
    value: float
    best: float
    best_gap: float
    error: float
    allowed: float
    certified_gap: float
    integral: float
    reason: str | None


def verdicts(runs: pd.DataFrame, best: Mapping[str, BestKnown], accuracy: float = 1e-6) -> pd.DataFrame:
    """Classify every run.

    Parameters
    ----------
    runs
        A row per run: ``problem``, ``solver``, ``linear``, ``sense``, ``tol`` and ``limit_s`` (requested),
        ``termination``, ``verified``, ``value``, ``bound``, ``gap`` between them, ``violation`` (the largest),
        ``kkt_primal``, ``kkt_dual``, ``kkt_gap``, ``seconds``, ``build_s``, ``compile_s``, ``incumbents`` (pairs of
        seconds and value); also ``answered_s``, when the run ended by the clock of its incumbents, by default
        ``seconds``, and ``infeasible_by``, what proved that there is no solution.
    best
        Best known values by the problem's name. The best of these and of the verified values of the runs counts,
        but not past the best bound; likewise for bounds.
    accuracy
        Largest residual of a solved linear program; an integer program's value must be within 1e-6 of the best.

    Returns
    -------
    DataFrame
        One row per run, with the columns of :class:`Judged`.

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
    references = {name: _reference(rows, best.get(str(name))) for name, rows in runs.groupby("problem")}
    judged = [_judged(row, *references[row["problem"]], accuracy) for row in runs.to_dict("records")]
    return pd.DataFrame(judged, columns=list(Judged._fields))


def _reference(runs: pd.DataFrame, known: BestKnown | None) -> tuple[float, float]:
    """Best value, never past the best bound, and this bound, of runs and the best known values; NaN if none."""
    tried = runs[runs["termination"] != "unavailable"]  # others may not state their file's sense
    sign = 1.0 if (tried if len(tried) else runs)["sense"].iloc[0] == "min" else -1.0
    values, bounds = [*runs.loc[runs["verified"].eq(True), "value"]], [*runs["bound"]]
    if known is not None:
        values, bounds = [*values, known.value], [*bounds, known.bound]
    bound = max((sign * one for one in map(_number, bounds) if not np.isnan(one)), default=np.nan)
    value = min((sign * one for one in map(_number, values) if not np.isnan(one)), default=np.nan)
    # A value past the bound violates constraints within its tolerance; exact answers must not be worse than it.
    return sign * (value if np.isnan(bound) else max(value, bound)), sign * bound


#: Verdicts on runs without an answer that could be judged, by how they ended.
_WITHOUT_ANSWER = {"unavailable": "unavailable", "time-limit": "limit", "memory-limit": "memory", "refused": "memory"}


def _is_verified(row: Mapping[Any, Any]) -> bool:
    return row["verified"] is True or row["verified"] is np.True_


def _judged(row: Mapping[Any, Any], best: float, bound: float, accuracy: float) -> Judged:
    linear, verified, value = bool(row["linear"]), _is_verified(row), _number(row["value"])
    residuals = [_number(row[f"kkt_{part}"]) for part in ("primal", "dual", "gap")]
    residual = float(np.max(residuals))  # NaN if one is unknown
    primal_only = bool(np.isnan(residuals[1]))
    flip = 1.0 if row["sense"] == "min" else -1.0
    worse, better = flip * _relative(value - best, best), flip * _relative(bound - value, bound)
    violation = _number(row["violation"])
    certified = abs(_relative(value - bound, bound))
    error = float(np.max([violation, certified])) if primal_only else residual
    word = str(row["termination"])
    allowed = WRONG * _number(row["tol"])
    off = float(np.nanmax([violation, worse, better, 0.0]))
    missed = not np.isfinite(value) or off > allowed
    refuting = {"infeasible": best, "unbounded": bound, "infeasible-or-unbounded": best + bound}
    good = linear and error <= accuracy
    if word == "optimal" and not linear:
        good = verified and not worse > 1e-6
    elif word in _ENDED and (primal_only or not linear):  # a heuristic's value, proven optimal by a bound of any run
        good = good or (verified and certified <= min(accuracy, 1e-6))
    verdict = _word(row, refuted=bool(np.isfinite(refuting.get(word, np.nan))), missed=missed, good=good)
    reason: str | None = None
    if verdict == "wrong":
        reason = f"better than the best bound by {abs(value - bound):.3g}"
        if word != "optimal":
            reason = f"claims {word.replace('-', ' ')}"
        elif not np.isfinite(value):
            reason = "claims an optimum without values"
        elif violation > allowed:
            reason = f"violates constraints by {violation:.3g}"
        elif worse > allowed:
            reason = f"worse than the best known value by {abs(value - best):.3g}"
    limit, integral = _number(row["limit_s"]), np.nan
    if not linear and verdict != "unavailable" and np.isfinite(best):
        integral = primal_integral(_progress(row, verdict), best, limit)
    return Judged(
        problem=row["problem"],
        solver=row["solver"],
        tol=_number(row["tol"]),
        linear=linear,
        verdict=verdict,
        seconds=_number(row["seconds"]) if verdict == "solved" else np.nan,
        limit_s=limit,
        build_s=_number(row["build_s"]),
        compile_s=_number(row["compile_s"]),
        residual=residual,
        value=value if verified else np.nan,
        best=best,
        best_gap=max(worse, 0.0) if verified else np.nan,
        error=off,
        allowed=allowed,
        certified_gap=_number(row["gap"]),
        integral=integral,
        reason=reason,
    )


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


def _relative(difference: float, size: float) -> float:
    """Difference relative to the size; absolute if the size is only round-off."""
    return difference / abs(size) if abs(size) > 1e-9 else difference


def _number(value: Any) -> float:
    return float("nan") if value is None or value is pd.NA else float(value)


def _progress(row: Mapping[Any, Any], verdict: str) -> list[tuple[float, float]]:
    """Times and values of a run's incumbents, with its answer at the end; empty without a verified value."""
    if not _is_verified(row):
        return []
    pairs = row["incumbents"]
    trail = [] if pairs is None or np.ndim(pairs) == 0 else [(float(moment), float(value)) for moment, value in pairs]
    if verdict == "solved" or not trail:
        seconds, limit = _number(row.get("answered_s", row["seconds"])), _number(row["limit_s"])
        trail.append((seconds if seconds < limit or np.isnan(limit) else limit, _number(row["value"])))
    return trail


def one_each(table: pd.DataFrame) -> pd.DataFrame:
    """One row per problem and solver: of repetitions the median, then of several tolerances the best.

    Repetitions count as solved if every one solved the problem, as wrong if one answer was wrong, and otherwise get the
    most frequent verdict of those that did not solve it; those that could not be tried do not count if there are
    others. Of several tolerances counts the fastest that solved the problem, or else the tightest.

    Returns
    -------
    DataFrame
        The columns of :func:`verdicts`, times being medians and errors the largest, and ``runs``, ``solved_runs``,
        ``seconds_min``, ``seconds_max`` (NaN unless solved).
    """
    number = table.groupby(["problem", "solver", "tol"], dropna=False).ngroup()
    tried = table["verdict"] != "unavailable"
    counted = table[tried | ~tried.groupby(number).transform("any")].assign(number=number)
    times = counted.groupby(["number", "verdict"])["problem"].transform("size").astype(float)
    weight = times.mask(counted["verdict"] == "wrong", np.inf).mask(counted["verdict"] == "solved", 0.0)
    ordered = counted.assign(weight=-weight).sort_values(["number", "weight", "verdict"])
    first = ordered.drop_duplicates("number").set_index("number").drop(columns="weight")
    groups, solved = counted.groupby("number"), first["verdict"] == "solved"
    medians, largest = ["build_s", "compile_s", "integral"], ["residual", "best_gap", "error", "certified_gap"]
    first[medians], first[largest] = groups[medians].median(), groups[largest].max()
    first["value"] = counted.sort_values("best_gap").groupby("number")["value"].first()
    first["runs"] = groups.size()
    first["solved_runs"] = (counted["verdict"] == "solved").groupby(counted["number"]).sum()
    for name, statistic in (("seconds", "median"), ("seconds_min", "min"), ("seconds_max", "max")):
        first[name] = groups["seconds"].agg(statistic).where(solved)
    best = first.assign(_solved=~solved, _time=first["seconds"].fillna(0.0)).sort_values(["_solved", "_time", "tol"])
    kept = best.drop_duplicates(["problem", "solver"]).drop(columns=["_solved", "_time"])
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


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """Rows on which solvers can be compared.

    They are those of the solvers that ran on at least half as many problems as any, on the problems that all of these
    ran on.
    """
    ran = table[table["verdict"] != "unavailable"]
    counts = ran.groupby("solver")["problem"].nunique()
    ran = ran[ran["solver"].isin(counts.index[2 * counts >= counts.max()])]
    shared = ran.groupby("problem")["solver"].nunique()
    return ran[ran["problem"].isin(shared.index[shared == ran["solver"].nunique()])].reset_index(drop=True)


def summary(table: pd.DataFrame, shift: float = SHIFT_S) -> pd.DataFrame:
    """Compare solvers over one class of problems.

    Parameters
    ----------
    table
        One row per problem and solver, as :func:`one_each` makes them.

    Returns
    -------
    DataFrame
        One row per solver that ran, most solved first: ``problems`` (number run), the count of every verdict,
        ``mean_penalised_s`` (shifted geometric mean over the problems of :func:`compared`, whose number is
        ``compared``, with censored runs at :data:`PENALTY` limits), ``mean_common_s`` over the ``common`` ones of them
        (solved by every solver that solved at least one), both NaN for solvers that are not compared;
        ``median_integral_s`` of integer programs, the number of ``runs``, ``spread`` (median over the solved problems
        of the slowest over the fastest repetition; NaN without repetitions), ``median_gap`` to the best known values.
    """
    shared = compared(table)
    solved = shared[shared["verdict"] == "solved"]
    by_problem = solved.groupby("problem")["solver"].nunique()
    common = by_problem.index[by_problem == solved["solver"].nunique()]
    rows = []
    for solver, group in table[table["verdict"] != "unavailable"].groupby("solver"):
        mine = group[group["verdict"] == "solved"]
        own = solved[solved["solver"] == solver]
        penalties = penalised(shared[shared["solver"] == solver])
        known = bool(penalties.notna().all())  # without a limit there is no penalty
        rows.append(
            {
                "solver": solver,
                "problems": len(group),
                **{word: int((group["verdict"] == word).sum()) for word in VERDICTS[:-1]},
                "mean_penalised_s": shifted_geometric_mean(penalties, shift) if known else np.nan,
                "compared": len(penalties),
                "mean_common_s": shifted_geometric_mean(own.loc[own["problem"].isin(common), "seconds"], shift),
                "common": len(common),
                "median_integral_s": group["integral"].dropna().median(),
                "runs": int(group["runs"].sum()),
                "spread": _spread(mine),
                "median_gap": group["best_gap"].dropna().median(),
            }
        )
    order = ["solved", "mean_penalised_s", "solver"]
    frame = pd.DataFrame(rows)
    return frame if frame.empty else frame.sort_values(order, ascending=[False, True, True], ignore_index=True)


def _spread(solved: pd.DataFrame) -> float:
    repeated = solved[solved["runs"] > 1]
    ratios = repeated["seconds_max"].clip(lower=1e-3) / repeated["seconds_min"].clip(lower=1e-3)
    return float(ratios.median()) if len(ratios) else float("nan")


def performance_profile(table: pd.DataFrame) -> pd.DataFrame:
    r"""Performance profiles: the share of problems that a solver solves within a factor of the fastest solver.

    Dolan & Moré, Math. Program. 91(2), 2002:
    :math:`\rho_s(\tau) = |\{p : t_{ps} \le \tau \min_{s'} t_{ps'}\}| / |P|` over the problems P and the solvers s of
    :func:`compared`, including problems that no solver solved. A run without a time counts as infinitely slow; times
    below a millisecond count as a millisecond.

    Returns
    -------
    DataFrame
        The steps: ``solver``, ``ratio`` (from 1), ``share`` (from that ratio up to the next).
    """
    shared = compared(table)
    count = shared["problem"].nunique()
    solved = shared[shared["verdict"] == "solved"]
    times = solved.pivot_table(index="problem", columns="solver", values="seconds", aggfunc="min")
    ratios = times.clip(lower=1e-3).div(times.clip(lower=1e-3).min(axis=1), axis=0)
    rows: list[tuple[str, float, float]] = []
    for solver in sorted(set(shared["solver"])):
        mine = np.sort(ratios[solver].dropna().to_numpy()) if solver in ratios else np.zeros(0)
        steps = np.unique(np.concatenate([[1.0], mine]))
        reached = np.searchsorted(mine, steps, side="right")
        rows += [(solver, float(r), float(k) / count) for r, k in zip(steps, reached, strict=True)]
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
                solver: shifted_geometric_mean(penalised(one_each(mine))) for solver, mine in part.groupby("solver")
            }
            for variant, part in runs.groupby("variant")
        }
    )
    ranks = means.rank(method="min").astype(int)
    result = pd.DataFrame(
        {
            "variants": means.shape[1],
            "problems": runs["problem"].nunique(),
            "mean_min_s": means.min(axis=1),
            "mean_max_s": means.max(axis=1),
            "rank_min": ranks.min(axis=1),
            "rank_max": ranks.max(axis=1),
        }
    )
    return result.loc[means.mean(axis=1).sort_values(kind="stable").index].rename_axis("solver").reset_index()


# progress and answers -------------------------------------------------------------------------------------------------


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
