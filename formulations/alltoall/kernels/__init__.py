"""Compiled inner loops; a package of its own, so that listing the formulations does not load the compiler."""
