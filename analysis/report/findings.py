"""Results of a store for a report: the best run of every cell, and bounds."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from opticoll.analysis.plots.style import counted
from opticoll.analysis.rendering import Printed
from opticoll.analysis.report.page_tables import missing, written
from opticoll.analysis.store.current_records import AGAIN, code_marks, code_note
from opticoll.analysis.store.schema import environment
from opticoll.solvers.task import PROVEN, Proof

if TYPE_CHECKING:
    from collections.abc import Hashable
    from pathlib import Path

    from opticoll.analysis.store import Store
    from opticoll.types import Json


#: Columns of :attr:`Findings.bounds`.
BOUND_COLUMNS = (
    "formulation",
    "instance",
    "instance_hash",
    "n",
    "objective",
    "proof",
    "bound",
    "value",
    "ratio",
    "exact",
    "reason",
)
#: Outcome of a run that proved that there is no solution.
INFEASIBLE = "infeasible"
_CURRENT = "WHERE NOT superseded"
#: Command that lists the superseded results.
SUPERSEDED_COMMAND = 'opticoll results "FROM latest WHERE superseded"'
#: Maximum number of cells of a kind that are named in a terminal; the CSV files have all.
MOST_NAMED = 60
#: Time [s] after which no further bounds are computed for a report; the omitted instances are listed.
BUDGET_S = 30.0


@dataclass(frozen=True, repr=False)
class Findings(Printed):
    """Contents of a store for a report.

    Parameters
    ----------
    root
        The store's folder.
    runs
        Number of all records.
    results
        The current rows of the view ``latest``, the best run of every key, with the columns ``ranks``, ``seconds``
        (build, compile, solve and verify together), ``ok`` (answered and verified), ``outcome`` (the proof, or
        "infeasible" where that is proven), ``by`` (a mark if other code made it), ``store`` (its
        folder) and ``problem`` (the instance, with the formulation's own parameters where a run set some).
    bounds
        One row per instance and analytic bound, columns :data:`BOUND_COLUMNS`; ``ratio`` is the best verified
        objective over the bound (inverted for minimisation), 1 where the bound is met.
    missing
        Reason for every instance without bounds.
    environments
        Machines and versions that made runs, with the number of runs and the first and last time.
    superseded
        Number of rows of ``latest`` that are superseded, which are in no table.
    """

    root: Path
    runs: int
    results: pd.DataFrame
    bounds: pd.DataFrame
    missing: dict[str, str]
    environments: pd.DataFrame
    superseded: int = 0

    @property
    def omitted(self) -> str | None:
        """A sentence on the superseded runs; None if there are none."""
        if not self.superseded:
            return None
        many = "1 result is" if self.superseded == 1 else f"{self.superseded} results are"
        return f"{many} superseded by another version of a plug-in, file, solver or opticoll, and omitted"

    @property
    def other_code(self) -> str | None:
        """A sentence on the results that other code computed; None if there are none."""
        return None if (note := code_note(self.results["by"])) is None else f"{note}; {AGAIN}"

    @property
    def failures(self) -> pd.DataFrame:
        """Runs without an answer: neither a verified value nor a proof that there is none."""
        return self.results[~self.results["answer"].astype(bool)]

    @property
    def infeasible(self) -> pd.DataFrame:
        """Runs that proved that there is no solution."""
        return self.results[self.results["outcome"] == INFEASIBLE]

    @property
    def _title(self) -> str:
        return f"store {self.root.name}"

    def lines(self) -> dict[str, str]:
        """How many results there are, by their proofs."""
        if self.results.empty:
            return {"results": "none; fill the store with `opticoll study demo`"}
        counts = self.results["outcome"].fillna("none").value_counts()
        return {"results": f"{len(self.results)}: {', '.join(f'{count} {name}' for name, count in counts.items())}"}

    def remarks(self) -> list[str]:
        """What is omitted, what other code computed, what has no solution, and what failed."""
        omitted = [] if self.omitted is None else [f"{self.omitted}: {SUPERSEDED_COMMAND}"]
        refuted, failed = self.infeasible, self.failures
        remarks = [*omitted, *([] if self.other_code is None else [self.other_code])]
        remarks += [f"{counted(len(refuted), 'cell')} proven infeasible"] if len(refuted) else []
        remarks += [f"{counted(len(failed), 'cell')} without a verified value:"] if len(failed) else []
        for row in failed.head(MOST_NAMED).to_dict("records"):
            why = "" if missing(row["message"]) or not row["message"] else f" ({row['message']})"
            ended = written(row["termination"], "text")
            remarks.append(f"  {row['instance']}  {row['formulation']}  {row['method']}: {ended}{why}")
        return remarks


def collect(store: Store, *, budget_s: float = BUDGET_S) -> Findings:
    """Read a store and compute the analytic bounds of its instances.

    Parameters
    ----------
    store
        The store to report on.
    budget_s
        Time [s] after which no further bounds are started; smaller instances go first.
    """
    latest, counted, older, environments = store.tables(
        f"SELECT * FROM latest {_CURRENT}",
        "SELECT count(*) AS runs FROM runs",
        "SELECT count(*) AS superseded FROM latest WHERE superseded",
        "SELECT platform, cpus, python, opticoll, git_commit, host, count(*) AS runs, "
        "min(started) AS first, max(finished) AS last FROM runs GROUP BY ALL ORDER BY last DESC NULLS LAST",
    )
    results, runs = _completed(latest, store), int(counted["runs"].iloc[0])
    bounds, missing = _bounds(results, budget_s)
    superseded = int(older["superseded"].iloc[0])
    return Findings(store.root, runs, results, bounds, missing, environments, superseded)


def best_runs(store: Store, *, superseded: bool = False) -> pd.DataFrame:
    """Read the best run of every key, as :attr:`Findings.results`, on request with the superseded ones."""
    return _completed(store.tables(f"SELECT * FROM latest {'' if superseded else _CURRENT}")[0], store)


def _completed(results: pd.DataFrame, store: Store) -> pd.DataFrame:
    """The view ``latest`` with the columns of :attr:`Findings.results`, sorted."""
    for name in ("settings", "requested_settings"):  # runs that never started have none
        results[name] = results[name].astype(object).where(results[name].notna(), "{}")
    verified = results["verified"].astype("boolean").fillna(value=False).astype(bool)
    results["ok"] = verified & results["answer"].astype(bool)
    parts = [results[f"time_{part}_s"].astype(float) for part in ("build", "compile", "solve", "verify")]
    results["seconds"] = pd.concat(parts, axis=1).sum(axis=1, min_count=1)
    results["ranks"] = [_ranks(metrics, n) for metrics, n in zip(results["metrics"], results["n"], strict=True)]
    refuted = results["answer"].astype(bool) & ~verified
    results["outcome"] = results["proof"].astype(object).mask(refuted, INFEASIBLE)
    results["by"] = code_marks(results["same_code"])
    results["store"] = str(store.root)
    results["problem"] = results["instance"].astype(str) + _stated_settings(results)
    results["_best"] = results["proof"].map({name: place for place, name in enumerate(Proof)})
    results = results.sort_values(["formulation", "n", "instance", "method", "_best", "id"], kind="stable")
    return results.drop(columns="_best").reset_index(drop=True)


def _ranks(metrics: Any, n: Any) -> Any:
    values = json.loads(metrics) if isinstance(metrics, str) else {}
    return values.get("ranks", n) if isinstance(values, dict) else n


def _bounds(results: pd.DataFrame, budget_s: float) -> tuple[pd.DataFrame, dict[str, str]]:
    """Compute every bound of every instance with a verified value, once for equal parameters."""
    rows: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    deadline = time.monotonic() + budget_s
    groups: dict[tuple[str, str, str], list[int]] = {}
    solved = results[results["ok"] & results["objective"].notna()]
    ordered = solved.sort_values(["n", "arcs"], kind="stable")
    keys = (ordered[name] for name in ("formulation", "instance_hash", "problem"))
    for place, key in zip(ordered.index, zip(*keys, strict=True), strict=True):
        groups.setdefault(key, []).append(place)
    for (name, _, problem), places in groups.items():
        best = _best(solved.loc[places])
        if time.monotonic() > deadline:
            missing[problem] = f"omitted after {budget_s:g} s; compute them with `opticoll bounds`"
            continue
        try:
            rows += _rows(name, best, problem, json.loads(best["requested_settings"]))
        except Exception as error:  # noqa: BLE001  a missing file or a formulation of another version gives no bounds
            missing[problem] = f"{type(error).__name__}: {error}"
    return pd.DataFrame(rows, columns=list(BOUND_COLUMNS)), missing


def _best(cell: pd.DataFrame) -> Any:
    """The row of the best run of a problem."""
    place: Any = cell["objective"].idxmin() if (cell["sense"] == "min").all() else cell["objective"].idxmax()
    proven = cell[cell["proof"].isin(PROVEN)]
    return cell.loc[place if proven.empty else proven.index[0]]


def _stated_settings(results: pd.DataFrame) -> pd.Series[str]:
    """Suffix to the instance of every run: the formulation's own parameters that the run set.

    A formulation that is not known here, such as one of a plug-in that is not loaded, has the effective settings of
    its runs that differ from one run to another.
    """
    from opticoll.formulations import formulations

    models = formulations()
    words: dict[Hashable, str] = {}
    for name, group in results.groupby("formulation"):
        model = models.get(str(name))
        requested = [json.loads(text) for text in group["settings" if model is None else "requested_settings"]]
        if model is None:
            seen = {(setting, str(value)) for one in requested for setting, value in one.items()}
            counts = Counter(setting for setting, _ in seen)
            stated = [{setting: value for setting, value in one.items() if counts[setting] > 1} for one in requested]
        else:
            own = {parameter.name for parameter in model.parameters}
            stated = [{setting: value for setting, value in one.items() if setting in own} for one in requested]
        for place, one in zip(group.index, stated, strict=True):
            pairs = " ".join(f"{setting}={value}" for setting, value in sorted(one.items()))
            words[place] = f" [{pairs}]" if one else ""
    return pd.Series([words[place] for place in results.index], index=results.index, dtype=object)


def _rows(name: str, best: Any, problem: str, settings: dict[str, Any]) -> list[dict[str, Any]]:
    from opticoll.formulations import bounds_of, formulation
    from opticoll.formulations.parameters import read_parameters
    from opticoll.instances import parse
    from opticoll.solvers.methods import prepared

    model = formulation(name)
    if model._needs is not None:
        return []
    instance = parse(str(best["instance"]))
    if instance.hash != best["instance_hash"]:
        msg = "the spec now describes a different instance than when it was solved"
        raise ValueError(msg)
    own = {p.name: settings[p.name] for p in model.parameters if p.name in settings}
    data = prepared(model, instance, read_parameters(model.parameters, own, model.name))
    objective = float(best["objective"])
    shared = {
        "formulation": name,
        "instance": problem,
        "instance_hash": best["instance_hash"],
        "n": best["n"],
        "objective": objective,
        "proof": best["proof"],
    }
    return [
        {
            **shared,
            "bound": bound.name,
            "value": bound.value,
            "ratio": ratio(objective, bound.value, data.sense),
            "exact": bound.exact,
            "reason": bound.reason,
        }
        for bound in bounds_of(data)
    ]


def ratio(objective: float, bound: float, sense: str) -> float | None:
    """Value over its bound, inverted for minimisation: 1 where the bound is met, None for a bound of 0."""
    above, below = (objective, bound) if sense == "max" else (bound, objective)
    return above / below if below else None


def machine() -> dict[str, Json]:
    """Describe the machine that writes the report: its environment and its memory [GiB]."""
    import psutil

    return {**environment(), "memory_gib": round(psutil.virtual_memory().total / 2**30, 1)}


#: Columns that are shown only if runs of one method on one problem differ in them, and the marks of other code.
_DISTINGUISHING = {
    "form": "form",
    "requested_settings": "settings",
    "requested_time_limit_s": "limit [s]",
    "requested_tol": "tol",
    "requested_threads": "threads",
    "requested_seed": "seed",
    "requested_repetition": "repetition",
    "solver_version": "version",
    "opticoll": "opticoll",
    "by": "code",
}


def distinguishing_columns(results: pd.DataFrame) -> dict[str, str]:
    """Columns, with their headings, in which runs of one method on one problem differ; marks in any case."""
    runs = results.groupby(["formulation", "problem", "method"], dropna=False)
    known = {field: heading for field, heading in _DISTINGUISHING.items() if field in results}
    differ = {field for field in known if runs[field].nunique(dropna=False).max() > 1}
    differ |= {"by"} if "by" in known and results["by"].any() else set()
    return {field: heading for field, heading in known.items() if field in differ}
