"""The numbers in *What we found*: each is that of a stored row or table, a closed form, or says only what was asked.

A finding is quoted with its numbers as groups of a regular expression. Their source is a measured row of
``docs/generated/claims``, a table of a guide, a shipped row of a figure, a test of the ledger or a closed form. Every
number of the findings is in a quotation or among the words that say what was asked.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from case_families import each

from opticoll.analysis.cli.main import main
from opticoll.analysis.designs.pods import pod_records
from opticoll.analysis.ledger.ledger import claims
from opticoll.analysis.papers.lumorph.drawn_points import points
from opticoll.analysis.papers.optree import table_one
from opticoll.formulations.lumorph.collective_bounds import receptions
from opticoll.formulations.optree import step_counts
from opticoll.formulations.optree.radix_trees import Fabric, walks
from opticoll.formulations.rounds.collectives import collective
from opticoll.formulations.rounds.round_schedule import Limits
from opticoll.instances import parse
from opticoll.solvers.methods.optree.best_trees import best_by_depth

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "analysis" / "papers" / "shipped_rows"
N = r"(\d+(?:\.\d+)?)"


def cost_of_a_lost_switch() -> float:
    """The largest ratio of the times without and with a switch in the table of pods of several cubes."""
    rows = [row for (cubes, *_), row in pod_records().items() if cubes > 1]
    return max(row.lost_switch / row.time for row in rows if row.lost_switch is not None)


@dataclass(frozen=True)
class Quoted:
    """Numbers in the words of a finding, and what they must be.

    The measured numbers are in ``source``, as the groups of a pattern in a text, or computed. They agree if they round
    to the digits that are quoted; with ``percent``, ratios are turned into percent above 1 first.
    """

    finding: int
    words: str
    source: Callable[[], tuple[float, ...]]
    percent: bool = False


@cache
def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def findings() -> dict[int, str]:
    body = text("docs/results.md").split("\n## How the papers' claims fare")[0]
    parts = re.split(r"\n## (?=\d+\. )", body)[1:]
    return {int(part.split(".")[0]): " ".join(part.split()) for part in parts}


def found(name: str, pattern: str) -> Callable[[], tuple[float, ...]]:
    """The numbers of a pattern in a file."""

    def numbers() -> tuple[float, ...]:
        match = re.search(pattern, text(name), re.S)
        assert match, f"{pattern!r} is not in {name}"
        return tuple(float(one) for one in match.groups())

    return numbers


def measured(claim: str, pattern: str) -> Callable[[], tuple[float, ...]]:
    """The numbers of a pattern in the stored row of a claim."""
    paper, name = claim.split(".", 1)

    def numbers() -> tuple[float, ...]:
        parts = text(f"docs/generated/claims/{paper}.md").split(f"(claim-{paper}-{name})=\n")
        assert len(parts) == 2, f"no row {claim}"
        match = re.search(pattern, parts[1].split("\n(claim-")[0], re.S)
        assert match, f"{pattern!r} is not in the row of {claim}"
        return tuple(float(one) for one in match.groups())

    return numbers


def shipped(file: str, column: str, **where: str) -> float:
    """A number of a shipped row of a figure."""
    lines = (SHIPPED / file).read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    (ratio,) = [float(one[column]) for one in rows if all(one[name] == value for name, value in where.items())]
    return ratio


def bound_of_64_nodes() -> float:
    """Corollary 3 at degree 4: 4 nodes at one hop, 16 at two, 43 at three."""
    return (4 * 1 + 16 * 2 + 43 * 3) / 4


def kautz_of_64_nodes() -> float:
    return shipped("alltoall-8.csv", "T", instance="genkautz:n=64,d=4")


def record_of_64_nodes() -> tuple[float, ...]:
    """The last table of the page has one-way links, its third column degree 4."""
    return found("docs/guide/design.md", r".*\n\| 64 (?:\| [\d.]+ \([^)]*\) ){2}\| ([\d.]+) ")()


def disjoint_paths() -> tuple[float, ...]:
    (first,) = measured("alltoall.disjoint-paths", r", measured ([\d.]+)")()
    return first, shipped("alltoall-7.csv", "ratio", scheme="many paths, pMCF disjoint", instance="genkautz:n=16,d=4")


def rounds_on(side: int) -> tuple[float, ...]:
    """All-to-all: what crosses the middle, an arc of 16 wavelengths a row; all-gather: n - 1 chunks, 16 a round."""
    mesh, limits, n = parse(f"lightpath:{side}x{side},lasers=16"), Limits(16), side**2
    half = np.arange(n) % side < side // 2
    crossing = int(((half[mesh.tail]) & ~half[mesh.head]).sum())
    gathered = receptions(mesh, collective("all-gather", n), limits).value
    return -(-((n // 2) ** 2) // (crossing * limits.wavelengths)), gathered


def worst_gap_of_64_nodes() -> tuple[float, ...]:
    """The largest gap in the rows of 64 nodes with four two-way ports."""
    rows = re.findall(r"^\| 64, 4, two-way \|.*$", text("docs/guide/reconfigure.md"), re.M)
    return (max(float(gap) for row in rows for gap in re.findall(r"gap ([\d.]+) %", row)),)


def journal() -> tuple[float, ...]:
    """1 - 70 over the steps of WRHT, ring and neighbour exchange, cut to two digits of a percentage."""
    rivals = (
        table_one.wrht_steps(1024, 64),
        table_one.ring_steps(1024, 64),
        table_one.neighbour_exchange_steps(1024, 64),
    )
    return tuple(int(1e4 * (1 - 70 / steps)) / 100 for steps in rivals)


def figure_5() -> tuple[float, ...]:
    """The averages over neighbour exchange, ring and WRHT."""
    return tuple(
        number
        for name in ("ne", "ring", "wrht")
        for number in measured(f"optree.fig5-{name}", r", measured ([\d.]+)")()
    )


def whole_trees() -> tuple[float, ...]:
    """Steps of the best integer radices by the paper's count, and the theorem's steps rounded up."""
    fabric = Fabric(1024, 64)
    best = min(tree.steps for tree in best_by_depth(fabric, walks(fabric)).values())
    return float(best), float(-(-step_counts.optree_steps(1024, 64) // 1))


def saved_by_radices() -> tuple[float, ...]:
    (ratio,) = measured("optree.optimal", r"; ratio ([\d.]+) to")()
    return (2 - ratio,)


def drawn() -> tuple[float, ...]:
    return (float(len(points("7"))),)


def example_of_16_nodes() -> tuple[float, ...]:
    fabric = Fabric(16, 2)
    best = min(tree.steps for tree in best_by_depth(fabric, walks(fabric)).values())
    return float(best), float(table_one.neighbour_exchange_steps(16, 2))


DESIGNS = r"Of the (\d+) with one-way links, (\d+) are faster"
QUOTED = (
    Quoted(
        1,
        f"up to a delay of {N} shards",
        found("docs/guide/reconfigure.md", r"\| 64, 4, two-way \| [\d.]+ \| ([\d.]+) \| [\d.]+ \|\n"),
    ),
    Quoted(
        1,
        f"staying from {N} on",
        found("docs/guide/reconfigure.md", r"\| 64, 4, two-way \| [\d.]+ \| [\d.]+ \| ([\d.]+) \|\n"),
    ),
    Quoted(1, f"within {N} % of the best", worst_gap_of_64_nodes),
    Quoted(
        2,
        f"Of {N} sizes with one-way links, searched designs are faster at {N}",
        found("docs/guide/design.md", DESIGNS),
    ),
    Quoted(
        2,
        f"{N} of {N} records are",
        found("docs/guide/design.md", r"(?=.*?(\d+) topologies are proven best possible)(?=.*?\n(\d+) sizes, 5 to)"),
    ),
    Quoted(2, f"T = {N}; the", record_of_64_nodes),
    Quoted(2, f"digraph has {N}, the bound is {N}", lambda: (kautz_of_64_nodes(), bound_of_64_nodes())),
    Quoted(2, f"{N} % at N = 1000", measured("alltoall.genkautz-bound", r"N=1000: ([\d.]+)"), percent=True),
    Quoted(2, f"a better network gains {N} %", lambda: (kautz_of_64_nodes() / record_of_64_nodes()[0],), percent=True),
    Quoted(2, f"at {N} nodes and degree {N} even", measured("alltoall.over-xpander-d8", r"xpander:n=(\d+),d=(\d+)")),
    Quoted(3, f"takes {N} rounds, all-gather {N};", lambda: rounds_on(16)),
    Quoted(3, f"on 32x32 tiles {N} and {N}", lambda: rounds_on(32)),
    Quoted(4, f"takes {N} s on a free core", measured("lumorph.eight-gpus", r"describes: (\d+) s and 1 s on a free")),
    Quoted(4, f"the bound {N} after {N} s", measured("lumorph.eight-gpus", r"had the bound (\d+) after (\d+) s")),
    Quoted(4, f'to converge" for {N} GPUs', measured("lumorph.eight-gpus", r"fails to converge for (\d+) GPUs")),
    Quoted(5, f"All {N} points", drawn),
    Quoted(
        5,
        f"saves {N} and {N} % over",
        measured("lumorph.eighty-percent", r"measured Ideal switch\+Ring: ([\d.]+); Ideal switch\+Tree: ([\d.]+)"),
    ),
    Quoted(
        5,
        f"at {N} MB, not nearly {N} %",
        measured("lumorph.eighty-percent", r"nearly \[%\] = (?=\d+; GPUs = 256; buffer \[MB\] = (\d+))(\d+)"),
    ),
    Quoted(5, f"faster up to {N} MB", measured("lumorph.fastest", r"the tree is faster up to (\d+) MB")),
    Quoted(5, f"still {N} times as fast", measured("lumorph.slow-switches", r", measured ([\d.]+)")),
    Quoted(5, f"Believed: {N} %; always", measured("lumorph.eighty-percent", r"stated Ideal switch\+Ring: (\d+)")),
    Quoted(
        6,
        f"takes {N} % more time than the optimum or more, whichever of {N} random",
        found(
            "tests/ledgers/alltoall.py",
            r"(?=each of \d+ random maximum sets of disjoint paths takes (\d+) %)each of (\d+) random",
        ),
    ),
    Quoted(6, f"length {N} and {N} %", disjoint_paths, percent=True),
    Quoted(7, f"takes {N} times as long", measured("alltoall.host-bottleneck", r", measured ([\d.]+)")),
    Quoted(7, f"level below {N} link", measured("alltoall.host-bottleneck", r"below B = ([\d.]+)")),
    Quoted(7, f"not at {N}\\.", measured("alltoall.host-bottleneck", r"bottleneck \(around ([\d.]+)\)")),
    Quoted(7, f"Believed: below {N} link", measured("alltoall.host-bottleneck", r"bottleneck \(around ([\d.]+)\)")),
    Quoted(9, f"are {N}, {N} and {N} %", figure_5),
    Quoted(9, f"\\({N}, {N} and {N} %\\)", journal),
    Quoted(9, f"is right to {N} %", measured("optree.theorem2", r", measured ([\d.]+)"), percent=True),
    Quoted(9, f"children need {N} steps by the paper's own count, not {N};", whole_trees),
    Quoted(9, f"tree takes {N} rounds, neighbour exchange {N}\\.", example_of_16_nodes),
    Quoted(9, f"up to {N} % fewer steps", saved_by_radices, percent=True),
    Quoted(10, f"a factor of {N} from", found("docs/generated/heuristics.md", r"to ([\d.]+) \(topology-finder\)")),
    Quoted(10, f"a median of {N} times", found("docs/generated/heuristics.md", r"to ([\d.]+) \(topology-finder\)")),
    Quoted(
        10, f"length on {N} of {N} networks", measured("topoopt.optimal-alpha", r"alpha is larger in (\d+) of (\d+)")
    ),
    Quoted(10, f"by up to {N} %", measured("topoopt.optimal-alpha", r", measured ([\d.]+)"), percent=True),
    Quoted(10, f"\\(up to {N} times\\)", measured("topoopt.abstract", r"stated ([\d.]+), measured")),
    Quoted(10, f"which give {N} for", measured("topoopt.abstract", r"measured ([\d.]+)")),
    Quoted(
        11,
        f"takes {N} shards over a link on the torus, {N} on the published twist, and {N} on the best wiring found; no "
        f"wiring takes less than {N}\\.",
        found(
            "docs/guide/pods.md", r"\| 16 \| [^|]+ \| ([\d.]+) \| ([\d.]+) \| [^|]+ \| ([\d.]+) [^|]+ \| ([\d.]+) \|"
        ),
    ),
    Quoted(
        11,
        f"it is {N} on the torus, and {N}\\.",
        found("docs/guide/pods.md", r"\| 64 \| [^|]+ \| ([\d.]+) \| [^|]*\| [^|]+ \| ([\d.]+) "),
    ),
    Quoted(11, f"costs at most {N} %", lambda: (cost_of_a_lost_switch(),), percent=True),
)
#: Words with numbers that say what was asked: sizes, units, figures and sections of papers.
ASKED = {
    1: ("C(K+h-1, h)", "among 64 nodes", "3.7 µs and 1 MB", "at 10 ms"),
    2: ("at 64 nodes", "N = 1000"),
    3: ("of 1024 GPUs", "on 16x16 tiles with 16 lasers", "on 32x32 tiles", "beyond 8 GPUs"),
    4: ("for 8 GPUs in a second",),
    5: ("of figure 7", "4/3 of the volume", "LUMORPH-4", "at 25 µs", "of figure 5", "within 0.001 µs"),
    6: ("of 8 and 16 nodes",),
    7: ("section 3.2.3", "a 10x10 torus"),
    8: (),
    9: ("of 16 nodes and 2 wavelengths", "of figure 5", "Theorem 2", "Lemma 1"),
    10: (),
    11: ("On 16 cubes", "On 64 cubes"),
}


def test_there_are_eleven_findings_and_the_claims_that_they_name_exist():
    assert list(findings()) == list(ASKED) == list(range(1, 12))
    named = {
        name for names in re.findall(r"`opticoll claims ([^`]+)`", text("docs/results.md")) for name in names.split()
    }
    assert len(named) >= 10
    assert named <= set(claims())


@each("one", QUOTED)
def test_quoted_numbers_are_the_measured_ones(one):
    matches = re.findall(one.words, findings()[one.finding])
    assert matches, "the finding no longer says so: change the quotation with it"
    expected = [100 * (value - 1) if one.percent else value for value in one.source()]
    for match in matches:
        quoted = (match,) if isinstance(match, str) else match
        assert len(quoted) == len(expected)
        for number, value in zip(quoted, expected, strict=True):
            digits = len(number.partition(".")[2])
            assert abs(float(number) - value) <= 0.5 * 10**-digits * (1 + 1e-9), (number, value)


def test_the_readme_quotes_the_findings():
    """Its first statements are the first findings; numbers of its table of models are tested where it is run."""
    readme = text("README.md").partition("## What we found")[2].partition("## What else")[0]
    statements = [" ".join(one.split()) for one in re.findall(r"^\* (.*?)(?=^\* |^!|\Z)", readme, re.M | re.S)]
    assert len(statements) == 4
    caption = re.search(r"^\*(\d.*?)\*$", readme, re.M | re.S)
    for number, words in [*enumerate(statements, 1), (1, caption[1])]:
        assert not set(re.findall(r"[\d.]*\d", words)) - set(re.findall(r"[\d.]*\d", findings()[number])), words
    claims = re.search(r"how (\d+) claims", readme)[1]
    assert re.search(r"^\| all \|  \| (\d+)", text("docs/results.md"), re.M)[1] == claims


@each("number", ASKED)
def test_every_number_has_a_source_or_says_what_was_asked(number):
    body = findings()[number].partition(". ")[2]
    for words in [one.words for one in QUOTED if one.finding == number]:
        for match in reversed(list(re.finditer(words, body))):
            spans = [match.span(group) for group in range(1, len(match.groups()) + 1)]
            for start, end in reversed(spans):
                body = body[:start] + "#" * (end - start) + body[end:]
    body = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", body)
    for words in ASKED[number]:
        assert words in body
        body = body.replace(words, " ")
    left = re.findall(r"\S*\d\S*", body)
    assert not left, f"numbers without a source: {left}"


def test_curves_of_figure_7_are_equal_within_what_is_said():
    assert max(abs(one.low - one.drawn) for one in points("7") if one.exact) < 1e-3
    assert all(one.exact and one.low == one.high for one in points("7"))


def test_two_to_five_configurations_at_one_megabyte():
    cells = re.findall(r"^\|[^|]*\| 1 MB \| K = (\d+),", text("docs/guide/reconfigure.md"), re.M)
    assert len(cells) >= 4
    assert {int(k) for k in cells} <= {2, 3, 4, 5}
    assert {min(map(int, cells)), max(map(int, cells))} == {2, 5}


def test_the_command_of_finding_2_prints_its_network(capfd):
    (command, time), *_ = re.findall(r"`opticoll (design [^`]*)` \(T = ([\d.]+);", text("docs/results.md"))
    assert main(command.split()) == 0
    assert re.search(rf"^T +{re.escape(time)} ", capfd.readouterr().out, re.M)
