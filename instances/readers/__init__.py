"""Readers of files from outside: topologies, matrices and graphs."""
