"""Machines and fabrics as their tools dump them: hwloc, ibnetdiscover and Slurm's trees.

hwloc (open-mpi.org/projects/hwloc, ``lstopo x.xml``): the matrix of bandwidths between GPUs in each direction [MB/s],
NVLinkBandwidth, XGMIBandwidth or XeLinkBandwidth. GPUs are the ranks; processors are relays, and all NVSwitches are
one, as in NCCL and after hwloc's ``merge-switch-ports``, since hwloc does not list the links between them. The tree of
the machine has no bandwidths. Its transforms ``links`` and ``transitive-closure`` make other matrices of the same name,
which are refused.

ibnetdiscover (InfiniBand diagnostics): channel adapters are ranks, switches and routers relays. A cable, which is
listed at both ends, counts once, each way; its capacity is its width times the data rate of a lane, after coding
(:data:`LANES`). Aggregation nodes within switches are left out.

Slurm (``topology.conf`` of topology/tree): nodes are ranks, switches relays. The file states neither rates nor numbers
of cables, and the unit of its LinkSpeed is free, so ``capacity=`` is needed; every link is one cable, each way.

A malformed file is refused (:class:`opticoll.errors.BadFile`) in one line with the place and the remedy.
"""

from __future__ import annotations

import re
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from opticoll.instances.readers.listed_graph import ListedGraph
from opticoll.instances.readers.machine_topologies import connected
from opticoll.instances.readers.reading import line_of, parse_xml, refuse
from opticoll.instances.readers.tables import is_number, lines_of
from opticoll.instances.topology import MAX_VERTICES

if TYPE_CHECKING:
    pass

#: The document type that hwloc names, which has no entities.
_DOCUMENT_TYPE = re.compile(rb'<!DOCTYPE topology SYSTEM "hwloc2?\.dtd">')
_LINKS = ("NVLinkBandwidth", "XGMIBandwidth", "XeLinkBandwidth")
#: Least bandwidth of a link [MB/s]; smaller values are numbers of links.
_LEAST_MBS = 1000
#: Data rate of a lane of InfiniBand [Gb/s].
LANES = {
    "SDR": 2,
    "DDR": 4,
    "QDR": 8,
    "FDR10": 10,
    "FDR": 14.0625 * 64 / 66,
    "EDR": 25,
    "HDR": 50,
    "NDR": 100,
    "XDR": 200,
}
_CODED = ("SDR", "DDR", "QDR", "FDR")
_NODE = re.compile(r'(?P<kind>Switch|Ca|Rt)\s+[0-9]+\s+"(?P<id>[SHR]-[0-9a-fA-F]+)"\s*#\s*"(?P<name>[^"]*)"')
_PORT = re.compile(
    r'\[(?P<port>[0-9]+)\]\S*\s+"(?P<peer>[SHR]-[0-9a-fA-F]+)"\s*\[(?P<other>[0-9]+)\](?P<rest>.*)', re.DOTALL
)
#: Numbers in brackets in a list of hosts.
_RANGES = re.compile(r"\[([0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?)*)\]")
_RATE = re.compile(r"\b([0-9]{1,3})x([A-Z]DR(?:10)?)\b")


