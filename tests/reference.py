"""An LP solver that is none of the adapters, the topologies on which models are compared, plain routes and flows."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import networkx as nx
import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse.csgraph import dijkstra

from opticoll.errors import BadFile
from opticoll.formulations import formulation
from opticoll.formulations.model import build_model, forms_of
from opticoll.formulations.variables import check_arrays
from opticoll.instances import Topology, parse
from opticoll.instances.families.regular_graphs import digraph_spec
from opticoll.solvers import verify
from opticoll.solvers.compile.compilation import compile_model, declared_arrays
from opticoll.solvers.schedules.shard_routes import Route, Routes

#: Keys of every run as JSON, on which scripts rely.
RUN_KEYS = {
    "formulation",
    "paper",
    "instance",
    "instance_hash",
    "n",
    "arcs",
    "method",
    "form",
    "solver",
    "termination",
    "proof",
    "sense",
    "objective",
    "bound",
    "gap",
    "verified",
    "violations",
    "metrics",
    "time",
    "size",
    "peak_memory_mb",
}
#: Every topology family at no more than 27 nodes (12 and fewer first).
SMALL = (
    "ring:5",
    "ring:8",
    "ring:6,directed",
    "path:4",
    "star:5",
    "complete:5",
    "bipartite:4x4",
    "bipartite:2x3",
    "petersen",
    "mesh:2x4",
    "mesh:3x3",
    "torus:3x3",
    "torus:3x4",
    "hypercube:3",
    "twisted-hypercube:3",
    "circulant:n=9,offsets=1x3",
    "kautz:d=2,D=2",
    "debruijn:d=2,D=3",
    "genkautz:n=7,d=3",
    "genkautz:n=12,d=4",
    "random-regular:n=10,d=3,seed=2",
    "xpander:n=8,d=3,seed=1",
    "sp-expander:n=9,d=3,seed=1",
    "dgx1",
    "lightpath:2x4,lasers=16,waveguides=1",
    "wdm-ring:n=7,wavelengths=2",
    "wdm-line:n=5,wavelengths=2",
    "torus:3x3+fail=2,seed=1",
    "hypercube:2+host=1.5",
    "ring:6+scale=2.5",
)
MEDIUM = (
    "ring:16",
    "mesh:4x4",
    "mesh:5x5",
    "torus:4x4",
    "torus:3x3x3",
    "hypercube:4",
    "bipartite:6x6",
    "kautz:d=3,D=2",
    "debruijn:d=3,D=3",
    "genkautz:n=27,d=4",
    "genkautz:n=16,d=4",
    "random-regular:n=20,d=4,seed=3",
    "xpander:n=20,d=4,seed=1",
    "sp-expander:n=16,d=4,seed=1",
    "dragonfly:a=2,h=1",
    "slimfly:q=3",
    "circulant:n=13,offsets=1x5",
    "genkautz:n=16,d=4+fail=3,seed=0",
)


def refused(problem, values):
    """Whether values are no solution: not such arrays as are declared, which is checked first, or by the checker."""
    try:
        check_arrays(declared_arrays(problem, values.keys()), values, "values")
    except BadFile:
        return True
    return verify.violated(verify.residuals(problem, values)) is not None


def optimum(form):
    """Objective and column vector by SciPy's own HiGHS build, in this process."""
    result = milp(
        -form.cost if form.sense == "max" else form.cost,
        constraints=LinearConstraint(form.A, form.row_lower, form.row_upper) if form.A.shape[0] else (),
        bounds=Bounds(form.col_lower, form.col_upper),
        integrality=np.asarray(form.integer, dtype=int),
        options={"mip_rel_gap": 0.0},
    )
    assert result.success, result.message
    return form.objective(result.x), result.x


