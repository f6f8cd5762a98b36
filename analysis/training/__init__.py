"""Times of training iterations, parallelism that fits a network, and clusters that several jobs share."""
