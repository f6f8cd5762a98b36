"""Plots: data frames in, matplotlib figures out."""
