"""Drawings of networks: layouts by layers, racks and own positions; labels that fit; rounds that can be read."""

import networkx as nx
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.text import Text
from scipy.spatial.distance import pdist

import opticoll as oc
from opticoll.analysis.plots import network_plots
from opticoll.analysis.plots.layouts import arrangement, layers_of
from opticoll.analysis.plots.network_plots import label_places
from opticoll.analysis.plots.style import labels


def texts(figure):
    """Texts of a drawing with their boxes on the page, in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    shown = [one for one in figure.findobj(Text) if one.get_visible() and one.get_text()]
    hidden = [
        text
        for axes in figure.axes
        if not axes.axison
        for axis in (axes.xaxis, axes.yaxis)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        for text in (tick.label1, tick.label2)
    ]
    return [(one.get_text(), one.get_window_extent(renderer)) for one in shown if one not in hidden]


def assert_inside(figure):
    """Check that no text is cut off; return all of them with their boxes."""
    edge, shown = figure.bbox, texts(figure)
    for text, box in shown:
        assert box.x0 >= edge.x0 - 1, text
        assert box.x1 <= edge.x1 + 1, text
        assert box.y0 >= edge.y0 - 1, text
        assert box.y1 <= edge.y1 + 1, text
    return shown


SPECS = (
    "fat-tree:k=4",
    "nvswitch:boxes=2,gpus=8",
    "ring:8+host=2.0",
    "torus:4x4x4",
    "dragonfly:a=4,h=2",
)


@pytest.mark.parametrize("spec", SPECS)
def test_labels_are_inside_the_figure_and_not_on_each_other(spec):
    topology = oc.parse(spec)
    figure = oc.plot_topology(topology)
    shown = assert_inside(figure)
    assert figure.get_size_inches().max() <= 8.5
    assert figure.get_figwidth() <= network_plots.PAGE
    names = set(topology.labels)
    boxes = [box.shrunk(0.8, 0.6) for text, box in shown if text in names]
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:k])


@pytest.mark.parametrize("spec", ["genkautz:n=64,d=4", "hypercube:6"])
def test_64_nodes_all_have_a_label_of_a_readable_size(spec):
    topology = oc.parse(spec)
    axes = oc.plot_topology(topology).axes[0]
    shown = [one for one in axes.texts if one.get_text() in topology.labels]
    assert len(shown) == 64
    assert min(one.get_fontsize() for one in shown) >= 6


def test_switches_are_above_the_servers():
    topology = oc.parse("fat-tree:k=4")
    level = layers_of(topology)
    assert np.bincount(level).tolist() == [16, 8, 8, 4]
    place = arrangement(topology).place
    assert [len(set(place[level == step, 1])) for step in range(4)] == [1, 1, 1, 1]
    assert np.all(np.diff([place[level == step, 1][0] for step in range(4)]) > 0)
    words = [one.get_text() for one in oc.plot_topology(topology).axes[0].texts]
    assert {"server[15]", "edge[3,1]", "core[0,0]"} <= set(words)


def test_racks_stand_together():
    topology = oc.parse("genkautz:n=32,d=4")
    figure = oc.plot_topology(topology, layout="racks:4")
    placed = arrangement(topology, "racks:4")
    assert np.bincount(placed.group).tolist() == [4] * 8
    centres = np.array([placed.place[placed.group == rack].mean(axis=0) for rack in range(8)])
    widest = max(pdist(placed.place[placed.group == rack]).max() for rack in range(8))
    assert pdist(centres).min() > widest
    assert sum(one.get_text().startswith("rack ") for one in figure.axes[0].texts) == 8
    boxes = [patch for patch in figure.axes[0].patches if type(patch).__name__ == "FancyBboxPatch"]
    assert len(boxes) == 8
    groups = arrangement(oc.parse("dragonfly:a=4,h=2"))
    assert (groups.word, int(groups.group.max()) + 1) == ("group", 9)
    wafers = arrangement(oc.parse("lightpath:4x8,wafers=2,fibres=4"))
    assert (wafers.word, np.bincount(wafers.group).tolist()) == ("wafer", [32] * 2)
    assert arrangement(oc.parse("lightpath:4x8")).group is None
    hosts = arrangement(oc.parse("ring:4+host=2.0"))
    assert np.bincount(hosts.group).tolist() == [3] * 4


def cities():
    graph = nx.Graph()
    graph.add_node("north", x=0, y=300)
    graph.add_node("south", x=0, y=0)
    graph.add_node("east", x=400, y=0)
    graph.add_edges_from([("north", "south"), ("south", "east")])
    return graph


def test_positions_come_from_the_file_or_the_user(tmp_path):
    graph = cities()
    path = tmp_path / "cities.graphml"
    nx.write_graphml(graph, path)
    for topology in (oc.topology(graph), oc.parse(f"file:{path}"), oc.parse(f"file:{path}+scale=2")):
        place = arrangement(topology).place
        away = place - place[list(topology.labels).index("south")]
        assert away[list(topology.labels).index("east")] / away[list(topology.labels).index("north")][
            1
        ] == pytest.approx([400 / 300, 0])
        assert_inside(oc.plot_topology(topology))
    bare = nx.Graph(graph.edges)
    given = {"north": (0, 3), "south": (0, 0), "east": (4, 0)}
    assert oc.topology(bare).places is None
    assert arrangement(oc.topology(bare), given).place == pytest.approx(arrangement(oc.topology(graph)).place)
    for node, place in given.items():
        bare.nodes[node]["pos"] = np.array(place)
    assert arrangement(oc.topology(bare)).place == pytest.approx(arrangement(oc.topology(graph)).place)
    assert oc.topology(bare).hash == oc.topology(graph).hash, "a place in a drawing is not part of the problem"
    drawn = oc.plot_topology(bare, layout=given)
    assert {"north", "south", "east"} <= {one.get_text() for one in drawn.axes[0].texts}
    run = oc.solve("alltoall.master", graph)
    assert {"north", "south"} <= {one.get_text() for one in run.plot().axes[0].texts}
    assert len(run.plot(layout=given).axes) == 2, "own positions for a result, too"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"layout": {"0": (0, 0)}}, "no position of vertex '1' (3 missing)"),
        ({"layout": [[0, 0]]}, "finite numbers x and y of each of the 4 vertices"),
        ({"layout": "here"}, "unknown layout 'here'"),
        ({"layout": "racks:9"}, "write racks:R with the vertices of a rack, 1 to 4"),
        ({"layout": "racks"}, "has no racks of its own; write racks:R"),
        ({"layout": "given"}, "has no places; give x and y of the nodes in its file"),
        ({"layout": "ring:2"}, "unknown layout 'ring:2'"),
    ],
)
def test_mistakes_are_one_line(arguments, words):
    with pytest.raises(oc.BadInput) as caught:
        oc.plot_topology("ring:4", **arguments)
    assert words in str(caught.value)


def test_equal_links_both_ways_are_one_line_and_links_around_a_torus_two_ends():
    def drawn(spec, kind):
        return sum(len(one.get_paths()) for one in oc.plot_topology(spec).axes[0].collections if isinstance(one, kind))

    assert drawn("mesh:3x3", LineCollection) == 12
    assert drawn("torus:3x3", LineCollection) == 12 + 2 * 6
    assert drawn("torus:3x3", PolyCollection) == 0
    assert [drawn("ring:4,directed", kind) for kind in (LineCollection, PolyCollection)] == [4, 4]


def test_labels_of_rows_are_below_the_lowest_and_upright_where_they_are_long():
    place, level = np.array([[0.0, 0.0], [20.0, 0.0], [10.0, 30.0]]), np.array([0, 0, 1])
    short = list(label_places(place, ["a", "b", "c"], level, 6.0))
    assert [(v, y > 0, turn) for v, _, y, turn in short] == [(0, False, 0), (1, False, 0), (2, True, 0)]
    assert [turn for *_, turn in label_places(place, ["a long name"] * 3, level, 6.0)] == [90, 90, 0]


# rounds ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gather():
    """An all-gather of two wavelengths in a few rounds."""
    return oc.solve("lumorph.rounds", "lightpath:2x3,lasers=2,waveguides=1")


def test_every_round_has_a_panel_that_names_its_circuits(gather):
    figure = gather.plot()
    schedule = gather.schedule().rounds
    panels = [axes for axes in figure.axes if axes.get_title(loc="left").startswith("round")]
    counts = np.bincount(schedule.circuit_round)
    assert [axes.get_title(loc="left") for axes in panels] == [
        f"round {k + 1}: {count} circuits" for k, count in enumerate(counts)
    ]
    assert figure.get_figwidth() <= network_plots.PAGE
    assert len({(axes.get_xlim(), axes.get_ylim()) for axes in panels}) == 1
    assert_inside(figure)
    assert figure.axes[-1].get_ylabel() == "wavelength [number]"


def test_of_many_rounds_the_first_are_drawn_and_the_title_says_so(gather, monkeypatch):
    monkeypatch.setattr(network_plots, "MOST_PANELS", 2)
    rounds = gather.schedule().rounds.rounds
    assert rounds > 2
    figure = gather.plot()
    panels = [axes for axes in figure.axes if axes.get_title(loc="left").startswith("round")]
    assert len(panels) == 2
    assert f"first 2 of {rounds} rounds" in figure.get_suptitle()
    assert_inside(figure)


def test_titles_of_rounds_are_above_the_labels_of_a_large_ring():
    shown = texts(oc.solve("optree.tree", "wdm-ring:n=64,wavelengths=16").plot())
    titles = [box for text, box in shown if text.startswith("round ")]
    names = [box for text, box in shown if text.isdecimal()]
    assert titles
    assert len(names) > 64
    assert not any(title.overlaps(name.shrunk(0.8, 0.6)) for title in titles for name in names)


def test_names_that_are_shortened_stay_different():
    names = [f"host-{k}.rack.example.org" for k in (1, 2, 10, 21)]
    figure = oc.plot_topology(oc.topology(list(zip(names, names[1:] + names[:1], strict=True))))
    assert {one.get_text() for one in figure.axes[0].texts} == {"…1…", "…2…", "…10…", "…21…"}
    assert labels(["a" * 13 + "b", "c"], 12) == ["aaaaa…aaaaab", "c"]
    assert labels(["a" * 13] * 2, 12) == ["aaaaa…aaaaaa"] * 2


def test_names_that_are_too_long_side_by_side_stand_upright():
    ranks = [f"a-server-with-name-{k}" for k in range(24)]
    net = oc.topology([(rank, "switch", 1) for rank in ranks], directed=False, ranks=ranks)
    figure = oc.plot_topology(net)
    upright = [one.get_text() for one in figure.axes[0].texts if one.get_rotation() == 90]
    assert upright == [f"a-ser…{'name' if k < 10 else 'ame'}-{k}" for k in range(24)]
    assert_inside(figure)


def test_racks_by_their_number_and_size():
    ring = oc.topology("ring:12")
    assert arrangement(ring, "racks:3x4").group.tolist() == arrangement(ring, "racks:4").group.tolist()
    with pytest.raises(oc.BadInput, match="layout 'racks:4x4' is 16 vertices, ring:12 has 12"):
        arrangement(ring, "racks:4x4")
    with pytest.raises(oc.BadInput, match="or racks:KxR for K"):
        arrangement(ring, "racks:x4")
