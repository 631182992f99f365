"""A report as somebody reads it: pure functions from ``Report`` to text."""
