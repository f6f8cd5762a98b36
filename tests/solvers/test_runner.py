"""The runner: what is proven and how, limits, failures reported as such, solution files and their check."""

from __future__ import annotations

import json
import math
import os
import threading

import numpy as np
import pytest
from reference import optimum_of

from opticoll.errors import BadFile, BadInput, BadOption, MethodMismatch, NotApplicable, SolverUnavailable
from opticoll.formulations.flows import flow_bounds
from opticoll.formulations.model import build_model
from opticoll.formulations.modelling_layers import import_layer
from opticoll.instances import Topology, parse
from opticoll.solvers import judge, model_solve, procedure, run_state, solve, verify
from opticoll.solvers import plan as plan_module
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.plan import make_plan
from opticoll.solvers.resume_key import resume_key
from opticoll.solvers.run import Solved
from opticoll.solvers.run_state import RunState
from opticoll.solvers.solution_document import SolutionDocument
from opticoll.solvers.solution_json import check
from opticoll.solvers.task import Outcome, Proof, Task, Termination, joined_messages


@pytest.mark.parametrize(
    ("spec", "method"),
    [
        ("genkautz:n=7,d=3", "master-child"),
        ("hypercube:2+host=1.5", "flow-decomposition"),
        ("hypercube:2+host=1.5", "time-form"),
    ],
)
def test_methods_attain_the_link_mcf_and_are_proven(spec, method):
    run = solve.solve(Task("alltoall.link-mcf", spec, method=method))
    assert run.proof is Proof.OPTIMAL
    assert run.verified
    assert run.objective == pytest.approx(optimum_of("alltoall.link-mcf", spec), rel=1e-6)
    n = parse(spec).num_ranks
    assert run.values["f"].shape == (parse(spec).arcs, n * (n - 1))


@pytest.mark.parametrize("method", ["highs-pdlp", "pdlp", "highs-ipx", "clarabel", "glop", "scip"])
def test_inexact_solvers_are_repaired_and_certified(method):
    run = solve.solve(Task("alltoall.master", "genkautz:n=9,d=3", method=method, tol=1e-4))
    first_order = method in {"highs-pdlp", "pdlp"}  # these stop at residuals, not at a gap
    assert run.record["gap"] <= (1e-2 if first_order else 1e-4), run.record
    assert run.proof is (Proof.OPTIMAL if run.record["gap"] <= 1e-4 else Proof.CERTIFIED_GAP)
    assert run.record["bound_source"] in {"any-lengths", "lp-dual"}
    assert max(v for k, v in run.record["violations"].items()) < 1e-9
    exact = optimum_of("alltoall.master", "genkautz:n=9,d=3")
    assert run.objective <= exact * (1 + 1e-7)
    assert run.bound >= exact * (1 - 1e-7)


def test_a_proof_is_no_stronger_than_that_of_its_data(monkeypatch):
    spec = "genkautz:n=16,d=4"
    rough = Task("alltoall.master", spec, method="certified-pdhg", settings={"steps": 20, "symmetry": False})
    master = solve.solve(rough)
    assert master.proof is Proof.CERTIFIED_GAP
    monkeypatch.setattr(solve, "solve_needed", lambda *_: master)
    run = solve.solve(Task("alltoall.child", spec))
    assert run.objective < optimum_of("alltoall.master", spec) * (1 - 1e-4)
    assert verify.relative_gap(run.objective, run.bound, "max") <= 1e-6  # optimal, for these data
    assert run.proof is Proof.CERTIFIED_GAP
    assert run.record["gap"] == master.record["gap"] > 1e-4
    assert "optimal for its data" in run.record["message"]
    result = run.record["needed"]
    assert (result["proof"], result["method"], result["key"]) == (
        "certified-gap",
        "certified-pdhg",
        master.record["key"],
    )
    assert (result["objective"], result["bound"]) == (master.objective, master.bound)


def test_an_infeasibility_is_proven_by_us_or_not_at_all(monkeypatch):
    none = Task("alltoall.virtual-channels", "ring:6,directed", "highs", settings={"layers": 1})
    run = solve.solve(none)
    assert run.termination is Termination.INFEASIBLE
    assert "from recomputed duals" in run.record["infeasible_by"]

    def lie(*_args, **_kwargs):
        return Outcome(Termination.INFEASIBLE)

    monkeypatch.setattr(model_solve, "solve_scaled", lie)
    run = solve.solve(Task("alltoall.master", "ring:4", "highs"))
    assert run.termination is Termination.TOLERANCE  # not infeasible: there is a solution
    assert run.record.infeasible_by is None
    assert "only the solver claims" in run.record["message"]
    assert (
        "there is one in rational arithmetic, which exact solving (--exact, exact=True) returns"
        in run.record["message"]
    )


