"""Formulations of topologies that belong to no single paper."""
