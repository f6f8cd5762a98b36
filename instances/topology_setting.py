"""Topologies as settings: specs, with files pinned to what is in them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from opticoll.errors import BadFile, OpticollError
from opticoll.instances.readers.reading import PIN, PREFIX
from opticoll.instances.spec import parse

if TYPE_CHECKING:
    from opticoll.instances.topology import Instance


class TopologySetting(str):
    """Spec of a topology; ``file:PATH`` is followed by the hash of the topology in the file, so that keys have it."""

    def __new__(cls, value: object) -> TopologySetting:
        """Return the canonical form; :func:`read_topology` reports errors."""
        text = str(value).strip()
        if text.startswith(PREFIX) and PIN not in text:
            with suppress(OpticollError, OSError):
                text = f"{text}{PIN}{parse(text).hash}"
        return super().__new__(cls, text)


def read_topology(setting: TopologySetting, where: str) -> Instance | None:
    """The topology of a setting; None if it is empty.

    Raises
    ------
    BadInput
        If there is none, or it cannot be read.
    BadFile
        If a file has changed since the setting was made.
    """
    spec, _, digest = setting.partition(PIN)
    if not spec:
        return None
    result = parse(spec)
    if digest and result.hash != digest:
        msg = f"{where}={spec}: the file has changed since it was named; solve again with its current contents"
        raise BadFile(msg)
    return result
