"""Methods for TopoOpt's formulations, with their engines."""
