"""OpTree: all-gather by m-ary trees on optical lines and rings."""
