"""What people and programs read: values as text, records and results as lines of text or HTML, tables as JSON rows.

:func:`record_lines` says a record in words; the command line, :class:`opticoll.Result` and the report show these lines.
As JSON, a record is :func:`opticoll.solvers.task.plain` of itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from opticoll.analysis.plots.style import label
from opticoll.formulations.variables import TIME
from opticoll.solvers.task import NOTE, Fields, Proof
from opticoll.solvers.verify import FEASIBLE, violated

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from opticoll.analysis.bounds.instance_bounds import BoundRow
    from opticoll.solvers.task import Record
    from opticoll.types import Json

#: Maximum length of a name in a title.
WIDTH = 100
#: Maximum length of a line of a printed representation.
_PRINTED = 240
#: What the proofs mean that do not speak for themselves.
_PROOFS = {
    Proof.CERTIFIED_GAP: "a gap remains between the checked value and a certified bound",
    Proof.FEASIBLE: "the value is checked; no bound proves that it is the best",
    Proof.BOUND_ONLY: "no solution passed the checker",
}
#: Lines for notebooks; colours are those of the page.
_HTML = """<table style="border-collapse:collapse;color:inherit;background:none">
<caption style="text-align:left;color:inherit;font-weight:600;padding-bottom:4px">{{ title }}</caption>
{% for name, text in lines.items() -%}
<tr style="background:none"><th scope="row" style="text-align:left;padding:1px 1em 1px 0">{{ name }}</th>
<td style="text-align:left;padding:1px 0">{{ text }}</td></tr>
{% endfor %}</table>"""


# values ---------------------------------------------------------------------------------------------------------------


def number(value: Any, digits: int = 8) -> str:
    """A number as text, or a dash if it is unknown."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return str(value)


def cell(value: Any) -> str:
    """A value in a table: a list by its names, a mapping by its pairs, one that is false omitted."""
    if isinstance(value, (list, tuple)):
        named = (dict(v).get("name", v) if isinstance(v, Mapping | Fields) else v for v in value)
        return ", ".join(map(str, named)) or "–"
    if isinstance(value, dict):
        return ", ".join(k if v is True else f"{k}={v}" for k, v in value.items() if v is not False) or "–"
    return number(value)


# lines ----------------------------------------------------------------------------------------------------------------


def as_text(title: str, lines: Mapping[str, str]) -> str:
    """Names and values in two columns below a title."""
    width = max(map(len, lines), default=0)
    return "\n".join([title, *(f"  {name:<{width}}  {text}" for name, text in lines.items())])


def as_html(title: str, lines: Mapping[str, str]) -> str:
    """Names and values as an HTML table; all text is escaped."""
    import jinja2

    return jinja2.Environment(autoescape=True).from_string(_HTML).render(title=title, lines=lines)


class Listing(NamedTuple):
    """Rows under a title, of which some columns are shown, and a line below them."""

    title: str | None
    columns: Sequence[str]
    rows: Sequence[Mapping[str, object] | Fields]
    note: str = ""


class Printed:
    """What prints as lines of text below a title, and in a notebook as a table.

    A dataclass that inherits from it is declared with ``repr=False``.
    """

    @property
    def _title(self) -> str:
        raise NotImplementedError

    def lines(self) -> dict[str, str]:
        """What is known, in words, by name of the line."""
        raise NotImplementedError

    def tables(self) -> Sequence[Listing]:
        """What the command line prints below the lines."""
        return ()

    def remarks(self) -> list[str]:
        """What the command line says beside, on stderr, a line each."""
        return []

    def to_latex(self) -> str:
        """The tables for a paper, one after the other, each with its title as a comment."""
        import pandas as pd

        texts = []
        for one in self.tables():
            rows = [[cell(row.get(name)) for name in one.columns] for row in one.rows]
            table = pd.DataFrame(rows, columns=[name.replace("_", " ") for name in one.columns])
            texts.append((f"% {one.title}\n" if one.title else "") + table.to_latex(index=False, escape=True))
        return "\n".join(texts)

    def document(self) -> Any:
        """What ``--json`` prints."""
        return self

    def summary(self) -> dict[str, str]:
        """Lines of the printed representation: those of :meth:`lines`, cut to a width."""
        return {name: label(text, _PRINTED) for name, text in self.lines().items()}

    def __repr__(self) -> str:
        return as_text(self._title, self.summary())

    def _repr_html_(self) -> str:
        return as_html(self._title, self.summary())


