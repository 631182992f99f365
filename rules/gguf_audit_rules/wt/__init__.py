"""Tensors and weights."""
