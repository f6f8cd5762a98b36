"""Arguments of combinatorial certificates: a file per kind, which names the formulations that it serves."""