def record_lines(record: Record, meaning: str = "", bounds: Sequence[BoundRow] = ()) -> dict[str, str]:
    """A run in words, by name of the line: value, bound, gap, proof, model, solver, times, metrics.

    Parameters
    ----------
    record
        The record of the run.
    meaning
        What the value is, with its unit.
    bounds
        Analytic bounds of the problem; a bound of the duals that is named like one of another value is told apart.
    """
    metrics = {k: v for k, v in (record.metrics or {}).items() if isinstance(v, (int, float, str))}
    condition = metrics.pop("conditional_on", None)
    solver, memory = record.solver, record.peak_memory_mb
    stated = {
        **_time_line(metrics),
        "value": number(record.objective, 12) + _note(record.sense),
        "meaning": meaning,
        "exact": record.objective_exact,
        "bound": number(record.bound, 12) + _note(_source(record, bounds)),
        "gap": number(record.gap, 3),
        "proof": _proof(record, condition, metrics.get("unrestricted_bound")),
        "infeasible": record.infeasible_by and f"proven by {record.infeasible_by}",
        "verified": number(record.verified) + _note(_worst(record)),
        **_repair_line(record),
        **_start_line(record),
        "model": _model(record),
        "method": number(record.method),
        "solver": " ".join(filter(None, (solver.name, solver.version, solver.algorithm))) or "–",
        "size": ", ".join(f"{v} {k}" for k, v in record.size.items() if v is not None) or "–",
        "time": ", ".join(f"{k.removesuffix('_s')} {v:.3g} s" for k, v in record.time.items() if v is not None) or "–",
        "peak memory": "–" if memory is None else f"{memory:.0f} MB",
    }
    lines = {name: line for name, line in stated.items() if line}
    for name, value in metrics.items():
        lines[f"{name} (metric)" if name in lines else name.replace(" ", "_")] = number(value, 12)
    if record.message:
        lines["message"] = record.message
    return lines


def _source(record: Record, bounds: Sequence[BoundRow]) -> str | None:
    """Name of the bound, told apart from an analytic bound of the same name and another value."""
    alike = [row["value"] for row in bounds if row["name"] == record.bound_source]
    if not alike or record.bound is None or any(math.isclose(one, record.bound) for one in alike):
        return record.bound_source
    return f"{record.bound_source} of the duals"


def _proof(record: Record, condition: object, free: Any) -> str:
    """What is proven, under what condition, and why no more; ``free`` bounds the value without the condition."""
    proof = number(record.proof)
    if condition and record.objective is not None:
        proof += f" {condition}"
        if free is not None:
            proof += f"; without this restriction, at {'least' if record.sense == 'min' else 'most'} {free:g}"
    ended = f"ended: {record.termination}" if record.termination else None
    return proof + _note("; ".join(filter(None, (_PROOFS.get(record.proof or Proof.NONE), ended))))


def _worst(record: Record) -> str | None:
    """The largest violation of the checker."""
    blocks = {block: v for block, v in (record.violations or {}).items() if v is not None}
    worst = max(blocks, key=blocks.__getitem__, default=None)
    if blocks and record.verified is False and violated(blocks) is None:
        return "it passes the checker, but results contradict each other"
    return None if worst is None else _violation(worst, blocks[worst])


