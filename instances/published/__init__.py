"""Numbers published by the papers' authors."""
