"""What README shows of a store: a table of results out of the claims ledger, and plots, each a block between markers.

Nothing here is typed: the words and numbers of a row are those that the ledger keeps, the proofs those of the records
it rests on; a plot is drawn only when every cell of its studies has a row in the store, since half a study would look
like another result. What a store lacks is said by :class:`Lacking`, with the command that makes it.

Blocks of a document that are written by a program.

A block is what stands between the comments ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->``; blocks may hold others.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opticoll.analysis.ledger import claims, kept
from opticoll.analysis.ledger.claim import Verdict
from opticoll.analysis.present import number
from opticoll.analysis.report.findings import PAPER_NAMES
from opticoll.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from opticoll.analysis.papers import PaperFigure
    from opticoll.analysis.store import Store


_BEGIN = re.compile(r"<!-- ([\w-]+):begin -->")


def begin(name: str) -> str:
    """The comment before a block."""
    return f"<!-- {name}:begin -->"


def end(name: str) -> str:
    """The comment after a block."""
    return f"<!-- {name}:end -->"


def names(text: str) -> list[str]:
    """Names of all blocks of a document, also of those within others, in their order."""
    return _BEGIN.findall(text)


def content(text: str, name: str) -> str | None:
    """What stands in a block, without the line ends around it; None where the document has no such block.

    Raises
    ------
    BadInput
        If the block begins twice, or does not end.
    """
    parts = _split(text, name)
    return None if parts is None else parts[1].strip("\n")


def wrapped(name: str, body: str) -> str:
    """A block with its comments."""
    return f"{begin(name)}\n{body}\n{end(name)}"


def replaced(text: str, name: str, body: str) -> str:
    """Put ``body`` into a block; a document without it stays as it is.

    Raises
    ------
    BadInput
        As :func:`content`.
    """
    parts = _split(text, name)
    return text if parts is None else f"{parts[0]}{wrapped(name, body)}{parts[2]}"


def _split(text: str, name: str) -> tuple[str, str, str] | None:
    if begin(name) not in text and end(name) not in text:
        return None
    before, _, rest = text.partition(begin(name))
    inside, _, after = rest.partition(end(name))
    if text.count(begin(name)) != 1 or rest.count(end(name)) != 1 or text.count(end(name)) != 1:
        msg = f"block {name!r} must begin and end once: write {begin(name)}, then {end(name)}"
        raise BadInput(msg)
    return before, inside, after


#: Where plots lie, from the root of the documents.
FIGURES = "docs/figures"
#: The claims that README shows; `opticoll claims` has all.
SHOWN = (
    "alltoall.link-mcf-printed", "alltoall.forty-minutes", "alltoall.over-tori", "alltoall.disjoint-paths",
    "lumorph.eight-gpus", "lumorph.route-times", "lumorph.eighty-percent", "lumorph.r-min",
    "sipml.switches-degree", "sipml.ilp", "sipml.convergence", "sipml.prohibitive",
    "topoopt.theorem-1", "topoopt.explodes-at-six", "topoopt.optimal-alpha", "topoopt.alternating",
    "optree.table1-optree", "optree.table1-one-stage", "optree.theorem2", "optree.optimal",
)  # fmt: skip
_VERDICTS = {
    Verdict.REPRODUCED: "✓ reproduced",
    Verdict.NOT_REPRODUCED: "✗ not reproduced",
    Verdict.SELF_CONTRADICTED: "≠ contradicted by the paper itself",
    Verdict.NOT_TESTABLE: "– not testable here",
}
#: A mapping of more numbers is told by its least and largest.
_FEW = 4
#: A counterexample of more characters is left to `opticoll claims`.
_LONG = 80


class Lacking(Exception):
    """A store has not what a block is made of; the message says what is missing and which command makes it."""


# the table of results -----------------------------------------------------------------------------------------------


def results_table(store: Store) -> str:
    """The claims of :data:`SHOWN` with their verdicts, and how many of the ledger came out how.

    Raises
    ------
    Lacking
        If one of them has not been measured into the store, or its measurement failed.
    """
    rows = {row["id"]: row for row in kept((), store)}
    absent = [name for name in SHOWN if name not in rows]
    failed = [name for name in SHOWN if name in rows and rows[name].get("failed")]
    if absent or failed:
        wrong = [f"not measured: {', '.join(absent)}"] * bool(absent) + [f"failed: {', '.join(failed)}"] * bool(failed)
        msg = f"{'; '.join(wrong)}; `opticoll claims {' '.join(absent + failed)}` measures them"
        raise Lacking(msg)
    runs = store.sql("SELECT id, proof FROM runs")
    proofs: dict[str, str] = dict(zip(runs["id"], runs["proof"], strict=True))
    lines = ["| the paper says | measured here | verdict | rests on | `opticoll claims …` |", "|" + "---|" * 5]
    last = ""
    for name in SHOWN:
        row = rows[name]
        paper = PAPER_NAMES.get(row["paper"], row["paper"])
        heading = "" if paper == last else f"**{paper}.** "
        cells = (
            f"{heading}{escaped(row['claim'].rstrip('.'))} ({escaped(row['where'])})",
            escaped(_found(row)),
            _VERDICTS[Verdict(row["verdict"])],
            _rests_on(row, proofs),
            f"`{name}`",
        )
        lines.append(f"| {' | '.join(cells)} |")
        last = paper
    return "\n".join([*lines, "", _counts(list(rows.values()))])


def _counts(rows: list[Mapping[str, Any]]) -> str:
    """How many claims came out how, in one sentence."""
    counts = Counter(row["verdict"] for row in rows)
    told = ", ".join(f"{counts[verdict]} {words[2:]}" for verdict, words in _VERDICTS.items() if counts[verdict])
    whole = len(rows) == len(claims())
    start = "The whole ledger" if whole else f"Of the {len(claims())} claims of the ledger {len(rows)} are measured"
    return f"{start}{f', {len(rows)} claims' if whole else ''}: {told}."


def _found(row: Mapping[str, Any]) -> str:
    found = told(row["measured"])
    example = row.get("counterexample")
    short = example and len(example) <= _LONG and example not in found
    return f"{found}; smallest: {example}" if short else found


def _rests_on(row: Mapping[str, Any], proofs: Mapping[str, str]) -> str:
    """The cases that were swept, and the proofs of the runs that were made."""
    parts = []
    if row["count"] is not None:
        against = f", {row['violations']:,} against it" if row["violations"] else ""
        parts.append(f"{row['count']:,} cases{against}")
    if row["records"]:
        counts = Counter(str(proofs.get(name, "not in this store")) for name in row["records"])
        runs = len(row["records"])
        parts.append(f"{runs} run{'s' * (runs > 1)}: {', '.join(f'{n} {proof}' for proof, n in counts.most_common())}")
    return "; ".join(parts) or "computed without a run"


def told(value: Any) -> str:
    """A measurement in a line: numbers to four digits, long mappings of numbers by their least and largest."""
    if isinstance(value, dict):
        plain = all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in value.values())
        if plain and len(value) > _FEW:
            ends = list(value)
            return f"{min(value.values()):.4g} to {max(value.values()):.4g} ({ends[0]} … {ends[-1]})"
        return "; ".join(f"{name}: {told(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(told(item) for item in value)
    return number(value, digits=4)


def escaped(text: str) -> str:
    """Text of a table's cell with what Markdown would take for itself made harmless."""
    return " ".join("".join(f"\\{one}" if one in "\\|*_<`$" else one for one in text).split())


