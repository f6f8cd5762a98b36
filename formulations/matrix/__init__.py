"""Programs given by their matrix."""
