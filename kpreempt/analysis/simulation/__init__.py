"""Simulating on from what a scheduler and the controllers do until nothing more happens."""

from kpreempt.analysis.simulation.engine import Limits, SimulationStart, simulate, simulated_to_the_end

__all__ = ["Limits", "SimulationStart", "simulate", "simulated_to_the_end"]
