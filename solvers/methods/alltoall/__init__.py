"""Methods for the formulations of the all-to-all paper."""
