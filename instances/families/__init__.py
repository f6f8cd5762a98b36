"""Generators of instances, one module per group of families, and modifiers, written after the family in a spec.

Both are registered by decorator: ``ring:8+fail=1,seed=3`` is the family ``ring`` and the modifier ``fail``.
"""
