"""Search for topologies."""
