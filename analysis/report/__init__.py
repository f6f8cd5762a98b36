"""The report: one self-contained HTML page of what a results store holds."""
