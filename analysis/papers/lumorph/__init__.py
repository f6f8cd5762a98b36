"""LuMorph: claims, figures and benchmark tables."""
