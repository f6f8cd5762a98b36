"""Random networks, and their files in every format that is read, written from the formats' definitions.

No function here is one of opticoll's; networkx writes the formats that it knows.
"""

from __future__ import annotations

import io
import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

import networkx as nx

if TYPE_CHECKING:
    from collections.abc import Callable

#: Names that a careless reader splits, cuts off or takes for something else.
ODD = [
    "gpu 0",
    "a-b",
    "x,y",
    "né",
    'q"q',
    "l<m",
    "p&q",
    "[0, 1]",
    "s;t",
    "50%",
    "it's",
    "a.b",
    "日本",
    "e#1",
    "u=v",
    "{b}",
]
ODD += ["/r/1", "0x1", "-5", "1e5", "node", "@x", "*v", "c"]
CAPACITIES = [1.0, 2.5, 1 / 3, 1e-7, 123456789.25, 4e11, 7.0, 40.0]


@dataclass
class Network:
    """Names of vertices, and links (tail, head, capacity) between their positions, each way unless ``directed``."""

    names: list[str]
    links: list[tuple[int, int, float]]
    directed: bool

    def arcs(self) -> list[tuple[str, str, float]]:
        """All arcs by name, sorted."""
        forth = [(self.names[u], self.names[v], c) for u, v, c in self.links]
        return sorted(forth if self.directed else forth + [(v, u, c) for u, v, c in forth])

    def graph(self) -> nx.MultiDiGraph:
        """The same as a graph of networkx."""
        graph = nx.MultiDiGraph() if self.directed else nx.MultiGraph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from((self.names[u], self.names[v], {"capacity": c}) for u, v, c in self.links)
        return graph


