r"""Exact optima of linear and integer programs, as fractions with vectors that prove them.

This module defines the program in rational numbers and its exact answer, which the whole package shares.

.. math::
    \min / \max \; c^\top x + c_0 \quad \text{s.t.} \quad
    l_r \le A x \le u_r, \quad l_x \le x \le u_x, \quad x_j \in \mathbb{Z} \; (j \in I)

Rows and columns are those of the :class:`~opticoll.formulations.standard_form.StandardForm`, in the same order. Every
float is read as the shortest decimal that rounds to it: 0.1 is 1/10.

Dual bounds are stated for a minimization; a maximization is treated as the minimization of :math:`-c`. With
:math:`z = c - A^\top y`, multipliers y of the rows prove the bound

.. math:: \sum_{y_i > 0} y_i l_i + \sum_{y_i < 0} y_i u_i + \sum_{z_j > 0} z_j l_j + \sum_{z_j < 0} z_j u_j + c_0

which is no bound if a term is infinite. With c and :math:`c_0` taken as 0, a positive value proves that there is no
solution (Farkas).
"""
