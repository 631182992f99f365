"""Runs something real on a subject, in a process of its own: that is how we are checked."""
