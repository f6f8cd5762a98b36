"""Sizes of the models of this room, counted from their data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll.formulations.model import NotApplicable

if TYPE_CHECKING:
    from opticoll.formulations.optree.one_stage import AllToAll
    from opticoll.formulations.optree.tree import TreeChoice


#: Maximum size of a matrix that is built.
MOST_NONZEROS = 20_000_000


def one_stage_size(data: AllToAll) -> dict[str, int]:
    """Size of the model."""
    count = data.colours
    return {
        "variables": (data.routes + 1) * count,
        "constraints": data.n * (data.n - 1) + data.fibres.arcs * count + count - 1,
        "nonzeros": data.nonzeros,
        "integers": (data.routes + 1) * count,
    }


def refuse_large_one_stage(data: AllToAll) -> None:
    """Refuse a matrix that is too large to build."""
    if data.nonzeros > MOST_NONZEROS:
        msg = f"{data.name}: the model would have {data.nonzeros:,} non-zeros; use fewer nodes, or method cycle-cover"
        raise NotApplicable(msg)


def tree_size(data: TreeChoice) -> dict[str, int]:
    """Size of the model."""
    arcs, deep = data.graph.arcs, int(data.depth > 0)
    return {
        "variables": arcs,
        "constraints": data.fabric.n + deep,
        "nonzeros": (2 + deep) * arcs,
        "integers": arcs,
    }