@pytest.mark.parametrize("solver", ["highs-pdlp", "pdlp"])
def test_no_flow_is_called_infeasible_where_capacities_differ_by_many_magnitudes(solver):
    ring = parse("ring:6")
    slow = np.random.default_rng(2).random(ring.arcs) < 0.5
    far = Topology(ring.n, ring.tail, ring.head, np.where(slow, 1.0, 1e12))
    for method, settings in (("certified-pdlp", {"solver": solver}), ("time-form", {})):
        run = solve.solve(Task("alltoall.master", far, method, settings=settings, time_limit_s=60))
        assert run.termination is not Termination.INFEASIBLE
        assert run.proof is Proof.OPTIMAL or run.record.message
    run = solve.solve(Task("alltoall.master", far))
    assert run.verified
    assert run.bound is not None


@pytest.mark.parametrize("vector", [np.nan, 0.0])
def test_branching_starts_from_no_vector_that_is_not_feasible(monkeypatch, vector):
    from types import SimpleNamespace

    from opticoll.solvers.methods.branching import certified_branching
    from opticoll.solvers.process import isolation

    task = Task("optree.one-stage", "wdm-ring:n=4,wavelengths=2")
    plan = make_plan(task)
    form = compile_model(build_model(plan.problem, plan.form))
    context = SimpleNamespace(
        parameters={"search_s": 1.0},
        remaining=lambda: None,
        task=task,
        save=lambda *_: None,
        formulation=plan.problem,
        data=plan.problem,
        start=None,
    )
    lie = Outcome(Termination.OPTIMAL, x=np.full(form.cost.size, vector), objective=0.0)
    monkeypatch.setattr(isolation, "solve_here", lambda *_: lie)
    proof = certified_branching._Proof(context, form)
    proof.search()
    assert proof.x is None
    assert proof.value == np.inf


def _ring(path, capacity):
    path.write_text("".join(f"{a} {b} {capacity}\n" for a, b in ((0, 1), (1, 2), (2, 0))))
    return f"file:{path}"


@pytest.mark.parametrize("method", ["flow-decomposition", "certified-pdlp", "auto"])
def test_a_file_that_changes_during_a_solve_changes_nothing(tmp_path, monkeypatch, method):
    path = tmp_path / "ring.txt"
    spec, isolated, parsed = _ring(path, 1.0), procedure.call_isolated, plan_module.parse
    before = parse(spec)

    def change(*arguments, **options):
        _ring(path, 5.0)
        return isolated(*arguments, **options)

    monkeypatch.setattr(procedure, "call_isolated", change)
    run = solve.solve(Task("alltoall.link-mcf", spec, method=method))
    assert run.objective == pytest.approx(1 / 3)
    assert run.record["instance_hash"] == before.hash
    assert (run.verified, run.record["instance"]) == (True, spec)

    def read_and_change(text):
        result = parsed(text)
        _ring(path, 5.0)
        return result

    _ring(path, 1.0)
    monkeypatch.setattr(plan_module, "parse", read_and_change)
    run = solve.solve(Task("alltoall.child", spec))  # the master is solved on the same content
    assert run.objective == pytest.approx(1 / 3)


def test_a_file_that_a_setting_names_is_pinned_before_a_worker_reads_it(tmp_path, monkeypatch):
    path, isolated = tmp_path / "mine.json", procedure.call_isolated
    path.write_text('{"chunks": [{"pre": [0], "post": [1, 2]}]}')
    task = Task("lumorph.rounds", "lightpath:2x2", "certified-rounds", settings={"collective": f"file:{path}"})
    key = resume_key(task)

    def change(*arguments, **options):
        path.write_text('{"chunks": [{"pre": [0], "post": [1]}]}')
        return isolated(*arguments, **options)

    monkeypatch.setattr(procedure, "call_isolated", change)
    with pytest.raises(BadFile, match="has changed"):
        solve.solve(task)
    assert resume_key(task) != key


