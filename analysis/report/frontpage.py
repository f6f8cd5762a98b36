"""Generate the tables of results and the plots of README and ``docs/`` from a results store, in blocks between markers.

A block is the text between the comments ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->``; blocks may be nested. Words
and numbers of the table come from the claims ledger, proofs from the records behind each claim. A plot is drawn only
if every cell of its studies has a run in the store, since part of a study could look like a different result.
:class:`MissingData` names what a store lacks and the command that computes it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opticoll.analysis.ledger import claims, kept
from opticoll.analysis.ledger.claim import Verdict, counted, page
from opticoll.analysis.present import number
from opticoll.analysis.report.findings import PAPER_NAMES
from opticoll.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from opticoll.analysis.ledger import Row
    from opticoll.analysis.papers import PaperFigure
    from opticoll.analysis.store import Store


_BEGIN = re.compile(r"<!-- ([\w-]+):begin -->")


def begin(name: str) -> str:
    """Comment before a block."""
    return f"<!-- {name}:begin -->"


def end(name: str) -> str:
    """Comment after a block."""
    return f"<!-- {name}:end -->"


def names(text: str) -> list[str]:
    """Names of all blocks of a document, nested ones included, in order."""
    return _BEGIN.findall(text)


def content(text: str, name: str) -> str | None:
    """Text of a block without the line ends around it; None if the document has no such block.

    Raises
    ------
    BadInput
        If the block begins twice, or does not end.
    """
    parts = _split(text, name)
    return None if parts is None else parts[1].strip("\n")


def wrapped(name: str, body: str) -> str:
    """Block with its comments."""
    return f"{begin(name)}\n{body}\n{end(name)}"


def replaced(text: str, name: str, body: str) -> str:
    """Replace the text of a block; a document without the block is unchanged.

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


#: Folder of the plots, relative to the root of the documents.
FIGURES = "docs/figures"
#: Claims that ``docs/results.md`` shows; `opticoll claims` shows all.
SHOWN = (
    "alltoall.link-mcf-printed", "alltoall.forty-minutes", "alltoall.over-tori", "alltoall.disjoint-paths",
    "lumorph.eight-gpus", "lumorph.route-times", "lumorph.eighty-percent", "lumorph.r-min",
    "sipml.switches-degree", "sipml.ilp", "sipml.convergence", "sipml.prohibitive",
    "topoopt.theorem-1", "topoopt.explodes-at-six", "topoopt.optimal-alpha", "topoopt.alternating",
    "optree.table1-optree", "optree.table1-one-stage", "optree.theorem2", "optree.optimal",
)  # fmt: skip
_VERDICTS = {
    Verdict.REPRODUCED: "✓ reproduced",
    Verdict.DEPENDS: "± depends on an open choice",
    Verdict.NOT_REPRODUCED: "✗ not reproduced",
    Verdict.SELF_CONTRADICTED: "≠ contradicted by the paper itself",
    Verdict.NOT_TESTABLE: "– not testable here",
}
#: A mapping of more numbers is summarised by its smallest and largest.
_FEW = 4
#: Longer counterexamples are left out; `opticoll claims` shows them.
_LONG = 80


class MissingData(Exception):
    """A store lacks data for a block; the message names the data and the command that computes it."""


# the table of results -----------------------------------------------------------------------------------------------


def results_table(store: Store) -> str:
    """Table of the claims of :data:`SHOWN` with their verdicts, and the counts of the whole ledger by verdict.

    Raises
    ------
    MissingData
        If one of these claims has not been measured into the store, or its measurement failed.
    """
    rows = {row["id"]: row for row in kept((), store)}
    absent = [name for name in SHOWN if name not in rows]
    failed = [name for name in SHOWN if name in rows and rows[name].get("failed")]
    if absent or failed:
        wrong = [f"not measured: {', '.join(absent)}"] * bool(absent) + [f"failed: {', '.join(failed)}"] * bool(failed)
        msg = f"{'; '.join(wrong)}; measure with `opticoll claims {' '.join(absent + failed)}`"
        raise MissingData(msg)
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
            escaped(_measured(row)),
            _VERDICTS[Verdict(row["verdict"])],
            _rests_on(row, proofs),
            f"`{name}`",
        )
        lines.append(f"| {' | '.join(cells)} |")
        last = paper
    return "\n".join([*lines, "", _counts(list(rows.values()))])


