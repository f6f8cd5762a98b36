"""Efficient all-to-all schedules: claims and figures."""
