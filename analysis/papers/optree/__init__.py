"""OpTree: claims and figures."""
