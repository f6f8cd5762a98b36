"""Dumps of machines and fabrics: lane rates, cables at both ends, matrices in pieces, and units of whole files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from changed_files import changed_files
from saved_networks import arcs, check_refused, read

from opticoll.errors import BadFile

IBNETDISCOVER = """\
#
# Topology file: generated on Tue Jun  5 14:15:10 2007
#
# Initiated from node 0008f10403960558 port 0008f10403960559

vendid=0x8f1
devid=0x5a06
sysimgguid=0x5442ba00003000
switchguid=0x5442ba00003080(5442ba00003080)
Switch\t24 "S-005442ba00003080"\t\t# "leaf A" enhanced port 0 lid 6 lmc 0
[22]\t"H-0008f10403961354"[1](8f10403961355) \t\t# "n0 HCA-1" lid 4 4xEDR
[10]\t"S-0008f10400410015"[1]\t\t# "Quantum Mellanox Technologies" lid 3 4xHDR
[8]\t"S-0008f10400410015"[3]\t\t# "Quantum Mellanox Technologies" lid 3 4xHDR

vendid=0x8f1
devid=0x5a05
switchguid=0x8f10400410015(8f10400410015)
Switch\t8 "S-0008f10400410015"\t\t# "Quantum Mellanox Technologies" base port 0 lid 3 lmc 0
[1]\t"S-005442ba00003080"[10]\t\t# "leaf A" lid 6 4xHDR
[3]\t"S-005442ba00003080"[8]\t\t# "leaf A" lid 6 4xHDR
[41]\t"H-b8599f0300fc6dec"[1](b8599f0300fc6dec) \t\t# "Mellanox Technologies Aggregation Node" lid 14 4xHDR
[6]\t"H-0008f10403960558"[1](8f10403960559) \t\t# "n1 HCA-1" lid 4 2xFDR

caguid=0x8f10403961354
Ca\t2 "H-0008f10403961354"\t\t# "n0 HCA-1"
[1](8f10403961355) \t"S-005442ba00003080"[22]\t\t# lid 4 lmc 0 "leaf A" lid 6 4xEDR

caguid=0xb8599f0300fc6dec
Ca\t1 "H-b8599f0300fc6dec"\t\t# "Mellanox Technologies Aggregation Node"
[1](b8599f0300fc6dec) \t"S-0008f10400410015"[41]\t\t# lid 14 lmc 0 "Quantum" lid 3 4xHDR

caguid=0x8f10403960558
Ca\t1 "H-0008f10403960558"\t\t# "n1 HCA-1"
[1](8f10403960559) \t"S-0008f10400410015"[6]\t\t# lid 4 lmc 0 "Quantum" lid 3 2xFDR
"""
HWLOC = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" gp_index="1">
    <object type="Package" os_index="0" gp_index="3"/>
    <object type="PCIDev" gp_index="20"><object type="OSDev" gp_index="30" name="nvml0" osdev_type="1"/></object>
    <object type="PCIDev" gp_index="21"><object type="OSDev" gp_index="31" name="nvml1" osdev_type="1"/></object>
    <object type="PCIDev" gp_index="40" subtype="NVSwitch" pci_type="0680 [10de:1ac2] [0000:0000] a1 00"/>
    <object type="PCIDev" gp_index="41" subtype="NVSwitch" pci_type="0680 [10de:1ac2] [0000:0000] a1 00"/>
  </object>
  <distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">
    <indexes length="4">0 1 </indexes>
    <u64values length="12">10 21 21 10 </u64values>
  </distances2>
  <distances2hetero nbobjs="5" kind="25" name="NVLinkBandwidth">
    <indexes length="62">OSDev:30 OSDev:31 PCIDev:40 </indexes>
    <indexes length="62">PCIDev:41 Package:3 </indexes>
    <u64values length="44">1000000 0 25000 50000 0 0 1000000 25000 50000 0 </u64values>
    <u64values length="44">25000 25000 0 0 0 50000 50000 0 0 0 </u64values>
    <u64values length="44">0 0 0 0 1000000 </u64values>
  </distances2hetero>
</topology>
"""


def test_every_cable_of_ibnetdiscover_counts_once_with_width_times_lane(tmp_path: Path) -> None:
    topology = read(tmp_path, IBNETDISCOVER, "txt")
    top = "Quantum Mellanox Technologies"
    cables = [
        ("leaf A", top, 200.0),
        ("leaf A", top, 200.0),
        ("leaf A", "n0 HCA-1", 100.0),
        ("n1 HCA-1", top, 300 / 11),
    ]
    expected = sorted(cables + [(v, u, c) for u, v, c in cables])
    for found, due in zip(arcs(topology), expected, strict=True):
        assert found[:2] == due[:2]
        assert found[2] == pytest.approx(due[2])
    assert [topology.labels[v] for v in topology.terminals] == ["n0 HCA-1", "n1 HCA-1"]
    assert topology.capacity_unit == "Gb/s"
    assert topology.notes[0].startswith("1 aggregation node")
    assert topology.notes[1] == "capacities are data rates, after coding: 2xFDR is 27.2727 Gb/s"


def test_cables_without_rates_need_one_capacity(tmp_path: Path) -> None:
    text = "".join(line.rstrip().removesuffix("4xEDR") + "\n" for line in IBNETDISCOVER.splitlines())
    with pytest.raises(BadFile, match=r"line 11: the cable has no width and speed, such as 4xEDR; .*capacity=100Gb/s"):
        read(tmp_path, text, "txt")
    assert set(read(tmp_path, text, "txt", ",capacity=100Gb/s").capacity.tolist()) == {100}


