"""WHAT IS LEARNED: the results store, studies, claims, metrics, plots, the report, the command line."""

if __name__ != "opticoll.analysis":
    msg = "analysis is part of opticoll now: import opticoll.analysis"
    raise ImportError(msg)
