"""Reads clusters and manifests from files of every form, and writes clusters (``write``, ``least``, ``redact``).

Heavy readers (YAML, zstandard) are imported by the functions that need them, and the writing modules by their users.
"""
