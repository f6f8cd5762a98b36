"""Plots of data frames as matplotlib figures, and the common style of all figures.

Figures are made without pyplot: no global state is changed and no display is needed. The colours are Okabe & Ito's
palette, which is safe for colour-blind readers.
"""
