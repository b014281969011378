"""Playing on from what a scheduler and the controllers do until nothing more happens."""

from kpreempt.analysis.play.engine import Limits, Scene, play, play_to_the_end

__all__ = ["Limits", "Scene", "play", "play_to_the_end"]
