"""Cache layout."""
