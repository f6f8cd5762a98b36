"""Programs as MSCCL XML, the format of msccl-tools and the MSCCL runtime, read and written.

Source  github.com/microsoft/msccl-tools (msccl/language/ir.py), github.com/Azure/msccl-executor-nccl (its parser)

    <algo name proto nchannels nchunksperloop ngpus coll inplace outofplace minBytes maxBytes>
      <gpu id i_chunks o_chunks s_chunks>
        <tb id send recv chan>
          <step s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep/>

What some runtime can do without is optional when read; :func:`opticoll.solvers.schedules.runtimes.exceeded` says
which runtimes ask for it. Elements that no runtime executes (``<copy>`` in a
``<gpu>``) are skipped. Files are untrusted: entities and document types are refused, sizes are limited before
allocation, and declared sizes allocate nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from opticoll.errors import BadFile, refuse
from opticoll.file_contents import check_file
from opticoll.formulations.modelling_layers import many_objects
from opticoll.solvers.schedules.program import COLLECTIVES, KINDS, Instruction, Place, Program, Rank, ThreadBlock
from opticoll.solvers.schedules.program_arrays import ProgramArrays
from opticoll.solvers.schedules.runtimes import TARGETS
from opticoll.solvers.schedules.static_checks import channels_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


#: Largest file [bytes], number of ranks and of steps, and declared size or offset in chunks.
MAX_BYTES = 1 << 30
MAX_RANKS = 4096
MAX_STEPS = 8_000_000
MAX_CHUNKS = 1 << 31
#: Most chunks that all steps together move, and a single step (the MSCCL runtime allows 72).
MAX_MOVED, MAX_COUNT = 20_000_000, 1024
#: Longest name, and no double quotes in it: the runtimes copy it to 64 bytes, and read up to the next double quote.
MAX_NAME = 63
_NAMES = {"reduce_scatter": "reducescatter", "all_reduce": "allreduce", "all_gather": "allgather"}
_WHOLE = re.compile(r"-?[0-9]{1,19}")
#: Attributes of ``<algo>`` that are not needed to execute it.
_NAMED = ("name", "proto", "nchannels", "outofplace")
_LEVELS = ("algo", "gpu", "tb", "step")
_SKIPPED = frozenset(name for target in TARGETS.values() for name in target.skipped)


def write_xml(program: Program) -> str:
    """The program as MSCCL XML."""
    return "".join(xml_of(program, ProgramArrays.of(program)))


def xml_of(program: Program, arrays: ProgramArrays) -> Iterator[str]:
    """The text of MSCCL XML, rank by rank; ``arrays`` are the instructions of the program."""
    from xml.sax.saxutils import quoteattr

    name = quoteattr(program.name[:MAX_NAME].replace('"', "'"))
    yield (
        f'<algo name={name} proto="{program.protocol}" nchannels="{channels_of(program)}" '
        f'nchunksperloop="{program.chunks_per_loop}" ngpus="{len(program.ranks)}" '
        f'coll="{program.spelled or program.collective}" '
        f'inplace="{int(program.inplace)}" outofplace="{int(not program.inplace)}" '
        f'minBytes="{program.min_bytes}" maxBytes="{program.max_bytes}">\n'
    )
    yield from arrays.xml()
    yield "</algo>\n"


def read_xml(path: Path) -> Program:
    """The program in an MSCCL XML file.

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, or is not MSCCL XML; the message says where.
    """
    from xml.parsers import expat

    check_file(path, MAX_BYTES, "name an MSCCL XML file")
    reader = _Reader(path)
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.StartDoctypeDeclHandler = reader.refuse_document_type
    try:
        with path.open("rb") as stream, many_objects():
            parser.ParseFile(stream)
    except OSError as reason:
        msg = f"{path}: cannot be read ({reason.strerror}); name an MSCCL XML file"
        raise BadFile(msg) from None
    except (expat.ExpatError, UnicodeError, LookupError) as reason:
        msg = f"{path}: is not valid XML ({' '.join(str(reason).split())})"
        raise BadFile(msg) from None
    return reader.finish()


class _Reader:
    """Build the program from start and end tags, at most four levels deep."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.depth = 0
        self.program: Program | None = None
        self.ranks: dict[int, Rank] = {}
        self.rank: Rank | None = None
        self.block: ThreadBlock | None = None
        self.steps = self.moved = self.declared = 0
        self.skipping = 0
        self.numbers: dict[str, int] = {}
        self.known: dict[tuple[str, int], Place] = {}
        self.missing: dict[str, None] = {}

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Process a start tag."""
        if self.skipping or (self.depth == 2 and tag in _SKIPPED):
            self.skipping += 1
            return
        if self.depth >= len(_LEVELS) or tag != _LEVELS[self.depth]:
            expected = f"<{_LEVELS[self.depth]}>" if self.depth < len(_LEVELS) else "nothing"
            self._refuse(f"<{str(tag)[:40]}> instead of {expected}")
        self.depth += 1
        getattr(self, f"_{tag}")(attributes)

    def refuse_document_type(self, *_: object) -> None:
        """Refuse a document type: without one, a file defines no entities."""
        refuse(self.path, "is not valid MSCCL XML (it has a document type); remove <!DOCTYPE ...>", BadFile)

    def end(self, _tag: str) -> None:
        """Process an end tag."""
        if self.skipping:
            self.skipping -= 1
        else:
            self.depth -= 1

    def finish(self) -> Program:
        """The complete program."""
        program = self.program
        if program is None:
            self._refuse("missing <algo>")
        if sorted(self.ranks) != list(range(self.declared)):
            self._refuse(
                f"ngpus is {self.declared}, but there are {len(self.ranks)} gpus; number them from 0 to ngpus - 1"
            )
        program.ranks = [self.ranks[v] for v in range(self.declared)]
        program.missing = tuple(self.missing)
        return program

    def _algo(self, attributes: Mapping[str, str]) -> None:
        self.declared = self._whole(attributes, "ngpus", 1, MAX_RANKS)
        per_loop = self._whole(attributes, "nchunksperloop", 1, MAX_CHUNKS)
        named = attributes.get("coll", "")
        collective = _NAMES.get(named, named)
        if collective not in COLLECTIVES:
            self._refuse(f"coll={named[:40]!r} is not supported; use one of {', '.join(COLLECTIVES)}")
        if collective != "allreduce" and per_loop % self.declared:
            self._refuse(f"nchunksperloop={per_loop} is not a multiple of ngpus={self.declared}")
        inplace = bool(self._whole(attributes, "inplace", 0, 1, default=0))
        name, protocol = attributes.get("name", ""), attributes.get("proto", "Simple")
        sizes = [self._whole(attributes, key, -1, 1 << 62, default=0) for key in ("minBytes", "maxBytes")]
        self.missing.update(dict.fromkeys(key for key in _NAMED if key not in attributes))
        spelled = None if named == collective else named
        self.program = Program(
            name[:200], collective, per_loop, [], inplace, protocol[:20], sizes[0], sizes[1], spelled
        )

    def _gpu(self, attributes: Mapping[str, str]) -> None:
        number = self._whole(attributes, "id", 0, self.declared - 1)
        if number in self.ranks:
            self._refuse(f"gpu {number} is declared twice")
        sizes = {b: self._whole(attributes, f"{b}_chunks", 0, MAX_CHUNKS) for b in "ios"}
        self.rank = self.ranks[number] = Rank(sizes)

    def _tb(self, attributes: Mapping[str, str]) -> None:
        assert self.rank is not None
        number = self._whole(attributes, "id", 0, MAX_STEPS)
        if number in self.rank.blocks:
            self._refuse(f"gpu {len(self.ranks) - 1}: thread block {number} is declared twice")
        peers = [self._whole(attributes, key, -1, self.declared - 1) for key in ("send", "recv")]
        channel = self._whole(attributes, "chan", -1, MAX_RANKS, default=0)
        self.block = self.rank.blocks[number] = ThreadBlock(number, peers[0], peers[1], channel)

    def _step(self, attributes: Mapping[str, str]) -> None:
        assert self.block is not None
        self.steps += 1
        if self.steps > MAX_STEPS:
            self._refuse(f"more than {MAX_STEPS} steps")
        kind = attributes.get("type", "")
        if kind not in KINDS:
            self._refuse(f"type={kind[:20]!r} is not one of {', '.join(sorted(KINDS))}")
        nothing = kind == "nop"
        count = self._whole(attributes, "cnt", 0, MAX_COUNT, default=1)
        if count == 0 and not nothing:
            self._refuse(f"a step of type {kind} moves cnt=0 chunks")
        self.moved += count
        if self.moved > MAX_MOVED:
            self._refuse(f"its steps move more than {MAX_MOVED} chunks")
        places = [self._place(attributes, end) for end in ("src", "dst")]
        depid, deps = (self._whole(attributes, key, -1, MAX_STEPS, default=-1) for key in ("depid", "deps"))
        waits = (depid, deps) if depid >= 0 else None
        signals = bool(self._whole(attributes, "hasdep", 0, 1, default=0))
        number = self._whole(attributes, "s", 0, MAX_STEPS, default=len(self.block.instructions))
        odd = None if number == len(self.block.instructions) else number
        self.block.instructions.append(Instruction(kind, places[0], places[1], count, waits, signals, odd))

    def _place(self, attributes: Mapping[str, str], end: str) -> Place:
        buffer = attributes.get(f"{end}buf", "i")
        if buffer not in {"i", "o", "s"}:
            self._refuse(f"{end}buf={buffer[:20]!r} is not one of i, o, s")
        at = buffer, self._whole(attributes, f"{end}off", -1, MAX_CHUNKS, default=-1)
        result = self.known.get(at)
        if result is None:
            result = self.known[at] = Place(*at)
        return result

    def _whole(self, attributes: Mapping[str, str], key: str, least: int, most: int, default: int | None = None) -> int:
        text = attributes.get(key)
        known = self.numbers.get(text)  # type: ignore[arg-type]
        if known is not None and least <= known <= most:
            return known
        if text is None and default is not None:
            self.missing[key] = None
            return default
        if text is None or not _WHOLE.fullmatch(text):
            self._refuse(f"{key} must be a whole number, not {'missing' if text is None else repr(text[:20])}")
        value = int(text)
        if not least <= value <= most:
            self._refuse(f"{key}={value} is outside {least}..{most}")
        self.numbers[text] = value
        return value

    def _refuse(self, reason: str) -> NoReturn:
        level = _LEVELS[min(max(self.depth - 1, 0), len(_LEVELS) - 1)]
        where = f"gpu {len(self.ranks) - 1}" if self.ranks else level
        if self.block is not None and level in {"tb", "step"}:
            where += f", thread block {self.block.number}, step {len(self.block.instructions)}"
        refuse(self.path, f"invalid MSCCL XML at {where}: {reason}", BadFile)
