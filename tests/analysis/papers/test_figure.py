"""A figure of a paper is a function: its data, its source, own points over it, files, and mistakes in one line."""

import json
import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from case_families import each
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from rows_of_figures import ship
from slow_cases import marked

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.papers import figure_rows
from opticoll.analysis.papers.paper_figure import figures
from opticoll.analysis.plots.data_figure import DataFigure
from opticoll.analysis.plots.panels import one_panel
from opticoll.analysis.plots.style import PALETTE, tick

NAMES = [one.name for one in figures()]
#: Figures that need no runs, one of every kind of drawing.
COMPUTED = ("lumorph-5", "topoopt-14", "topoopt-10", "lumorph-7", "topoopt-1")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with a run of a figure's study."""
    result = oc.Store(tmp_path_factory.mktemp("store"))
    result.save(oc.solve("alltoall.master", "genkautz:n=9,d=4"))
    return result


@pytest.fixture(scope="module")
def computed():
    """Figures without runs of one's own by name, drawn on first use, for tests that only read them."""
    return cache(oc.figure)


def outside(figure):
    """Texts that are drawn beyond the edge of a figure, and legends wider than it."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    shown = [*figure.legends, *figure.findobj(Text)]
    for axes in figure.axes:  # ticks beyond the limits exist but are not drawn
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for one in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not low <= one.get_loc() <= high:
                    shown = [text for text in shown if text not in (one.label1, one.label2)]
    boxes = [(one, one.get_window_extent(renderer)) for one in shown if one.get_visible()]
    edge = figure.bbox
    return [
        one.get_text() if isinstance(one, Text) else "legend"
        for one, box in boxes
        if box.width > 0
        and (box.x0 < edge.x0 - 1 or box.x1 > edge.x1 + 1 or box.y0 < edge.y0 - 1 or box.y1 > edge.y1 + 1)
    ]


@pytest.mark.parametrize(
    "name", [*COMPUTED[:3], *(pytest.param(name, marks=pytest.mark.slow) for name in COMPUTED[3:])]
)
def test_a_figure_without_runs_has_data_source_and_texts_inside_its_box(name, computed):
    drawn = computed(name)
    assert isinstance(drawn, Figure)
    assert isinstance(drawn.data, pd.DataFrame)
    assert len(drawn.data) >= 4
    assert drawn.source == next(one for one in figures() if one.name == name).basis
    assert drawn.title
    assert re.search(r"\d", drawn.caption)
    assert not outside(drawn)


def test_every_axis_with_points_names_what_it_shows(computed):
    for name in COMPUTED:
        table = computed(name).convention
        assert table["x"].all(), name
        assert table["y"].all(), name
        assert table["panel"].is_unique


def test_figure_5_states_its_convention(computed):
    drawn = computed("lumorph-5")
    assert "both directions" in drawn.counts
    assert drawn.convention["y"].str.contains("both directions").all()


def test_shipped_rows_are_drawn_until_the_store_has_the_whole_study(store):
    assert oc.figure("alltoall-8", store=store).source == oc.figure("alltoall-8").source


def test_a_wrong_name_is_answered_by_the_nearest():
    with pytest.raises(oc.BadInput, match="no figure 'lumorph5'; did you mean 'lumorph-5'"):
        oc.figure("lumorph5")


def test_files_of_every_format(tmp_path):
    drawn = oc.figure("topoopt-14")
    assert drawn.save(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    shown, size = drawn._repr_png_()
    assert shown.startswith(b"\x89PNG")
    assert size == {"width": round(96 * drawn.get_figwidth()), "height": round(96 * drawn.get_figheight())}
    vector = drawn.save(tmp_path / "a.svg").read_text(encoding="utf-8")
    assert ">share of server pairs<" in vector, "text stays text"
    written = drawn.save(tmp_path / "a.PDF").read_bytes()
    assert written.startswith(b"%PDF")
    assert b"/Type3" not in written, "publishers refuse these fonts"
    assert b"/CreationDate" not in written
    with pytest.raises(oc.BadInput, match=r"'a.jpg': the name must end in .pdf, .svg or .png"):
        drawn.save(tmp_path / "a.jpg")
    with pytest.raises(oc.BadInput, match=r"cannot be written: .*existing, writable folder"):
        drawn.save(tmp_path / "none" / "a.pdf")


def test_plots_of_results_are_figures_of_the_same_kind():
    run = oc.solve("alltoall.master", "ring:4")
    assert isinstance(run.plot(), DataFigure)
    assert run.plot().data is None


def test_long_labels_are_broken_and_read_as_one_line():
    words = "a rather long label of an axis that would not fit beside such a low panel [unit]"
    with one_panel(4.0, 2.0, x="x", y=words) as (drawn, axes, handles):
        handles += axes.plot([1, 2], [1, 2], label="a legend entry that is rather long")
        handles += axes.plot([1, 2], [2, 1], label="another legend entry that is rather long")
    assert axes.get_ylabel().count("\n") >= 2
    assert drawn.convention["y"].tolist() == [words]
    assert not [text for text in outside(drawn) if text == "legend"]


def test_ticks_are_plain_numbers_or_powers_of_ten():
    assert [tick(v) for v in (0, 0.001, 20, 5e5, 1e6, 2e7, 1e-5)] == [
        "0",
        "0.001",
        "20",
        "500000",
        "10⁶",
        "2·10⁷",
        "10⁻⁵",
    ]


def test_series_are_distinguishable_without_hues():
    """Luminances of the first colours differ, or their markers do: a series has both."""
    assert len(set(PALETTE)) == len(PALETTE)


def test_a_figure_without_runs_and_rows_names_its_study(tmp_path):
    (tmp_path / "none").mkdir()
    with pytest.raises(oc.BadInput, match="has no runs for it; run `opticoll study alltoall-fig6`"):
        oc.figure("alltoall-6", store=tmp_path / "none")


# shipped rows ------------------------------------------------------------------------------------

SHIPPED = sorted(path.stem for path in (Path(figure_rows.__file__).parent / figure_rows.FOLDER).glob("*.csv"))
#: One of each paper, those with the most texts.
LAID_OUT = {"alltoall-7", "lumorph-3", "optree-6", "gap-sipml", "topoopt-15"}


@each("name", SHIPPED)
def test_shipped_rows_are_drawn_and_say_how_they_were_made(name, computed):
    drawn = computed(name)
    study = next(one for one in figures() if one.name == name).study
    assert re.fullmatch(
        rf"shipped with opticoll: `opticoll study {study}`, \d{{4}}-\d\d-\d\d, opticoll \S+, \d+ cores.*", drawn.source
    )
    assert not {"host", "id", "store", "message", "git_commit"} & set(drawn.data)
    assert any(axes.has_data() for axes in drawn.axes)


@pytest.mark.parametrize("name", [marked(name, slow=name not in LAID_OUT) for name in SHIPPED])
def test_texts_of_shipped_figures_are_inside_their_box(name, computed):
    assert not outside(computed(name))


def test_shipped_rows_are_what_a_solve_finds():
    row = oc.figure("alltoall-8").data.set_index("instance").loc["genkautz:n=12,d=3"]
    assert oc.solve("alltoall.master", "genkautz:n=12,d=3").metrics["T"] == pytest.approx(row["T"], rel=1e-6)
    steps = oc.figure("optree-4").data
    (least,) = steps[(steps["n"] == 512) & (steps["count"] == "exact") & (steps["depth"] == 6)]["objective"]
    tree = oc.solve("optree.tree", "wdm-ring:n=512,wavelengths=64", depth=6, count="exact")
    assert tree.objective == least


def test_rows_are_shipped_only_of_studies_that_ended(tmp_path, store):
    assert ship(store, tmp_path / "rows") == {}
    assert not list((tmp_path / "rows").iterdir())


# command ------------------------------------------------------------------------------------


def test_the_command_draws_lists_and_describes(capfd, tmp_path, store):
    assert main(["figure", "lumorph-5", "--out", str(tmp_path / "f.pdf"), "--store", str(store.root)]) == 0
    shown = capfd.readouterr()
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
    assert "both directions of an edge" in shown.out
    assert "wrote" in shown.err
    assert main(["figure"]) == 0
    assert [line.split()[0] for line in capfd.readouterr().out.splitlines()[1:]] == NAMES
    assert main(["describe", "lumorph-5"]) == 0
    assert "opticoll figure lumorph-5 --out lumorph-5.pdf" in capfd.readouterr().out


def test_the_command_prints_rows(capfd):
    assert main(["figure", "lumorph-5", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["panels"][0] == {
        "panel": "worst step",
        "x": "GPUs",
        "y": "circuits on the busiest edge, both directions",
    }
    assert {row["paper"] for row in document["rows"] if row["x"] == 256 and row["series"] == "Lumorph-4+MCF"} == {32}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lumorph-5", "--out", "f.gif"], "the name must end in .pdf, .svg or .png"),
        (["lumorph-5", "--out", "none/f.pdf"], "cannot be written"),
        (["--out", "f.pdf"], "name a figure; `opticoll figure` lists them"),
    ],
)
def test_mistakes_on_the_command_line_are_one_line(arguments, words, capfd):
    assert main(["figure", *arguments]) == 2
    shown = capfd.readouterr()
    assert not shown.out
    assert len(shown.err.splitlines()) == 1
    assert words in shown.err
