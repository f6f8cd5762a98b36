"""Exact optima of linear and integer programs, as fractions with vectors that prove them."""
