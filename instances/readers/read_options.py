"""Options of ``file:PATH,option=value``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opticoll.instances.readers.reading import refuse

if TYPE_CHECKING:
    from opticoll.instances.readers.ranks import Vertices


@dataclass(frozen=True)
class ReadOptions:
    """How to read a topology file, in addition to what the file specifies.

    Parameters
    ----------
    capacity
        Attribute or column with the capacity; or the capacity of every link, a number or a rate such as ``400Gb/s``.
    directed
        True to read links as arcs, False to read each as an arc each way; None to follow the file or its format.
    format
        Name of the format; None to recognise it.
    first
        Number of the first vertex, 0 or 1; None for the default of the format, usually 0.
    ranks
        Vertices that send and receive, as a list or as a pattern (``gpu*``) of their names or kinds; None to follow the
        file.
    wiring
        Choice of links where a format allows several: ``nvlink``, ``pci``, ``all``, ``switch``, ``direct``, ``ndv2``,
        ``dgx2``, ``hub_and_spoke``.
    switches
        Vertices that do not send and receive, instead of ``ranks``.
    loops
        ``drop`` or ``keep`` links from a vertex to itself; None to refuse them, unless the file declares them.
    """

    capacity: str | float | None = None
    directed: bool | None = None
    format: str | None = None
    first: int | None = None
    ranks: Vertices | None = None
    wiring: str | None = None
    switches: Vertices | None = None
    loops: str | None = None

    def refuse(self, what: str, reason: str, *names: str) -> None:
        """Refuse options that do not apply to a format.

        Raises
        ------
        BadFile
            For the first such option that is given.
        """
        for name in names:
            if getattr(self, name) is not None:
                refuse(what, f"{name}= does not apply: {reason}; omit it")