def test_nvlinks_of_hwloc_stand_in_pieces_and_lead_to_one_switch(tmp_path: Path) -> None:
    topology = read(tmp_path, HWLOC, "xml")
    assert arcs(topology) == [
        ("nvml0", "nvswitch", 75),
        ("nvml1", "nvswitch", 75),
        ("nvswitch", "nvml0", 75),
        ("nvswitch", "nvml1", 75),
    ]
    assert topology.capacity_unit == "GB/s"
    assert [topology.labels[v] for v in topology.terminals] == ["nvml0", "nvml1"]


def test_numbers_of_5000_digits_are_refused(tmp_path: Path) -> None:
    number = "9" * 5000
    with pytest.raises(BadFile, match=r"capacity inf must be positive and finite"):
        read(tmp_path, HWLOC.replace("25000", number), "xml")
    with pytest.raises(BadFile, match="the cable has no width and speed, such as 4xEDR"):
        read(tmp_path, IBNETDISCOVER.replace("4xEDR", f"{number}xEDR"), "txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            re.sub("[1-9]0000|25000", "1", HWLOC),
            "line 15: a bandwidth of 1 MB/s; write lstopo x.xml without the .* links",
        ),
        (
            HWLOC.replace("1000000 0 25000", "0 75000 25000"),
            "joined to each other and to NVSwitches; .*transitive-closure",
        ),
    ],
)
def test_matrices_that_hwloc_has_transformed_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=message):
        read(tmp_path, text, "xml")


SLURM = """# two leaves
SwitchName=s0 Nodes=tux[0-1,07],login
switchname=s1 nodes=r[1-2]n[1-2]
SwitchName=s2 Switches=s[0-1] LinkSpeed=100
"""


def test_trees_of_slurm_need_the_rate_of_a_cable(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="neither rates nor numbers of cables; write file:PATH,capacity=100Gb/s"):
        read(tmp_path, SLURM, "conf")
    topology = read(tmp_path, SLURM, "conf", ",capacity=100Gb/s")
    assert topology.ranks == ("tux0", "tux1", "tux07", "login", "r1n1", "r1n2", "r2n1", "r2n2")
    links = [*((name, "s0") for name in topology.ranks[:4]), *((name, "s1") for name in topology.ranks[4:])]
    links += [("s0", "s2"), ("s1", "s2")]
    assert arcs(topology) == sorted((u, v, 100.0) for link in links for u, v in (link, link[::-1]))
    assert topology.notes == ("every link of Slurm's tree is read as one cable",)
    for old, new, message in (
        ("s[0-1] ", "s[0-3] ", "line 4: vertex 's2'|line 4: arc 's2'->'s2' is a loop"),
        ("[0-1,07]", "[a-b]", r"line 2: 'tux\[a-b\]' is no list of at most 1000000 hosts, such as"),
        ("[0-1,07]", "[0-1,07", "line 2: .* is no list of"),
        ("[0-1,07]", "[0-9999]n[0-999]", "line 2: .* is no list of"),
        ("[0-1,07]", f"[{'1-900000,' * 9999}1]", "line 2: .* is no list of"),  # no memory for 9,000,000,000 names
        ("[0-1,07]", f"{'[1-9000],n' * 9999}", "line 2: .* is no list of"),
        ("[0-1,07]", "[1-0,07]", "line 2: .* is no list of"),
        ("SwitchName=s2", "RingName=s2", "line 4: .* is no line of a tree, such as SwitchName=s0 Nodes=n"),
    ):
        with pytest.raises(BadFile, match=message):
            read(tmp_path, SLURM.replace(old, new), "conf", ",capacity=1,format=slurm")


FOUR = """    <u64values length="44">1000000 40000 0 0 40000 1000000 0 0 </u64values>
    <u64values length="44">0 0 1000000 40000 0 0 40000 1000000 </u64values>
"""
REFUSED = [
    (
        IBNETDISCOVER.replace("4xEDR", "4xHDR", 1),
        "txt",
        "line 26: the cable has rate '4xHDR' at its other end, and '4xEDR' here",
    ),
    (IBNETDISCOVER.replace('"n0 HCA-1" lid 4 4xEDR', '"n0" lid 4 4xZDR').replace("4xEDR", "4xZDR"), "txt", "no width"),
    (
        IBNETDISCOVER.replace('[8]\t"S', '[8]\t"X'),
        "txt",
        "line 13: .* is no port of ibnetdiscover; save its whole output",
    ),
    (IBNETDISCOVER.rpartition("caguid")[0], "txt", "line 22: vertex 'H-0008f10403960558' is not declared"),
    (HWLOC.replace("NVLinkBandwidth", "Other"), "xml", "no NVLinkBandwidth, XGMIBandwidth between GPUs; dump NCCL's"),
    (HWLOC.replace("1000000 0 25000", "1000000 25000", 1), "xml", "line 15: 24 values for 5 known objects"),
    (HWLOC.replace("OSDev:31", "OSDev:32"), "xml", "line 15: 25 values for 5 known objects"),
    (HWLOC.replace("25000", "0").replace("50000", "0"), "xml", "line 15: these links do not connect all 2 GPUs"),
    (HWLOC.replace("hwloc2.dtd", "file:///etc/passwd"), "xml", "entities are not accepted"),
]


@pytest.mark.parametrize(("text", "suffix", "message"), REFUSED)
def test_what_is_refused_names_the_line_and_the_remedy(text: str, suffix: str, message: str, tmp_path: Path) -> None:
    check_refused(tmp_path, text, suffix, message)


CHANGED = [
    (IBNETDISCOVER, "txt", ""),
    (SLURM, "conf", ",capacity=1"),
    (HWLOC, "xml", ""),
]
test_changed_files_are_refused_in_one_line_or_read_completely = changed_files(CHANGED)