def read_hwloc(data: bytes, graph: ListedGraph) -> None:
    """Read the bandwidths between the GPUs of a machine from the XML of hwloc 2."""
    graph.options.refuse(graph.what, "hwloc states bandwidths in each direction", "capacity", "directed")
    root = parse_xml(_DOCUMENT_TYPE.sub(b"", data, count=1), graph.what, "write it with lstopo x.xml")
    matrices = {one.get("name"): one for kind in ("distances2hetero", "distances2") for one in root.iter(kind)}
    name = next((name for name in _LINKS if name in matrices), None)
    dump = "dump NCCL's topology with NCCL_TOPO_DUMP_FILE"
    if name is None:
        refuse(graph.what, f"this hwloc topology has no {', '.join(_LINKS[:2])} between GPUs; {dump}")
    matrix = matrices[name]
    where = graph.where(line_of(matrix))
    index = "os_index" if matrix.get("indexing") == "os" else "gp_index"
    objects = {(one.get("type"), one.get(index)): one for one in root.iter("object")}
    words = [word for part in matrix.findall("indexes") for word in (part.text or "").split()]
    keys = [(one.rpartition(":")[0] or matrix.get("type"), one.rpartition(":")[2]) for one in words]
    values = [word for part in matrix.findall("u64values") for word in (part.text or "").split()]
    if len(values) != len(keys) ** 2 or not all(map(is_number, values)) or not all(key in objects for key in keys):
        refuse(where, f"{len(values)} values for {len(keys)} known objects; write the whole file with lstopo x.xml")
    graph.unit = "GB/s"
    names, total = list[str](), dict[tuple[str, str], float]()
    for key in keys:
        kind = objects[key].get("subtype") or objects[key].get("type", "")
        names.append("nvswitch" if kind == "NVSwitch" else objects[key].get("name") or ":".join(map(str, key)))
        if not graph.has_vertex(names[-1]):
            graph.add_node(names[-1], {"type": kind, "terminal": key[0] == "OSDev"})
    for k, text in enumerate(values):
        pair = names[k // len(keys)], names[k % len(keys)]
        if pair[0] != pair[1] and float(text):
            total[pair] = total.get(pair, 0.0) + float(text)
            if float(text) < _LEAST_MBS:
                refuse(where, f"a bandwidth of {text} MB/s; write lstopo x.xml without the transform links")
    if names.count("nvswitch") > 1:
        if any("nvswitch" not in pair for pair in total):
            remedy = "write lstopo x.xml without the transform transitive-closure"
            refuse(where, f"GPUs are joined to each other and to NVSwitches; {remedy}")
        graph.note(f"{names.count('nvswitch')} NVSwitches are read as one, as hwloc's merge-switch-ports does")
    for (tail, head), megabytes in total.items():
        graph.list_link(tail, head, megabytes / 1000, f"{tail} to {head}")
    ranks = [name for name in dict.fromkeys(names) if name not in graph.relays]
    if not connected(ranks, total):
        refuse(where, f"these links do not connect all {len(ranks)} GPUs, and nothing else has bandwidths; {dump}")


def read_ibnetdiscover(text: str, graph: ListedGraph) -> None:
    """Read the output of ``ibnetdiscover``, see the module docstring."""
    graph.directed, graph.multigraph, graph.stated, graph.unit = False, True, True, "Gb/s"
    cables: dict[frozenset[tuple[str, str]], str] = {}
    node, left_out = "", set[str]()
    for line, words in lines_of(text, "#"):
        found = _NODE.match(words)
        if found is not None:
            node = found["id"]
            if "Aggregation Node" in found["name"]:
                left_out.add(node)
            else:
                about = {"label": found["name"].strip() or node, "terminal": found["kind"] == "Ca"}
                graph.add_node(node, about, line)
        if not words.startswith("["):
            continue
        port = _PORT.match(words)
        if port is None or not node:
            refuse(graph.where(line), f"{words[:60]!r} is no port of ibnetdiscover; save its whole output")
        rates = _RATE.findall(port["rest"])
        rate = "x".join(rates[-1]) if rates else ""
        cable = frozenset({(node, port["port"]), (port["peer"], port["other"])})
        if cable not in cables:
            graph.list_link(node, port["peer"], {"rate": rate}, line)
        if cables.setdefault(cable, rate) != rate:
            refuse(graph.where(line), f"the cable has rate {cables[cable]!r} at its other end, and {rate!r} here")
    graph.links = [one for one in graph.links if not left_out & {one.tail, one.head}]
    if left_out:
        graph.note(f"{len(left_out)} aggregation nodes within switches are left out")
    for k, link in enumerate(graph.links):
        width, _, speed = str(link.attributes["rate"]).partition("x")
        if speed not in LANES and graph.options.capacity is None:
            remedy = "write file:PATH,capacity=100Gb/s for equal cables"
            refuse(graph.where(link.place), f"the cable has no width and speed, such as 4xEDR; {remedy}")
        graph.links[k] = link._replace(attributes={"capacity": int(width or 0) * LANES.get(speed, 0)})
        if speed in _CODED:
            graph.note(
                f"capacities are data rates, after coding: {width}x{speed} is {int(width) * LANES[speed]:g} Gb/s"
            )


def read_slurm(text: str, graph: ListedGraph) -> None:
    """Read a tree of switches from Slurm's ``topology.conf``, see the module docstring."""
    graph.directed, graph.stated = False, True
    if graph.options.capacity is None:
        remedy = "write file:PATH,capacity=100Gb/s for one cable each, or an edge list, tail,head,capacity"
        refuse(graph.what, f"Slurm's topology states neither rates nor numbers of cables; {remedy}")
    for number, line in lines_of(text):
        given = {key.lower(): value for key, value in re.findall(r"(\w+)=(\S+)", line)}
        name = given.get("switchname")
        if name is None or not given.keys() <= {"switchname", "nodes", "switches", "linkspeed"}:
            refuse(graph.where(number), f"{line[:60]!r} is no line of a tree, such as SwitchName=s0 Nodes=n[1-4]")
        graph.add_node(name, {"terminal": False}, number)
        for below in ("nodes", "switches"):
            for end in _hosts(given.get(below, ""), graph.where(number)):
                if below == "nodes":
                    graph.add_vertex(end)
                graph.list_link(end, name, {}, number)
    graph.note("every link of Slurm's tree is read as one cable")


def _hosts(text: str, where: str) -> list[str]:
    """Names in a list of hosts, ``n[1-3,07],m`` for n1, n2, n3, n07 and m."""
    names = list[str]()
    for word in re.findall(r"(?:[^,\[]|\[[^\]]*)+", text):
        choices = [[part] for part in _RANGES.split(word)]
        ends = [[one.partition("-")[::2] for one in part.split(",")] for (part,) in choices[1::2]]
        ranges = [[(len(u), range(int(u), int(w or u) + 1)) for u, w in pairs] for pairs in ends]
        count = prod(sum(len(values) for _, values in part) for part in ranges)
        whole = all(values for part in ranges for _, values in part) and not any(
            "[" in part for (part,) in choices[::2]
        )
        if not whole or len(names) + count > MAX_VERTICES:
            refuse(where, f"{word[:60]!r} is no list of at most {MAX_VERTICES} hosts, such as n[1-4,07]; correct it")
        choices[1::2] = [[f"{v:0{digits}}" for digits, values in part for v in values] for part in ranges]
        names.extend(map("".join, product(*choices)))
    return names
