"""Hyper-parameters against the reference."""
