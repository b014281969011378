"""Drains: nodes that are to get empty, kubectl that works on them, and what would help where it cannot."""
