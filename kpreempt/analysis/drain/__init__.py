"""Simulates node drains with kubectl, and finds remedies for evictions that are blocked."""
