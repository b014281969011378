"""Clusters and manifests from files of every shape, and clusters into files (``write``, ``least``, ``redact``).

Heavy readers (YAML, zstandard) are imported by the functions that need them, and what writes by who writes.
"""
