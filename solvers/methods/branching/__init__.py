"""Method ``certified-branching`` for every integer program: its tree, and what tightens and reduces the program."""
