"""Rules about training context and RoPE."""
