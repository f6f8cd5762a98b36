"""Generators of topologies, one module a kin of families; each registers itself by decorator."""
