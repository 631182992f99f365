"""Rules about chat template."""