@dataclass
class Format:
    """How a network is written, the options to read it, and what it can state."""

    suffix: str
    write: Callable[[Network], str]
    options: str = ""
    directed: bool | None = None
    parallel: bool = True
    names: list[str] | None = None
    capacities: list[float] | None = None
    numbered: int | None = None
    ring: bool = False

    def draw(self, seed: int) -> Network:
        """A random network that the format can state."""
        draw = random.Random(seed)
        names = draw.sample(ODD if self.names is None else self.names, draw.randint(3, 8))
        if self.numbered is not None:
            names = [str(v + self.numbered) for v in range(len(names))]
        directed = draw.random() < 0.5 if self.directed is None else self.directed
        pairs = [(u, v) for u in range(len(names)) for v in range(len(names)) if u != v and (directed or u < v)]
        chosen = draw.sample(pairs, draw.randint(2, len(pairs)))
        if self.ring:
            chosen = sorted({*chosen, *((u, (u + 1) % len(names)) for u in range(len(names)))})
        chosen += draw.sample(chosen, draw.randint(0, len(chosen) // 2)) if self.parallel else []
        links = [(u, v, draw.choice(self.capacities or CAPACITIES)) for u, v in chosen]
        return Network(names, links, directed)


def _by_networkx(write: Callable[[nx.Graph, io.BytesIO], None]) -> Callable[[Network], str]:
    def text(network: Network) -> str:
        stream = io.BytesIO()
        write(network.graph(), stream)
        return stream.getvalue().decode()

    return text


def _lines(head: str, rows: list[str], tail: str = "") -> str:
    return "\n".join([head, *rows, tail])


def pajek(net: Network) -> str:
    kind = "Arcs" if net.directed else "Edges"
    names = [f'{v} "{name}"' for v, name in enumerate(net.names, 1)]
    return _lines(f"*Vertices {len(names)}", [*names, f"*{kind}", *(f"{u + 1} {v + 1} {c!r}" for u, v, c in net.links)])


def quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def dot(net: Network) -> str:
    sign = "->" if net.directed else "--"
    names = [f"  {quoted(name)} [shape=box]" for name in net.names]
    rows = [f'  {quoted(net.names[u])} {sign} {quoted(net.names[v])} [capacity="{c!r}"];' for u, v, c in net.links]
    return _lines("digraph {" if net.directed else "graph {", [*names, "edge [color=red, penwidth=3]", *rows, "}"])


def metis(net: Network) -> str:
    near = [
        [f"{v + 1} {int(c)}" for a, b, c in net.links for x, v in ((a, b), (b, a)) if x == u]
        for u in range(len(net.names))
    ]
    return _lines(f"% a comment\n{len(near)} {len(net.links)} 001", [" ".join(words) for words in near])


def lgf(net: Network) -> str:
    names = [f"{3 * v}\t{quoted(name)}" for v, name in enumerate(net.names)]
    rows = [f"{3 * u}\t{3 * v}\t{k}\t{c!r}" for k, (u, v, c) in enumerate(net.links)]
    return _lines(
        "@nodes\nlabel\tname", [*names, f"@{'arcs' if net.directed else 'edges'}\n\t\tlabel\tcapacity", *rows]
    )


def repetita(net: Network) -> str:
    rows = [f"edge_{k} {u} {v} 1 {c!r} 10" for k, (u, v, c) in enumerate(net.links)]
    names = [f"{name} 1.5 -2" for name in net.names]
    head = f"NODES {len(names)}\nlabel x y"
    return _lines(head, [*names, f"\nEDGES {len(rows)}\nlabel src dest weight bw delay", *rows])


def tacos(net: Network) -> str:
    rows = [f"{u},{v},500,{c!r},None" for u, v, c in net.links]
    head = f"NPUs Count,{len(net.names)}\nLinks Count,{len(rows)}\nChunk Size,1,B\nSrcID,DestID,Latency (ns),"
    return _lines(f"{head}Bandwidth (GB/s),Chunks", rows)


def hwloc(net: Network) -> str:
    n = len(net.names)
    matrix = {(u, v): round(1000 * c) for u, v, c in net.links}
    values = [str(matrix.get(divmod(k, n), 0)) for k in range(n * n)]
    gpus = [f'<object type="OSDev" gp_index="{v}" name={quoteattr(name)}/>' for v, name in enumerate(net.names)]
    words = [f"<indexes>{' '.join(f'OSDev:{v}' for v in range(n))}</indexes>"]
    words += [f"<u64values>{' '.join(values[k : k + 10])} </u64values>" for k in range(0, n * n, 10)]
    head = '<topology version="2.0"><object type="Machine" gp_index="99">'
    end = "</distances2hetero></topology>"
    return _lines(head, [*gpus, f'</object><distances2hetero nbobjs="{n}" name="NVLinkBandwidth">', *words], end)


def ibnetdiscover(net: Network) -> str:
    """Every vertex is an adapter; capacities are those of cables of EDR."""
    ports: list[list[str]] = [[] for _ in net.names]
    for u, v, c in net.links:
        ends = len(ports[u]) + 1, len(ports[v]) + 1
        for a, b, mine, other in ((u, v, *ends), (v, u, *ends[::-1])):
            ports[a].append(f'[{mine}](1a) \t"H-{b:x}"[{other}] \t\t# lid 4 lmc 0 "x 8xHDR" lid 3 {int(c / 25)}xEDR')
    rows = [
        _lines(f'vendid=0x2c9\ncaguid=0x{v:x}\nCa\t{len(of)} "H-{v:x}"\t\t# "{net.names[v]}"', of, "\n")
        for v, of in enumerate(ports)
    ]
    return _lines("#\n# Topology file", rows)


def sndlib(net: Network) -> str:
    names = [f"  {name} ( 1.5 -2 )" for name in net.names]
    rows = [f"  L{k} ( {net.names[u]} {net.names[v]} ) {c!r} 0 0 0 ( 40 1 )" for k, (u, v, c) in enumerate(net.links)]
    return _lines("?SNDlib native format; type: network; version: 1.0\nNODES (", [*names, ")\nLINKS (", *rows, ")"])


def sndlib_xml(net: Network) -> str:
    rows = [*(f"<node id={quoteattr(name)}/>" for name in net.names), "</nodes><links>"]
    rows += [
        f'<link id="{k}"><source>{escape(net.names[u])}</source><target>{escape(net.names[v])}</target>'
        f"<preInstalledModule><capacity>{c!r}</capacity></preInstalledModule></link>"
        for k, (u, v, c) in enumerate(net.links)
    ]
    return _lines("<network><networkStructure><nodes>", rows, "</links></networkStructure></network>")


def node_link(net: Network) -> str:
    return json.dumps(nx.node_link_data(net.graph(), edges="edges"))


def rustworkx(net: Network) -> str:
    """Attributes stand under ``data``, as texts."""
    nodes = [{"id": v, "data": {"name": name}} for v, name in enumerate(net.names)]
    links = [
        {"source": u, "target": v, "id": k, "data": {"capacity": repr(c)}} for k, (u, v, c) in enumerate(net.links)
    ]
    return json.dumps({"directed": net.directed, "multigraph": True, "attrs": None, "nodes": nodes, "links": links})


def edges(net: Network) -> str:
    kind = "directed" if net.directed else "undirected"
    return _lines(
        f"# a comment\n{kind}\nsrc\tdst\tcapacity", [f"{net.names[u]}\t{net.names[v]}\t{c!r}" for u, v, c in net.links]
    )


def matrix(net: Network) -> str:
    n = len(net.names)
    cells = {(u, v): c for u, v, c in net.links}
    rows = [
        ",".join([f'"{name}"', *(repr(cells.get((u, v), 0)) for v in range(n))]) for u, name in enumerate(net.names)
    ]
    return _lines(",".join(["", *(f'"{name}"' for name in net.names)]), rows)


def gexf(net: Network) -> str:
    rows = [f"<node id={quoteattr(f'v {v}')} label={quoteattr(name)}/>" for v, name in enumerate(net.names)]
    rows += ["</nodes><edges>", *(f'<edge source="v {u}" target="v {v}" weight="{c!r}"/>' for u, v, c in net.links)]
    kind = "directed" if net.directed else "undirected"
    head = f'<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph defaultedgetype="{kind}"><nodes>'
    return _lines(head, rows, "</edges></graph></gexf>")


def msccl(net: Network) -> str:
    n = len(net.names)
    cells = {(u, v): c for u, v, c in net.links}
    return json.dumps({"msccl_type": "topology", "links": [[cells.get((u, v), 0) for u in range(n)] for v in range(n)]})


WHOLE = [25.0, 100.0, 50.0, 200.0]
PLAIN = [name for name in ODD if '"' not in name]
BARE = [name for name in PLAIN if not set(name) & set(" ,#;{*")]
#: Every format that is read, and how a network is written in it.
FORMATS = {
    "graphml": Format("graphml", _by_networkx(nx.write_graphml_xml), ",ranks=*"),
    "gml": Format("gml", _by_networkx(nx.write_gml), ",ranks=*"),
    "gexf": Format("gexf", gexf, ",capacity=weight,ranks=*"),
    "json": Format("json", node_link, ",ranks=*"),
    "json-rustworkx": Format("json", rustworkx, ",ranks=*"),
    "pajek": Format("net", pajek, ",capacity=weight,ranks=*", names=PLAIN),
    "dot": Format("dot", dot, ",ranks=*"),
    "metis": Format("metis", metis, ",capacity=weight", directed=False, parallel=False, numbered=1, capacities=WHOLE),
    "lgf": Format("lgf", lgf, ",ranks=*"),
    "repetita": Format("graph", repetita, ",ranks=*", directed=True, names=[name for name in ODD if " " not in name]),
    "tacos": Format("csv", tacos, numbered=0, directed=True, parallel=False),
    "hwloc": Format("xml", hwloc, ",ranks=*", directed=True, parallel=False, capacities=WHOLE, ring=True),
    "ibnetdiscover": Format("txt", ibnetdiscover, directed=False, names=PLAIN, capacities=WHOLE),
    "sndlib": Format("txt", sndlib, directed=False, names=BARE),
    "sndlib-xml": Format("xml", sndlib_xml, directed=False),
    "edges": Format("txt", edges, ",ranks=*", names=BARE),
    "matrix": Format(
        "csv", matrix, ",ranks=*", directed=True, parallel=False, names=[n for n in PLAIN if n not in ("e#1", "s;t")]
    ),
    "json-msccl": Format("json", msccl, numbered=0, directed=True, parallel=False),
}
