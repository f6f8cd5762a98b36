"""Plots of data frames as matplotlib figures, and the common style of all figures.

Figures are made without pyplot: no global state is changed and no display is needed. The colours are Okabe & Ito's
palette, which is safe for colour-blind readers. In SVG, every colour of the palette is a CSS variable with the light
colour as its fallback; a dark page sets the variables, see :data:`DARK_CSS`.
"""
