"""Closed forms of exact optima over a family of instances, and what is proven of them."""
