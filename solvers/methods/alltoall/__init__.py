"""Methods for the formulations of the all-to-all paper: layers of virtual channels, and single paths by heuristics."""
