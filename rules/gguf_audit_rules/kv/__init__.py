"""Rules about the layout of the cache."""
