"""Rules about cache layout."""
