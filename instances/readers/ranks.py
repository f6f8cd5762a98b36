"""Which vertices of a network send and receive: as stated, or all of them unless some seem to be switches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from opticoll.instances.readers.reading import refuse

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
#: Node attributes, without case, ``-`` and ``_``, that mark switches, and those that mark what sends and receives.
_SWITCH_MARKS = frozenset({"switch", "isswitch"})
_RANK_MARKS = frozenset(
    {"host", "ishost", "gpu", "isgpu", "rank", "isrank", "isterminal", "server", "isserver", "compute", "iscompute"}
)
_FALSE = frozenset({"", "none", "nan", "false", "no"})
#: Families of names, such as ``gpu#`` and ``s#``, that are compared by their degrees.
_MOST_FAMILIES = 64

#: Vertices as a list of their names, or as a pattern of them.
Vertices = str | Iterable[Hashable]


def chosen(
    texts: Sequence[tuple[str, ...]], ranks: Vertices | None, switches: Vertices | None, what: str
) -> list[int] | None:
    """Positions of the ranks among the vertices, given the ranks or the switches; None if neither is given.

    Parameters
    ----------
    texts
        Id, label and, if a pattern may match them, further words of every vertex.
    ranks, switches
        Ids or labels as a list, or a pattern such as ``gpu*``.
    what
        What messages call the graph.

    Raises
    ------
    BadFile
        If both are given, for a name that no vertex has or that occurs twice, a pattern that matches nothing, or if no
        rank is left.
    """
    option, given = ("ranks", ranks) if ranks is not None else ("switches", switches)
    if given is None:
        return None
    if ranks is not None and switches is not None:
        refuse(what, "ranks= and switches= state the same twice; give one of them")
    if isinstance(given, str):
        found = [v for v, words in enumerate(texts) if any(word and fnmatchcase(word, given) for word in words)]
        if not found:
            example = ", ".join(dict.fromkeys(text for words in texts[:3] for text in words if text))
            refuse(what, f"no vertex matches {option}={given[:60]}; names and kinds look like {example[:120]}")
    elif isinstance(given, Iterable):
        names = [str(name) for name in given]
        number = {text: v for place in (1, 0) for v, words in enumerate(texts) if (text := words[place])}
        for name, count in Counter(names).items():
            if count > 1 or name not in number:
                reason = "occurs twice; name each once" if count > 1 else "is not a vertex; name vertices by labels"
                refuse(what, f"{option}: {name[:60]!r} {reason}")
        found = [number[name] for name in names]
    else:
        refuse(what, f"{option}={given!r} must be a list of vertices or a pattern such as 'gpu*'")
    result = found if option == "ranks" else sorted(set(range(len(texts))) - set(found))
    if not result:
        refuse(what, f"{option}= leaves no rank; name vertices that send and receive")
    return result


def kinds(nodes: Sequence[Mapping[str, object]]) -> list[tuple[str, ...]]:
    """Words for the kind of every vertex, given its attributes: those that are text, and marks.

    An attribute such as ``is_switch`` or ``switch`` marks the vertices where it is true (or not empty) as ``switch``;
    one such as ``is_host``, ``gpu`` or ``rank`` those where it is false or absent, if it is true elsewhere.
    """
    words: list[dict[str, None]] = [{} for _ in nodes]
    for key in dict.fromkeys(key for attributes in nodes for key in attributes):
        name = re.sub("[-_ ]", "", key).lower()
        texts = [_text(attributes.get(key)) for attributes in nodes]
        if name in _SWITCH_MARKS:
            marked = [text.lower() not in _FALSE | {"0"} for text in texts]
        elif name in _RANK_MARKS:
            numbers = set(filter(None, texts)) != {"0", "1"} or len(nodes) < 3  # gpu 0, gpu 1, gpu 2
            marked = [text.lower() in (_FALSE if numbers else _FALSE | {"0"}) for text in texts]
        else:
            marked = [False] * len(nodes)
        for v, (text, mark) in enumerate(zip(texts, marked, strict=True)):
            if isinstance(nodes[v].get(key), str) or name in _SWITCH_MARKS | _RANK_MARKS:
                words[v][text] = None
            if mark and not all(marked):
                words[v]["switch"] = None
    return [tuple(filter(None, one)) for one in words]


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def names_switch(name: str) -> bool:
    """Whether a name or a kind is one of a switch: ``tor1``, ``rack2-leaf0``, ``ocs``, but not ``leaf0-gpu3``."""
    return bool(name) and not name.isdecimal() and _meaning(re.sub("[0-9]+", "0", name)) == "switch"


def _numbers_sender(name: str) -> bool:
    """Whether a name numbers something that sends and receives: ``gpu3``, ``rack0-host1``."""
    stem = re.sub("[0-9]+", "0", name)
    return "0" in stem and _meaning(stem) == "sender"


@lru_cache(maxsize=1024)
def _meaning(stem: str) -> str:
    words = list(_WORD.finditer(stem))
    if words:
        return "sender" if words[-1]["switch"] is None else "switch"
    return "switch" if _WHOLE_NAME.fullmatch(stem) else ""


def seeming_switches(
    texts: Sequence[tuple[str, ...]], names: Sequence[str], tail: NDArray[np.int64], head: NDArray[np.int64]
) -> list[int]:
    """Vertices that seem to be switches by names and kinds, beside numbered senders, or by their links; none if all do.

    Parameters
    ----------
    texts
        Id, label and words for the kind of every vertex.
    names
        What every vertex is called.
    tail, head
        Ends of the arcs as numbers of vertices.
    """
    everything = range(len(names))
    by_word = [v for v, words in enumerate(texts) if any(map(names_switch, words))]
    if by_word:
        return by_word if len(by_word) < len(names) else []
    senders = [v for v in everything if _numbers_sender(names[v])]
    if 1 < len(senders) < len(names):
        return sorted(set(everything) - set(senders))
    return _hubs(names, tail, head)


def _hubs(names: Sequence[str], tail: NDArray[np.int64], head: NDArray[np.int64]) -> list[int]:
    """Vertices of some families of names that each have more neighbours than any other vertex, as switches have.

    The others are linked to these alone. Every name must be a number, a letter, or have a number (``gpu0``, ``s1``):
    names of cities or people say nothing.
    """
    families: dict[str, list[int]] = {}
    for v, name in enumerate(names):
        families.setdefault("letter" if len(name) == 1 or name.isdecimal() else re.sub("[0-9]+", "#", name), []).append(
            v
        )
        if len(families) > _MOST_FAMILIES:
            return []
    if not all("#" in family or family == "letter" for family in families):
        return []
    ends = np.unique(np.sort(np.stack([tail, head], axis=1), axis=1), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    degree = np.bincount(ends.ravel(), minlength=len(names))
    ordered = sorted(families.values(), key=lambda vertices: int(degree[vertices].max()))
    is_host = np.zeros(len(names), dtype=bool)
    for vertices in ordered[:-1]:
        is_host[vertices] = True
        apart = not is_host[ends].all(axis=1).any()
        if is_host.sum() > 1 and apart and degree[~is_host].min() > degree[is_host].max() > 0:
            return np.flatnonzero(~is_host).tolist()
    return []
