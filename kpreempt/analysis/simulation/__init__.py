"""Simulating on from what a scheduler and the controllers do until nothing more happens."""
