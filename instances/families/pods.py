"""Pods: cubes of chips behind optical switches, and what fails in them.

A cube has ``side`` chips in each of three dimensions, joined by fixed links; chip (x, y, z) of cube c is the vertex
``(c side + x) side^2 + y side + z``, with the label ``c.x.y.z``. Every place of the two faces that are opposite in a
dimension has one optical switch, which joins the port of the + face of every cube c with that of the - face of cube
p(c), at the same place, for a permutation p of the cubes: the *wiring* is a permutation for each of the 3 ``side^2``
switches. A cube may be joined with itself; the links of a switch run both ways.

Sources: Jouppi et al., TPU v4, ISCA 2023 (cubes of 4x4x4 chips, 48 switches, twisted tori); Zu et al., Resiliency at
Scale, NSDI 2024 (failures).
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import permutations, product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opticoll.arguments import whole_number
from opticoll.errors import BadInput, refuse
from opticoll.instances.readers.reading import read_json
from opticoll.instances.spec import Dimensions, family, family_of
from opticoll.instances.topology import Topology, both_ways, check_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import NoReturn

    from opticoll.instances.topology import I64

#: Dimensions of a cube, and the largest file of a wiring [bytes].
DIMENSIONS, MAX_FILE_BYTES = 3, 2**24
#: The wiring of a spec, as a text of permutations.
_STATED = re.compile(r"[0-9]+([./][0-9]+)*")


def places(side: int) -> tuple[I64, I64]:
    """The chips of a cube at the ports of every switch, on the + face and on the - face, ``(3, side^2)`` each.

    Places of a face are numbered by the coordinates of the other two dimensions, in their order.
    """
    chips = np.arange(side**DIMENSIONS).reshape((side,) * DIMENSIONS)
    plus, minus = ([np.take(chips, at, axis=d).ravel() for d in range(DIMENSIONS)] for at in (side - 1, 0))
    return np.array(plus), np.array(minus)


def fixed_links(side: int) -> tuple[I64, I64]:
    """The ends of the fixed links of a cube, lower coordinate first, ``(3 side^2 (side - 1),)`` each."""
    chips = np.arange(side**DIMENSIONS).reshape((side,) * DIMENSIONS)
    low, high = (
        np.concatenate([np.delete(chips, at, axis=d).ravel() for d in range(DIMENSIONS)]) for at in (side - 1, 0)
    )
    return low, high


def pod_of(wiring: I64, side: int) -> Topology:
    """The chips of a pod with their links: fixed ones, and those of the switches set to ``wiring``, ``(3, side^2, k)``.

    A chip that a switch joins with itself (``side`` is 1) has no such link.
    """
    k, size = wiring.shape[2], side**DIMENSIONS
    check_size(k * size, 2 * DIMENSIONS * k * size, "pod")
    cubes = size * np.arange(k)[:, None]
    low, high = fixed_links(side)
    plus, minus = places(side)
    u = np.concatenate([(cubes + low).ravel(), (size * np.arange(k) + plus[..., None]).ravel()])
    v = np.concatenate([(cubes + high).ravel(), (size * wiring + minus[..., None]).ravel()])
    chips = [".".join(map(str, chip)) for chip in product(range(side), repeat=DIMENSIONS)]
    labels = tuple(f"{c}.{chip}" for c in range(k) for chip in chips)
    return Topology(k * size, *both_ways(u[u != v], v[u != v]), spec="pod", labels=labels)


def even_shape(cubes: int) -> Dimensions:
    """The box of so many cubes whose longest edge is shortest, and among these the one closest to a cube; ascending."""
    boxes = [
        (a, b, cubes // (a * b))
        for a in range(1, cubes + 1)
        if cubes % a == 0 and a**3 <= cubes
        for b in range(a, cubes // a + 1)
        if cubes // a % b == 0 and b * b <= cubes // a
    ]
    return Dimensions(min(boxes, key=lambda box: (box[2], sum(box))))


def lattice(shape: Sequence[int], twist: Sequence[int] = (0, 0, 0)) -> I64:
    """Permutations of the cubes of a box, one for each dimension, ``(3, k)``: on to the next cube, and at the end back.

    ``twist`` are the cubes by which the way back of dimension 0 shifts dimension 1, and dimension 2, and by which that
    of dimension 1 shifts dimension 2.
    """
    cubes = np.arange(prod(shape)).reshape(shape)
    x, y, z = (np.roll(cubes, -1, axis=d).ravel() for d in range(DIMENSIONS))
    y.reshape(shape)[:, -1] = np.roll(cubes[:, 0], -twist[2], axis=1)
    back = cubes[0].ravel()
    for step, times in ((y, twist[0]), (z, twist[1])):
        for _ in range(times):
            back = step[back]
    x.reshape(shape)[-1] = back.reshape(shape[1:])
    return np.array([x, y, z])


def published_twist(shape: Sequence[int]) -> tuple[int, int, int]:
    """The twist of TPU v4's slices of k x k x 2k and k x 2k x 2k chips: short dimensions shift the long ones by k.

    Raises
    ------
    BadInput
        For other shapes.
    """
    a, b, c = shape
    if c != 2 * a or b not in (a, c):
        refuse("pod", f"wiring=twisted is published for k x k x 2k and k x 2k x 2k cubes, not {Dimensions(shape)}")
    return (0, a, a) if b == a else (a, a, 0)


def wiring_of(shape: Dimensions | None, cubes: int, side: int, wiring: str) -> I64:
    """The permutation of every switch that a spec states, ``(3, side^2, k)``; arguments and errors of :func:`pod`."""
    whole_number(side, "pod: side", 1)
    if bool(shape) == bool(cubes):
        refuse("pod", "give either the shape in cubes, as pod:shape=1x1x2, or their number, as pod:cubes=2")
    if shape and (len(shape) != DIMENSIONS or min(shape) < 1):
        refuse("pod", f"the shape must have three dimensions of at least one cube, such as 1x1x2, not {shape}")
    k = whole_number(prod(shape) if shape else cubes, "pod: cubes", 1)
    check_size(k * side**DIMENSIONS, 2 * DIMENSIONS * k * side**DIMENSIONS, "pod")
    box = shape or even_shape(k)
    if wiring in {"torus", "twisted"}:
        stated = lattice(box, published_twist(box) if wiring == "twisted" else (0, 0, 0))
    else:
        where = f"pod: wiring {wiring[:40]!r}"
        lists = _stated(wiring, k) if _STATED.fullmatch(wiring) else _of_file(wiring)
        if len(lists) not in (DIMENSIONS, DIMENSIONS * side**2):
            refuse(where, f"has {len(lists)} permutations, not one for each of 3 dimensions or {3 * side**2} switches")
        for number, one in enumerate(lists):
            if sorted(one) != list(range(k)):
                refuse(where, f"number {number} is no permutation of the cubes 0..{k - 1}")
        stated = np.array(lists, dtype=np.int64)
    return np.repeat(stated, side**2 * DIMENSIONS // len(stated), axis=0).reshape(DIMENSIONS, side**2, k)


def _stated(text: str, k: int) -> list[list[int]]:
    """Permutations such as ``1.0.3.2/2``: images of the cubes in turn, or a number that is added modulo k."""
    lists = [[int(number) for number in one.split(".")] for one in text.split("/")]
    return [[(c + one[0]) % k for c in range(k)] if len(one) == 1 else one for one in lists]


def _of_file(path: str) -> list[list[int]]:
    """Permutations in a JSON file: a list for every dimension or switch, by dimension and place."""
    remedy = "write wiring=torus, twisted, permutations such as 1.0/0.1/1.0, or a JSON file of them"
    lists = read_json(Path(path), MAX_FILE_BYTES, remedy)
    if not isinstance(lists, list) or not all(
        isinstance(one, list) and all(type(number) is int for number in one) for one in lists
    ):
        refuse(f"pod: wiring {path!r}", "must be a list of permutations, each a list of whole numbers")
    return lists


def wiring_text(wiring: I64) -> str:
    """The argument ``wiring`` of a spec that states permutations, ``(3, side^2, k)``; :func:`wiring_of` reads it."""
    k = wiring.shape[2]
    alike = bool((wiring == wiring[:, :1]).all())
    lists = wiring[:, 0] if alike else wiring.reshape(-1, k)
    shifts = (lists[:, :1] + np.arange(k)) % k == lists
    return "/".join(
        str(one[0]) if shift.all() else ".".join(map(str, one.tolist()))
        for one, shift in zip(lists, shifts, strict=True)
    )


def spec_of(wiring: I64, side: int) -> str:
    """The spec of the pod with permutations ``(3, side^2, k)``."""
    spec = f"pod:cubes={wiring.shape[2]}"
    spec += "" if side == 4 else f",side={side}"
    return f"{spec},wiring={wiring_text(wiring)}"


def moved_wirings(wiring: I64, side: int) -> Iterator[tuple[I64, I64]]:
    """Every symmetry of the cube, as an image of its chips, ``(side^3,)``, and the wiring as it moves the ports.

    The pods are isomorphic. A symmetry that reverses a dimension turns its permutations into their inverses.
    """
    plus, minus = places(side)
    back = np.argsort(wiring, axis=2)
    chips = np.arange(side**DIMENSIONS).reshape((side,) * DIMENSIONS)
    for order in permutations(range(DIMENSIONS)):
        for flips in product((1, -1), repeat=DIMENSIONS):
            image = chips.transpose(order)[tuple(slice(None, None, flip) for flip in flips)].ravel()
            moved = np.empty_like(wiring)
            for d, (axis, flip) in enumerate(zip(order, flips, strict=True)):
                face, source = (plus, wiring) if flip > 0 else (minus, back)
                place = np.empty(side**DIMENSIONS, dtype=np.int64)
                place[face[axis]] = np.arange(side**2)
                moved[d] = source[axis, place[image[plus[d]]]]
            yield image, moved


def _automorphisms(shape: Dimensions | None, cubes: int, side: int, wiring: str) -> Iterator[I64]:
    """Symmetries of the cube, each with the permutation of the cubes that it needs; translations first."""
    stated = wiring_of(shape, cubes, side, wiring)
    k, size = stated.shape[2], side**DIMENSIONS
    switches = stated.reshape(-1, k)
    tree, reached = _tree(switches)
    if reached < k:
        return
    for image, moved in moved_wirings(stated, side):
        turned = moved.reshape(-1, k)
        starts = [0] if (image != np.arange(size)).any() else np.unique(switches[:, 0]).tolist()
        for start in starts:
            follow = np.empty(k, dtype=np.int64)
            follow[0] = start
            for cube, switch, head in tree:
                follow[head] = turned[switch, follow[cube]]
            if np.array_equal(np.sort(follow), np.arange(k)) and (follow[switches] == turned[:, follow]).all():
                chips = np.empty(k * size, dtype=np.int64)
                chips[(size * follow[:, None] + np.arange(size)).ravel()] = (
                    size * np.arange(k)[:, None] + image
                ).ravel()
                yield chips


def _tree(switches: I64) -> tuple[list[tuple[int, int, int]], int]:
    """Steps from cube 0 to all that switches ``(., k)`` reach: cube, switch and next cube; and how many they reach."""
    seen, queue, steps = {0}, [0], []
    for cube in queue:  # grows
        for switch, head in enumerate(switches[:, cube].tolist()):
            if head not in seen:
                seen.add(head)
                queue.append(head)
                steps.append((cube, switch, head))
    return steps, len(seen)


def torus_time(shape: Dimensions | None, cubes: int, side: int, wiring: str) -> Fraction | None:
    """T of a torus: that of its longest ring, times the chips across; None for other wirings."""
    if wiring != "torus":
        return None
    box = [side * edge for edge in (shape or even_shape(cubes))]
    return max(Fraction(prod(box) // edge * (edge * edge // 4), 2) for edge in box)


@family(
    "pod",
    example="pod:cubes=2,side=2",
    source="Jouppi et al., ISCA 2023",
    automorphisms=_automorphisms,
    closed_form=torus_time,
)
def pod(shape: Dimensions | None = None, cubes: int = 0, side: int = 4, wiring: str = "torus") -> Topology:
    r"""Cubes of chips with fixed links inside, whose faces are joined by optical switches.

    ``pod:shape=1x1x2`` is a torus of 4x4x8 chips. With ``wiring=torus`` or ``twisted``, ``pod:cubes=K`` has the shape
    of K cubes whose longest edge is shortest. Two chips that are joined by two links have both: the torus of one cube
    of side 2 has six links a chip.

    Parameters
    ----------
    shape
        Cubes in each of three dimensions; or
    cubes
        their number k.
    side
        Chips of a cube in each dimension.
    wiring
        ``torus``; ``twisted``, as published for TPU v4 (:func:`published_twist`); permutations of the cubes
        (``1.0.3.2/2/0``: the images of cubes 0, 1, ..., or one number that is added modulo k), one for each dimension
        or for each of the 3 side^2 switches, by dimension and place; or a JSON file with a list of them.

    Raises
    ------
    BadInput
        For sizes out of range, permutations that are none, or both or none of shape and cubes.
    BadFile
        For a file that cannot be read.
    """
    return pod_of(wiring_of(shape, cubes, side, wiring), side)


def without(topology: Topology, part: str) -> Topology:
    """A pod without a part: ``switch:DIM.PLACE``, ``cable:DIM.PLACE.CUBE`` (at the + face), or ``cube:CUBE``.

    Raises
    ------
    BadInput
        If the topology is no pod, or has no such part.
    """
    known = family_of(topology)
    if known is None or known[0].name != "pod":
        refuse("modifier 'fail'", f"{part!r} is part of a pod, and {topology.spec} is none; write the number of links")
    kind, _, numbers = part.partition(":")
    arguments = known[1]
    stated = wiring_of(**arguments)  # type: ignore[arg-type]
    side, k = int(arguments["side"]), stated.shape[2]  # type: ignore[arg-type]
    limits = {"switch": (3, side**2), "cable": (3, side**2, k), "cube": (k,)}.get(kind, ())
    at = [int(number) for number in numbers.split(".")] if re.fullmatch(r"\d{1,9}(\.\d{1,9})*", numbers) else []
    if not limits or len(at) != len(limits) or any(x >= most for x, most in zip(at, limits, strict=True)):
        _refuse_part(topology, part, side, k)
    if kind == "cube":
        return _without_cube(topology, f"{at[0]}.")
    return without_cables(topology, stated, side, at)


def _refuse_part(topology: Topology, part: str, side: int, k: int) -> NoReturn:
    msg = (
        f"modifier 'fail': {topology.spec} has no {part!r}; write switch:DIM.PLACE, cable:DIM.PLACE.CUBE or cube:CUBE, "
        f"with dimensions 0..2, places 0..{side**2 - 1} and cubes 0..{k - 1}"
    )
    raise BadInput(msg)


def _without_cube(topology: Topology, prefix: str) -> Topology:
    kept = np.array([not label.startswith(prefix) for label in topology.labels])
    if not kept.any() or kept.all():
        refuse("modifier 'fail'", f"{topology.spec} has no other cube, or has lost this one before")
    number = np.cumsum(kept) - 1
    arcs = kept[topology.tail] & kept[topology.head]
    return topology.with_changes(
        n=int(kept.sum()),
        tail=number[topology.tail[arcs]],
        head=number[topology.head[arcs]],
        capacity=topology.capacity[arcs],
        terminals=number[topology.terminals[kept[topology.terminals]]],
        labels=tuple(label for label, stays in zip(topology.labels, kept.tolist(), strict=True) if stays),
        spec=topology.spec,
        parameters=topology.parameters,
    )


def without_cables(topology: Topology, wiring: I64, side: int, at: Sequence[int]) -> Topology:
    """Without both arcs of the links of a switch, or of one of them; those of lost cubes are lost already."""
    d, place, *cubes = at
    plus, minus = places(side)
    chips = list(map(".".join, product(map(str, range(side)), repeat=DIMENSIONS)))
    vertex = {label: v for v, label in enumerate(topology.labels)}
    kept = np.ones(topology.arcs, dtype=bool)
    for c in cubes or range(wiring.shape[2]):
        ends = [f"{c}.{chips[plus[d, place]]}", f"{wiring[d, place, c]}.{chips[minus[d, place]]}"]
        u, v = (vertex.get(label, -1) for label in ends)
        for tail, head in ((u, v), (v, u)):
            found = np.flatnonzero(kept & (topology.tail == tail) & (topology.head == head))
            kept[found[:1]] = False
    return topology.with_arcs(topology.tail[kept], topology.head[kept], topology.capacity[kept])
