"""Blocks of the README: written from a store, unchanged where the store lacks data, and the same when written again."""

from __future__ import annotations

import json

import blocks as markers
import documents as bench
import pytest
from timed_commands import Table

from opticoll.analysis.ledger.claim import ClaimRow, Verdict
from opticoll.analysis.ledger.ledger import claims, keep
from opticoll.analysis.plots.panels import new_figure
from opticoll.analysis.report.findings import best_runs
from opticoll.analysis.study.study_file import STUDIES, find, load
from opticoll.errors import BadFile, BadInput

TEXT = "\n".join(
    ["# Title", *(markers.wrapped(name, f"old {name}") for name in ("results", "plot-p", "bench-t")), "end"]
)


@pytest.fixture
def root(tmp_path):
    """Documents with blocks."""
    (tmp_path / "docs" / "generated").mkdir(parents=True)
    (tmp_path / "README.md").write_text(TEXT, encoding="utf-8")
    measured = tmp_path / "docs" / "generated" / "measured.md"
    measured.write_text(f"# All\n\n{markers.wrapped('bench', '')}\n", encoding="utf-8")
    shown = "\n".join(markers.wrapped(name, f"old {name}") for name in ("plot-p", "verdicts"))
    (tmp_path / "docs" / "results.md").write_text(f"# Results\n{shown}\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(root, store, monkeypatch):
    """The command on a small set of parts: one study, one plot, the ledger, two tables."""
    study = root / "tiny.toml"
    study.write_text(
        'name = "tiny"\nformulations = ["alltoall.master"]\ninstances = ["ring:{3,4}"]\nmethods = ["highs-simplex"]\n',
        encoding="utf-8",
    )
    result = {"t": Table("t", "Tea [s]", lambda: [{"cup": "a:1", "s": 0.25}]), "u": Table("u", "U", lambda: [{"x": 1}])}

    def make(results):
        figure = new_figure(2, 1)
        figure.add_subplot().plot(results["n"], results["objective"])
        return "Values", f"{len(results)} values.", figure

    monkeypatch.setattr(bench, "tables", lambda: result)
    monkeypatch.setattr(bench, "STUDIES", (str(study),))
    monkeypatch.setattr(bench, "PLOTS", (bench.Plot("p", (str(study),), make),))

    def invoked(*words):
        arguments = [*words, "--root", str(root), "--store", str(store.root)]
        try:
            bench.write_documents.main(arguments, standalone_mode=False)
        except SystemExit as ended:
            return ended.code
        return 0

    return invoked


def blocks(path):
    text = path.read_text(encoding="utf-8")
    return {name: markers.content(text, name) for name in markers.names(text)}


def examined(identifier, **changes):
    claim = claims()[identifier]
    row = {
        "id": identifier,
        "paper": claim.paper,
        "where": claim.where,
        "claim": claim.claim,
        "expected": 1,
        "tolerance": "exact",
        "measured": 0.5,
        "verdict": str(Verdict.REPRODUCED),
        "instances": [],
        "reason": "so",
        "failed": False,
        "count": None,
        "violations": None,
        "tightness": None,
        "witness": None,
        "records": [],
        "rerun": "",
    }
    return ClaimRow.read({**row, **changes})


#: Claims in a store.
SHOWN = ("alltoall.theorem-2", "lumorph.algorithm-3", "optree.theorem2", "topoopt.cost-ideal")


def fill(store, **changes):
    """Rows of a few claims; ``changes`` are those of the first one."""
    for number, name in enumerate(SHOWN):
        keep(store, examined(name, **(changes if number == 0 else {})), 0.1)


# markers ------------------------------------------------------------------------------------------------------------


def test_a_block_is_replaced_and_nothing_else():
    text = f"a\n{markers.wrapped('one', 'x')}\nb\n{markers.wrapped('two', 'y')}\n"
    new = markers.replaced(text, "one", r"z \1")
    assert new == f"a\n{markers.wrapped('one', chr(122) + ' ' + chr(92) + '1')}\nb\n{markers.wrapped('two', 'y')}\n"
    assert markers.names(new) == ["one", "two"]
    assert markers.content(new, "two") == "y"
    assert markers.replaced(text, "three", "z") == text
    assert markers.content(text, "three") is None


@pytest.mark.parametrize(
    "text",
    [
        markers.begin("one"),
        markers.end("one"),
        markers.end("one") + markers.begin("one"),
        markers.wrapped("one", "") * 2,
        markers.begin("one") + markers.wrapped("one", ""),
    ],
)
def test_a_block_that_does_not_begin_and_end_once_is_refused(text):
    with pytest.raises(BadInput, match="begin and end once"):
        markers.replaced(text, "one", "x")


# what is shown ------------------------------------------------------------------------------------------------------


def test_studies_behind_the_plots_exist():
    for name in bench.STUDIES:
        assert find(name).parent == STUDIES


def test_claims_are_counted_by_paper_weight_and_verdict(store):
    fill(store, verdict=str(Verdict.NOT_REPRODUCED), weight="headline")
    lines = bench.verdicts_table(store).splitlines()
    assert lines[0].startswith("| paper | weight | claims | reproduced | agrees with its figure | not reproduced |")
    assert lines[2].startswith("| [All-to-all](docs/generated/claims/alltoall.md) | headline | 1 | 0 | 0 | 1 | 0 |")
    assert lines[6].startswith("| all |  | 4 | 3 | 0 | 1 |")
    assert lines[-1].endswith(
        f" hold, 0 fail under most (60 % or more) of three or more other readings. "
        f"{len(claims()) - 4} more claims are not measured."
    )


def test_claims_that_are_missing_or_failed_are_named_with_the_command(store):
    with pytest.raises(bench.MissingData, match=r"none is measured.*`opticoll claims`"):
        bench.verdicts_table(store)
    fill(store, failed=True, verdict=str(Verdict.NOT_TESTABLE), measured=None)
    with pytest.raises(bench.MissingData, match=rf"^claims: {SHOWN[0]}; measure with"):
        bench.verdicts_table(store)


@pytest.mark.parametrize("plot", bench.PLOTS, ids=lambda plot: plot.name)
def test_every_plot_says_what_an_empty_store_lacks(plot, store):
    with pytest.raises(bench.MissingData, match="`opticoll study "):
        plot.make(best_runs(store))


# the command --------------------------------------------------------------------------------------------------------


def test_an_empty_store_changes_nothing_and_says_what_is_missing(run, root, capsys):
    assert run("--from-store") == 1
    assert (root / "README.md").read_text(encoding="utf-8") == TEXT
    assert blocks(root / "docs" / "results.md")["verdicts"] == "old verdicts"
    assert not (root / "docs" / "generated" / "figures").exists()
    stderr = capsys.readouterr().err
    assert "plot-p not updated: 2 of 2 cells" in stderr
    assert "`opticoll study " in stderr
    assert "verdicts not updated: claims: none is measured" in stderr
    assert "run `python docs/documents.py t u`" in stderr


def test_parts_are_measured_kept_and_written(run, root, store):
    assert run("t") == 0
    kept = json.loads((store.root / "bench.json").read_text(encoding="utf-8"))
    assert kept["t"]["rows"] == [{"cup": "a:1", "s": 0.25}]
    readme, every = blocks(root / "README.md"), blocks(root / "docs" / "generated" / "measured.md")
    assert readme["bench-t"].startswith(
        "**Tea [s]**\n\n| cup | s |\n|---|---|\n| `a:1` | 0.25 |\n\n(`python docs/documents.py t`, "
    )
    assert readme["results"] == "old results"
    assert every["bench-t"] == readme["bench-t"]
    assert "bench-u" not in every
    assert run("u") == 0
    assert list(blocks(root / "docs" / "generated" / "measured.md")) == ["bench", "bench-t", "bench-u"]


def test_plots_come_from_the_store_once_their_study_is_whole(run, root, store, capsys):
    study = bench.STUDIES[0]
    assert run(study) == 0
    before = blocks(root / "README.md")
    assert before["plot-p"].startswith("![Values](docs/generated/figures/p.svg)\n\n*2 values.* (`opticoll study ")
    results = blocks(root / "docs" / "results.md")
    assert results["plot-p"].startswith("![Values](generated/figures/p.svg)"), "relative to the folder of the document"
    picture = (root / "docs" / "generated" / "figures" / "p.svg").read_bytes()
    assert picture.startswith(b"<?xml")
    made = (root / "docs" / "generated" / "figures" / "p.svg").stat().st_mtime_ns

    fill(store)
    assert run("t", "u") == 0
    assert run("--from-store") == 0
    assert capsys.readouterr().err.count("not updated") == 0
    assert blocks(root / "docs" / "results.md")["verdicts"].startswith("| paper | weight | claims | reproduced |")
    documents = [root / name for name in bench.DOCUMENTS if (root / name).exists()]
    once = [path.read_text(encoding="utf-8") for path in documents]
    assert run("--from-store") == 0
    assert once == [path.read_text(encoding="utf-8") for path in documents]
    again = (root / "docs" / "generated" / "figures" / "p.svg").stat().st_mtime_ns
    assert again == made, "an equal plot is not written again"

    gone = load(find(study)).cells[0].key
    for path in store.records.glob(f"{gone}.*"):
        path.unlink()
    assert run("--from-store", study) == 1
    assert "1 of 2 cells" in capsys.readouterr().err
    assert blocks(root / "README.md")["plot-p"] == before["plot-p"], "half a study is no plot"
    assert (root / "docs" / "generated" / "figures" / "p.svg").read_bytes() == picture


def test_unknown_parts_and_files_without_tables_are_refused(run, store):
    with pytest.raises(BadInput, match="no part 'teh'"):
        run("teh")
    store.root.mkdir()
    for text in ("[]", "{", '{"t": {"rows": [{"a": 1}, {"b": 1}], "measured": "", "seconds": 1, "machine": ""}}'):
        (store.root / "bench.json").write_text(text, encoding="utf-8")
        with pytest.raises(BadFile, match=r"bench\.json has no valid timing tables"):
            bench.stored_tables(store)
        with pytest.raises(BadFile, match="timing tables"):
            run("--from-store", "t")


def test_a_document_with_broken_markers_is_left_alone(run, root):
    broken = f"{markers.begin('bench-t')}\nx\n"
    (root / "README.md").write_text(broken, encoding="utf-8")
    with pytest.raises(BadInput, match="must begin and end once"):
        run("t")
    assert (root / "README.md").read_text(encoding="utf-8") == broken
