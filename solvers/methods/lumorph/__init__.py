"""Methods for LuMorph's formulations, with their engines."""