# plots --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plot:
    """A plot of README.

    Parameters
    ----------
    name
        Of its block (``plot-NAME``) and file.
    studies
        Every cell of these must have a row in the store.
    make
        Title, caption in one sentence and drawing, of :func:`opticoll.analysis.report.findings.best_runs`.
    """

    name: str
    studies: tuple[str, ...]
    make: Callable[[pd.DataFrame], tuple[str, str, Figure]]


def plot_block(plot: Plot, store: Store, results: pd.DataFrame, root: Path) -> str:
    """Draw a plot into :data:`FIGURES` below ``root`` and give the Markdown that shows it.

    Raises
    ------
    Lacking
        If cells of its studies have no row in the store.
    """
    from opticoll.analysis.plots.style import card

    _refuse_half(plot, store)
    title, caption, figure = plot.make(results)
    path = root / FIGURES / f"{plot.name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = card(figure)
    if not path.exists() or path.read_text(encoding="utf-8") != drawn:
        path.write_text(drawn, encoding="utf-8")
    commands = ", ".join(f"`opticoll study {study}`" for study in plot.studies)
    return f"![{escaped(title)}]({FIGURES}/{plot.name}.svg)\n\n*{escaped(caption)}* ({commands})"


def _refuse_half(plot: Plot, store: Store) -> None:
    from opticoll.analysis.study.study_file import find, load

    known = set(store.sql("SELECT DISTINCT key FROM runs")["key"])
    wrong = []
    for name in plot.studies:
        cells = load(find(name)).cells
        absent = sum(cell.key not in known for cell in cells)
        if absent:
            wrong.append(f"{absent} of {len(cells)} cells of {name} have no run; `opticoll study {name}` makes them")
    if wrong:
        raise Lacking("; ".join(wrong))


