"""Results: values with labels, tables, schedules, what limits them, and files of them."""
