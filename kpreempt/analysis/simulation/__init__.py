"""Playing on from what a scheduler and the controllers do until nothing more happens."""

from kpreempt.analysis.simulation.engine import Limits, Scene, play, play_to_the_end

__all__ = ["Limits", "Scene", "play", "play_to_the_end"]
