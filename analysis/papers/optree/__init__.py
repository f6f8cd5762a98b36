"""OpTree: claims, figures and benchmark tables."""
