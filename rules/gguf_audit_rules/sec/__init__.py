"""Rules about what a file might do to who opens it."""
