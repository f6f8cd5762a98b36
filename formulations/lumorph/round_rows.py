"""The named rows of the round program, as sparse matrices over its variables: what every modelling layer states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formulations.lumorph.mesh_symmetry import delivery_symmetries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from formulations.lumorph.round_program import RoundProgram

    I64 = NDArray[np.int64]
    F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Named rows: a matrix for each variable (C, H, R, flat over all phases), their sum in ``[lower, upper]``."""

    name: str
    parts: Mapping[str, sp.csr_array]
    lower: float
    upper: float

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.parts["C"].shape[0])


def rows(programs: Sequence[RoundProgram]) -> list[Rows]:
    """All rows of the model, block by block, as :mod:`formulations.lumorph.rounds` names them."""
    import scipy.sparse as sp

    found: dict[str, list[dict[str, sp.csr_array]]] = {}
    for program in programs:
        for name, parts in _phase_rows(program):
            found.setdefault(name, []).append(parts)
    limits = {"deliver": (1.0, 1.0), "received": (0.0, 0.0)}
    blocks = []
    for name, each in found.items():
        joined = {v: sp.csr_array(sp.block_diag([parts[v] for parts in each], format="csr")) for v in ("C", "H", "R")}
        blocks.append(Rows(name, joined, *limits.get(name, (-np.inf, 0.0))))
    return blocks


def _phase_rows(program: RoundProgram) -> Iterator[tuple[str, dict[str, sp.csr_array]]]:
    """The rows of one phase: name, and the part of each variable."""
    import scipy.sparse as sp

    columns, ends, T = program.columns, program.ends, program.rounds
    width = {"C": columns["round"].size, "H": program.steps, "R": T}
    every = np.arange(width["C"])

    def block(count: int, **entries: tuple[I64, I64, F64 | float]) -> dict[str, sp.csr_array]:
        """So many rows: for some variables (row, column, value) of their entries, nothing for the others."""
        parts = {name: sp.csr_array((count, size)) for name, size in width.items()}
        for name, (row, column, value) in entries.items():
            numbers = np.broadcast_to(np.asarray(value, dtype=float), row.shape)
            parts[name] = sp.csr_array((numbers, (row, column)), shape=(count, width[name]))
            parts[name].eliminate_zeros()
        return parts

    yield "deliver", block(len(program.collective.deliveries), C=(ends["delivery"], every, 1.0))
    if program.steps:
        here = np.flatnonzero(columns["round"] < T - 1)
        row = ends["delivery"][here] * (T - 1) + columns["round"][here]
        step = np.arange(program.steps)
        later = step[step % (T - 1) > 0]
        H = (
            np.concatenate([step, later]),
            np.concatenate([step, later - 1]),
            np.repeat([1.0, -1.0], [step.size, later.size]),
        )
        yield "received", block(program.steps, C=(row, here, -1.0), H=H)
        forwards = np.flatnonzero(~program.holds[columns["move"]])
        row, keys = program.groups(columns["round"][forwards], columns["move"][forwards])
        count = keys[0].size
        got = program.obtained[keys[1]] * (T - 1) + keys[0] - 1
        yield "hold", block(count, C=(row, forwards, 1.0), H=(np.arange(count), got, -1.0))
    for name, end in (("laser", "source"), ("photodiode", "target")):
        row, keys = program.groups(columns["round"], ends[end], columns["wavelength"])
        count = keys[0].size
        yield name, block(count, C=(row, every, 1.0), R=(np.arange(count), keys[0], -1.0))
    column, arc = program.arcs
    row, keys = program.groups(columns["round"][column], arc, columns["wavelength"][column])
    W = program.limits.waveguides
    crowded = np.bincount(row) > W  # elsewhere the row cannot bind
    number = np.cumsum(crowded) - 1
    kept, count = crowded[row], int(crowded.sum())
    yield (
        "waveguide",
        block(count, C=(number[row[kept]], column[kept], 1.0), R=(np.arange(count), keys[0][crowded], -float(W))),
    )
    mirror = _mirror_entries(program)
    if mirror is not None:
        yield "mirror", block(int(mirror[0].max()) + 1, C=mirror)
    step = np.arange(T - 1)
    R = (np.tile(step, 2), np.concatenate([step + 1, step]), np.repeat([1.0, -1.0], T - 1))
    yield "order", block(T - 1, R=R)


def _mirror_entries(program: RoundProgram) -> tuple[I64, I64, F64] | None:
    """The first delivery is no later than any of its mirror images; None without symmetry."""
    images = delivery_symmetries(program) if program.symmetry else []
    others = np.unique([int(image[0]) for image in images if image[0] != 0]).astype(np.int64)
    if not others.size or program.rounds < 2:
        return None
    delivery, when = program.ends["delivery"], program.columns["round"].astype(float)
    own = np.flatnonzero(delivery == 0)
    rows, columns, values = [], [], []
    for k, other in enumerate(others.tolist()):
        theirs = np.flatnonzero(delivery == other)
        rows.append(np.full(own.size + theirs.size, k))
        columns.append(np.concatenate([own, theirs]))
        values.append(np.concatenate([when[own], -when[theirs]]))
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(values)
