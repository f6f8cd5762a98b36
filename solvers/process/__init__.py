"""Worker processes: limits, messages, logs, and many jobs at once."""
