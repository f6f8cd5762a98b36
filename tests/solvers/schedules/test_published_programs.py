"""Programs of others in MSCCL XML are judged as by their runtimes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opticoll.analysis.cli.main import main
from opticoll.errors import BadFile
from opticoll.instances import parse
from opticoll.solvers.schedules.verification import verify_file

DATA = Path(__file__).parents[2] / "data" / "third-party"
#: Programs of others: collective, ranks, runtimes that accept the file, or the reason for which it is refused.
PUBLISHED = {
    "alltoall-8n-0-9kb": ("alltoall", 8, ["msccl", "rccl", "azure-msccl"]),
    "allreduce-1step-4n-ll-1pass": ("allreduce", 4, ["msccl", "rccl", "azure-msccl"]),
    "allgather_ring-4": ("allgather", 4, ["msccl"]),
    "allreduce_a100_recursive_doubling_halving-1-1": ("allreduce", 8, ["msccl"]),
    "hierarchical_allreduce-2-2-1": ("allreduce", 4, ["msccl"]),
    "alltoall_a100_two_step-2-3": ("alltoall", 6, ["msccl"]),
    "allgather_recursive_doubling-4-2": ("allgather", 4, "race"),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_programs_are_judged_as_by_their_runtimes(name):
    path = DATA / f"{name}.xml"
    collective, n, expected = PUBLISHED[name]
    verdict = verify_file(path, parse(f"complete:{n}"), collective)
    if isinstance(expected, str):  # two instances of sends of several chunks overlap, as msccl-tools warns
        assert verdict.reason == expected
    else:
        assert verdict.valid, verdict
        assert verdict.metrics["fits_runtime"] == expected
        for other in {"rccl", "azure-msccl"}.difference(expected):
            assert verdict.metrics["exceeds"][other] == "no attribute minBytes, maxBytes, outofplace"


def test_check_says_which_runtimes_accept_a_program(capsys):
    assert main(["check", "alltoall.all-gather", "ring:4", str(DATA / "allgather_ring-4.xml")]) == 0
    lines = dict(re.findall(r"^(\S.*?) {2,}(\S.*?) *$", capsys.readouterr().out, re.MULTILINE))
    assert lines["transfers"] == "12"
    assert lines["fits"] == "msccl"
    assert lines["not for rccl"] == "no attribute minBytes, maxBytes, outofplace"
    assert lines["T bound"].startswith("1.5   (for any schedule; this one is 100 % above)")


def test_a_custom_collective_has_no_result_to_check():
    with pytest.raises(BadFile, match="coll='custom'"):
        verify_file(DATA / "alltonext_forward-2-1.xml", parse("complete:16"), "alltoall")


CHAIN = """<algo name="x" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="alltoall" inplace="0" \
outofplace="1" minBytes="0" maxBytes="0"><gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
<tb id="0" send="1" recv="-1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/></tb>
<tb id="1" send="-1" recv="1" chan="0">
<step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="0" deps="0" hasdep="0"/>
<step s="1" type="r" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="0" deps="0" hasdep="0"/></tb>
<tb id="2" send="-1" recv="-1" chan="0">
<step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb></gpu>
<gpu id="1" i_chunks="2" o_chunks="2" s_chunks="0"><tb id="0" send="0" recv="0" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="2" type="cpy" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb></gpu>
</algo>"""


@pytest.mark.parametrize(
    ("old", "new", "refusing", "reason"),
    [
        (' maxBytes="0"', "", {"rccl", "azure-msccl"}, "no attribute maxBytes"),
        (' outofplace="1"', "", {"rccl", "azure-msccl"}, "no attribute outofplace"),
        (' name="x"', "", {"msccl"}, "no attribute name"),
        (' nchannels="1"', "", {"msccl", "rccl", "azure-msccl"}, "no attribute nchannels"),
        (
            ' depid="-1" deps="-1" hasdep="1"',
            ' hasdep="1"',
            {"msccl", "rccl", "azure-msccl"},
            "no attribute depid, deps",
        ),
        (
            'cnt="1" depid="0" deps="0"',
            'cnt="1" depid="-1" deps="-1"',
            {"msccl", "rccl", "azure-msccl"},
            "steps after a nop that wait for nothing (1)",
        ),
        ('<tb id="2"', '<tb id="3"', {"msccl", "rccl", "azure-msccl"}, "thread blocks of rank 0"),
        ('i_chunks="2"', 'i_chunks="3"', {"msccl"}, "i_chunks=3 of rank 0, which must be 2 or 0"),
        (
            '<tb id="2" send="-1" recv="-1" chan="0">',
            '<tb id="2" send="-1" recv="-1" chan="-1">',
            {"msccl", "rccl", "azure-msccl"},
            "without a channel",
        ),
    ],
)
def test_what_parsers_of_runtimes_refuse_is_reported(tmp_path, old, new, refusing, reason):
    path, topology = tmp_path / "x.xml", parse("complete:2")
    sized = CHAIN.replace('maxBytes="0"', 'maxBytes="1024"')
    path.write_text(sized)
    assert len(verify_file(path, topology).metrics["fits_runtime"]) == 3
    path.write_text((CHAIN if "maxBytes" in old else sized).replace(old, new, 1))
    verdict = verify_file(path, topology)
    assert verdict.valid, verdict
    assert set(verdict.metrics["exceeds"]) == refusing
    assert all(reason in verdict.metrics["exceeds"][name] for name in refusing)
