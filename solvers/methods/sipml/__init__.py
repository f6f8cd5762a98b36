"""Methods for SiP-ML's formulations."""
