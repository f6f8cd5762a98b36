"""From the values of a solved formulation to a schedule file's text, by the ending of its name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from formulations.schedules.chunking import cut
from formulations.schedules.link_schedule import schedule_routes
from formulations.schedules.lowering import lower
from formulations.schedules.msccl_xml import write_xml
from formulations.schedules.routes import refuse_without_routes, routes_of, without_steps
from formulations.schedules.schedule_json import links_document, routes_document
from instances.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from instances.topology import Topology

#: Chunks a shard, at most, where nothing else is said.
MOST_CHUNKS = 24


def refuse_early(path: Path, name: str, topology: Any) -> None:
    """Refuse before the solve what cannot be written after it.

    Raises
    ------
    BadInput
        For another ending than ``.xml`` and ``.json``; NotApplicable for a formulation without routes, or vertices that
        can run no program.
    """
    if path.suffix.lower() not in {".xml", ".json"}:
        msg = f"{path}: a schedule's name ends in .xml (MSCCL), .json (links) or .routes.json (routes)"
        raise BadInput(msg)
    refuse_without_routes(name)
    if path.suffix.lower() == ".xml" and getattr(topology, "ranks", None) != getattr(topology, "n", None):
        msg = f"{path}: some vertices of {topology.spec} are no ranks and cannot run a program; write .json"
        raise BadInput(msg)


def schedule_text(
    path: Path,
    name: str,
    data: Any,
    topology: Topology,
    values: Mapping[str, NDArray[np.float64]],
    *,
    most: int = MOST_CHUNKS,
    alpha: float = 0.0,
    beta: float = 1.0,
) -> tuple[str, dict[str, Any]]:
    """The schedule as text, and what cutting it cost.

    Parameters
    ----------
    path
        Its ending decides: ``.xml`` MSCCL, ``.routes.json`` routes, other ``.json`` links.
    name, data, topology, values
        The formulation and its verified solution.
    most
        Most chunks a shard.
    alpha, beta
        By which list scheduling chooses the size of its steps.

    Returns
    -------
    text
        What to write.
    facts
        ``chunks``, ``steps``, ``fluid_time``, ``time``, ``loss`` (time over fluid time, minus 1).
    """
    facts: dict[str, Any]
    routes = routes_of(name, data, values)
    if path.name.lower().endswith(".routes.json"):
        chunked = cut(topology, without_steps(routes), most)
        facts = {"chunks": chunked.chunks, "fluid_time": chunked.fluid_time, "time": chunked.time, "loss": chunked.loss}
        return json.dumps(routes_document(topology, chunked)) + "\n", facts
    schedule = schedule_routes(topology, routes, most=most, alpha=alpha, beta=beta)
    fluid, time = schedule.fluid_time, schedule.time()
    facts = {
        "chunks": schedule.chunks, "steps": schedule.steps, "fluid_time": fluid, "time": time,
        "alpha_beta_time": schedule.time(alpha, beta), "loss": max(time / fluid - 1.0, 0.0) if fluid else 0.0,
    }  # fmt: skip
    if path.suffix.lower() == ".xml":
        return write_xml(lower(schedule, f"{name} {topology.spec}")), facts
    return json.dumps(links_document(schedule)) + "\n", facts
