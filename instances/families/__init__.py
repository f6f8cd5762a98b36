"""Generators of instances, one module per group of families, registered by decorator."""
