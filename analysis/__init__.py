"""WHAT IS LEARNED: the results store, studies, claims, metrics, plots, the report, the command line."""
