"""Efficient all-to-all schedules: claims, figures and benchmark tables."""
