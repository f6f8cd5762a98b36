"""What a small command imports, and the shortcuts that avoid the rest: lookup by name, hops."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import breadth_first_order, connected_components, dijkstra

from opticoll.formulations.lumorph import collective_bounds
from opticoll.formulations.lumorph.mesh_cuts import length_bound
from opticoll.formulations.lumorph.min_overlap import Overlap
from opticoll.formulations.rounds.collectives import collective
from opticoll.formulations.standard_form import Columns, StandardForm, canonical
from opticoll.instances import Topology, parse
from opticoll.solvers.adapters import adapters
from opticoll.solvers.methods import method_named, methods
from opticoll.solvers.process.worker import interpreter
from opticoll.solvers.verify import dual_bound, kkt, matrix_violations

#: Packages that take longer to be imported than small commands to be answered.
SLOW = ("scipy", "numba", "networkx", "pandas", "cvxpy", "pyomo", "matplotlib", "highspy", "ortools")

SOLVE = """
import json, sys
from opticoll.formulations.standard_form import Columns, StandardForm, canonical
from opticoll.instances import Topology, parse
from opticoll.solvers.procedure import send
from opticoll.solvers.solve import run_in_worker
from opticoll.solvers.task import Task
ended = []
for formulation, instance, settings in zip(*[iter(sys.argv[1:])] * 3):
    task = Task(formulation, instance, settings=dict([settings.split("=")]), threads=1)
    answer = run_in_worker(**send(task, parse(instance)), report=lambda *_: None)
    ended.append(answer.termination)
print(json.dumps({"ended": ended, "loaded": list(sys.modules)}))
"""

COMMAND = """
import contextlib, io, json, sys
from opticoll.analysis.cli.main import main
with contextlib.redirect_stdout(io.StringIO()):
    status = main(sys.argv[1:])
print(json.dumps({"status": status, "loaded": list(sys.modules)}))
"""

PYTHON = """
import json, sys
import opticoll as oc
result = oc.solve(*sys.argv[1:])
print(json.dumps({"proof": result.record.proof, "loaded": list(sys.modules)}))
"""

SCIPY = """
import json, sys
from opticoll.solvers.process import worker_imports
worker_imports.prepare()
import opticoll.instances, scipy.sparse, scipy.optimize
early = [name for name in ("numpy.f2py.f2py2e", "numpy.ma.core", "unittest") if name in sys.modules]
import numpy
values = numpy.array([2, 1, 2])
early += [] if numpy.unique(values).tolist() == [1, 2] and "numpy.ma.core" not in sys.modules else ["numpy.unique"]
hidden = numpy.ma.masked_equal(values, 2)
assert [numpy.ma.is_masked(one) for one in (values, hidden, hidden[1:2])] == [False, True, False]
from scipy._lib._array_api import np_compat
assert np_compat.unique_values(values).tolist() == [1, 2]
numpy.testing.assert_allclose(1.0, 1.0)
print(json.dumps({"early": early, "late": "unittest" in sys.modules, "f2py": numpy.f2py.get_include()}))
"""

THREADS = """
import json, threading
from opticoll.solvers.process import worker_imports
worker_imports.prepare()
import numpy
found, begin = [], threading.Barrier(8)

def ask():
    begin.wait()
    found.append(numpy.ma.MaskedArray)

threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps({"found": len(found), "classes": len(set(found))}))
"""


def loaded_by(code: str, *words: str) -> dict[str, object]:
    """What a new interpreter prints that runs ``code``."""
    place = interpreter("opticoll.solvers.process.worker_main:main")[-1].partition("; from")[0]
    command = [sys.executable, "-P", "-c", f"{place}\n{code}", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_a_worker_with_little_to_do_loads_neither_scipy_nor_numba() -> None:
    result = loaded_by(
        SOLVE,
        *("lumorph.min-overlap", "lightpath:8x16", "circuits=recursive-doubling:6"),
        *("lumorph.rounds", "lightpath:4x4,lasers=2,waveguides=2", "collective=all-gather"),
    )
    assert result["ended"] == ["optimal"] * 2
    assert isinstance(result["loaded"], list)
    assert not set(SLOW) & set(result["loaded"])


def test_a_small_solve_by_the_command_loads_only_what_it_needs() -> None:
    result = loaded_by(COMMAND, "solve", "alltoall.master", "torus:4x4", "--no-store")
    assert result["status"] == 0
    assert isinstance(result["loaded"], list)
    loaded = set(result["loaded"])
    assert "opticoll.instances.families.rings_and_grids" in loaded
    assert not {*SLOW, "numpy.ma.core", "psutil", "email", "tomllib", "logging"} & loaded
    adapters_loaded = {name for name in loaded if name.startswith("opticoll.solvers.adapters.")}
    assert {name.rpartition(".")[2] for name in adapters_loaded} == {"interface", "registry", "highs"}
    assert not {"opticoll.instances.families.machines", "opticoll.instances.readers.files"} & loaded


def test_a_command_that_builds_models_itself_loads_their_layer() -> None:
    result = loaded_by(COMMAND, "solve", "alltoall.all-gather", "ring:3", "--exact", "--no-store")
    assert result["status"] == 0
    assert isinstance(result["loaded"], list)
    assert {"pyomo.core", "scipy.stats"} <= set(result["loaded"])


def test_a_small_solve_in_python_loads_no_solver_and_no_scipy() -> None:
    result = loaded_by(PYTHON, "alltoall.master", "torus:4x4")
    assert result["proof"] == "optimal"
    assert isinstance(result["loaded"], list)
    assert not {*SLOW, "psutil", "email"} & set(result["loaded"])


def test_scipy_loads_parts_of_numpy_that_are_seldom_used_only_where_they_are() -> None:
    result = loaded_by(SCIPY)
    assert result["early"] == []
    assert result["late"]
    assert str(result["f2py"]).endswith("src")


# Lookup by name --------------------------------------------------------------------------------------------------


def test_a_method_found_by_its_module_is_the_registered_one() -> None:
    for name, method in methods().items():
        assert method_named(name) is method
    assert not set(methods()) & set(adapters())


@pytest.mark.parametrize("name", ["highs", "cp-sat", "auto", "no-such-method", "base", "", "a b", "..", "x.y", "é-1"])
def test_an_unknown_name_is_not_a_method(name: str) -> None:
    assert method_named(name) is None


# Small graphs and matrices without SciPy --------------------------------------------------------------------------


@st.composite
def small_graphs(draw: st.DrawFn) -> tuple[Topology, np.ndarray]:
    """A topology, also not connected and with parallel arcs, and lengths, also 0."""
    n = draw(st.integers(2, 12))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] != pair[1])
    tail, head = np.array(draw(st.lists(ends, min_size=1, max_size=40))).T
    lengths = draw(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 7.7]), min_size=tail.size, max_size=tail.size))
    return Topology(n, tail, head, np.ones(tail.size), spec="drawn"), np.array(lengths)


@given(small_graphs())
@settings(max_examples=60, deadline=None)
def test_few_vertices_have_the_distances_and_orders_of_scipy_to_the_last_bit(
    graph: tuple[Topology, np.ndarray],
) -> None:
    topology, lengths = graph
    matrix = topology.length_matrix(lengths)
    assert np.array_equal(topology._relaxed(lengths, None), dijkstra(matrix))
    assert np.array_equal(topology._relaxed(lengths, np.array([1, 0])), dijkstra(matrix, indices=[1, 0]))
    count, _ = connected_components(topology.length_matrix(np.ones(topology.arcs)), connection="strong")
    assert topology.connected == (count == 1)
    both = topology.length_matrix(np.ones(topology.arcs))
    for root in range(topology.n):
        order = breadth_first_order(both + both.T, root, directed=False, return_predecessors=False)
        assert topology.breadth_first(root).tolist() == order.tolist()
    flow = lengths[:, None] * np.array([1.0, 0.3])
    assert np.array_equal(topology.net(flow), topology.incidence() @ flow)


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_columns_in_plain_arrays_multiply_as_scipy_does_to_the_last_bit(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, columns = random.integers(1, 9, 2).tolist()
    whole = sp.csc_array(random.standard_normal((rows, columns)) * (random.random((rows, columns)) < 0.5))
    plain = Columns(whole.data, whole.indices, whole.indptr, whole.shape)
    x, y = random.standard_normal(columns), random.standard_normal(rows)
    assert np.array_equal(plain @ x, whole @ x)
    assert np.array_equal(plain.T @ y, whole.T @ y)
    assert np.array_equal(abs(plain).T @ y, abs(whole).T @ y)
    ends = (np.full(rows, -1.0), np.ones(rows), np.zeros(columns), np.ones(columns), x, "max")
    given, form = StandardForm(plain, *ends), StandardForm(whole, *ends)
    assert given.size == form.size
    sent = pickle.loads(pickle.dumps(replace(given, A=given.stored)))  # noqa: S301 - our own
    assert kkt(sent, x, y) == kkt(form, x, y)
    assert matrix_violations(sent, x) == matrix_violations(form, x)
    assert dual_bound(sent, y) == dual_bound(form, y)
    assert isinstance(sent.stored, Columns)
    assert (whole != sent.A).nnz == 0
    assert isinstance(sent.stored, sp.csc_array)


def test_columns_out_of_order_or_with_a_zero_become_canonical() -> None:
    def columns(data: list[float], indices: list[int]) -> Columns:
        return Columns(np.array(data), np.array(indices), np.array([0, 0, 2, 3]), (3, 3))

    assert canonical(ordered := columns([1.0, 2.0, 3.0], [0, 2, 1])) is ordered
    for other in (columns([2.0, 1.0, 3.0], [2, 0, 1]), columns([1.0, 2.0, 0.0], [0, 2, 1])):
        assert not other.is_canonical()
        assert canonical(other).toarray()[:, 1].tolist() == [1.0, 0.0, 2.0]


# Counts ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 50), st.floats(0.01, 100.0))
@settings(max_examples=10, deadline=None)
def test_equal_lengths_prove_what_nearly_equal_ones_do(seed: int, length: float) -> None:
    """Equal lengths take the hops, unequal ones Dijkstra's algorithm: both bound the mean of the hops, rounded up."""
    data = Overlap.prepare(parse("lightpath:3x4"), {"circuits": "permutation", "seed": seed})
    equal = np.full(data.topology.arcs, length)
    hops = data.topology.hops[data.commodities].sum()
    assert length_bound(data, equal) == -(-int(hops) // data.topology.arcs)
    nearly = equal.copy()
    nearly[0] *= 1 + 1e-12
    assert length_bound(data, nearly) in {length_bound(data, equal), length_bound(data, equal) + 1}


def test_copies_inside_sets_are_counted_alike_by_dense_and_sparse_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    gathered = collective("all-gather", 12)
    inside = random.random((300, 12)) < 0.4
    chunks = np.sort(random.permutation(gathered.chunks)[:9])
    dense = collective_bounds._copies_inside(gathered, chunks, inside)
    monkeypatch.setattr(collective_bounds, "FEW_ENTRIES", 0)
    np.testing.assert_array_equal(collective_bounds._copies_inside(gathered, chunks, inside), dense)
    # All-gather: chunk c starts at vertex c and is wanted by all; a set without c lacks it.
    np.testing.assert_array_equal(dense, [(~row[chunks]).sum() if row.any() else 0 for row in inside])


def test_threads_that_ask_a_deferred_module_at_once_get_the_same() -> None:
    assert loaded_by(THREADS) == {"found": 8, "classes": 1}
