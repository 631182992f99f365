"""Training context and RoPE."""
