"""Rules about file structure."""
