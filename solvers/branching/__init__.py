"""Branch and bound whose every leaf is certified: LP duals in, bounds recomputed by us out."""