def compiled(name, instance, form=None, **settings):
    """A problem on an instance or its spec, and its rows, as stated by the build of matrices if it has one."""
    problem = formulation(name).prepare(parse(instance) if isinstance(instance, str) else instance, settings)
    return problem, compile_model(
        build_model(problem, form or ("matrix" if "matrix" in forms_of(problem) else "cvxpy"))
    )


def solved(name, instance, form=None, **settings):
    """A problem as of :func:`compiled`, its optimum, and an optimal solution."""
    problem, stated = compiled(name, instance, form, **settings)
    value, x = optimum(stated)
    return problem, float(value), stated.values(x)


@cache
def optimum_of(name, spec):
    """The optimum of a formulation with its own settings on the instance of a spec, by :func:`optimum`."""
    return solved(name, spec)[1]


def shortest_routes(topology):
    """One shortest path per pair, without steps; needs no flow."""
    graph = topology.length_matrix(np.ones(topology.arcs))
    _, parent = dijkstra(graph, indices=topology.terminals, unweighted=True, return_predecessors=True)
    first = {}
    for a, ends in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
        first.setdefault(ends, a)
    routes = []
    for i, source in enumerate(topology.terminals.tolist()):
        for target in np.delete(topology.terminals, i).tolist():
            arcs, v = [], target
            while v != source:
                u = int(parent[i, v])
                arcs.append(first[u, v])
                v = u
            routes.append(Route(source, target, tuple(arcs[::-1]), 1.0))
    return Routes.of(routes)


def multigraph(topology):
    """The topology for networkx; the keys of its edges are the arcs."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(topology.n))
    graph.add_edges_from(zip(topology.tail.tolist(), topology.head.tolist(), range(topology.arcs), strict=True))
    return graph


def simple_paths(topology, source, target):
    """All simple paths between two vertices, as lists of arcs, by networkx."""
    return [[a for *_, a in path] for path in nx.all_simple_edge_paths(multigraph(topology), source, target)]


def flow_time(network, demand=None):
    """Least time in which flows carry a demand, by a plain LP of the flows of every source; infinite without a way.

    A topology, its spec, or the capacities between all vertices; a shard for every pair of ranks, or an amount.
    """
    network = parse(network) if isinstance(network, str) else network
    ends = network.terminals if isinstance(network, Topology) else np.arange(len(network))
    if isinstance(network, Topology):
        network = sp.coo_array((network.capacity, (network.tail, network.head)), (network.n,) * 2).toarray()
    n, (tail, head) = len(network), np.nonzero(network)
    m, wanted = tail.size, np.zeros((n, n))
    wanted[np.ix_(ends, ends)] = 1.0 - np.eye(ends.size) if demand is None else demand
    into, out = (sp.csr_array((np.ones(m), (side, np.arange(m))), (n, m)) for side in (head, tail))
    loads = sp.hstack([*[sp.eye_array(m)] * n, -1.0 * network[tail, head][:, None]])
    balance = sp.hstack([sp.kron(sp.eye_array(n), into - out), sp.csr_array((n * n, 1))])
    sent = wanted - np.diag(wanted.sum(axis=1))
    result = linprog(np.eye(n * m + 1)[-1], loads, np.zeros(m), balance, sent.ravel())
    return result.fun if result.success else np.inf


def labelled_digraphs(n, d):
    """Every connected d-regular digraph without loops and parallel arcs on the vertices 0 … n-1, all labellings."""
    choices = [list(combinations([v for v in range(n) if v != u], d)) for u in range(n)]
    for heads in product(*choices):
        head = np.array(heads).ravel()
        if (np.bincount(head, minlength=n) == d).all():
            topology = Topology(n, np.repeat(np.arange(n), d), head)
            if topology.connected:
                yield topology.renamed(digraph_spec(topology))


def partitions(items):
    """All partitions of a list into blocks."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for blocks in partitions(rest):
        for i in range(len(blocks)):
            yield [*blocks[:i], [first, *blocks[i]], *blocks[i + 1 :]]
        yield [[first], *blocks]
