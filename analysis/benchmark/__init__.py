"""The benchmark: its problems, published runs and certificates, and the measured tables of the documentation."""
