"""Parses and renders chat templates: a child process that ``probes.templates`` starts.

Imports nothing of ours but itself, and the standard library and jinja2.
"""
