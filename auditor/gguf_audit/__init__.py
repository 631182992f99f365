"""Checks a GGUF file against the checkpoint it was converted from."""

__version__ = "0.1.0"