@pytest.mark.parametrize(
    ("task", "error", "word"),
    [
        ({"formulation": "alltoall.mster"}, BadInput, "alltoall.master"),
        ({"instance": "rong:8"}, BadInput, "ring"),
        ({"instance": "path:4+fail=1"}, NotApplicable, "disconnected"),
        ({"method": "highss"}, MethodMismatch, "highs"),
        ({"method": "flow-decomposition"}, MethodMismatch, "does not apply to"),
        ({"method": "cp-sat"}, MethodMismatch, "continuous"),
        (
            {"formulation": "alltoall.channels", "instance": "ring:4+scale=2.5", "method": "cp-sat"},
            MethodMismatch,
            "is continuous: use 'highs' or 'scip'",
        ),
        ({"form": "gams"}, BadInput, "cvxpy"),
        ({"settings": {"simplex_strateg": 1}}, BadOption, "simplex_strategy"),
        ({"settings": {"simplex_strategy": "fast"}}, BadOption, "simplex_strategy"),
        (
            {"formulation": "alltoall.path-mcf", "settings": {"K": "2"}, "method": "highs"},
            BadOption,
            "parameters of alltoall.path-mcf: paths, k, lmax, demand; did you mean 'k'",
        ),
        ({"formulation": "alltoall.link-mcf", "settings": {"printd": True}}, BadOption, "printed"),
        ({"formulation": "alltoall.link-mcf", "settings": {"printed": "perhaps"}}, BadInput, "must be true or false"),
        ({"formulation": "alltoall.child", "settings": {"source": "9"}}, NotApplicable, "ranks are"),
        ({"formulation": "alltoall.child", "settings": {"source": "x"}}, BadInput, "must be a whole number"),
        ({"formulation": "alltoall.child", "settings": {"source": 1.5}}, BadInput, "must be a whole number, not 1.5"),
        ({"formulation": "alltoall.child", "settings": {"source": True}}, BadInput, "must be a whole number"),
        ({"formulation": "alltoall.timestep-mcf", "settings": {"alpha": "nan"}}, BadInput, "must be a number"),
        ({"formulation": "alltoall.timestep-mcf", "settings": {"alpha": False}}, BadInput, "must be a number"),
        ({"seed": 1.5}, BadOption, "seed: must be a whole number"),
        ({"threads": True}, BadOption, "threads: must be a whole number"),
        ({"time_limit_s": "5"}, BadOption, "time limit: must be a positive number, not '5'"),
        ({"exact": "yes"}, BadOption, "exact: must be True or False, not 'yes'"),
        ({"settings": {"solver": "highs"}}, BadOption, "a solver is a method too: method='highs'"),
        (
            {"formulation": "alltoall.link-mcf", "method": "master-child", "settings": {"mastr": "x"}},
            BadOption,
            "master",
        ),
    ],
)
def test_what_can_be_refused_is_refused(task, error, word):
    with pytest.raises(error, match=word) as caught:
        solve.solve(Task(**{"formulation": "alltoall.master", "instance": "ring:8", **task}))
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    "limits",
    [
        {"time_limit_s": -1.0},
        {"time_limit_s": 0.0},
        {"time_limit_s": math.nan},
        {"time_limit_s": math.inf},
        {"memory_limit_gib": -2.0},
        {"tol": 0.0},
        {"tol": -1e-3},
        {"tol": math.nan},
        {"threads": 0},
    ],
)
def test_impossible_limits_are_refused(limits):
    with pytest.raises(BadOption):
        Task("alltoall.master", "ring:8", **limits)


@pytest.mark.parametrize(("method", "spec"), [("mosek", "ring:8"), ("gurobi", "genkautz:n=24,d=4")])
def test_a_licence_that_is_missing_or_too_small_is_exit_4(method, spec):
    try:
        run = solve.solve(Task("alltoall.master", spec, method=method))
    except SolverUnavailable as reason:
        refusal = reason
    else:
        assert run.proof is Proof.OPTIMAL  # a machine with a full licence
        return
    assert refusal.exit_status == 4
    assert "licence" in str(refusal)
    assert "\n" not in str(refusal)


def test_a_time_limit_is_a_row_with_a_bound():
    run = solve.solve(Task("alltoall.master", "genkautz:n=120,d=4", method="highs-simplex", time_limit_s=0.6))
    assert run.termination is Termination.TIME_LIMIT
    assert run.bound is not None
    assert run.proof in {Proof.BOUND_ONLY, Proof.CERTIFIED_GAP, Proof.FEASIBLE}


