"""Machines of GPUs: the topology XML of NCCL and RCCL, and the matrix of ``nvidia-smi topo -m``.

NCCL (``NCCL_TOPO_DUMP_FILE``). Source: github.com/NVIDIA/nccl, src/graph/topo.cc and topo.h. GPUs are the ranks, in the
order of their ``rank``; NUMA domains (``cpu``), PCIe switches and NVSwitches are relays. Capacities [GB/s] are those
that NCCL assumes: NVLinks by the GPU's compute capability (:data:`NVLINK_GBS`), all NVSwitches as one relay, PCIe by
speed and width, CPUs by vendor and model. NICs lead out of the machine and are omitted. RCCL files have xGMI links
instead of NVLinks, whose bandwidth depends on the GPU's ``gcn`` (:data:`XGMI_GBS`); source: github.com/ROCm/rccl,
src/graph/topo.h.

By default the links are those that NCCL's peer-to-peer transport uses: NVLinks (xGMI) if they connect all GPUs, else
these and PCIe. ``wiring=nvlink``, ``pci`` or ``all`` chooses. Files that clouds ship for ``NCCL_TOPO_FILE`` identify
GPUs only by their PCI class, and NCCL adds the NVLinks on the machine: from these, ``wiring=pci`` reads the PCIe links,
with the GPUs in the order of their bus ids.

``nvidia-smi topo -m``. ``NV#`` is a bonded set of # NVLinks; capacities are numbers of NVLinks, or rates with
``capacity=25GB/s``, the rate of one. Paths over PCIe have no bandwidth there and are omitted. In a box with NVSwitches
every pair shows the links to the switches of that GPU which has fewer. That is read as a switch, with the links of each
GPU, where the sum of a row exceeds the links that a GPU has; where both are possible, ``wiring=switch`` or
``wiring=direct`` decides.

A malformed file is refused (:class:`opticoll.errors.BadFile`) in one line with the place and the remedy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadFile
from opticoll.instances.quantities import split_rate
from opticoll.instances.readers.listed_graph import ListedGraph
from opticoll.instances.readers.read_options import ReadOptions
from opticoll.instances.readers.reading import line_of, parse_xml, refuse
from opticoll.instances.readers.tables import is_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from xml.etree.ElementTree import Element

    from opticoll.instances.topology import I64

#: Choices of links, see the module docstring and :mod:`opticoll.instances.readers.topology_json` (TACCL).
WIRINGS = ("nvlink", "pci", "all", "switch", "direct", "ndv2", "dgx2", "hub_and_spoke")
#: Lowest compute capability and bandwidth of its NVLinks [GB/s], highest first; 8.6 is an exception.
NVLINK_GBS = ((107, 31.2), (100, 40.1), (90, 20.6), (80, 20.0), (70, 20.0), (60, 18.0))
_SM86_GBS = 12.0
#: Bandwidth of an xGMI link [GB/s] by prefix of the GPU's ``gcn`` (910 is an older name of 90a).
XGMI_GBS = {"900": 24.0, "906": 24.0, "908": 24.0, "90a": 36.0, "910": 36.0, "94": 48.0, "95": 48.0}
#: PCIe [100 Mb/s per lane] by the string ``link_speed``, without "PCIe"; other strings count as 8 GT/s.
_PCIE = {"2.5": 15, "5": 30, "5.0": 30, "8": 60, "8.0": 60, "16": 120, "16.0": 120, "32": 240, "32.0": 240, "64.0": 480}
_LOCAL_GBS = 5000.0
#: Prefixes of the PCI classes of GPUs: display controllers and processing accelerators.
_GPU_CLASSES = ("0x03", "0x12")
#: Name of a GPU, and entries of ``nvidia-smi topo -p2p``.
_GPU = re.compile(r"GPU[0-9]{1,4}")
_PEER_TO_PEER = frozenset({"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"})
#: Maximum number of NVLinks of a GPU, and minimum of a GPU behind NVSwitches (DGX-2).
MOST_LINKS, FEWEST_SWITCHED = 18, 6


@dataclass
class _Machine:
    """Vertices and arcs of an NCCL file, with NVLinks (or xGMI) separate from the rest."""

    what: str
    gpus: list[tuple[int, str, Element, str]] = field(default_factory=list)  # rank, vertex, element, CPU
    by_bus: dict[tuple[str, str], str] = field(default_factory=dict)  # (host, bus id) to vertex
    nvlink: list[tuple[str, str, float, int]] = field(default_factory=list)
    other: list[tuple[str, str, float, int]] = field(default_factory=list)
    bare: list[tuple[str, str, float, Element]] = field(default_factory=list)  # bus id, parent, GB/s: no <gpu>

    def refuse(self, element: Element, reason: str) -> BadFile:
        return BadFile(f"{self.what}, line {line_of(element)}: <{element.tag}> {reason}")

    def whole(self, element: Element, name: str, default: int | None = None) -> int:
        text = element.get(name)
        if text is None and default is not None:
            return default
        if text is None or not is_number(text) or len(text) > 9:
            given = "is missing" if text is None else f"is {text[:40]!r}"
            raise self.refuse(element, f"attribute {name} {given}; write a whole number")
        return int(text)

    def join(self, u: str, v: str, gbs: float, line: int) -> None:
        self.other += [(u, v, gbs, line), (v, u, gbs, line)]


def read_nccl(data: bytes, graph: ListedGraph) -> None:
    """Read a topology dumped by NCCL (see the module docstring)."""
    what, options = graph.what, graph.options
    options.refuse(what, "NCCL files specify their links", "capacity", "directed", "first")
    if options.wiring not in {None, "nvlink", "pci", "all"}:
        refuse(what, f"wiring={options.wiring} does not apply to NCCL files; write nvlink, pci or all")
    root = parse_xml(data, what, "write NCCL's topology XML")
    if root.tag != "system":
        refuse(f"{what}, line {line_of(root)}", f"<{root.tag[:40]}>, not <system>; dump it with NCCL_TOPO_DUMP_FILE")
    machine = _Machine(what)
    cpus: list[tuple[str, Element]] = []
    several = len({cpu.get("host_hash") for cpu in root}) > 1
    for cpu in root:
        if cpu.tag != "cpu":
            raise machine.refuse(cpu, "inside <system>; expected <cpu>")
        host = cpu.get("host_hash", "") if several else ""
        name = f"cpu{machine.whole(cpu, 'numaid')}" if not host else f"{host}/cpu{machine.whole(cpu, 'numaid')}"
        if name in dict(cpus):
            raise machine.refuse(cpu, f"has the numaid of another; {name[:60]} occurs twice")
        for other, element in cpus:
            if not several or element.get("host_hash", "") == host:
                machine.other.append((name, other, _cpu_gbs(cpu), line_of(cpu)))
                machine.other.append((other, name, _cpu_gbs(element), line_of(cpu)))
        cpus.append((name, cpu))
        for child in cpu:
            _read_pci(machine, child, name, host, name)
    if options.wiring == "pci" and not machine.gpus:
        for rank, (_, parent, gbs, element) in enumerate(sorted(machine.bare, key=lambda gpu: gpu[0])):
            machine.gpus.append((rank, f"gpu{rank}", element, parent))
            machine.join(f"gpu{rank}", parent, gbs, line_of(element))
        machine.bare = []
    _check_gpus(machine)
    for _, gpu, element, cpu_name in machine.gpus:
        host = cpu_name.rpartition("/cpu")[0]
        for link in element:
            _read_link(machine, link, gpu, element, host, cpu_name)
    _choose_links(machine, graph)


def _read_pci(machine: _Machine, element: Element, parent: str, host: str, cpu: str) -> None:
    if element.tag in {"nic", "pcilink"}:
        return
    if element.tag != "pci":
        raise machine.refuse(element, "is unknown here; expected <pci> or <nic>")
    bus, kind = element.get("busid", "").lower(), element.get("class", "")
    if not bus or (host, bus) in machine.by_bus:
        raise machine.refuse(element, f"has {'the busid of another' if bus else 'no busid'}; give each a unique busid")
    width = machine.whole(element, "link_width", 16) or 16
    speed = element.get("link_speed", "").replace("PCIe", "").replace("GT/s", "").strip()
    gbs = width * _PCIE.get(speed, 60) / 80.0
    gpus = element.findall("gpu")
    if len(gpus) > 1 or any("mlopart" in gpu.attrib for gpu in gpus):
        raise machine.refuse(
            gpus[-1], "shares its device with another rank, which is not supported; dump it with one rank a GPU"
        )
    if gpus:
        rank = machine.whole(gpus[0], "rank") if "rank" in gpus[0].attrib else machine.whole(gpus[0], "dev")
        vertex = machine.by_bus[host, bus] = f"gpu{rank}"
        machine.gpus.append((rank, vertex, gpus[0], cpu))
        machine.join(vertex, parent, gbs, line_of(element))
    elif kind.startswith(_GPU_CLASSES):
        machine.by_bus[host, bus] = bus
        machine.bare.append((f"{host}/{bus}", parent, gbs, element))
    elif kind.startswith("0x02") or element.findall("nic") or kind == "0x068000":
        machine.by_bus[host, bus] = bus
    else:
        vertex = machine.by_bus[host, bus] = f"{host}/{bus}" if host else bus
        machine.join(vertex, parent, gbs, line_of(element))
        for child in element:
            _read_pci(machine, child, vertex, host, cpu)


def _check_gpus(machine: _Machine) -> None:
    if machine.bare:
        reason = "is a GPU by its class but has no <gpu>, so NCCL completes this file on the machine"
        remedy = "dump the whole topology with NCCL_TOPO_DUMP_FILE, or write wiring=pci for its PCIe links only"
        raise machine.refuse(machine.bare[0][-1], f"{reason}; {remedy}")
    ranks = [rank for rank, *_ in machine.gpus]
    if len(ranks) < 2 or len(set(ranks)) < len(ranks):
        fault = "fewer than two GPUs" if len(ranks) < 2 else f"two GPUs of rank {max(ranks, key=ranks.count)}"
        refuse(machine.what, f"{fault}; dump the topology of a whole machine with NCCL_TOPO_DUMP_FILE")


def _read_link(machine: _Machine, link: Element, gpu: str, element: Element, host: str, cpu: str) -> None:
    """Read an NVLink, xGMI or C2C link of a GPU."""
    if link.tag == "c2c":
        gbs = machine.whole(link, "bw") * machine.whole(link, "count") / 1000.0
        if gbs:
            machine.join(gpu, cpu, gbs, line_of(link))
        return
    if link.tag not in {"nvlink", "xgmi"}:
        raise machine.refuse(link, "of a GPU is unknown; expected <nvlink>, <xgmi> or <c2c>")
    gbs = machine.whole(link, "count") * (_nvlink_gbs if link.tag == "nvlink" else _xgmi_gbs)(machine, element)
    target, kind = link.get("target", "").lower(), link.get("tclass", "")
    if not target or not kind:
        raise machine.refuse(link, "needs the attributes target and tclass; dump the topology again")
    if not gbs:
        raise machine.refuse(link, "has count 0; omit it")
    if kind.startswith(_GPU_CLASSES):
        peer = machine.by_bus.get((host, target))
        if peer is not None and peer != gpu:  # NCCL ignores links to devices that are invisible to the process
            machine.nvlink.append((gpu, peer, gbs, line_of(link)))
    elif kind == "0x068001":
        machine.other += [(gpu, cpu, gbs, line_of(link)), (cpu, gpu, gbs, line_of(link))]
    elif kind == "0x068000":
        machine.nvlink += [(gpu, "nvswitch", gbs, line_of(link)), ("nvswitch", gpu, gbs, line_of(link))]
    else:
        raise machine.refuse(link, f"has the class {kind[:20]!r}; known are 0x03.., 0x12.. (GPU), 0x068000, 0x068001")


def _nvlink_gbs(machine: _Machine, gpu: Element) -> float:
    sm = machine.whole(gpu, "sm")
    if sm == 86:
        return _SM86_GBS
    for least, gbs in NVLINK_GBS:
        if sm >= least:
            return gbs
    raise machine.refuse(
        gpu, f"has sm {sm}, for which the NVLink bandwidth is unknown; write the links to an edge list"
    )


def _xgmi_gbs(machine: _Machine, gpu: Element) -> float:
    gcn = gpu.get("gcn", "").removeprefix("gfx")
    for name, gbs in XGMI_GBS.items():
        if gcn.startswith(name):
            return gbs
    raise machine.refuse(
        gpu, f"has gcn {gcn[:20]!r}, for which the xGMI bandwidth is unknown; write the links to an edge list"
    )


def _cpu_gbs(cpu: Element) -> float:
    """Bandwidth from one NUMA domain to another [GB/s], as NCCL assumes."""
    arch, vendor = cpu.get("arch", ""), cpu.get("vendor", "")
    family, model = (
        int(text) if is_number(text := cpu.get(name, "0")) and len(text) < 9 else 0 for name in ("familyid", "modelid")
    )
    if arch in {"ppc64", "arm64"}:
        return 32.0 if arch == "ppc64" else 6.0
    if vendor == "GenuineIntel":
        if family != 6:
            return 6.0
        if model >= 0xCF or model in {0xAD, 0xAE, 0xAF}:
            return 40.0
        return 22.0 if model >= 0x8F else 10.0 if model >= 0x55 else 6.0
    if vendor == "AuthenticAMD":
        return {26: 32.0, 0xBF: 32.0, 25: 24.0, 0xAF: 24.0}.get(family, 16.0)
    return 6.0 if vendor in {"CentaurHauls", "  Shanghai  "} else _LOCAL_GBS


def _choose_links(machine: _Machine, graph: ListedGraph) -> None:
    ranks = [gpu for _, gpu, _, _ in sorted(machine.gpus, key=lambda gpu: gpu[0])]
    wiring = graph.options.wiring or ("nvlink" if connected(ranks, machine.nvlink) else "all")
    links = [*(machine.nvlink if wiring != "pci" else []), *(machine.other if wiring != "nvlink" else [])]
    links = _without_dead_ends(links, set(ranks))
    graph.unit = "GB/s"
    for name in dict.fromkeys([*ranks, *(end for link in links for end in link[:2])]):
        graph.add_vertex(name, relay=name not in ranks)
    total: dict[tuple[str, str], tuple[float, int]] = {}
    for u, v, gbs, line in links:
        before = total.get((u, v), (0.0, line))
        total[u, v] = before[0] + gbs, before[1]
    for (u, v), (gbs, line) in total.items():
        graph.list_link(u, v, round(gbs, 6), line)


def connected(ranks: list[str], links: Iterable[tuple[Any, ...]]) -> bool:
    """Whether every GPU reaches every other one over links, which begin with tail and head."""
    import networkx as nx

    graph = nx.DiGraph((u, v) for u, v, *_ in links)
    return any(component.issuperset(ranks) for component in nx.strongly_connected_components(graph))


def _without_dead_ends(links: list[tuple[str, str, float, int]], ranks: set[str]) -> list[tuple[str, str, float, int]]:
    """Drop relays with one neighbour, such as PCIe bridges without a GPU below, which carry no flow."""
    import networkx as nx

    graph = nx.Graph((u, v) for u, v, *_ in links)
    while dead := [name for name, neighbours in graph.degree() if neighbours < 2 and name not in ranks]:
        graph.remove_nodes_from(dead)
    return [link for link in links if graph.has_edge(*link[:2])]


def read_nvidia_smi(text: str, graph: ListedGraph) -> None:
    """Read the matrix of ``nvidia-smi topo -m``, see the module docstring."""
    what, options = graph.what, graph.options
    options.refuse(what, "the matrix of nvidia-smi has links both ways", "directed", "first")
    rate = options.capacity
    if rate is not None and split_rate(rate) is None:
        refuse(what, "capacity= is the rate of one NVLink here; write capacity=25GB/s, or omit it")
    if options.wiring not in {None, "switch", "direct"}:
        refuse(what, f"wiring={options.wiring} does not apply to this file; write switch or direct")
    links = _smi_matrix(text, what)
    n = len(links)
    if n < 2:
        refuse(what, "one GPU has no links to others; save the matrix of a machine with several")
    if not links.any():
        msg = f"{what}: no entry is NV#; `nvidia-smi topo -mp` omits NVLinks: save the matrix of nvidia-smi topo -m; "
        raise BadFile(
            msg + "for GPUs without NVLinks, dump NCCL's topology with NCCL_TOPO_DUMP_FILE and read that file"
        )
    own = links.max(axis=1)  # behind NVSwitches
    switched = _are_switched(links, own, what, options.wiring)
    graph.place, graph.options = "row", ReadOptions(ranks=options.ranks, switches=options.switches)
    names = [f"gpu{i}" for i in range(n)]
    for name in names:
        graph.add_vertex(name)
    pairs = [(names[i], names[j], float(links[i, j]), i + 1) for i, j in np.argwhere(links).tolist()]
    if not connected(names, pairs):
        msg = f"{what}: NVLinks do not connect all GPUs, and the matrix has no PCIe bandwidths; "
        raise BadFile(msg + "dump NCCL's topology with NCCL_TOPO_DUMP_FILE and read that file")
    if switched:
        graph.add_vertex("nvswitch", relay=True)
        for i, name in enumerate(names):
            graph.list_link(name, "nvswitch", int(own[i]), i + 1, directed=False)
        if (own != own[0]).any():
            most = int(own.max())
            fewer = ", ".join(f"gpu{i} {own[i]}" for i in np.flatnonzero(own < most).tolist())
            graph.note(f"read as a switch with {most} NVLinks of each GPU, but of {fewer}")
    else:
        for u, v, count, row in pairs:
            graph.list_link(u, v, count, row)
    graph.unit = None if rate is None else graph.checked_unit(rate)


def _are_switched(links: I64, own: I64, what: str, wiring: str | None) -> bool:
    """Whether the NVLinks between GPUs, by pair, lead to NVSwitches, with ``own`` links of each GPU."""
    n = len(links)
    alike = np.minimum.outer(own, own) * (1 - np.eye(n, dtype=np.int64)) == links
    if wiring == "direct":
        return False
    total = links.sum(axis=1)
    most = int(total.argmax())
    if wiring == "switch" or total[most] > MOST_LINKS:
        if alike.all():
            return True
        i, j = np.argwhere(~alike)[0].tolist()
        msg = (
            f"{what}: the row of GPU{most} has {total[most]} NVLinks in all (a GPU has at most {MOST_LINKS}), but "
            f"GPU{i} and GPU{j} show {links[i, j]}, not {min(own[i], own[j])} as behind NVSwitches; correct the "
            "matrix, or write file:PATH,wiring=direct for links between GPUs"
        )
        raise BadFile(msg)
    if alike.all() and n > 2 and (count := own.max()) >= FEWEST_SWITCHED:
        msg = (
            f"{what}: NV{count} between all {n} GPUs may be {count} links to each other, or {count} links of each to "
            "NVSwitches; write file:PATH,wiring=direct or file:PATH,wiring=switch"
        )
        raise BadFile(msg)
    return False


def _smi_matrix(text: str, what: str) -> I64:
    """Numbers of NVLinks between GPUs, symmetric, 0 on the diagonal."""
    lines = _smi_lines(text)
    number, heading = next(lines)
    columns = heading[: heading.index("CPU")] if "CPU" in heading else heading
    gpus = [i for i, word in enumerate(columns) if _GPU.fullmatch(word)]
    if [columns[i] for i in gpus] != [f"GPU{i}" for i in range(len(gpus))] or len(gpus) > 1024:
        refuse(f"{what}, line {number}", "the heading must name GPU0, GPU1, ... in order; save the whole output")
    values = np.zeros((len(gpus), len(gpus)), dtype=np.int64)
    rows = 0
    for number, words in lines:
        if not words or not _GPU.fullmatch(words[0]):
            continue
        cells = words[1 : len(columns) + 1]
        if rows == len(gpus):
            msg = f"{what}, line {number}: row of {words[0]} after those of all {rows} GPUs; save one matrix per file"
            raise BadFile(msg)
        if words[0] != f"GPU{rows}" or len(cells) < len(columns) or cells[gpus[rows]] != "X":
            refuse(f"{what}, line {number}", f"row of GPU{rows} expected, with one entry per column and X for itself")
        for j, i in enumerate(gpus):
            values[rows, j] = _number_of_links(cells[i], f"{what}, line {number}")
            if (cells[i] == "X") != (j == rows):
                refuse(f"{what}, line {number}", f"X must stand only for GPU{rows} itself; save the output again")
        rows += 1
    if rows < len(gpus) or (values != values.T).any():
        fault = f"{rows} rows for {len(gpus)} GPUs" if rows < len(gpus) else "the matrix is not symmetric"
        refuse(what, f"{fault}; save the whole output of nvidia-smi topo -m")
    return values


def _number_of_links(entry: str, where: str) -> int:
    if re.fullmatch(r"NV[1-9][0-9]?", entry):
        return int(entry[2:])
    if entry not in {"X", "SYS", "NODE", "PHB", "PXB", "PIX", "PSB", "SOC"}:
        hint = "; this is the matrix of topo -p2p; save that of topo -m" if entry in _PEER_TO_PEER else ""
        refuse(where, f"entry {entry[:20]!r} is not NV#, PIX, PXB, PHB, NODE, SYS or X{hint}")
    return 0


def _smi_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield lines as words, from the heading on (skipping a command line before it), without terminal colours."""
    begun = False
    for number, raw in enumerate(text.splitlines(), start=1):
        words = re.sub(r"\x1b\[[0-9;]*m", " ", raw).split()
        begun = begun or words[:1] == ["GPU0"]
        if begun:
            yield number, words
    if not begun:
        yield 1, []
