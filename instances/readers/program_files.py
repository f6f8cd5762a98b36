"""Read a linear or mixed-integer program from an MPS or LP file, also compressed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opticoll.file_contents import read_bytes
from opticoll.instances.readers.reading import refuse, unpack

if TYPE_CHECKING:
    from opticoll.instances.matrix_program import MatrixProgram

#: Size limits of a file [bytes], before and after decompression.
MOST_BYTES, MOST_UNPACKED = 512 << 20, 2 << 30
#: A compressed file that unpacks to more than this [bytes] may not unpack to more than so many times its size: programs
#: compress to a tenth or a twentieth.
LEAST_PACKED, MOST_RATIO = 32 << 20, 200
_SUFFIXES = (".mps", ".lp")
_REMEDY = "name a .mps, .mps.gz, .lp or .lp.gz file"


def read_program(path: str | Path, sense: Literal["min", "max"] | None = None) -> MatrixProgram:
    """Read a program from an MPS or LP file, optionally compressed by gzip.

    Parameters
    ----------
    path
        File; its suffix selects the format.
    sense
        Sense of the objective; None for the file's, which is min where it states none.

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, is not complete, or contains anything but linear rows and continuous
        or integer columns; the message names the line, row or column.
    """
    path = Path(path)
    where = f"matrix file {path}"
    name = path.name.lower()
    packed = name.endswith(".gz")
    suffix = Path(name.removesuffix(".gz")).suffix
    if "," in suffix and suffix.partition(",")[0] in _SUFFIXES:
        option = suffix.partition(",")[2][:40]
        refuse(where.partition(",")[0], f"unknown option {option!r}; known: sense=min, sense=max")
    if suffix not in _SUFFIXES:
        refuse(where, f"has {f'the unknown suffix {suffix!r}' if suffix else 'no suffix'}; {_REMEDY}")
    content = read_bytes(path, MOST_BYTES, _REMEDY, where)
    if packed:
        most = min(MOST_UNPACKED, max(LEAST_PACKED, MOST_RATIO * len(content)))
        content = unpack(content, most, where, _REMEDY)
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        refuse(where, f"is empty; {_REMEDY}")
    from opticoll.instances.readers.lp_reader import read_lp
    from opticoll.instances.readers.mps_reader import read_mps

    program = (read_mps if suffix == ".mps" else read_lp)(content, where)
    return program if sense is None else _with_sense(program, sense)


def _with_sense(program: MatrixProgram, sense: Literal["min", "max"]) -> MatrixProgram:
    """The program with a stated sense, and a note if the file states the other one."""
    notes = tuple(note for note in program.notes if ",sense=" not in note)
    if program.sense_stated and sense != program.sense:
        notes += (f"the file states {program.sense}; it is solved as {sense}, as ,sense={sense} says",)
    return replace(program, sense=sense, notes=notes)
