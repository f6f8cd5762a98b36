"""Design of topologies for a given number of ports."""
