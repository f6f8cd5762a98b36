"""Graphs in formats of one topic each: graph6, Pajek and DOT.

graph6, sparse6 and digraph6 (users.cecs.anu.edu.au/~bdm/data/formats.txt), as nauty and networkx write them: one graph
without capacities; networkx reads sparse6.

Pajek (mrvar.fdv.uni-lj.si/pajek): ``*Arcs`` and ``*Arcslist`` are directed, ``*Edges`` and ``*Edgeslist`` are not,
whatever their order; in lists every number after the first is a neighbour. The third number of a line is ``weight``,
which is no capacity unless ``capacity=weight`` says so; pairs of words behind it are further attributes, as networkx
writes them.

DOT (graphviz.org/doc/info/lang.html): nodes, edges, chains and attributes with the defaults of ``node [...]`` and
``edge [...]``, which hold for what is created after them, in their subgraph. Ports do not matter, as in Graphviz;
parameters of a drawing are ignored.

A malformed file is refused (:class:`opticoll.errors.BadFile`) in one line with the place and the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from opticoll.instances.readers.listed_graph import ListedGraph
from opticoll.instances.readers.reading import refuse
from opticoll.instances.readers.tables import is_number, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator


#: Longest text of graph6 [bytes].
_MAX_GRAPH6 = 4 * 2**20
_HEADER = re.compile(r">>(?:graph6|sparse6|digraph6)<<")


def read_graph6(text: str, graph: ListedGraph) -> None:
    """Read one graph in graph6, sparse6 or digraph6."""
    code, *others = _HEADER.sub("", text).split() or [""]
    directed, sparse = code.startswith("&"), code.startswith(":")
    body = code[directed or sparse :]
    if others or len(code) > _MAX_GRAPH6 or not re.fullmatch(r"[?-~]+", body):
        fault = (
            f"{len(others) + 1} graphs, one a line" if others else f"{code[:20]!r} is no graph6, sparse6 or digraph6"
        )
        refuse(graph.what, f"{fault}; give one graph of at most {_MAX_GRAPH6} characters ? to ~, such as by sed -n 3p")
    graph.place, graph.directed = "edge", directed
    skip = 2 if body.startswith("~~") else int(body.startswith("~"))
    end = (1, 4, 8)[skip]
    values = np.frombuffer(body.encode(), dtype=np.uint8) - 63
    n = sum(int(digit) << 6 * place for place, digit in enumerate(reversed(values[skip:end])))
    graph.number_vertices(n, 0)
    size = n * n if directed else n * (n - 1) // 2
    if sparse:
        import networkx as nx

        links = [(u, v) for u, v, *_ in nx.from_sparse6_bytes(code.encode()).edges]  # type: ignore[call-overload]
    elif len(body) != end + -(-size // 6):
        refuse(graph.what, f"{len(body) - end} characters for {n} vertices, not {-(-size // 6)}; copy the whole line")
    else:
        bits = np.flatnonzero(np.unpackbits(values[end:, None], axis=1)[:, 2:].ravel()[:size])
        ends = np.divmod(bits, n) if directed else np.array(np.tril_indices(n, -1))[:, bits]
        links = list(zip(*(side.tolist() for side in ends), strict=True))
    for number, (u, v) in enumerate(links, start=1):
        graph.list_link(u, v, {}, number)


#: Sections of Pajek by their first word: whether their links are arcs, and whether lines list neighbours.
_PAJEK = {"arcs": (True, False), "edges": (False, False), "arcslist": (True, True), "edgeslist": (False, True)}
_WORD = re.compile(r'"([^"]*)"|(\S+)')


def read_pajek(text: str, graph: ListedGraph) -> None:
    """Read a Pajek network, see the module docstring."""
    section, relations = "", set[str]()
    for number, line in lines_of(text, "%"):
        where, words = graph.where(number), [quoted or bare for quoted, bare in _WORD.findall(line)]
        if line.startswith("*"):
            section = words[0][1:].lower()
            relations.update(word for word in words[1:] if word.startswith(":"))
            if section == "vertices" and not graph.order and len(words) > 1 and is_number(words[1]):
                graph.number_vertices(words[1])
            elif section != "network" and (section not in _PAJEK or not graph.order or len(relations) > 1):
                known = "one *Vertices N, then *Arcs, *Edges, *Arcslist or *Edgeslist of one relation"
                refuse(where, f"{line[:40]!r} is not read; write {known}")
            continue
        ends = words if _PAJEK.get(section, (True, False))[1] else words[: 1 if section == "vertices" else 2]
        if len(ends) < (1 if section == "vertices" else 2) or not all(map(graph.has_vertex, ends)):
            refuse(where, f"{line[:60]!r} is no line of *{section or 'Vertices'} with vertices 1..{graph.order}")
        if section == "vertices":
            place = dict(zip("xy", words[2:4], strict=False)) if len(words) > 3 else {}
            graph.describe(ends[0], {"label": " ".join(words[1:2]) or ends[0], **place})
            continue
        directed, listed = _PAJEK[section]
        given = {} if listed else dict(zip(["weight"], words[2:3], strict=False))
        if not listed and len(words) > 3:
            given.update(zip(words[3::2], words[4::2], strict=False))
        for head in ends[1:]:
            graph.list_link(ends[0], head, given, number, directed)


#: Words and signs of DOT behind blanks and comments.
_DOT = re.compile(
    r"(?P<skip>(?:\s|//[^\n]*|/\*(?:[^*]|\*(?!/))*+\*/|(?:^|(?<=\n))\#[^\n]*)*+)(?:(?P<sign>->|--|[{}\[\];,=:+])"
    r'|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<word>-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?![\w.])|[^\W\d]\w*)|(?P<html><)|\Z)',
    re.DOTALL,
)
#: Attributes of edges that only draw them.
_DRAWN = re.compile(r"(?:pen|arrow|font|label\w|edge|min|head|tail|l|same|x)\w*|len|constraint|style|color\w*|pos|dir")
_DEEPEST, _MOST_LINKS = 32, 2_000_000


class _Dot:
    """The statements of a DOT file, read token by token: kind (``sign``, ``word``, ``quoted``), text and line."""

    def __init__(self, text: str, graph: ListedGraph) -> None:
        self.graph, self.at = graph, 0
        self.nodes: dict[str, dict[str, str]] = {}
        self.tokens = list(self._tokens(text))

    def _tokens(self, text: str) -> Iterator[tuple[str, str, int]]:
        position, line = 0, 1
        while position < len(text):
            found = _DOT.match(text, position)
            if found is None:
                rest = text[position:].lstrip()
                line += text.count("\n", position, len(text) - len(rest))
                refuse(self.graph.where(line), f"{rest[:30]!r} is not DOT; write GraphML")
            begun, position, kind = position, found.end(), found.lastgroup or ""
            line += found["skip"].count("\n")
            depth = int(kind == "html")  # <...>, in which brackets are balanced, is a label of a drawing
            while depth and position < len(text):
                depth += {"<": 1, ">": -1}.get(text[position], 0)
                position += 1
            if kind != "skip":
                yield ("quoted" if kind == "html" else kind), "" if kind == "html" else found[kind], line
            line += text.count("\n", begun + len(found["skip"]), position)
        yield "end", "the end", line

    def refuse(self, reason: str) -> NoReturn:
        """Refuse what stands at the current token."""
        _, text, line = self.tokens[self.at]
        refuse(self.graph.where(line), f"{reason}, not {text[:30]!r}; correct the DOT, or write GraphML")

    def follows(self, text: str, kind: str = "sign") -> bool:
        """Whether the next token is this one, which is then read."""
        found = self.tokens[self.at][:2] == (kind, text)
        self.at += found
        return found

    def word(self) -> str:
        """Read a name, or texts joined by ``+``."""
        parts = list[str]()
        while not parts or self.follows("+"):
            kind, text, _ = self.tokens[self.at]
            if kind not in {"word", "quoted"}:
                self.refuse("a name is expected")
            self.at += 1
            parts.append(re.sub(r"\\(\n|.)", lambda found: {"\n": "", '"': '"'}.get(found[1], found[0]), text))
        return "".join(parts)

    def attributes(self) -> dict[str, str]:
        """Read lists of attributes in brackets, of which there may be none."""
        given: dict[str, str] = {}
        while self.follows("["):
            while not self.follows("]"):
                name = self.word()
                given[name] = self.word() if self.follows("=") else "true"
                _ = self.follows(",") or self.follows(";")
        return given

    def statements(self, scope: Mapping[str, Mapping[str, str]], depth: int) -> list[str]:
        """Read statements up to the closing brace, with the defaults of their scope; return their nodes."""
        defaults = {kind: dict(given) for kind, given in scope.items()}
        within: dict[str, None] = {}
        if depth > _DEEPEST:
            self.refuse(f"at most {_DEEPEST} levels of subgraphs are read")
        while not self.follows("}"):
            kind, text, line = self.tokens[self.at]
            if self.follows(";") or self.follows(","):
                continue
            if kind == "word" and text.lower() in defaults:
                self.at += 1
                defaults[text.lower()].update(self.attributes())
                continue
            groups = [self.ends(defaults, depth)]
            while self.follows("->" if self.graph.directed else "--"):
                groups.append(self.ends(defaults, depth))
            given = self.attributes()
            within.update((name, None) for group in groups for name in group)
            if len(groups) == 1 and (kind, text) not in {("sign", "{"), ("word", "subgraph")}:
                for name in groups[0]:
                    self.nodes[name].update(given)
            self.link(groups, {**defaults["edge"], **given}, line)
        return list(within)

    def ends(self, defaults: Mapping[str, Mapping[str, str]], depth: int) -> list[str]:
        """Read one side of an edge: a node, or all nodes of a subgraph; an attribute of the graph has none."""
        if self.follows("subgraph", "word") and self.tokens[self.at][0] != "sign":
            self.word()
        if self.follows("{"):
            return self.statements(defaults, depth + 1)
        name = self.word()
        if self.follows("="):
            self.word()
            return []
        while self.follows(":"):
            self.word()
        self.nodes.setdefault(name, dict(defaults["node"]))
        return [name]

    def link(self, groups: Sequence[Sequence[str]], attributes: Mapping[str, str], line: int) -> None:
        """List the links between neighbours of a chain."""
        graph = self.graph
        shown = attributes.get("dir", "forward") if graph.directed and graph.options.directed is None else "forward"
        if shown != "forward" and len(groups) > 1:
            refuse(graph.where(line), f"dir={shown[:20]} in a digraph; {graph.ask_direction}")
        name = graph.options.capacity
        kept = {key: text for key, text in attributes.items() if key == name or not _DRAWN.fullmatch(key.lower())}
        for tails, heads in pairwise(groups):
            if len(graph.links) + len(tails) * len(heads) > _MOST_LINKS:
                refuse(graph.where(line), f"more than {_MOST_LINKS} links; split the file")
            for tail in tails:
                for head in heads:
                    graph.list_link(tail, head, kept, line)


def read_dot(text: str, graph: ListedGraph) -> None:
    """Read a DOT file with one graph, see the module docstring."""
    dot = _Dot(text, graph)
    if dot.follows("strict", dot.tokens[0][0]):
        graph.multigraph = False
    kind = dot.word().lower()
    graph.directed = kind == "digraph"
    if dot.tokens[dot.at][0] != "sign":
        dot.word()
    if kind not in {"graph", "digraph"} or not dot.follows("{"):
        dot.refuse("graph or digraph, a name and { are expected")
    dot.statements({"graph": {}, "node": {}, "edge": {}}, 1)
    if dot.tokens[dot.at][0] != "end":
        dot.refuse("the end of the file is expected")
    for name, given in dot.nodes.items():
        label = re.sub(r"\\[nlr]", " ", given.get("label", r"\N").replace(r"\N", name)).strip()
        graph.add_node(name, {**given, "label": label or name})
