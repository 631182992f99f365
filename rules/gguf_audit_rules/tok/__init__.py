"""Rules about the tokenizer."""
