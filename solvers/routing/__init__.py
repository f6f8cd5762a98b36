"""Single-path routing: searches for routes of least congestion, and the parts their methods share."""
