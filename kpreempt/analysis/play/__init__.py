"""Playing on from a scheduler's decision until nothing more happens."""

from kpreempt.analysis.play.engine import Limits, play

__all__ = ["Limits", "play"]
