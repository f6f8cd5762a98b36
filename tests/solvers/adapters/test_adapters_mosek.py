"""MOSEK without a licence."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from opticoll.errors import BadOption, SolverUnavailable
from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.adapters import adapter
from opticoll.solvers.process.isolation import probe, solve_isolated
from opticoll.solvers.task import SolveRequest


def test_mosek_without_a_licence_is_reported_after_checking_options() -> None:
    if not adapter("mosek").installed():
        pytest.skip("mosek is not installed")
    form = StandardForm(sp.csc_array([[1.0]]), *(np.array([value]) for value in (1.0, 2.0, 0.0, 3.0, 1.0)), "min")
    with pytest.raises(BadOption, match="did you mean 'MSK_IPAR_NUM_THREADS'"):
        solve_isolated(form, "mosek", SolveRequest(options={"NUM_THREAD": 1}))
    with pytest.raises(BadOption, match="MSK_IPAR_NUM_THREADS"):
        solve_isolated(form, "mosek", SolveRequest(options={"MSK_IPAR_NUM_THREADS": "x"}))
    if probe("mosek").usable:
        pytest.skip("mosek has a licence here")
    with pytest.raises(SolverUnavailable, match="MOSEKLM_LICENSE_FILE") as caught:
        solve_isolated(form, "mosek", SolveRequest())
    assert caught.value.exit_status == 4
