"""``python -m gguf_audit``: the command where its script is not on the path."""

from gguf_audit.cli import main

main()
