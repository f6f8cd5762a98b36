"""Methods that search for topologies of given degree."""