def test_closed_forms_are_bounds_where_the_others_take_too_long(monkeypatch):
    class Late(RunState):
        def analytic(self):
            return None

    monkeypatch.setattr(solve, "RunState", Late)
    monkeypatch.setattr(solve, "solve_model", lambda state: Solved(Outcome(Termination.TIME_LIMIT)))
    run = solve.solve(Task("alltoall.link-mcf", "torus:4x4", method="highs-simplex", time_limit_s=60.0))
    assert (run.proof, run.bound) == (Proof.BOUND_ONLY, pytest.approx(1 / 8))


def test_bounds_that_are_ready_at_the_limit_are_kept_and_the_others_named(monkeypatch):
    monkeypatch.setitem(flow_bounds.BOUNDS, "any-lengths", lambda data: threading.Event().wait(60))
    for module in (run_state, judge):
        monkeypatch.setattr(module, "BOUNDS_S", 0.0)
    monkeypatch.setattr(solve, "solve_model", lambda state: Solved(Outcome(Termination.TIME_LIMIT)))
    run = solve.solve(Task("alltoall.master", "random-regular:n=10,d=3,seed=1", "highs-simplex", time_limit_s=1.0))
    assert (run.proof, run.record.bound_source) == (Proof.BOUND_ONLY, "distance")
    assert run.record.message.endswith("before the analytic bounds any-lengths, sweep-cut, closed-form were computed")
    assert {"moore", "node-cut", "distance"} == {bound.name for bound in judge.compared(run).bounds}


def test_a_memory_limit_is_a_row():
    import_layer("cvxpy")  # which takes as much in the process that builds the model
    run = solve.solve(Task("alltoall.master", "genkautz:n=150,d=4", method="highs-ipx", memory_limit_gib=0.08))
    assert run.termination is Termination.MEMORY_LIMIT
    assert run.proof is Proof.BOUND_ONLY
    assert run.exit_status == 3


def test_resume_keys_differ_by_everything_that_matters():
    base = {"formulation": "alltoall.master", "instance": "ring:8"}
    changes = [
        {},
        {"instance": "ring:9"},
        {"formulation": "alltoall.link-mcf"},
        {"method": "glop"},
        {"form": "cvxpy"},
        {"tol": 1e-4},
        {"time_limit_s": 5.0},
        {"memory_limit_gib": 1.0},
        {"seed": 1},
        {"threads": 1},
        {"repetition": 1},
        {"settings": {"simplex_strategy": "4"}},
    ]
    keys = [resume_key(Task(**{**base, **change})) for change in changes]
    assert len(set(keys)) == len(keys)
    assert resume_key(Task(**base)) == keys[0]
    # The same arcs by another name are another row of a study.
    assert resume_key(Task("alltoall.master", "wdm-line:n=4,wavelengths=1")) != keys[0]
    assert resume_key(Task("alltoall.master", "torus:8")) != keys[0]


@pytest.fixture(scope="module")
def document():
    return SolutionDocument.of(solve.solve(Task("alltoall.master", "genkautz:n=7,d=3"))).as_json()


def checked(document, tmp_path, name="alltoall.master", spec="genkautz:n=7,d=3", settings=None):
    path = tmp_path / "solution.json"
    path.write_text(json.dumps(document))
    return check(name, spec, path, settings)


def test_a_corrupted_solution_is_rejected_with_its_reason(document, tmp_path):
    for change, word in (
        (lambda d: d["values"]["g"]["value"].__setitem__(0, 9.0), "violated"),
        (lambda d: d["values"]["F"].__setitem__("value", [9.0]), "balance"),
        (lambda d: d.__setitem__("objective", 9.0), "claims"),
    ):
        broken = json.loads(json.dumps(document))
        change(broken)
        result = checked(broken, tmp_path)
        assert not result["verified"]
        assert word in result["reason"]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("format"),
        lambda d: d.pop("values"),
        lambda d: d["values"].pop("F"),
        lambda d: d["values"]["g"].pop("shape"),
        lambda d: d["values"]["g"].__setitem__("shape", [10**9, 10**9]),
        lambda d: d["values"]["g"].__setitem__("shape", [-1, 3]),
        lambda d: d["values"]["g"].__setitem__("shape", [2, 2]),
        lambda d: d["values"]["g"]["value"].__setitem__(0, float("nan")),
        lambda d: d["values"]["g"]["value"].pop(),
        lambda d: d["values"]["g"]["value"].__setitem__(0, "1"),
        lambda d: d["values"]["g"]["index"].__setitem__(0, [0]),
        lambda d: d["values"]["g"]["index"].__setitem__(0, d["values"]["g"]["index"][1]),
        lambda d: d.__setitem__("instance_hash", "0"),
        lambda d: d.__setitem__("formulation", "alltoall.link-mcf"),
        lambda d: d.__setitem__("settings", {"unknown": 1}),
        lambda d: d.__setitem__("objective", "0.25"),
        lambda d: d.__setitem__("objective", 10**400),
        lambda d: d.__setitem__("objective", True),
        lambda d: d["values"]["g"]["value"].__setitem__(0, 10**400),
        lambda d: d["values"]["g"].__setitem__("shape", [1] * 100),
        lambda d: d["values"]["g"]["index"].__setitem__(0, [0.5, 0]),
    ],
)
def test_malformed_documents_are_refused(document, tmp_path, change):
    broken = json.loads(json.dumps(document))
    change(broken)
    with pytest.raises(BadInput):
        checked(broken, tmp_path)


