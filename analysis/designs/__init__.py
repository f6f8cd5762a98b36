"""Topologies of a given size and degree, and whether to change them: records, searches, least times by delay."""
