"""Splits, sets of quants, companions and provenance."""
