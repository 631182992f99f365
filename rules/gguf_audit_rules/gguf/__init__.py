"""File structure."""
