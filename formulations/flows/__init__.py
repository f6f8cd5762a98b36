"""Multicommodity flows shared by several papers: models, bounds, paths and compiled kernels."""
