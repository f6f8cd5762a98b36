"""Times of training iterations, and clusters that several jobs share."""
