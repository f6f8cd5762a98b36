"""Results: the store, studies, claims, metrics, plots, the report and the command line."""