def _chosen(name: str, results: pd.DataFrame) -> tuple[PaperFigure, pd.DataFrame]:
    """A figure of :mod:`opticoll.analysis.papers` with its rows, of which there is at least one."""
    from opticoll.analysis.papers import figures

    one = next(figure for figure in figures() if figure.name == name)
    rows = results if results.empty else one.select(results)
    if rows.empty:
        msg = f"no run that the figure {name} shows; `opticoll study {one.study}` makes them"
        raise Lacking(msg)
    return one, rows


def _gap(name: str, title: str) -> Callable[[pd.DataFrame], tuple[str, str, Figure]]:
    def make(results: pd.DataFrame) -> tuple[str, str, Figure]:
        from opticoll.formulations import formulations

        one, every = _chosen(name, results)
        # Runs alone: a closed form is no schedule that was checked, and may lie below every bound.
        rows = every[every["formulation"].isin(list(formulations()))]
        known = rows[rows["ratio"].notna()]
        if known.empty:
            msg = f"no verified value of a heuristic in {name}; `opticoll study {one.study}` makes them"
            raise Lacking(msg)
        middle = known.groupby("heuristic")["ratio"].median().sort_values(kind="stable")
        problems = known.drop_duplicates("problem")
        caption = (
            f"{title}: {len(problems)} problems, {int(problems['proven'].sum())} with a proven optimum; median "
            f"ratios from {middle.iloc[0]:.3g} ({middle.index[0]}) to {middle.iloc[-1]:.3g} ({middle.index[-1]}), the "
            f"worst {known['ratio'].max():.3g}."
        )
        return title, caption, one.draw(rows)

    return make


def _scaling(results: pd.DataFrame) -> tuple[str, str, Figure]:
    from opticoll.analysis.papers.alltoall.scaling_figures import ROUTES

    one, rows = _chosen("alltoall-scaling", results)
    reached = rows[(rows["phase"] == "solve") & (rows["state"] == "measured")].groupby("route", sort=False)["n"].max()
    tops = ", ".join(f"{route} {int(reached[route])}" for route, _, _ in ROUTES if route in reached.index)
    return one.title, f"{one.title}; the largest N proven within the time limit: {tops}.", one.draw(rows)


def _profile(results: pd.DataFrame) -> tuple[str, str, Figure]:
    from opticoll.analysis.plots import solver_plots as plots_solvers
    from opticoll.analysis.report import solvers_section as report_solvers

    found = report_solvers.compare(results)
    steps = None if found is None else found.profiles.get("linear")
    if found is None or steps is None or steps.empty:
        msg = "no solver ran on every linear program of the benchmark; `opticoll study solver-bench` runs them"
        raise Lacking(msg)
    ends = steps.groupby("solver")["share"].max()
    first = steps[steps["ratio"] <= 1.0].groupby("solver")["share"].max()
    count = found.each.loc[found.each["linear"].astype(bool), "problem"].nunique()
    title = "Performance profiles of solvers on linear programs"
    most = ", ".join(str(solver) for solver in ends.index[ends >= ends.max()])
    caption = (
        f"{title}: of {count} problems {first.idxmax()} is the fastest on {first.max():.0%}; solved most, "
        f"{ends.max():.0%}, by {most}, to recomputed residuals of {report_solvers.ACCURACY:g} and within the limit."
    )
    return title, caption, plots_solvers.profiles(steps, found.solvers)


PLOTS = (
    Plot("gap-alltoall", ("gap-alltoall",), _gap("gap-alltoall", "All-to-all, paths and layers by heuristics")),
    Plot("gap-lumorph", ("gap-lumorph",), _gap("gap-lumorph", "LuMorph, routes and rounds by heuristics")),
    Plot("gap-sipml", ("gap-sipml",), _gap("gap-sipml", "SiP-ML, first fit on the ring and degree-aware placement")),
    Plot("gap-optree", ("gap-optree",), _gap("gap-optree", "OpTree, uniform trees of Theorem 2's depth")),
    Plot("gap-topoopt", ("topoopt-gap",), _gap("gap-topoopt", "TopoOpt, circuits and strategies by heuristics")),
    Plot("scaling", ("scaling",), _scaling),
    Plot("solvers", ("solver-bench",), _profile),
)
#: The studies behind the plots, each once.
STUDIES = tuple(dict.fromkeys(study for plot in PLOTS for study in plot.studies))
