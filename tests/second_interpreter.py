"""A second interpreter of MSCCL XML: it reads the file itself, and shares no code with the simulator.

It is written for clarity, not for speed. The file is executed without times; then the order of all steps is written
out (``before[i]``: the steps that end before step i begins in every execution), and every pair of accesses is compared.

The rules that it applies, to compare them with those of the simulator:

* a connection (sender, receiver, channel) has one thread block at either end, as many sends as receives, and the k-th
  of both move the same number of chunks; at most two messages are in flight;
* a step that waits for step j of a thread block begins after the first step from j on that has ``hasdep=1`` and is no
  ``nop``;
* two steps that write different values into one place are ordered, and a step that reads a place is ordered with
  every step that writes another value there than the one that is read, and comes after one that writes that value;
* every chunk of the output is right at the end.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from xml.etree import ElementTree

#: Messages in flight on a connection.
IN_FLIGHT = 2
OUT = ("s", "rcs", "rrs", "rrcs")
IN = ("r", "rcs", "rrc", "rrs", "rrcs")
FROM_SOURCE = ("s", "cpy", "re", "rrc", "rrs", "rrcs")
FROM_TARGET = ("re",)
INTO_TARGET = ("r", "cpy", "re", "rcs", "rrc", "rrcs")
ALL = {*OUT, *IN, *FROM_SOURCE, *INTO_TARGET, "nop"}
ALIASES = {"reduce_scatter": "reducescatter", "all_reduce": "allreduce", "all_gather": "allgather"}


class Refused(Exception):
    """The file is refused, for the reason in the message."""


def verdict(text, arcs=None):
    """'' if the file performs its collective (over these pairs of ranks, if given), or why it is refused."""
    try:
        Execution(text, arcs).judge()
    except Refused as reason:
        return str(reason)
    return ""


def need(condition, reason):
    if not condition:
        raise Refused(reason)


def number(element, name, default=None):
    text = element.get(name)
    if text is None and default is not None:
        return default
    need(text is not None, f"no {name}")
    digits = text[1:] if text.startswith("-") else text
    need(digits.isascii() and digits.isdigit(), f"{name} is no number")
    return int(text)


class Execution:
    def __init__(self, text, arcs):
        try:
            self.root = ElementTree.fromstring(text)
        except ElementTree.ParseError:
            msg = "no XML"
            raise Refused(msg) from None
        self.arcs = arcs
        self.read_head()
        self.read_steps()

    # the file

    def read_head(self):
        root = self.root
        need(root.tag == "algo", "no algo")
        self.ranks = number(root, "ngpus")
        self.inplace = number(root, "inplace", 0)
        need(self.inplace in (0, 1), "inplace")
        name = root.get("coll", "")
        self.collective = ALIASES.get(name, name)
        need(self.collective in ("alltoall", "allgather", "reducescatter", "allreduce"), "collective")
        per_loop = number(root, "nchunksperloop")
        need(self.ranks >= 1 and per_loop >= 1, "sizes")
        self.per_loop = self.shard = per_loop
        if self.collective != "allreduce":
            need(per_loop % self.ranks == 0, "sizes")
            self.shard = per_loop // self.ranks
        for name in ("minBytes", "maxBytes"):
            need(number(root, name, 0) >= -1, name)

    def read_steps(self):
        self.size, self.blocks, self.steps = {}, {}, []
        for gpu in self.root:
            need(gpu.tag == "gpu", "element")
            rank = number(gpu, "id")
            need(0 <= rank < self.ranks and (rank, "i") not in self.size, "gpu")
            for buffer in "ios":
                self.size[rank, buffer] = number(gpu, f"{buffer}_chunks")
                need(self.size[rank, buffer] >= 0, "buffer size")
            for tb in gpu:
                if tb.tag == "copy":
                    continue
                need(tb.tag == "tb", "element")
                self.read_block(rank, tb)
        need(len(self.size) == 3 * self.ranks, "number of gpus")

    def read_block(self, rank, tb):
        block = number(tb, "id")
        need(block >= 0 and (rank, block) not in self.blocks, "thread block")
        peer = {end: number(tb, end) for end in ("send", "recv")}
        need(all(-1 <= one < self.ranks for one in peer.values()), "peer")
        channel = number(tb, "chan", 0)
        need(channel >= -1, "channel")
        mine = self.blocks[rank, block] = []
        for place, element in enumerate(tb):
            need(element.tag == "step", "element")
            kind = element.get("type", "")
            need(kind in ALL, "type")
            one = {
                "rank": rank,
                "block": block,
                "kind": kind,
                "count": number(element, "cnt", 1),
                "to": (rank, peer["send"], channel),
                "from": (peer["recv"], rank, channel),
                "signals": number(element, "hasdep", 0),
                "waits": None,
                "numbered": number(element, "s", place) == place,
                "place": place,
            }
            need(one["count"] >= (kind != "nop") and one["signals"] in (0, 1), "step")
            for end, key in (("src", "source"), ("dst", "target")):
                buffer, offset = element.get(f"{end}buf", "i"), number(element, f"{end}off", -1)
                need(buffer in ("i", "o", "s") and offset >= -1, "place")
                one[key] = (buffer, offset)
            depid, deps = number(element, "depid", -1), number(element, "deps", -1)
            need(depid >= -1 and deps >= -1, "dependency")
            if depid >= 0:
                one["waits"] = (depid, deps)
            mine.append(len(self.steps))
            self.steps.append(one)

    # what is wrong before anything runs

    def judge(self):
        for one in self.steps:
            self.check_step(one)
        self.check_connections()
        self.execute()
        self.check_order()
        self.check_output()
        need(all(one["numbered"] for one in self.steps), "numbering")

    def check_step(self, one):
        rank, kind = one["rank"], one["kind"]
        if one["waits"] is not None:
            other = self.blocks.get((rank, one["waits"][0]))
            need(other is not None and 0 <= one["waits"][1] < len(other), "dependency")
        send, receive = one["to"][1], one["from"][0]
        need(rank not in (send, receive), "peer")
        need(not (kind in OUT and send < 0) and not (kind in IN and receive < 0), "peer")
        need(self.arcs is None or kind not in OUT or (rank, send) in self.arcs, "no arc")
        for key, kinds in (("source", FROM_SOURCE), ("target", INTO_TARGET)):
            buffer, offset = one[key]
            if kind in kinds:
                need(offset >= 0 and offset + one["count"] <= self.size[rank, buffer], "bounds")

    def check_connections(self):
        sends, receives = defaultdict(list), defaultdict(list)
        for i, one in enumerate(self.steps):
            if one["kind"] in OUT:
                sends[one["to"]].append(i)
            if one["kind"] in IN:
                receives[one["from"]].append(i)
        for side in (sends, receives):
            for those in side.values():
                need(len({self.steps[i]["block"] for i in those}) == 1, "two owners")
        need(set(sends) == set(receives), "unmatched")
        for key, those in sends.items():
            need(len(those) == len(receives[key]), "unmatched")
            for i, j in zip(those, receives[key], strict=True):
                need(self.steps[i]["count"] == self.steps[j]["count"], "counts")

    # execution

    def memory(self, rank, place):
        """The memory behind a place of a buffer: buffers share it if the collective is in place."""
        buffer, offset = place
        if self.inplace and buffer != "s":
            if self.collective == "allgather" and buffer == "i":
                offset += rank * self.shard
            if self.collective == "reducescatter" and buffer == "o":
                offset += rank * self.shard
            buffer = "io"
        return rank, buffer, offset

    def at_first(self, place):
        """What a place of the memory holds at the start: the sum of one contribution, or None."""
        rank, buffer, offset = place
        if buffer not in ("i", "io"):
            return None
        if self.collective == "allgather":
            own = offset - rank * self.shard if buffer == "io" else offset
            return ((rank, own),) if 0 <= own < self.shard else None
        return ((rank, offset),) if offset < self.per_loop else None

    def execute(self):
        """Run whatever can run, in turn, until nothing can; note every access and what comes before what."""
        content, queue = {}, defaultdict(list)
        sent, taken = defaultdict(int), defaultdict(int)
        at = dict.fromkeys(self.blocks, 0)
        self.causes = {}
        self.accesses = defaultdict(list)  # place: (step, writes?, value), in the order of this execution

        def look(i, place):
            value = content.get(place, self.at_first(place))
            self.accesses[place].append((i, False, value))
            return ("nothing", i) if value is None else value

        def sum_of(i, first, second):
            for one in (first, second):
                if one[0] in ("nothing", "too much"):
                    return one
            joined = tuple(sorted(first + second))
            return joined if len(joined) <= self.ranks else ("too much", i)

        moved = True
        while moved:
            moved = False
            for name, mine in self.blocks.items():
                if at[name] == len(mine):
                    continue
                i = mine[at[name]]
                one = self.steps[i]
                kind, waited = one["kind"], None
                if one["waits"] is not None:
                    other = name[0], one["waits"][0]
                    ended = self.blocks[other][one["waits"][1] : at[other]]
                    telling = [j for j in ended if self.steps[j]["signals"] and self.steps[j]["kind"] != "nop"]
                    if not telling:
                        continue
                    waited = telling[0]
                if kind in IN and not queue[one["from"]]:
                    continue
                if kind in OUT and sent[one["to"]] - taken[one["to"]] >= IN_FLIGHT:
                    continue
                moved = True
                causes = [mine[at[name] - 1]] if at[name] else []
                causes += [] if waited is None else [waited]
                values = None
                if kind in IN:
                    sender, values = queue[one["from"]].pop(0)
                    taken[one["from"]] += 1
                    causes.append(sender)
                self.causes[i] = causes
                places = [
                    [self.memory(name[0], (one[key][0], one[key][1] + c)) for c in range(one["count"])]
                    for key in ("source", "target")
                ]
                if kind in FROM_SOURCE:
                    current = [look(i, place) for place in places[0]]
                    values = (
                        current if values is None else [sum_of(i, a, b) for a, b in zip(values, current, strict=True)]
                    )
                if kind in FROM_TARGET:
                    there = [look(i, place) for place in places[1]]
                    values = [sum_of(i, a, b) for a, b in zip(there, values, strict=True)]
                if kind in INTO_TARGET:
                    for place, value in zip(places[1], values, strict=True):
                        content[place] = value
                        self.accesses[place].append((i, True, value))
                if kind in OUT:
                    queue[one["to"]].append((i, values))
                    sent[one["to"]] += 1
                at[name] += 1
        need(all(at[name] == len(mine) for name, mine in self.blocks.items()), "deadlock")
        self.content = content

    # what could happen otherwise

    def check_order(self):
        before = {}  # bit j of before[i]: step j ends before step i begins
        for i, causes in self.causes.items():  # in the order of execution, which is one of all steps
            before[i] = 0
            for j in causes:
                before[i] |= before[j] | 1 << j

        def ordered(i, j):
            return i == j or before[i] >> j & 1 or before[j] >> i & 1

        for place, those in self.accesses.items():
            first = self.at_first(place)
            for (i, writes, value), (j, also, other) in combinations(those, 2):
                need(value == other or not (writes or also) or ordered(i, j), "race")
            wrote = [(i, value) for i, writes, value in those if writes]
            for j, writes, value in those:
                if writes:
                    continue
                earlier = [(i, v) for i, v in wrote if before[j] >> i & 1]
                others = [i for i, v in earlier if v != value]
                since = [i for i, v in earlier if v == value and all(before[i] >> k & 1 for k in others)]
                need(since or (value == first and not others), "race")

    def check_output(self):
        for rank in range(self.ranks):
            size = self.shard if self.collective in ("allreduce", "reducescatter") else self.per_loop
            for offset in range(size):
                place = self.memory(rank, ("o", offset))
                need(self.content.get(place, self.at_first(place)) == self.due(rank, offset), "output")

    def due(self, rank, offset):
        source, chunk = divmod(offset, self.shard)
        if self.collective == "alltoall":
            return ((source, rank * self.shard + chunk),)
        if self.collective == "allgather":
            return ((source, chunk),)
        if self.collective == "reducescatter":
            return tuple((r, rank * self.shard + offset) for r in range(self.ranks))
        return tuple((r, offset) for r in range(self.ranks))