def test_files_that_are_not_documents_are_refused(tmp_path):
    for text in ("", "{", "[1]", "[" * 100_000, '{"format": 3}'):
        path = tmp_path / "x.json"
        path.write_text(text)
        with pytest.raises(BadFile):
            check("alltoall.master", "ring:8", path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "binary", tmp_path / "missing", tmp_path):
        with pytest.raises(BadFile):
            check("alltoall.master", "ring:8", path)


def test_documents_of_other_tools_are_accepted(document, tmp_path):
    """Another order of keys, whole numbers with a point, a byte order mark, blanks and line ends of Windows."""
    foreign = json.loads(json.dumps(document))
    for entry in foreign["values"].values():
        entry["shape"] = [float(size) for size in entry["shape"]]
        entry["index"] = [[float(i) for i in at] for at in reversed(entry["index"])]
        entry["value"].reverse()
    text = json.dumps(dict(reversed(foreign.items())), indent=3).replace("\n", "\r\n")
    path = tmp_path / "solution.json"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\r\n\r\n")
    assert check("alltoall.master", "genkautz:n=7,d=3", path)["verified"]


def test_ambiguous_numbers_and_keys_are_refused(document, tmp_path):
    text, path = json.dumps(document), tmp_path / "solution.json"
    for broken in (
        text[:-1] + ', "objective": 1}',
        text.replace('"objective": ', '"objective": NaN, "more": '),
        text.replace('"objective": ', '"objective": ' + "1" * 5000 + ', "more": '),
        "1" * 5000,
    ):
        path.write_text(broken)
        with pytest.raises(BadFile, match="not valid JSON"):
            check("alltoall.master", "genkautz:n=7,d=3", path)


def test_values_that_overflow_are_violations_without_a_warning(document, tmp_path):
    broken = json.loads(json.dumps(document))
    broken["values"]["g"]["value"] = [1.7e308] * len(broken["values"]["g"]["value"])
    assert not checked(broken, tmp_path)["verified"]


def test_a_claim_is_compared_in_its_own_unit(tmp_path):
    """A tenth of a per cent too much is too much, also where capacities are 1e-12."""
    run = solve.solve(Task("alltoall.master", "ring:4+scale=1e-12"))
    document = SolutionDocument.of(run).as_json()
    assert checked(document, tmp_path, spec="ring:4+scale=1e-12")["verified"]
    document["objective"] *= 1.001
    assert "claims" in checked(document, tmp_path, spec="ring:4+scale=1e-12")["reason"]


@pytest.mark.parametrize("suffix", ["json", "xml", "npz", "sol", "slx", "vipr", "txt"])
def test_pipes_are_refused_without_waiting_for_them(tmp_path, suffix):
    pipe = tmp_path / f"pipe.{suffix}"
    os.mkfifo(pipe)
    with pytest.raises(BadFile, match="not a regular file"):
        check("alltoall.master", "ring:8", pipe)


def test_bounds_of_integer_programs_are_rounded_in_exact_arithmetic():
    import scipy.sparse as sp

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.relaxation import rounded

    def whole(sense, offset, cost):
        ends = np.array([-np.inf]), np.array([np.inf]), np.zeros(1), np.full(1, 2.0**60)
        A = sp.csc_array(np.ones((1, 1)))
        return StandardForm(A, *ends, np.array([cost]), sense, offset, np.ones(1, dtype=bool))

    assert rounded(whole("min", 0.0, 3.0), 3.1) == 6.0
    assert rounded(whole("min", 0.0, 3.0), 3.0 + 1e-7) == 3.0
    assert rounded(whole("max", 0.0, 3.0), 5.9) == 3.0
    assert rounded(whole("max", 0.5, 1.0), 7.4) == 6.5
    # In floating point (bound - offset) / step loses the difference.
    assert rounded(whole("min", 0.0, 1.0), 2.0**52 + 1.0) == 2.0**52 + 1.0
    assert rounded(whole("min", 0.1, 1.0), 2.0**55) <= 2.0**55 + 0.1 + 8


