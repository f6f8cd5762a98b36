"""All-gather by m-ary trees on optical lines and rings (paper: OpTree)."""

PAPER = "OpTree: an efficient algorithm for all-gather operation in optical interconnect systems"
