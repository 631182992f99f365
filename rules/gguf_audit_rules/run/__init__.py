"""What runtimes do with the file."""
