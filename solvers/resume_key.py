"""Resume keys: a digest of everything that may change the answer of a task, or the time that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll import package_code, plugins
from opticoll.formulations import is_registered
from opticoll.formulations.model import forms_of, is_own
from opticoll.formulations.registry import formulation as formulation_named
from opticoll.instances.spec import modules_behind
from opticoll.solvers.adapters import adapters
from opticoll.solvers.adapters.interface import distribution_version
from opticoll.solvers.code_digest import code_digest
from opticoll.solvers.methods import method_named
from opticoll.solvers.methods.index import MODULES
from opticoll.solvers.plan import make_plan, needed_task
from opticoll.solvers.task import LIMITS, digest, texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.solvers.run import Plan
    from opticoll.solvers.task import Task

package_code.digest()  # of the code as it is loaded: the files may change while this process runs


def resume_key(task: Task) -> str:
    """SHA-256 of everything that may change the answer or the time; studies use it to resume."""
    return plan_key(task, make_plan(task))


def plan_key(task: Task, plan: Plan, needed: str | None = None, digests: Mapping[str, str] | None = None) -> str:
    """The resume key of a task whose plan is already made.

    ``needed`` is the key of the run whose solution the formulation takes as data, if there is one and it is known;
    ``digests`` are the :func:`plugin_digests` of the plan, if they are known.
    """
    if digests is None:
        digests = plugin_digests(plan)
    settings = texts(plan.settings)
    chosen: dict[str, str | None] = {}
    if plan.choice is not None and plan.problem._needs is not None:  # the key is known before the choice
        settings = texts({**task.settings, **plan.parameters})
        chosen = {"method": "auto", "form": task.form}
    elif plan.choice is not None and plan.choice.beyond is not None:
        chosen = {"beyond": plan.choice.beyond}
    if plan.problem._needs is not None and needed is None:
        basis = needed_task(task, plan)
        needed = plan_key(basis, make_plan(basis, instance=plan.instance))
    return digest(
        {
            "formulation": plan.problem.name,
            "instance": plan.instance._contents_and_names,
            "method": plan.method_name,
            "form": plan.form,
            **chosen,
            "settings": settings,
            "code": package_code.digest(),
            "solvers": versions_of(task, plan, digests),
            **{name: getattr(task, name) for name in LIMITS},
            **({"exact": True} if task.exact else {}),
            **({} if needed is None else {"needed": needed}),
            **({"plugins": digests} if digests else {}),
        }
    )


#: Distributions that every run may use: HiGHS solves relaxations, subproblems of methods and proofs of infeasibility.
ALWAYS_USED = ("highspy",)


#: Those that compile a stated model to its matrix, by form.
LAYERS = {"pyomo": ("pyomo",), "cvxpy": ("cvxpy",)}


#: Those with which plug-ins compute; what our own code computes is verified, whatever their versions.
PLUGINS_USE = ("numpy", "scipy")


#: Those of the exact step.
EXACT_USED = ("python-flint",)


def versions_of(task: Task, plan: Plan, digests: Mapping[str, str]) -> dict[str, str | None]:
    """Versions of the solvers and numerical libraries that a run may use, by distribution or command.

    ``digests`` are the :func:`plugin_digests` of the plan.

    Our own methods use HiGHS and the solver that a parameter names; a method of a plug-in may use any, and plug-ins use
    the libraries of arrays. A model that is built depends on the layer that compiles it.
    """
    used = [plan.adapter] if plan.adapter is not None else []
    if plan.procedure is not None and plan.method_name not in MODULES:
        used += adapters().values()
    form = plan.form if plan.builds else None
    if plan.choice is not None and plan.problem._needs is not None:  # the key is known before the choice
        form = task.form or forms_of(plan.problem)[0]
    always = ALWAYS_USED + LAYERS.get(form or "", ())
    always += (EXACT_USED if task.exact else ()) + (PLUGINS_USE if digests else ())
    return {one.distribution: one.version() for one in used} | {name: distribution_version(name) for name in always}


def _plugins_of(plan: Plan) -> list[plugins.Plugin]:
    formulation = type(plan.problem)
    makers = [method_named(str(plan.parameters[one.name])) for one in formulation.parameters if one.constructs]
    basis = None if formulation._needs is None else formulation_named(formulation._needs.formulation)
    objects = (formulation, plan.method, plan.adapter, basis, *makers)
    return plugins.involved(objects, modules_behind(plan.instance.spec))


def plugin_digests(plan: Plan) -> dict[str, str]:
    """The plug-ins that a plan uses and the modules they load, with their SHA-256.

    A formulation that belongs neither to the package nor to a plug-in is listed by name, with a digest of its code.
    """
    formulation = type(plan.problem)
    result = plugins.digests(_plugins_of(plan)) if plugins.known() else {}
    if not is_own(formulation) or is_registered(formulation):
        return result
    return {**result, formulation.name: code_digest(formulation)}
