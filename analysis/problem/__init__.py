"""Formulations on instances, and their models, to change by hand."""