def planted(monkeypatch, name, **changed):
    """A formulation with other bounds than its own, in this process."""
    from opticoll.formulations import registry

    for method, function in changed.items():
        monkeypatch.setattr(registry.formulation(name), method, function)


def test_a_bound_beyond_an_exact_one_is_an_error_that_is_shown(monkeypatch):
    from opticoll.formulations.model import Bound

    def wrong(data, duals):
        return Bound("planted", 0.1, "wrong")

    planted(monkeypatch, "alltoall.master", certify=wrong)
    run = solve.solve(Task("alltoall.master", "ring:8", method="highs"))
    assert run.proof == Proof.NONE
    assert not run.verified
    assert run.exit_status != 0
    assert run.bound is None
    for part in ("contradict each other", "planted", "0.1", "closed-form", "0.125"):
        assert part in run.record["message"]


def test_a_verified_value_beyond_a_wrong_bound_proves_nothing(monkeypatch):
    from opticoll.formulations.model import Bound

    planted(
        monkeypatch,
        "alltoall.master",
        _closed_forms=lambda data: [],
        certify=lambda data, duals: Bound("sweep-cut", 0.0, "wrong"),
    )
    run = solve.solve(Task("alltoall.master", "ring:8", method="highs"))
    assert (run.proof, run.verified) == (Proof.NONE, False)
    assert run.exit_status != 0
    for part in ("value and bound contradict each other", "0.125", "sweep-cut gives 0"):
        assert part in run.record["message"]


def test_a_tiny_optimum_is_not_called_optimal_at_zero():
    run = solve.solve(Task("alltoall.master", "ring:4+host=1e-308", method="highs"))
    assert run.proof != Proof.OPTIMAL or run.objective > 0


def test_duals_shifted_along_a_left_null_vector_prove_nothing_false(monkeypatch):
    """Shifts of 1e14 drown the reduced costs in round-off; the optimum is 10, a wrong answer claims 16 as optimal."""
    import scipy.linalg
    from scipy.optimize import Bounds, LinearConstraint, milp

    from opticoll.solvers.task import Outcome, Termination

    shown = []

    def lie(form, adapter, request, **_):
        A, cost = form.A.toarray(), np.asarray(form.cost)
        rows = LinearConstraint(np.vstack([A, cost]), np.append(form.row_lower, 16.0), np.append(form.row_upper, 16.0))
        values = milp(
            np.zeros(cost.size),
            constraints=rows,
            bounds=Bounds(form.col_lower, form.col_upper),
            integrality=np.ones(cost.size),
        )
        right = np.where(np.isfinite(form.row_lower), form.row_lower, form.row_upper)
        y = 16.0 * right / (right @ right)
        null = scipy.linalg.null_space(A.T)
        assert null.shape[1] > 0
        null = np.rint(null[:, 0] / np.abs(null[:, 0]).max())
        assert not (A.T @ null).any()
        shown.append((form, y + 1e14 * null))
        return Outcome(Termination.OPTIMAL, x=values.x, objective=16.0, bound=16.0, row_duals=y + 1e14 * null)

    monkeypatch.setattr(model_solve, "solve_scaled", lie)
    monkeypatch.setattr("opticoll.solvers.relaxation.solve_scaled", lie)
    run = solve.solve(Task("optree.tree", "wdm-ring:n=24,wavelengths=4", method="highs"))
    assert run.objective == 16.0
    assert run.proof != Proof.OPTIMAL
    assert run.bound == 10.0
    assert shown
    for form, y in shown:
        assert verify.dual_bound(form, y) <= 10.0


def test_messages_are_joined_with_marks():
    assert joined_messages("", None, "one", "two.", "three", "; four") == "one; two. three; four"
    assert joined_messages(None, "") == ""


def test_a_capacity_of_1e16_is_solved_or_not_proven():
    """The optimum is 0.125: a value of 0 is not optimal while no bound is 0, and 0.125 is not bounded by less."""
    run = solve.solve(Task("alltoall.master", "ring:8+host=1e16", method="highs"))
    assert run.bound is None or run.bound >= 0.125 * (1 - 1e-9)
    if run.proof == Proof.OPTIMAL:
        assert run.objective == pytest.approx(0.125)
