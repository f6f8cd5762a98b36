"""Programs given as matrices, such as those of MPS files."""
