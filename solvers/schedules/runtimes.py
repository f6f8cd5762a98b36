"""Limits of the runtimes that execute programs: what a program uses, and what exceeds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opticoll.solvers.schedules.program_arrays import ProgramArrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.solvers.schedules.program import Program


@dataclass(frozen=True)
class Target:
    """Limits of a runtime that executes MSCCL XML.

    Parameters
    ----------
    name, source
        Name of the runtime, and the files of its repository that define the limits.
    steps, blocks, channels
        Maximum numbers of steps per thread block (numbered, with ``nop``), of thread blocks per rank, and of channels.
    peers
        Maximum number of thread blocks of a rank that send, and that receive, over one channel.
    count, dependency, offset
        Maximum number of chunks per step; largest number of an awaited thread block; largest buffer offset.
    nodes
        Maximum number of file elements that a rank keeps: the algorithm, all ranks, its own thread blocks and steps.
    unlimited
        Value of maxBytes for buffers of any size; None if the range must be stated.
    whole_loop
        Whether the elements for a peer must be a multiple of all chunks of the buffer, N D, rather than of D.
    skipped
        Elements of a rank that the runtime does not execute.
    optional
        Attributes that its parser does not require.
    missing_most
        Largest buffer [bytes] if maxBytes is missing; None if maxBytes is required.
    reducescatter
        Its name for reduce-scatter; the other collectives have the same name in every runtime.
    whole_sizes
        Whether declared sizes of input and output must be those of the collective, or 0.
    """

    name: str
    source: str
    steps: int
    blocks: int
    channels: int = 32
    peers: int = 32
    count: int = 71
    dependency: int = 127
    offset: int = 32767
    nodes: int | None = None
    unlimited: int | None = None
    whole_loop: bool = False
    skipped: tuple[str, ...] = ("copy",)
    optional: tuple[str, ...] = ("name",)
    missing_most: int | None = None
    reducescatter: str = "reducescatter"
    whole_sizes: bool = False

    def name_of(self, collective: str) -> str:
        """Name of a collective in files for this runtime."""
        return self.reducescatter if collective == "reducescatter" else collective

    def multiple_of(self, program: Program) -> int:
        """Divisor required of the number of elements for a peer (of elements in the buffer, for allreduce)."""
        return program.chunks_per_loop if self.whole_loop else program.chunks


#: Runtimes, by name.
TARGETS = {
    target.name: target
    for target in (
        Target(
            "msccl",
            "github.com/microsoft/msccl: src/include/msccl.h, src/include/devcomm.h, src/graph/topo.cc",
            256,
            216,
            optional=("outofplace", "minBytes", "maxBytes"),
            missing_most=1 << 27,
            reducescatter="reduce_scatter",
            whole_sizes=True,
        ),
        Target(
            "rccl",
            "github.com/ROCm/rccl: src/include/msccl/msccl_struct.h, src/include/msccl/msccl_parser.h, "
            "src/misc/msccl/msccl_parser.cc",
            64,
            64,
            nodes=4096,
            unlimited=0,
        ),
        Target(
            "azure-msccl",
            "github.com/Azure/msccl-executor-nccl: src/include/msccl/msccl_struct.h, "
            "src/misc/msccl/msccl_lifecycle.cc, src/misc/msccl/msccl_parser.cc",
            64,
            1024,
            unlimited=0,
            whole_loop=True,
        ),
    )
}
#: Protocols that every runtime supports.
PROTOCOLS = ("Simple", "LL", "LL128")


def exceeded(program: Program, target: Target, used: Mapping[str, int] | None = None) -> list[str]:
    """Why a target rejects a program, and by how much it exceeds the limits; empty if it fits.

    ``used`` is its :meth:`~opticoll.solvers.schedules.program_arrays.ProgramArrays.usage`, counted here if None.
    """
    result = ProgramArrays.of(program).usage() if used is None else used
    limits = {
        "steps": (target.steps, "steps in a thread block"),
        "blocks": (target.blocks, "thread blocks in a rank"),
        "channels": (target.channels, "channels"),
        "sends": (target.peers, "sending thread blocks on a channel"),
        "receives": (target.peers, "receiving thread blocks on a channel"),
        "count": (target.count, "chunks in a step"),
        "wait": (target.dependency, "as the number of an awaited thread block"),
        "offset": (target.offset, "as the largest offset in a buffer"),
        "nodes": (target.nodes, "elements that a rank reads"),
    }
    excess = [
        f"{result[name]} {what} (at most {most})"
        for name, (most, what) in limits.items()
        if most is not None and result[name] > most
    ]
    if program.protocol not in PROTOCOLS:
        excess.append(f"protocol {program.protocol} (supported: {', '.join(PROTOCOLS)})")
    most = program.max_bytes
    if "maxBytes" in program.missing and target.missing_most is not None:
        most = target.missing_most
    if most <= program.min_bytes and most != target.unlimited:
        excess.append(f"no buffer size from minBytes={program.min_bytes} to maxBytes={most}")
    return [*excess, *_refused_form(program, target, result["loose"])]


def _refused_form(program: Program, target: Target, loose: int) -> list[str]:
    """Reasons other than sizes for which the target's parser rejects a program."""
    spelled, name = program.spelled or program.collective, target.name_of(program.collective)
    results = [f"coll={spelled!r}, which must be {name!r}"] if spelled != name else []
    missing = [key for key in program.missing if key not in target.optional]
    if missing:
        results.append(f"no attribute {', '.join(missing)}")
    gap = next((v for v, rank in enumerate(program.ranks) if sorted(rank.blocks) != list(range(len(rank.blocks)))), -1)
    if gap >= 0:
        results.append(f"thread blocks of rank {gap} that are not numbered from 0 without gaps")
    if any(block.channel < 0 for _, block in program.blocks()):
        results.append("a thread block without a channel")
    if loose:
        results.append(f"steps after a nop that wait for nothing ({loose})")
    if target.whole_sizes:
        every, part = program.chunks_per_loop, program.chunks
        due = {
            "i": part if program.collective == "allgather" else every,
            "o": part if program.collective == "reducescatter" else every,
        }
        for v, rank in enumerate(program.ranks):
            other = next((b for b in "io" if rank.sizes[b] not in (0, due[b])), None)
            if other is not None:
                results.append(f"{other}_chunks={rank.sizes[other]} of rank {v}, which must be {due[other]} or 0")
                break
    return results
