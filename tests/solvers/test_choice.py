"""What ``auto`` does: the stated model up to a size, a certified method beyond, and what the record says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from cases import CASES, first_case

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import NoSolution
from opticoll.formulations import formulation
from opticoll.formulations.model import Formulation
from opticoll.solvers import model_solve, solve
from opticoll.solvers.auto import SMALL_PROOF_S, fastest_form
from opticoll.solvers.methods import methods, taking_over
from opticoll.solvers.plan import make_plan
from opticoll.solvers.procedure import call_procedure
from opticoll.solvers.process.worker import interpreter
from opticoll.solvers.resume_key import resume_key
from opticoll.solvers.run import Solved
from opticoll.solvers.task import Outcome, Proof, Task, Termination

GAP_GRAPH = "genkautz:n=8,d=3"

#: Formulation, an instance whose model is solved as stated and one that is too large, and settings.
SIZES = [
    ("alltoall.link-mcf", "ring:5", "genkautz:n=34,d=4", {}),
    ("alltoall.master", "ring:5", "genkautz:n=400,d=4", {}),
    ("alltoall.min-congestion", "petersen", "genkautz:n=64,d=4", {}),
    ("lumorph.min-overlap", "lightpath:2x4", "lightpath:8x16", {}),
    ("optree.one-stage", "wdm-ring:n=6,wavelengths=1", "wdm-ring:n=12,wavelengths=1", {}),
    (
        "sipml.ocs-circuits",
        "servers:n=6,degree=8,traffic=random,seed=1",
        "servers:n=64,degree=128,traffic=random,seed=1",
        {},
    ),
    ("sipml.placement", "op-graph:model=chain,splits=2x1x3", "op-graph:model=transformer,layers=2,parts=16", {}),
    ("topoopt.utility", "servers:n=8,degree=3,traffic=dlrm", "servers:n=128,degree=8,traffic=random,seed=1", {}),
    ("topoopt.topology", "servers:n=4,degree=2,traffic=alltoall", "servers:n=7,degree=2,traffic=alltoall", {}),
]


@pytest.mark.parametrize(("name", "small", "large", "settings"), SIZES, ids=[case[0] for case in SIZES])
def test_small_models_are_built_and_large_ones_are_not(name, small, large, settings):
    stated = make_plan(Task(name, small, settings=settings, tol=1e-4))
    assert stated.builds
    assert stated.adapter is not None
    assert stated.adapter.name.startswith("highs")
    assert stated.choice is not None
    assert stated.choice.reason is None
    certified = make_plan(Task(name, large, settings=settings, tol=1e-4))
    assert not certified.builds
    assert certified.choice is not None
    assert certified.method_name in {method.name for method, _ in taking_over(name, certified.parameters)}
    assert certified.choice.reason is not None
    assert certified.choice.reason.startswith(certified.method_name)


#: The same where the method on the data begins at any size.
FIRST = [
    ("alltoall.all-reduce", "torus:3x3", "torus:6x6", {}),
    ("lumorph.rounds", "lightpath:2x2,lasers=1", "lightpath:4x4,lasers=4,waveguides=4", {}),
    ("optree.tree", "wdm-ring:n=64,wavelengths=4", "wdm-ring:n=4096,wavelengths=64", {}),
    ("sipml.ring-wavelengths", "wdm-ring:n=5,wavelengths=16", "wdm-ring:n=16,wavelengths=256", {"traffic": "random"}),
]


@pytest.mark.parametrize(("name", "small", "large", "settings"), FIRST, ids=[case[0] for case in FIRST])
def test_some_methods_begin_on_small_models_too(name, small, large, settings):
    chosen = [make_plan(Task(name, spec, settings=settings)) for spec in (small, large)]
    method, at = next((method, at) for method, at in taking_over(name, chosen[0].parameters) if at.first)
    for plan, again in zip(chosen, (method.name, None), strict=True):
        assert plan.method_name == method.name
        assert not plan.builds
        assert plan.choice is not None
        assert at.covers({"variables": plan.choice.variables, "nonzeros": plan.choice.nonzeros}) is (again is not None)
        assert plan.choice.beyond == again
    assert make_plan(Task(name, small, form="pyomo", settings=settings)).builds


def test_an_all_reduce_whose_equal_shares_are_not_best_is_solved_as_stated():
    assert make_plan(Task("alltoall.all-reduce", "genkautz:n=12,d=4")).builds


def test_a_method_that_begins_and_does_not_prove_is_continued_soon(monkeypatch):
    tried: list[tuple[str, bool]] = []

    def finding_nothing_at_first(state, start=None):
        tried.append((state.plan.method_name, state.left_s() is not None))
        solved = call_procedure(state, start)
        outcome = replace(solved.outcome, termination=Termination.TIME_LIMIT)
        return solved if len(tried) > 1 else replace(solved, values=None, outcome=outcome)

    monkeypatch.setattr(solve, "call_procedure", finding_nothing_at_first)
    run = solve.solve(Task("lumorph.rounds", "lightpath:2x2,lasers=1"))
    assert tried == [("certified-rounds", True), ("certified-branching", True)]
    assert run.proof is Proof.OPTIMAL
    assert run.objective == 3
    assert run.record.model.reason.endswith(", proven optimal by certified-branching")


def test_every_formulation_without_a_certified_method_is_solved_as_stated():
    for name in CASES:
        if not any(beyond.formulation == name for method in methods().values() for beyond in method.takes_over):
            spec, settings = first_case(name)
            assert make_plan(Task(name, spec, settings=settings)).builds


#: That both have one optimum for every formulation is tested in test_stated_models; here, what the record says.
EQUAL = [
    ("alltoall.master", "hypercube:3", {}, "orbit-lp", "matrix"),
    ("lumorph.rounds", "lightpath:2x3,lasers=2", {"collective": "all-to-all"}, "certified-rounds", "pyomo"),
    ("optree.tree", "wdm-ring:n=64,wavelengths=4", {}, "tree-search", "pyomo"),
    ("topoopt.utility", "servers:n=6,degree=3,traffic=random,seed=3", {}, "transportation", "pyomo"),
]


@pytest.mark.parametrize(("name", "spec", "settings", "method", "form"), EQUAL, ids=[case[0] for case in EQUAL])
def test_the_stated_model_and_the_certified_method_prove_one_optimum(name, spec, settings, method, form):
    stated = solve.solve(Task(name, spec, form=form, settings=settings))
    certified = solve.solve(Task(name, spec, method, settings=settings))
    assert stated.proof is certified.proof is Proof.OPTIMAL
    assert stated.objective == pytest.approx(certified.objective, rel=1e-6)
    model = stated.record.model
    assert model.built
    assert model.form == stated.record.form == form
    assert model.variables == stated.record.size.variables
    assert model.reason.startswith("solved by highs")
    assert certified.record.model.built is False
    assert certified.record.form is certified.record.model.form is None
    assert certified.record.model.reason.startswith(f"{method} works on the ")


def test_a_requested_form_is_built_at_any_size():
    plan = make_plan(Task("lumorph.rounds", "lightpath:4x4,lasers=4,waveguides=4", form="cvxpy"))
    assert (plan.method_name, plan.form, plan.builds) == ("highs", "cvxpy", True)
    run = solve.solve(Task("lumorph.min-overlap", "lightpath:2x3", form="cvxpy"))
    assert run.proof is Proof.OPTIMAL
    assert run.record.form == run.record.model.form == "cvxpy"


def test_small_models_are_built_in_the_layer_that_is_imported_first():
    for name, spec, form in (("alltoall.link-mcf", "ring:4", "pyomo"), ("alltoall.link-mcf", "torus:6x6", "cvxpy")):
        assert make_plan(Task(name, spec)).form == form

    class Only(formulation("alltoall.link-mcf")):
        pyomo = Formulation.pyomo  # not stated

    assert fastest_form(Only, {"nonzeros": 1}) == "cvxpy"


def test_a_parameter_of_the_certified_method_selects_it():
    plan = make_plan(Task("alltoall.min-congestion", "ring:5", settings={"mip_s": "5"}))
    assert plan.method_name == "exact-routing"
    assert plan.choice is not None
    assert plan.choice.reason == "mip_s is a parameter of exact-routing"
    assert make_plan(Task("alltoall.min-congestion", "ring:5", settings={"mip_rel_gap": "0"})).method_name == "highs"


def test_a_path_set_that_cannot_be_listed_is_left_to_the_certified_method():
    plan = make_plan(Task("alltoall.min-congestion", "torus:4x4", settings={"paths": "all"}))
    assert plan.method_name == "exact-routing"
    assert plan.choice is not None
    assert "paths" in str(plan.choice.reason)


def test_the_resume_key_of_a_run_that_may_be_continued_is_its_own():
    keys = {
        resume_key(Task("optree.one-stage", "wdm-ring:n=5,wavelengths=1", method, form="pyomo"))
        for method in ("auto", "highs", "cycle-cover")
    }
    assert len(keys) == 3
    large = Task("optree.one-stage", "wdm-ring:n=12,wavelengths=1")
    assert resume_key(large) == resume_key(Task(large.formulation, large.instance, "cycle-cover"))


def test_the_resume_key_does_not_depend_on_the_solution_that_the_data_need():
    for name, settings in (("alltoall.virtual-channels", {"layers": "2"}), ("alltoall.child", {})):
        task = Task(name, "ring:5", settings=settings)
        run = solve.solve(task)
        assert run.record.key == resume_key(task)
        assert run.record.model.built
        assert resume_key(task) != resume_key(Task(name, "ring:5", "highs", "pyomo", settings=settings))


# Continuation -----------------------------------------------------------------------------------------------------

TAX = Task("topoopt.topology", "servers:n=4,degree=2,traffic=random,seed=1", settings={"objective": "bandwidth-tax"})


def test_an_optimum_that_our_bounds_do_not_prove_is_continued():
    alone = solve.solve(Task(TAX.formulation, TAX.instance, "highs", "pyomo", TAX.settings))
    assert alone.proof is Proof.CERTIFIED_GAP
    run = solve.solve(TAX)
    assert run.proof is Proof.OPTIMAL
    assert run.objective == pytest.approx(alone.objective, rel=1e-6)
    assert run.record.model.built
    assert run.record.model.reason == "solved by highs, proven optimal by certified-branching"
    assert run.record.method == "certified-branching"
    assert run.record.key == resume_key(TAX)
    assert run.record.size.variables == run.record.model.variables == alone.record.size.variables
    assert run.record.requested.method == "auto"


def test_a_small_program_without_a_method_of_proof_is_proven_by_branching():
    run = solve.solve(Task("sipml.placement", "op-graph:model=chain,splits=1x4", settings={"degree": "2"}))
    assert run.proof is Proof.OPTIMAL
    assert run.record.model.reason == "solved by highs, proven optimal by certified-branching"


def test_an_attempt_that_reaches_its_limit_is_continued(monkeypatch):
    monkeypatch.setattr("opticoll.solvers.auto.SMALL_ATTEMPT_S", 1e-3)
    run = solve.solve(Task("alltoall.min-congestion", "petersen"))
    assert run.proof is Proof.OPTIMAL
    assert run.objective == 5
    assert run.record.model.built
    assert run.record.model.reason.startswith("highs ended with time-limit, ")
    assert ", proven optimal by " in run.record.model.reason
    limited = solve.solve(Task("alltoall.min-congestion", "petersen", form="pyomo"))
    assert limited.record.method == "highs"


def test_a_flow_that_interior_point_does_not_solve_is_solved_by_simplex(monkeypatch):
    solve_scaled, asked = model_solve.solve_scaled, []

    def misled(form, name, *given, **named):
        asked.append(name)
        return Outcome(Termination.INFEASIBLE) if name == "highs-ipx" else solve_scaled(form, name, *given, **named)

    monkeypatch.setattr("opticoll.solvers.auto.SIMPLEX_VARIABLES", 0)
    monkeypatch.setattr(model_solve, "solve_scaled", misled)
    task = Task("alltoall.link-mcf", "ring:4")
    record = solve.solve(task).record
    assert asked == ["highs-ipx", "highs-simplex"]
    assert (record.proof, record.objective, record.method) == ("optimal", pytest.approx(0.5), "highs-simplex")
    assert record.model.reason.endswith("tolerance-not-reached, proven optimal by highs-simplex")
    assert (record.key, record.message) == (resume_key(task), "")


def test_the_better_solution_is_kept_with_the_better_bound(monkeypatch):
    name, settings = "sipml.placement", {"k": "3", "degree": "2"}
    spec = "op-graph:model=random,layers=5,parts=2,training=false,seed=2"
    ((method, beyond),) = taking_over(name, {})
    proves = [(method, replace(beyond, proves=True))]
    monkeypatch.setattr("opticoll.solvers.plan.taking_over", lambda *_: proves)
    monkeypatch.setattr("opticoll.solvers.auto.SMALL_VARIABLES", 0)
    heuristic = solve.solve(Task(name, spec, "degree-aware", settings=settings))
    run = solve.solve(Task(name, spec, settings=settings))
    assert run.objective < heuristic.objective
    assert run.record.method == "highs"
    assert run.record.termination is Termination.OPTIMAL
    assert run.record.model.reason == "solved by highs, continued by degree-aware"
    assert run.record.bound >= heuristic.bound * (1 - 1e-9)
    assert run.verified


def test_a_method_that_is_refused_leaves_the_run_as_it_was(monkeypatch):
    """Also where there is no solution yet."""

    reason = "it needs more memory"

    def refusing(state, start=None):
        raise NoSolution(reason)

    monkeypatch.setattr(solve, "call_procedure", refusing)
    monkeypatch.setattr("opticoll.solvers.auto.SMALL_ATTEMPT_S", 1e-3)
    run = solve.solve(Task("alltoall.min-congestion", "petersen"))
    assert run.termination is Termination.TIME_LIMIT
    assert run.record.method == run.record.solver.name == "highs"
    assert run.record.model.reason == "highs ended with time-limit"
    assert "certified-branching could not continue: it needs more memory" in run.record.message


def test_a_method_that_excludes_the_value_of_another_proves_nothing(monkeypatch):
    def excluding(state, start=None):
        return Solved(Outcome(Termination.INFEASIBLE), infeasible_by="a wrong proof")

    monkeypatch.setattr(solve, "call_procedure", excluding)
    run = solve.solve(Task("sipml.placement", "op-graph:model=chain,splits=1x4", settings={"degree": "2"}))
    assert run.record.model.reason == "solved by highs, continued by certified-branching"
    assert run.proof is Proof.NONE
    assert run.bound is None
    assert not run.verified
    assert "a value satisfies every constraint, but a wrong proof excludes all solutions" in run.record.message


def test_a_time_limit_is_shared_between_the_model_and_its_continuation(monkeypatch):
    seen = {}
    original = solve.evidence_of

    def spying(state, *rest):
        seen[state.plan.method_name] = state.task.time_limit_s
        return original(state, *rest)

    monkeypatch.setattr(solve, "evidence_of", spying)
    monkeypatch.setattr("opticoll.solvers.auto.ATTEMPT_SHARE", 1e-6)
    run = solve.solve(Task("alltoall.min-congestion", "petersen", time_limit_s=300.0))
    assert set(seen) == {"highs", "certified-branching"}
    assert seen["certified-branching"] <= SMALL_PROOF_S < seen["highs"] == 300.0
    assert run.proof is Proof.OPTIMAL


# What is said -----------------------------------------------------------------------------------------------------


def shown(capsys, *words):
    assert main(["solve", *words, "--no-store"]) == 0
    return {
        line.split()[0]: line.split(maxsplit=1)[1].strip()
        for line in capsys.readouterr().out.splitlines()
        if len(line.split()) > 1
    }


def test_the_text_says_whether_the_model_was_built(capsys):
    built = shown(capsys, "alltoall.min-congestion", "ring:5")
    assert built["model"] == "stated in matrix: 41 variables, 30 rows, solved by highs"
    through = shown(capsys, "alltoall.master", "ring:5", "--method", "time-form")
    assert through["model"].endswith("solved by highs-ipx through time-form")
    without = shown(capsys, "optree.one-stage", "wdm-ring:n=12,wavelengths=1")
    assert without["model"] == (
        "not built (about 4,770 variables): cycle-cover works on the topology; form pyomo builds it"
    )


def test_a_conditional_optimum_says_what_it_depends_on(capsys):
    assert shown(capsys, "alltoall.min-congestion", GAP_GRAPH)["proof"].startswith(
        "optimal over the given paths (a maximal arc-disjoint set); without this restriction, at least 4"
    )
    assert main(["solve", "alltoall.min-congestion", GAP_GRAPH, "--set", "paths=all", "--json", "--no-store"]) == 0
    free = json.loads(capsys.readouterr().out)
    assert free["objective"] == 4
    assert free["metrics"]["conditional_on"] is None
    run = solve.solve(Task("alltoall.path-mcf", "hypercube:3"))
    assert run.record.metrics["unrestricted_proven"] is True
    assert run.record.metrics["conditional_on"] is None
    run = solve.solve(Task("alltoall.timestep-mcf", "ring:4", settings={"steps": "3"}))
    assert run.record.metrics["conditional_on"] == "in 3 steps"


def test_workers_import_layers_without_the_statistics_of_scipy():
    code = (
        "import sys; from opticoll.formulations.modelling_layers import import_layer\n"
        "from opticoll.solvers.process import worker_imports; worker_imports.prepare()\n"
        "for layer in ('pyomo', 'cvxpy'):\n    import_layer(layer)\n    assert layer in sys.modules\n"
        "assert not {'scipy.stats', 'scipy.optimize'} & sys.modules.keys()\n"
        "import numpy as np, cvxpy as cp\n"
        "one, other = (cp.Constant(np.eye(2) / k) for k in (2, 4))\n"
        "assert abs(cp.quantum_rel_entr(one, other).value - np.log(2)) < 1e-9\n"
        "x = cp.Variable(2)\n"
        "assert abs(cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1]).solve(solver='SCIPY') - 2) < 1e-9\n"
        "import scipy.stats; assert scipy.stats.norm.cdf(0) == 0.5"
    )
    place = interpreter("opticoll.solvers.process.worker_main:main")[-1].partition("; from")[0]
    subprocess.run([sys.executable, "-P", "-c", f"{place}; {code}"], check=True)


def packing(price: float) -> type[oc.Formulation]:
    """Most vertices of which no two are neighbours, with an objective that counts each of them ``price`` times."""

    class Packing(oc.Formulation):
        name, sense, problem = "own.packing", "max", "MILP"

        def pyomo(self):
            import pyomo.environ as pyo

            topology = self.instance
            model = pyo.ConcreteModel()
            model.x = pyo.Var(range(topology.n), domain=pyo.Binary)
            model.count = pyo.Objective(expr=sum(model.x.values()), sense=pyo.maximize)
            model.apart = pyo.ConstraintList()
            for u, v in zip(topology.tail.tolist(), topology.head.tolist(), strict=True):
                model.apart.add(model.x[u] + model.x[v] <= 1)
            return model

        def residuals(self, values):
            x, topology = values["x"], self.instance
            return {
                "apart": float((x[topology.tail] + x[topology.head] - 1).max()),
                "whole": float(np.abs(x - np.round(x)).max()),
            }

        def objective(self, values):
            return price * float(values["x"].sum())

        def metrics(self, value):
            return {"inverse": 1 / value}

    return Packing


def test_an_integer_program_from_outside_is_proven_by_branching(monkeypatch):
    run = oc.solve(packing(1.0), "complete:5")  # the relaxation has 2.5
    assert (run.objective, run.proof) == (pytest.approx(1.0), Proof.OPTIMAL)
    assert run.record.model.reason == "solved by highs, proven optimal by certified-branching"
    assert oc.solve(packing(1.0), "complete:5", method="highs").proof is Proof.CERTIFIED_GAP
    monkeypatch.setattr("opticoll.solvers.auto.SMALL_VARIABLES", 4)
    assert oc.solve(packing(1.0), "complete:5").proof is Proof.CERTIFIED_GAP


def test_a_build_and_an_objective_that_differ_prove_nothing():
    run = oc.solve(packing(0.5), "complete:5")  # 0.5 is within the relaxation's 2.5
    assert (run.proof, run.verified, run.bound) == (Proof.NONE, False, None)
    assert "that of the build is 1 at this solution, but objective() returns 0.5" in run.record.message
    assert "inverse" not in run.metrics  # of a value that is not verified


def test_a_solvers_claim_that_our_bounds_do_not_prove_is_explained() -> None:
    run = solve.solve(Task("topoopt.topology", "servers:n=5,degree=2,traffic=random,seed=1", "highs"))
    assert (run.termination, run.proof) == (Termination.OPTIMAL, Proof.CERTIFIED_GAP)
    assert run.record.message == "the solver's own bound is not used as a proof; method auto may close the gap"


def test_several_paths_per_pair_are_solved_as_stated_beyond_the_size_of_single_ones():
    topology = "random-regular:n=8,d=5,seed=1"
    plans = [
        make_plan(Task("alltoall.min-congestion", topology, settings={"paths": "all", "kappa": kappa}))
        for kappa in (1, 3)
    ]
    assert [plan.method_name for plan in plans] == ["exact-routing", "highs"]
    assert plans[0].choice is not None
    assert plans[0].choice.variables > 6_500


@pytest.mark.parametrize(
    ("name", "spec", "settings"),
    [
        ("topology.design", "servers:n=7,degree=2", {}),
        ("topology.sequence", "servers:n=6,degree=2", {"configurations": 1, "directed": "true"}),
        ("topology.sequence", "servers:n=4,degree=2", {"configurations": 3, "directed": "true"}),
    ],
)
def test_the_columns_that_are_fixed_at_0_do_not_count_against_the_stated_model(name, spec, settings):
    plan = make_plan(Task(name, spec, settings=settings))
    assert plan.method_name == "highs"
    assert plan.problem._estimate()["variables"] <= 301
