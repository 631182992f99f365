"""Bytes into subject values: one module per format."""
