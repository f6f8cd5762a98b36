"""LuMorph: collectives on programmable photonic meshes, in rounds of circuits."""

PAPER = "LuMorph: programmable optical interconnects for server-scale multi-GPU systems"
