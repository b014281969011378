"""How a call of an extender fails."""

from __future__ import annotations


class ExtenderError(Exception):
    """A call failed: nobody answers, or the answer makes no sense. The message holds no secret of the settings."""


class ExtenderStatusError(ExtenderError):
    """The extender answered with another HTTP status than 200, which each version says in its own words."""

    def __init__(self, status: int) -> None:
        super().__init__(f"code {status}")
        self.status = status
