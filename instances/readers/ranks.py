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

    from opticoll.instances.topology import I64


#: Words for switches and for what sends and receives, alone or before a number: the last one in a name decides. Some
#: mean a switch only as the whole name, or behind a place such as ``pod0-``.
_SWITCH = (
    r"[a-z]*switch(?:es)?|(?:nv|ib|eth|tor|leaf|spine|core|agg|pcie?|[rfsc])?[-_ ]?sw|nvs|(?:super[-_ ]?)?spine|leaf|"
    r"tor|aggr|aggregation|ocs|oxc|roadm|mems|awgr|wss|patch[-_ ]?panel|routers?|rtr|crossbar|xbar|waypoint"
)
_WHOLE = r"core|agg|edge|access|backbone|dist|patch|hub|bridge|fabric|plane|eor|mor|gateway|gw|plx|relay|network"
_SENDER = r"[gntx]pus?|host|server|srv|node|nic|hca|chip|rank|worker|accelerator|client|blade|vm"
_WORD = re.compile(rf"(?<![a-z])(?:(?P<switch>{_SWITCH})|{_SENDER})(?![a-z])", re.IGNORECASE)
_WHOLE_NAME = re.compile(rf"(?:(?:pod|p|dc|rack|r|row|group|site)0[-_. ])*(?:{_WHOLE})[^a-z]*", re.IGNORECASE)
#: Node attributes, with names as of :func:`plain`, that mark switches, and those that mark what sends and receives.
_SWITCH_MARKS = frozenset({"switch", "isswitch"})
_RANK_MARKS = frozenset(
    {"host", "ishost", "gpu", "isgpu", "rank", "isrank", "isterminal", "server", "isserver", "compute", "iscompute"}
)
#: Node attributes that are compared as names, or say nothing about ranks.
_NO_MARKS = frozenset({"id", "label", "name", "terminal"})
_FALSE = frozenset({"", "none", "nan", "false", "no"})
#: Families of names, such as ``gpu#``, ``s#`` and ``10.0.0.#``, that are compared by their degrees.
_MOST_FAMILIES, _ADDRESS = 64, re.compile(r"[0-9]+(?:\.[0-9]+){3}")


#: Vertices as a list of their names, or as a pattern of them.
Vertices = str | Iterable[Hashable]


def chosen(
    texts: Sequence[tuple[str, ...]], ranks: Vertices | None, switches: Vertices | None, what: str
) -> list[int] | None:
    """Positions of the ranks among the vertices, given the ranks or the switches; None if neither is given.

    Parameters
    ----------
    texts
        Id, label and, if a pattern may match it, the kind of every vertex.
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


@lru_cache(maxsize=1024)
def plain(attribute: str) -> str:
    """The name of an attribute without case, ``-``, ``_`` and blanks: ``nodetype`` for ``Node_Type``."""
    return re.sub("[-_ ]", "", attribute).lower()


def marked_switches(nodes: Sequence[Mapping[str, object]]) -> tuple[str, dict[int, str]]:
    """The first attribute that marks some nodes as switches, but not all, and its texts there; "" if none does.

    ``is_switch`` and ``switch`` mark the nodes where they are true (or not empty), ``is_host``, ``gpu``, ``rank`` and
    their like those where they are false or absent. Any other text marks the nodes where it names a switch.

    Parameters
    ----------
    nodes
        Attributes of every vertex.
    """
    texts: dict[str, dict[int, str]] = {}
    called: dict[str, str] = {}
    for v, attributes in enumerate(nodes):
        for key, value in attributes.items():
            word = plain(key)
            reads = isinstance(value, str) or (value is not None and word in _SWITCH_MARKS | _RANK_MARKS)
            if reads and word not in _NO_MARKS:
                texts.setdefault(word, {})[v] = str(value).strip()
                called.setdefault(word, key)
    for word, given in texts.items():
        if word in _SWITCH_MARKS:
            marked = {v: text for v, text in given.items() if text.lower() not in _FALSE | {"0"}}
        elif word in _RANK_MARKS:
            boolean = set(given.values()) == {"0", "1"} and len(given) > 2  # else numbers: gpu 0, gpu 1, gpu 2
            false = _FALSE | {"0"} if boolean else _FALSE
            rest = ((v, given.get(v, "")) for v in range(len(nodes)))
            marked = {v: text for v, text in rest if text.lower() in false}
        else:
            marked = {v: text for v, text in given.items() if names_switch(text)}
        if 0 < len(marked) < len(nodes):
            return called[word], marked
    return "", {}


def names_switch(name: str) -> bool:
    """Whether a name or a kind is one of a switch: ``tor1``, ``rack2-leaf0``, ``ocs``, but not ``leaf0-gpu3``."""
    return bool(name) and not name.isdecimal() and _meaning(re.sub("[0-9]+", "0", name)) == "switch"


@lru_cache(maxsize=1024)
def _meaning(stem: str) -> str:
    words = list(_WORD.finditer(stem))
    if words:
        return "sender" if words[-1]["switch"] is None else "switch"
    return "switch" if _WHOLE_NAME.fullmatch(stem) else ""


def seeming_switches(
    texts: Sequence[tuple[str, ...]], names: Sequence[str], marked: tuple[str, Mapping[int, str]], tail: I64, head: I64
) -> tuple[list[int], str]:
    """Vertices that seem to be switches, though not all are, and how they do: by a word, a mark or a family of names.

    Parameters
    ----------
    texts
        Id, label and kind of every vertex.
    names
        What every vertex is called.
    marked
        What :func:`marked_switches` returns.
    tail, head
        Ends of the arcs as numbers of vertices.
    """
    by_word = [v for v, words in enumerate(texts) if any(map(names_switch, words))]
    if 0 < len(by_word) < len(texts):
        return by_word, "have names like switches"
    attribute, switches = marked
    if switches:
        return sorted(switches), f"are marked like switches by their {attribute[:40]!r}"
    if by_word:
        return [], ""
    stems = [re.sub("[0-9]+", "0", name) for name in names]  # gpu0 for gpu3
    senders = [v for v, stem in enumerate(stems) if "0" in stem and _meaning(stem) == "sender"]
    if 1 < len(senders) < len(names):
        others = sorted(set(range(len(names))) - set(senders))
        return others, f"have other names than what seems to send and receive, such as {names[senders[0]][:40]}"
    hubs = _hubs(names, tail, head)
    return hubs, "have more links than all others, which are linked to them alone, as hosts to switches"


def _hubs(names: Sequence[str], tail: I64, head: I64) -> list[int]:
    """Vertices of some families of names that each have more neighbours than any other vertex, as switches have.

    The others are linked to these alone. Every name must be a number, a letter, or have a number (``gpu0``, ``s1``):
    names of cities or people say nothing.
    """
    kinds: dict[str, list[int]] = {}
    for v, name in enumerate(names):
        family = re.sub("[0-9]+$" if _ADDRESS.fullmatch(name) else "[0-9]+", "#", name) if len(name) > 1 else "letter"
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
        apart = not (is_host[ends[:, 0]] & is_host[ends[:, 1]]).any()
        if len(hosts) > 1 and apart and degree[hubs].min() > degree[hosts].max() > 0:
            return sorted(hubs)
    return []
