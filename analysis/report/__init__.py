"""The report: one self-contained HTML page of what a results store holds.

This module defines the columns and number formats of all its tables.
"""
