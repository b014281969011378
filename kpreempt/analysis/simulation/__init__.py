"""Simulating on from what a scheduler and the controllers do until nothing more happens."""

from kpreempt.analysis.simulation.engine import Limits, SimulationStart, simulate

__all__ = ["Limits", "SimulationStart", "simulate"]
