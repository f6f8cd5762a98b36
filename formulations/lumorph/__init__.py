"""LuMorph: collectives on programmable photonic meshes, in rounds of circuits."""