def verdicts_table(store: Store) -> str:
    """Table of the number of stored claims by paper and verdict, and the counts of the whole ledger."""
    rows = kept((), store)
    lines = [
        f"| paper | {' | '.join(words[2:] for words in _VERDICTS.values())} |",
        "|" + "---|" * (len(_VERDICTS) + 1),
    ]
    for paper in dict.fromkeys(row.paper for row in rows):
        counts = Counter(row.verdict for row in rows if row.paper == paper)
        name = PAPER_NAMES.get(paper, paper)
        linked = f"[{name}](docs/claims/{paper}.md)" if paper in PAPER_NAMES else name
        lines.append(f"| {linked} | {' | '.join(str(counts[verdict]) for verdict in _VERDICTS)} |")
    return "\n".join([*lines, "", _counts(rows)])


def claims_pages(store: Store) -> dict[str, str]:
    """One Markdown page per paper with every stored claim, by paper."""
    by_paper: dict[str, list[Row]] = {}
    for row in kept((), store):
        by_paper.setdefault(row.paper, []).append(row)
    return {paper: page(PAPER_NAMES.get(paper, paper), rows) for paper, rows in by_paper.items()}


def _counts(rows: list[Row]) -> str:
    """Counts of claims by verdict, as one sentence."""
    whole = len(rows) == len(claims())
    start = "The whole ledger" if whole else f"Of the {len(claims())} claims of the ledger {len(rows)} are measured"
    return f"{start}{f', {len(rows)} claims' if whole else ''}: {counted(rows)}."


def _measured(row: Row) -> str:
    text = in_words(row["measured"])
    example = row.get("witness")
    short = example and len(example) <= _LONG and example not in text
    return f"{text}; smallest: {example}" if short else text


def _rests_on(row: Row, proofs: Mapping[str, str]) -> str:
    """Number of cases examined, and the proofs of the runs."""
    parts = []
    if row["count"] is not None:
        against = f", {row['violations']:,} against it" if row["violations"] else ""
        parts.append(f"{row['count']:,} cases{against}")
    if row["records"]:
        counts = Counter(str(proofs.get(name, "not in this store")) for name in row["records"])
        runs = len(row["records"])
        parts.append(f"{runs} run{'s' * (runs > 1)}: {', '.join(f'{n} {proof}' for proof, n in counts.most_common())}")
    return "; ".join(parts) or "computed without a run"


