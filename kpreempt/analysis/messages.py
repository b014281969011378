"""What the scheduler's message about a pod says, without the numbers of nodes."""

from __future__ import annotations

import re

from kpreempt.verdict import Agreement

_NODES = re.compile(r"^\d+/\d+ nodes are available: ")
_COUNTED = re.compile(r"(?:^|, )\d+ ")
# As 1.8 says it, with the number behind the reason.
_PREDICATES = "No nodes are available that match all of the predicates: "
_COUNTED_BEHIND = re.compile(r" \(\d+\)(?:, |\.$|$)")
_PREEMPTION = " preemption: "
# What plugin DynamicResources says where it has nothing to do, between the reasons and what preemption says.
_NOTHING_TO_DEALLOCATE = " no new claims to deallocate,"


def causes_in(message: str) -> tuple[list[str], list[str]]:
    """The reasons of nodes, and what is said about preemption, each without counts and in a fixed order."""
    head, _, preemption = message.partition(_PREEMPTION)
    return _reasons(head.removesuffix(_NOTHING_TO_DEALLOCATE)), _reasons(preemption)


def cause_of(message: str) -> str:
    """The reasons of nodes in one line; those of a message of another shape are the message itself."""
    reasons, _ = causes_in(message)
    return ", ".join(reasons)


def compare_messages(theirs: str, ours: str) -> Agreement:
    """How the scheduler's message compares with the expected one."""
    if not theirs or not ours:
        return Agreement.NONE
    if theirs == ours:
        return Agreement.SAME
    return Agreement.COUNTS if causes_in(theirs) == causes_in(ours) else Agreement.DIFFERENT


def _reasons(text: str) -> list[str]:
    if text.startswith(_PREDICATES):
        return sorted(reason for reason in _COUNTED_BEHIND.split(text.removeprefix(_PREDICATES)) if reason)
    counted = _NODES.match(text)
    if counted is None:
        return [text.strip()] if text.strip() else []
    rest = text[counted.end() :].strip().rstrip(".")
    # A reason may hold commas; the next one starts with its number.
    return sorted(reason for reason in _COUNTED.split(rest) if reason)
