"""Read files from outside: bytes, text, JSON and XML, within limits; pinned file names."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self, TypeVar

from opticoll import errors
from opticoll.errors import BadFile, BadInput
from opticoll.file_contents import at_home, read_bytes, unreadable

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    import msgspec

    from opticoll.instances.topology import F64
    from opticoll.types import Json


Kind = TypeVar("Kind", bound="msgspec.Struct")


def refuse(where: object, reason: str) -> NoReturn:
    """Refuse a file because of what stands at a place of it: :func:`opticoll.errors.refuse` as :class:`BadFile`."""
    errors.refuse(where, reason, BadFile)


#: Prefix of a setting that names a file.
PREFIX = "file:"
#: Prefixes of instance specs that name a file.
FILE_SPECS = (PREFIX, "mps:")
#: What stands between the path and the digest of a pinned file.
PIN = "#sha256="


def names_file(spec: str) -> bool:
    """Whether an instance spec reads a file, which may change after the spec has been parsed."""
    return PREFIX in spec or spec.strip().startswith(FILE_SPECS)


def as_path(given: object, where: str) -> Path:
    """A path that was given as a string or a path-like object; ``~`` is the home folder.

    Raises
    ------
    BadInput
        For any other object.
    """
    if not isinstance(given, str | os.PathLike):
        msg = f"{where}: needs the name of a file, not {type(given).__name__}"
        raise BadInput(msg)
    return at_home(given)


def unpack(data: bytes, most: int, where: str, remedy: str) -> bytes:
    """Contents of a gzip file, of one or more members.

    Raises
    ------
    BadFile
        If it is not such a file, is cut off, or has more than ``most`` bytes after decompression.
    """
    try:
        with gzip.open(io.BytesIO(data)) as file:
            unpacked = file.read(most + 1)
    except EOFError:
        msg = f"{where} ends in the middle of its compressed data; copy the whole file"
        raise BadFile(msg) from None
    except (OSError, zlib.error) as error:
        msg = f"{where} is not a gzip file ({error}); {remedy}"
        raise BadFile(msg) from None
    if len(unpacked) > most:
        msg = f"{where} has more than {most} bytes after decompression; use a smaller file"
        raise BadFile(msg)
    return unpacked


#: First bytes of files that hold others.
_PACKED = {b"\x1f\x8b": "compressed by gzip", b"PK\x03\x04": "a zip archive, as are .xlsx and .npz"}


def decode(data: bytes, where: str | Path, remedy: str) -> str:
    """Decode ``data`` as UTF-8 text, without a byte order mark.

    Raises
    ------
    BadFile
        If it is not UTF-8.
    """
    packed = next((kind for start, kind in _PACKED.items() if data.startswith(start)), None)
    if packed is not None:
        raise unreadable(where, f"it is {packed}", "unpack it, or export it as text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise unreadable(where, f"byte {error.start} is not UTF-8 text", remedy) from None


def read_json(path: Path, most: int, remedy: str) -> Json:
    """Read the JSON in a file, in which no object repeats a key and no number is NaN or infinite.

    Raises
    ------
    BadFile
        If the file cannot be read, is too large (:func:`check_file`), or does not contain such JSON.
    """
    return parse_json(decode(read_bytes(path, most, remedy), path, remedy), path, remedy)


def parse_json(text: str, where: str | Path, remedy: str) -> Json:
    """Parse the JSON in ``text``, as :func:`read_json` does.

    Raises
    ------
    BadFile
        If it is not such JSON.
    """
    try:
        value: Json = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        msg = f"{where} is not valid JSON ({str(error).splitlines()[0][:200]}); {remedy}"
        raise BadFile(msg) from None
    return value


def as_struct(value: Json, kind: type[Kind], where: str | Path) -> Kind:
    """Parsed JSON as a struct of :mod:`msgspec`.

    Raises
    ------
    BadFile
        If it does not fit; the message names the place, or the field that is probably meant by an unknown one.
    """
    import msgspec

    from opticoll.nearest_names import nearest

    config = kind.__struct_config__
    if config.forbid_unknown_fields and isinstance(value, dict):
        names = [one.encode_name for one in msgspec.structs.fields(kind)]
        unknown = next((name for name in value if name not in (*names, config.tag_field)), None)
        if unknown is not None:
            refuse(where, f"unknown field {unknown[:60]!r}; {nearest(unknown, names)}")
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeError) as error:
        msg = f"{where}: {in_words(error)}"
        raise BadFile(msg) from None


#: Words of msgspec's errors, and how a message says them.
_WORDS = {
    "`float` that's a multiple of 1.0": "`int`",
    "Object missing required field": "lacks the field",
    "Object contains unknown field": "has the unknown field",
    "Invalid enum value": "has the unknown value",
    "Number out of range": "must be `float` in the range of floating-point numbers",
    "Expected": "must be",
    ", got": ", not",
}
_TYPES = {
    "array": "a list",
    "object": "an object",
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}


def in_words(error: Exception) -> str:
    """What an error of msgspec says, with the place first: ``arcs[0] must be a list, not a whole number``."""
    reason, _, place = str(error).partition(" - at `$")
    for word, ours in _WORDS.items():
        reason = reason.replace(word, ours)
    types = re.compile(r"`([^`]*)`")
    reason = types.sub(lambda found: " or ".join(_TYPES.get(one, repr(one)) for one in found[1].split(" | ")), reason)
    return f"{place.strip('.`')} {reason}".strip()


def _distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    values = dict(pairs)
    if len(values) < len(pairs):
        [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
        msg = f"key {name[:60]!r} occurs twice"
        raise ValueError(msg)
    return values


def _refuse_constant(constant: str) -> Json:
    msg = f"{constant} is not a finite number"
    raise ValueError(msg)


#: Maximum nesting depth and number of XML elements that :func:`parse_xml` reads.
MAX_DEPTH = 64
MAX_ELEMENTS = 2_000_000
#: Attribute with the line of an element, which no document has.
_LINE = ":line"


def parse_xml(data: bytes, where: str | Path, remedy: str) -> Element:
    """Parse an XML document without document type and entities, at most :data:`MAX_DEPTH` levels deep.

    Tags have no prefixes of namespaces; :func:`line_of` is the line of an element.

    Raises
    ------
    BadFile
        If it is not such a document; the message names the line.
    """
    from xml.etree.ElementTree import TreeBuilder
    from xml.parsers import expat

    plain = data.replace(b"\0", b"")  # also UTF-16
    if plain.count(b"/>") + plain.count(b"</") > MAX_ELEMENTS:
        refuse(where, f"more than {MAX_ELEMENTS} XML elements; use a smaller file")
    tree, parser, depth = TreeBuilder(), expat.ParserCreate(), 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            refuse(f"{where}, line {parser.CurrentLineNumber}", f"more than {MAX_DEPTH} levels of XML; {remedy}")
        tree.start(name.rpartition(":")[2], {**attributes, _LINE: str(parser.CurrentLineNumber)})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        tree.end(name.rpartition(":")[2])

    def refuse_document_type(*_: object) -> None:
        refuse(where, "document types and entities are not accepted; remove the <!DOCTYPE> declaration")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, tree.data
    parser.StartDoctypeDeclHandler = refuse_document_type
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        if isinstance(error, BadFile):
            raise
        reason = expat.ErrorString(error.code) if isinstance(error, expat.ExpatError) else "unknown encoding"
        msg = f"{where}, line {parser.ErrorLineNumber}: not well-formed XML ({reason}); {remedy}"
        raise BadFile(msg) from None
    return tree.close()


def line_of(element: Element) -> int:
    """The line of an element that :func:`parse_xml` read."""
    return int(element.attrib[_LINE])


#: Size limit of a file that a setting names [bytes].
MOST_PINNED = 256 << 20


class FileSetting(str):
    """A setting in which ``file:PATH`` is pinned to the contents of the file when it is made."""

    __slots__ = ()

    def __new__(cls, text: object) -> Self:
        """Pin a file."""
        return super().__new__(cls, pinned(str(text)))


def pinned(text: str) -> str:
    """Add to ``file:PATH`` the digest of the file's current contents, before ``,pairs=``; return others unchanged.

    A file that cannot be read, or is too large, is left unpinned: :func:`read_pinned` reports the reason.
    """
    text = text.strip()
    if not text.startswith(PREFIX) or PIN in text:
        return text
    name, pairs = split_pairs(text)
    try:
        data = read_bytes(Path(name.removeprefix(PREFIX)), MOST_PINNED, "")
    except BadFile:
        return text
    return f"{name}{PIN}{hashlib.sha256(data).hexdigest()}{'' if pairs is None else f',pairs={pairs}'}"


def split_pairs(text: str) -> tuple[str, str | None]:
    """What stands before ``,pairs=CHOICE`` at the end of a setting that names a file, and the choice."""
    name, found, choice = text.rpartition(",pairs=")
    return (name, choice.strip()) if found else (text, None)


def same_text(a: str, b: str) -> bool:
    """Whether two settings are equal: pinned files by content, anything else as strings."""
    first, second = (text.partition(PIN)[2] if text.startswith(PREFIX) else "" for text in (a, b))
    return a == b or bool(first and first == second)


def read_pinned(text: str, what: str, remedy: str) -> tuple[Path, str]:
    """Path and text of the file named by ``file:PATH``; arguments and errors as for :func:`read_pinned_bytes`.

    Raises
    ------
    BadFile
        Also if it is not UTF-8 text.
    """
    path, data = read_pinned_bytes(text, what, remedy)
    return path, decode(data, f"{what} {path}", remedy)


def read_pinned_bytes(text: str, what: str, remedy: str) -> tuple[Path, bytes]:
    """Path and contents of the file named by ``file:PATH``, pinned or not.

    Parameters
    ----------
    text
        Setting, including its prefix.
    what, remedy
        How messages name the file, such as ``circuit file``, and what to do if it cannot be read.

    Raises
    ------
    BadFile
        If it cannot be read, is too large, or has changed since it was pinned.
    """
    name, _, digest = text.strip().removeprefix(PREFIX).partition(PIN)
    path = Path(name)
    where = f"{what} {path}"
    data = read_bytes(path, MOST_PINNED, remedy, where)
    if digest and hashlib.sha256(data).hexdigest() != digest:
        msg = f"{where} has changed since it was named; solve again with its current contents"
        raise BadFile(msg)
    return path, data


#: First bytes of files written by ``numpy.save``.
NUMPY = b"\x93NUMPY"


def numpy_matrix(data: bytes, where: str) -> F64:
    """Read the square matrix of numbers in a file written by ``numpy.save``; objects (pickles) are refused.

    Raises
    ------
    BadFile
        If it is truncated, not a square matrix, or contains anything but real numbers.
    """
    from tokenize import TokenError  # of a header that is no literal

    import numpy as np

    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, kind = read(stream)
        square = len(shape) == 2 and shape[0] == shape[1] and kind.kind in "biuf" and kind.itemsize <= 8
        entries = np.frombuffer(data, kind, offset=stream.tell()) if square else np.empty(0)
        matrix = entries.reshape(shape if square else (0, 0), order="F" if by_columns else "C")
    except (ValueError, EOFError, SyntaxError, TokenError) as error:
        msg = f"{where} is not a complete NumPy file ({str(error)[:80]}); write it with numpy.save"
        raise BadFile(msg) from None
    if not square:
        refuse(where, f"an array of shape {shape} and type {str(kind)[:40]}; save a square matrix of real numbers")
    return matrix.astype(np.float64)


def parses_as_float(text: str) -> bool:
    """Whether Python parses a word as a float, NaN and infinity included; underscores between digits are refused."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
