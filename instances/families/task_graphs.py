"""Task graphs of training iterations, and the servers that they run on."""

from __future__ import annotations

from opticoll.arguments import whole_number
from opticoll.errors import BadSpec, refuse
from opticoll.instances.servers import check_servers
from opticoll.instances.spec import family
from opticoll.instances.training.task_graph import MODELS, training_iteration
from opticoll.instances.training.task_pool import TaskPool, expert_iteration, random_iteration
from opticoll.nearest_names import nearest

#: Largest number of servers, layers and transfers: task graphs are lists.
_MOST = 2_000


@family(
    "tasks",
    example="tasks:moe,n=4,degree=2",
    source="TopoOpt, sections 4.1, 5.3 and 5.6; DeepSeek-V3 (arXiv 2412.19437), sections 3.2.2 and 3.3.2",
)
def tasks(
    model: str,
    n: int,
    degree: int,
    section: str = "",
    batch: int = 0,
    overlap: str = "",
    layers: int = 0,
    tokens: int = 0,
    transfers: int = 0,
    seed: int = 0,
) -> TaskPool:
    """Servers with optical ports, and computing and transfers of one iteration with what each waits for.

    Parameters
    ----------
    model
        ``dlrm``, ``bert``, ``candle``, ``ncf``, ``resnet50``, ``vgg``: an iteration with operators and times of TopoOpt
        (:func:`opticoll.instances.training.task_graph.training_iteration`). ``moe``: dispatch, computing and combine of
        a mixture of experts (:func:`opticoll.instances.training.task_pool.expert_iteration`). ``random``: random
        transfers between tasks of random length.
    n
        Number of servers.
    degree
        Optical interfaces of each server: circuits out of it, and circuits into it.
    section
        Section of TopoOpt that sets the sizes of its models; 5.3 if empty.
    batch
        Samples per GPU of these models, among those measured; 0 for the value of List 1.
    overlap
        For these models, ``backward`` (communication beside computing wherever dependencies allow) or ``none``;
        backward if empty.
    layers, tokens
        Layers of ``moe``, and tokens of every server; 0 for 1 and 4096.
    transfers
        Number of transfers of ``random``; 0 for 4.
    seed
        Seed of ``random``; of the loads of experts of ``moe``, 0 for even loads.

    Raises
    ------
    BadSpec
        For an unknown model, or settings that the model does not use.
    BadInput
        As for the functions above.
    """
    known = (*MODELS, "moe", "random")
    if model not in known:
        refuse("tasks", f"unknown model {model!r}; {nearest(model, list(known))}", BadSpec)
    check_servers(n)
    reads = {"moe": {"layers", "tokens", "seed"}, "random": {"transfers", "seed"}}.get(
        model, {"section", "batch", "overlap"}
    )
    numbers = {"batch": batch, "layers": layers, "tokens": tokens, "transfers": transfers, "seed": seed}
    given = {"section": section, "overlap": overlap, **numbers}
    if unread := [name for name, value in given.items() if value and name not in reads]:
        refuse("tasks", f"{model} does not use {' or '.join(unread)}; omit it", BadSpec)
    for name, value in {"n": n, **numbers}.items():
        whole_number(value, f"tasks: {name}", 0)
        if name in {"n", "layers", "transfers"} and value > _MOST:
            refuse("tasks", f"{name}={value} exceeds the limit of {_MOST}; choose fewer", BadSpec)
    if model == "moe":
        graph = expert_iteration(n, layers or 1, tokens or 4096, seed)
    elif model == "random":
        graph = random_iteration(n, transfers or 4, seed)
    else:
        graph = training_iteration(model, n, section=section or "5.3", batch=batch, overlap=overlap or "backward")
    return TaskPool(graph, degree, spec="tasks")