def _time_line(metrics: dict[str, Any]) -> dict[str, str]:
    """T, in seconds too where they are known, as the first line; it is taken out of the metrics."""
    time, seconds = metrics.pop("T", None), metrics.pop("T_s", None)
    if time is None:
        return {}
    shown = f"{number(time, 12)}   [{TIME}]"
    return {"T": shown if seconds is None else f"{number(seconds, 6)} s = {shown}"}


def _start_line(record: Record) -> dict[str, str]:
    """The solution from which the run started, as a line; none without one."""
    start = record.start
    if start is None:
        return {}
    used = f"{' and '.join(start.used)} began with it" if start.used else f"{record.method} did not begin with it"
    kept = "; nothing better was found" if start.kept else ""
    return {"start": f"{start.source}, of value {number(start.objective, 12)}: {used}{kept}"}


def _violation(block: str, value: float) -> str:
    return f"worst violation {value:.2g}" + (f", of {block}" if value > 0 else "")


def _note(text: str | None) -> str:
    return f"   ({text})" if text else ""


def extent(record: Record) -> str:
    """Vertices, and arcs if there are any; empty where the instance is a matrix, whose size is listed anyway."""
    if record.n is None or str(record.formulation).startswith("matrix."):
        return ""
    arcs = "" if record.arcs is None else f", {record.arcs} arcs"
    return f"   ({record.n} vertices{arcs})"


def _repair_line(record: Record) -> dict[str, str]:
    """What was reported before a repair made it feasible, as a line; none if the repair removed only round-off."""
    old = record.repaired
    if old is None or old.violation is None:
        return {}
    change = abs((old.claimed or 0.0) - (record.objective or 0.0))
    if old.violation <= FEASIBLE and change <= FEASIBLE * abs(record.objective or 0.0):
        return {}
    return {"repaired": f"from {number(old.claimed, 12)}   (worst violation before the repair {old.violation:.2g})"}


def _model(record: Record) -> str:
    """Whether the stated model was built, in which form and size, and what solved it."""
    model, rows = record.model, record.size.constraints
    known = "" if model.variables is None else f"{model.variables:,} variables"
    if model.built is None:
        return "–"
    if not model.built:
        return "not built" + (f" (about {known})" if known else "") + f": {model.reason}"
    parts = [part for part in (known, "" if rows is None else f"{rows:,} rows", model.reason) if part]
    return f"stated in {model.form}: {', '.join(parts)}"


def unsolved(record: Record) -> str:
    """Why a run has no verified solution, on one line."""
    reason = "" if (record.message or "").startswith(NOTE) else record.message
    if not reason and record.infeasible_by:
        reason = f"there is none: proven by {record.infeasible_by}"
    elif not reason and record.objective is None:
        solver = record.solver.name or record.method
        limitless = record.termination == "unbounded"
        reason = f"{solver} reports that the objective is unbounded" if limitless else None
        reason = reason or f"{solver} returned no solution"
    return f"no solution: ended with {record.termination}: {reason or 'no solution passed verification'}"


# tables ---------------------------------------------------------------------------------------------------------------


def frame_rows(frame: pd.DataFrame) -> list[dict[str, Json]]:
    """A frame as JSON-able rows: NULL as None, JSON columns unpacked, times in ISO form."""
    from opticoll.analysis.store.schema import flat_columns

    packed = {name for name, kind, _ in flat_columns() if kind == "JSON"}
    return [
        {name: _plain(value, name in packed) for name, value in zip(frame.columns, row, strict=True)}
        for row in frame.itertuples(index=False, name=None)
    ]


def _plain(value: Any, packed: bool) -> Json:
    import pandas as pd

    if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
        return value.tolist()
    if not isinstance(value, (list, dict)) and pd.isna(value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.isoformat() + ("Z" if value.tzinfo is None else "")
    if packed and isinstance(value, str):
        with suppress(ValueError):
            return json.loads(value)
    return value
