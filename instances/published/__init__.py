"""Tables of numbers that the papers' authors published, each with its source, units and licence."""
