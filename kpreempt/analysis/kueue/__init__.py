"""Explains what Kueue decides in a cluster."""
