"""Chat template."""
