"""Training jobs: their traffic, tasks and iterations, and clusters that they share."""
