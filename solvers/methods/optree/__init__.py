"""Methods for OpTree's formulations."""
