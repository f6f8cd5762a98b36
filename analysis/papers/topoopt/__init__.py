"""TopoOpt: claims, figures and benchmark tables."""
