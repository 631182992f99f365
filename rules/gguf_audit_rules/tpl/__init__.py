"""Rules about the chat template."""
