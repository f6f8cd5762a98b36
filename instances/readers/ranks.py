"""Which vertices of a network send and receive: as stated, or all of them unless some seem to be switches."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: Words for switches and for what sends and receives, alone or before a number: the last one in a name decides. Some
#: mean a switch only as the whole name.
_SWITCH = (
    r"[a-z]*switch(?:es)?|(?:nv|ib|eth|tor|leaf|spine|core|agg|pcie?|[rfsc])?[-_ ]?sw|nvs|(?:super[-_ ]?)?spine|leaf|"
    r"tor|aggr|aggregation|ocs|oxc|roadm|mems|awgr|wss|patch[-_ ]?panel|routers?|rtr|crossbar|xbar|waypoint"
)
_WHOLE = r"core|agg|edge|access|patch|hub|bridge|fabric|plane|eor|mor|gateway|gw|plx|relay|network"
_SENDER = r"[gntx]pus?|host|server|srv|node|nic|hca|chip|rank|worker|accelerator|client|blade|vm"
_WORD = re.compile(rf"(?<![a-z])(?:(?P<switch>{_SWITCH})|{_SENDER})(?![a-z])", re.IGNORECASE)
_WHOLE_NAME = re.compile(rf"(?:{_WHOLE})[^a-z]*", re.IGNORECASE)
#: Families of names, such as ``gpu#`` and ``s#``, that are compared by their degrees.
_MOST_FAMILIES = 64


def matching(pattern: str, texts: Sequence[tuple[str, ...]]) -> list[int]:
    """Positions of the vertices of which a name or the kind matches a pattern such as ``gpu*``."""
    return [v for v, words in enumerate(texts) if any(word and fnmatchcase(word, pattern) for word in words)]


def names_switch(name: str) -> bool:
    """Whether a name or a kind is one of a switch: ``tor1``, ``rack2-leaf0``, ``ocs``, but not ``leaf0-gpu3``."""
    return bool(name) and not name.isdecimal() and _stem_names_switch(re.sub("[0-9]+", "0", name))


@lru_cache(maxsize=1024)
def _stem_names_switch(stem: str) -> bool:
    words = list(_WORD.finditer(stem))
    return words[-1]["switch"] is not None if words else _WHOLE_NAME.fullmatch(stem) is not None


def seeming_switches(
    texts: Sequence[tuple[str, ...]], names: Sequence[str], tail: NDArray[np.int64], head: NDArray[np.int64]
) -> tuple[list[int], str]:
    """Vertices that seem to be switches, though not all are, and how they do: by a word, or by a family of names.

    Parameters
    ----------
    texts
        Id, label and kind of every vertex.
    names
        What every vertex is called.
    tail, head
        Ends of the arcs as numbers of vertices.
    """
    by_word = [v for v, words in enumerate(texts) if any(map(names_switch, words))]
    if by_word:
        return (by_word, "have names like switches") if len(by_word) < len(texts) else ([], "")
    hubs = _hubs(names, tail, head)
    return hubs, "have more links than all others, which are linked to them alone, as hosts to switches"


def _hubs(names: Sequence[str], tail: NDArray[np.int64], head: NDArray[np.int64]) -> list[int]:
    """Vertices of some families of names that each have more neighbours than any other vertex, as switches have.

    The others are linked to these alone. Every name must be a number, a letter, or have a number (``gpu0``, ``s1``):
    names of cities or people say nothing.
    """
    kinds: dict[str, list[int]] = {}
    for v, name in enumerate(names):
        family = re.sub("[0-9]+", "#", name) if len(name) > 1 else "letter"
        if "#" not in family and family != "letter":
            return []
        kinds.setdefault("letter" if name.isdecimal() else family, []).append(v)
        if len(kinds) > _MOST_FAMILIES:
            return []
    if len(kinds) < 2:
        return []
    ends = np.unique(np.sort(np.stack([tail, head], axis=1), axis=1), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    degree = np.bincount(ends.ravel(), minlength=len(names))
    families = sorted(kinds.items(), key=lambda family: int(degree[family[1]].max()))
    for cut in range(1, len(families)):
        hosts = [v for _, vertices in families[:cut] for v in vertices]
        hubs = [v for _, vertices in families[cut:] for v in vertices]
        is_host = np.zeros(len(names), dtype=bool)
        is_host[hosts] = True
        lettered = any(family == "letter" for family, _ in families[cut:])
        apart = not (is_host[ends[:, 0]] & is_host[ends[:, 1]]).any()
        if len(hosts) > 1 and not lettered and apart and degree[hubs].min() > degree[hosts].max() > 0:
            return sorted(hubs)
    return []
