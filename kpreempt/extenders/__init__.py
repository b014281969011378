"""Calls of HTTP extenders over the network: the only room but ``snapshot`` and ``cli`` that has effects."""

from kpreempt.extenders.transport import connect

__all__ = ["connect"]
