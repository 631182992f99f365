"""Rules about tokenizer."""