def in_words(value: Any) -> str:
    """Measurement in one line: numbers to four digits, long mappings of numbers by their smallest and largest."""
    if isinstance(value, dict):
        plain = all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in value.values())
        if plain and len(value) > _FEW:
            ends = list(value)
            return f"{min(value.values()):.4g} to {max(value.values()):.4g} ({ends[0]} … {ends[-1]})"
        return "; ".join(f"{name}: {in_words(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(in_words(item) for item in value)
    return number(value, digits=4)


def escaped(text: str) -> str:
    """Escape the characters of a table's cell that Markdown interprets."""
    return " ".join(re.sub(r"[\\|*_<`$]", r"\\\g<0>", text).split())


# plots --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plot:
    """A plot of README or ``docs/results.md``.

    Parameters
    ----------
    name
        Name of its file and, after ``plot-``, of its block.
    studies
        Studies whose cells must all have a run in the store.
    make
        Function to title, one-sentence caption and drawing from :func:`opticoll.analysis.report.findings.best_runs`.
    """

    name: str
    studies: tuple[str, ...]
    make: Callable[[pd.DataFrame], tuple[str, str, Figure]]


def plot_block(plot: Plot, store: Store, results: pd.DataFrame, root: Path) -> str:
    """Draw a plot into :data:`FIGURES` below ``root`` and return the Markdown that shows it.

    Raises
    ------
    MissingData
        If cells of its studies have no run in the store.
    """
    from opticoll.analysis.plots import card

    _check_complete(plot, store)
    title, caption, figure = plot.make(results)
    path = root / FIGURES / f"{plot.name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = card(figure)
    if not path.exists() or path.read_text(encoding="utf-8") != drawn:
        path.write_text(drawn, encoding="utf-8")
    commands = ", ".join(f"`opticoll study {study}`" for study in plot.studies)
    return f"![{escaped(title)}]({FIGURES}/{plot.name}.svg)\n\n*{escaped(caption)}* ({commands})"


def _check_complete(plot: Plot, store: Store) -> None:
    from opticoll.analysis.study.study_file import find, load

    known = set(store.sql("SELECT DISTINCT key FROM runs")["key"])
    wrong = []
    for name in plot.studies:
        cells = load(find(name)).cells
        absent = sum(cell.key not in known for cell in cells)
        if absent:
            wrong.append(
                f"{absent} of {len(cells)} cells of {name} have no run; compute them with `opticoll study {name}`"
            )
    if wrong:
        raise MissingData("; ".join(wrong))


def _chosen(name: str, results: pd.DataFrame) -> tuple[PaperFigure, pd.DataFrame]:
    """Figure of :mod:`opticoll.analysis.papers` with its rows, at least one."""
    from opticoll.analysis.papers import figures

    figure = next(figure for figure in figures() if figure.name == name)
    rows = results if results.empty else figure.select(results)
    if rows.empty:
        msg = f"no runs for the figure {name}; compute them with `opticoll study {figure.study}`"
        raise MissingData(msg)
    return figure, rows


def _gap(name: str, title: str) -> Callable[[pd.DataFrame], tuple[str, str, Figure]]:
    def make(results: pd.DataFrame) -> tuple[str, str, Figure]:
        from opticoll.formulations import formulations

        figure, every = _chosen(name, results)
        # Runs only: a closed form is not a checked schedule and may lie below every bound.
        rows = every[every["formulation"].isin(list(formulations()))]
        known = rows[rows["ratio"].notna()]
        if known.empty:
            msg = f"no verified value of a heuristic for the figure {name}; run `opticoll study {figure.study}`"
            raise MissingData(msg)
        medians = known.groupby("heuristic")["ratio"].median().sort_values(kind="stable")
        problems = known.drop_duplicates("problem")
        caption = (
            f"{title}: {len(problems)} problems, {int(problems['proven'].sum())} with a proven optimum; "
            f"median ratios from {medians.iloc[0]:.3g} ({medians.index[0]}) to {medians.iloc[-1]:.3g} "
            f"({medians.index[-1]}), the worst {known['ratio'].max():.3g}."
        )
        return title, caption, figure.draw(rows)

    return make


def _scaling(results: pd.DataFrame) -> tuple[str, str, Figure]:
    from opticoll.analysis.papers.alltoall.scaling_figures import ROUTES

    figure, rows = _chosen("alltoall-scaling", results)
    reached = rows[(rows["phase"] == "solve") & (rows["state"] == "measured")].groupby("route", sort=False)["n"].max()
    tops = ", ".join(f"{route} {int(reached[route])}" for route, _, _ in ROUTES if route in reached.index)
    return figure.title, f"{figure.title}; the largest N proven within the time limit: {tops}.", figure.draw(rows)


def _profile(results: pd.DataFrame) -> tuple[str, str, Figure]:
    from opticoll.analysis.plots import store_plots
    from opticoll.analysis.report import solvers_section

    comparison = solvers_section.compare(results)
    steps = None if comparison is None else comparison.profiles.get("linear")
    if comparison is None or steps is None or steps.empty:
        msg = "no solver ran on every linear program of the benchmark; run `opticoll study solver-bench`"
        raise MissingData(msg)
    ends = steps.groupby("solver")["share"].max()
    first = steps[steps["ratio"] <= 1.0].groupby("solver")["share"].max()
    count = comparison.each.loc[comparison.each["linear"].astype(bool), "problem"].nunique()
    title = "Performance profiles of solvers on linear programs"
    most = ", ".join(str(solver) for solver in ends.index[ends >= ends.max()])
    caption = (
        f"{title}: of {count} problems {first.idxmax()} is the fastest on {first.max():.0%}; solved most, "
        f"{ends.max():.0%}, by {most}, to recomputed residuals of {solvers_section.ACCURACY:g} within the time limit."
    )
    return title, caption, store_plots.profiles(steps, comparison.solvers)


PLOTS = (
    Plot("gap-alltoall", ("gap-alltoall",), _gap("gap-alltoall", "All-to-all, paths and layers by heuristics")),
    Plot("gap-lumorph", ("gap-lumorph",), _gap("gap-lumorph", "LuMorph, routes and rounds by heuristics")),
    Plot("gap-sipml", ("gap-sipml",), _gap("gap-sipml", "SiP-ML, first fit on the ring and degree-aware placement")),
    Plot("gap-optree", ("gap-optree",), _gap("gap-optree", "OpTree, uniform trees of Theorem 2's depth")),
    Plot("gap-topoopt", ("topoopt-gap",), _gap("gap-topoopt", "TopoOpt, circuits and strategies by heuristics")),
    Plot("scaling", ("scaling",), _scaling),
    Plot("solvers", ("solver-bench",), _profile),
)
#: Studies behind the plots.
STUDIES = tuple(dict.fromkeys(study for plot in PLOTS for study in plot.studies))
