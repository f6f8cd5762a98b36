"""Whether to reconfigure: records of sequences of configurations, and the least time by the delay of a change."""
