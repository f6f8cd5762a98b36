"""What other tools read from network files, against what opticoll reads; a script outside the suite.

    python tests/outside_networks.py [NETWORKS]

For every format of :data:`network_files.FORMATS` that a tool beside this interpreter reads (networkx, igraph,
rustworkx, networkit, pydot, Graphviz's ``dot``), it writes random networks and compares arcs by name and
capacity; it reads what opticoll writes by these tools; and it runs ``ibnetdiscover`` on fabrics that ``ibsim``
simulates.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import networkx as nx
from network_files import FORMATS
from saved_networks import arcs

import opticoll as oc
from opticoll.errors import OpticollError
from opticoll.instances import parse

Arcs = list[tuple[str, str, float]]


def both(links: Iterable[tuple[str, str, float]], directed: bool) -> Arcs:
    forth = [(u, v, float(c)) for u, v, c in links]
    return sorted(forth if directed else forth + [(v, u, c) for u, v, c in forth])


def by_networkx(read: Callable[[Path], nx.Graph], capacity: str = "capacity") -> Callable[[Path], Arcs]:
    def found(path: Path) -> Arcs:
        graph = read(path)
        called = {v: about.get("label", about.get("name", v)) for v, about in graph.nodes(data=True)}
        links = ((called[u], called[v], about[capacity]) for u, v, about in graph.edges(data=True))
        return both(links, graph.is_directed())

    return found


def by_igraph(name: str, capacity: str = "capacity") -> Callable[[Path], Arcs]:
    def found(path: Path) -> Arcs:
        import igraph

        graph = getattr(igraph.Graph, f"Read_{name}")(str(path))
        key = next((key for key in ("label", "name") if key in graph.vs.attributes()), None)
        called = [str(v + 1) for v in range(graph.vcount())] if key is None else graph.vs[key]
        ends = ((called[e.source], called[e.target], e[capacity]) for e in graph.es)
        return both(ends, graph.is_directed())

    return found


def by_rustworkx(path: Path) -> Arcs:
    import rustworkx

    graph = rustworkx.read_graphml(str(path))[0]
    links = ((graph[u]["label"], graph[v]["label"], w["capacity"]) for u, v, w in graph.weighted_edge_list())
    return both(links, isinstance(graph, rustworkx.PyDiGraph))


def by_networkit(path: Path) -> Arcs:
    import networkit

    graph = networkit.graphio.METISGraphReader().read(str(path))
    return both(((str(u + 1), str(v + 1), graph.weight(u, v)) for u, v in graph.iterEdges()), False)


def by_pydot(path: Path) -> Arcs:
    import pydot

    (graph,) = pydot.graph_from_dot_file(str(path))
    bare = [text[1:-1].replace('\\"', '"') for e in graph.get_edges() for text in (e.get_source(), e.get_destination())]
    capacities = [float(e.get("capacity").strip('"')) for e in graph.get_edges()]
    return both(zip(bare[::2], bare[1::2], capacities, strict=True), graph.get_type() == "digraph")


def by_graphviz(path: Path) -> Arcs:
    run = subprocess.run(["dot", "-Tdot_json", str(path)], capture_output=True, text=True, check=True)
    graph = json.loads(run.stdout)
    called = [one["name"] for one in graph["objects"]]
    links = ((called[e["tail"]], called[e["head"]], e["capacity"]) for e in graph.get("edges", []))
    return both(links, graph["directed"])


def node_link(path: Path) -> nx.Graph:
    return nx.node_link_graph(json.loads(path.read_text()), edges="edges")


#: Tool, what it needs, its format, and how it reads.
READERS = [
    ("networkx", "networkx", "graphml", by_networkx(nx.read_graphml)),
    ("networkx", "networkx", "gml", by_networkx(nx.read_gml)),
    ("networkx", "networkx", "gexf", by_networkx(nx.read_gexf, "weight")),
    ("networkx", "networkx", "json", by_networkx(node_link)),
    ("networkx", "networkx", "pajek", by_networkx(nx.read_pajek, "weight")),
    ("igraph", "igraph", "pajek", by_igraph("Pajek", "weight")),
    ("networkit", "networkit", "metis", by_networkit),
    ("pydot", "pydot", "dot", by_pydot),
    ("Graphviz", "dot", "dot", by_graphviz),
]
#: What reads the files that opticoll writes.
WRITTEN = [
    ("networkx", "networkx", "graphml", by_networkx(nx.read_graphml)),
    ("igraph", "igraph", "graphml", by_igraph("GraphML")),
    ("rustworkx", "rustworkx", "graphml", by_rustworkx),
]


def is_here(needed: str) -> bool:
    if shutil.which(needed):
        return True
    try:
        importlib.import_module(needed)
    except ImportError:
        return False
    return True


def compare(name: str, folder: Path, count: int, read: Callable[[Path], Arcs], ours: bool) -> str:
    """Read random networks of a format by a tool and by opticoll; as opticoll writes them if ``ours``."""
    equal = refused = 0
    form = FORMATS[name]
    for seed in range(count):
        network, path = form.draw(seed), folder / f"net.{form.suffix}"
        path.write_text(form.write(network), encoding="utf-8")
        topology = parse(f"file:{path}{form.options}")
        if ours:
            oc.save_topology(topology, path)
        try:
            equal += read(path) == arcs(topology)
        except Exception as error:  # noqa: BLE001
            refused += 1
            if refused == 1:
                print(f"  {name} {seed}: {error!r}"[:160])
    return f"{count} networks, {equal} equal, {refused} not read by it"


def fabrics(folder: Path, count: int) -> str:
    """Cables that ``ibsim`` simulates, ``ibnetdiscover`` lists, and opticoll reads."""
    library = next(Path("/usr/lib").glob("**/libumad2sim.so"))
    equal = 0
    for seed in range(count):
        draw = random.Random(seed)
        switches, hosts = [f"sw{k}" for k in range(draw.randint(1, 4))], [f"h{k}" for k in range(draw.randint(2, 6))]
        cables = [
            (name, draw.choice(switches[:k])) for k, name in enumerate(switches) if k for _ in range(draw.randint(1, 3))
        ]
        cables += [(name, draw.choice(switches)) for name in hosts]
        ports: dict[str, list[str]] = {name: [] for name in hosts + switches}
        for u, v in cables:
            mine, other = len(ports[u]) + 1, len(ports[v]) + 1
            ports[u].append(f'[{mine}]\t"{v}"[{other}]\n')
            ports[v].append(f'[{other}]\t"{u}"[{mine}]\n')
        kinds = {name: "Switch\t36" if name in switches else "Hca\t2" for name in ports}
        (folder / "fabric").write_text(
            "".join(f'{kinds[name]} "{name}"\n{"".join(of)}\n' for name, of in ports.items())
        )
        simulator = subprocess.Popen(
            ["ibsim", "-s", str(folder / "fabric")], stdin=-1, stdout=-3, stderr=-3, cwd=folder
        )
        time.sleep(0.5)
        environment = {**os.environ, "LD_PRELOAD": str(library)}
        listed = subprocess.run(["ibnetdiscover"], env=environment, capture_output=True, text=True, cwd=folder)
        simulator.kill()
        simulator.wait()
        (folder / "net.txt").write_text(listed.stdout)
        topology = parse(f"file:{folder / 'net.txt'}")
        equal += arcs(topology) == both(((u, v, 8.0) for u, v in cables), False) and set(topology.ranks) == set(hosts)
    return f"{count} fabrics of 4xSDR, {equal} equal"


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for readers, ours in ((READERS, False), (WRITTEN, True)):
            for tool, needed, name, read in readers:
                done = compare(name, folder, count, read, ours) if is_here(needed) else "not installed"
                print(f"{name:10} {tool:10} {'as opticoll writes it: ' if ours else ''}{done}", flush=True)
        print(f"{'ib':10} ibsim      {fabrics(folder, min(count, 20)) if is_here('ibsim') else 'not installed'}")


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
    except OpticollError as error:
        sys.exit(str(error))
