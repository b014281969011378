"""What there is to hold against the rules: every subject with its amount, and which changes have which part in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

import msgspec

from kpreempt.gate_rules import RuleId

CLUSTER = "cluster"
_FINGERPRINT_LENGTH = 32


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one change brings about; ``change`` is empty where none does. ``places`` are those of its pods in all."""

    change: str = ""
    amount: int = 0
    pods: list[str] = []
    places: list[int] = []


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A subject under a rule.

    ``group`` is the override that sets the limit, -1 for none. ``is_broken`` where it is too much whatever the
    limit is. ``aspect`` tells apart what is of one subject.
    """

    rule: RuleId
    subject: str
    parts: list[Part]
    group: int = -1
    is_broken: bool = False
    aspect: str = ""
    chain: list[str] = []
    since: float = 0.0
    detail: str = ""

    @property
    def amount(self) -> int:
        """All in all."""
        return sum(part.amount for part in self.parts)

    @property
    def pods(self) -> list[str]:
        """Those of all changes, in the order in which they were counted."""
        placed = [(place, pod) for part in self.parts for place, pod in zip(part.places, part.pods, strict=False)]
        return [pod for _, pod in sorted(placed)] or [pod for part in self.parts for pod in part.pods]

    @property
    def changes(self) -> list[str]:
        """The changes that bring it about, by name; an empty one stands for none."""
        return sorted({part.change for part in self.parts})

    @property
    def fingerprint(self) -> str:
        """The same from run to run for the same rule, subject and changes; no pod's name is in it."""
        return self._digest(self.changes)

    def part_fingerprint(self, part: Part) -> str:
        """The same for what one of the changes brings about."""
        return self._digest([part.change])

    def _digest(self, changes: list[str]) -> str:
        text = "\0".join([self.rule, self.subject, self.aspect, *changes])
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_FINGERPRINT_LENGTH]


class Tally:
    """Pods by the change that brings it about, in the order in which they are counted."""

    def __init__(self) -> None:
        self._pods: list[tuple[str, str]] = []
        self._unnamed = 0

    def add(self, change: str, pod: str) -> None:
        """Count a pod; one that is counted twice counts twice."""
        self._pods.append((change, pod))

    def add_unnamed(self, amount: int) -> None:
        """Count so many of which neither the pods nor a change are known."""
        self._unnamed += amount

    @property
    def amount(self) -> int:
        """How many were counted."""
        return len(self._pods) + self._unnamed

    def parts(self) -> list[Part]:
        """What each change brings about, by name."""
        found: dict[str, list[int]] = {"": []} if self._unnamed else {}
        for place, (change, _) in enumerate(self._pods):
            found.setdefault(change, []).append(place)
        return [
            Part(
                change=change,
                amount=len(places) + (0 if change else self._unnamed),
                pods=[self._pods[place][1] for place in places],
                places=places,
            )
            for change, places in sorted(found.items())
        ]


def tallied(entries: Iterable[tuple[str, str, str]]) -> Mapping[str, Tally]:
    """Pods by subject, from subject, change and pod."""
    found: dict[str, Tally] = {}
    for subject, change, pod in entries:
        found.setdefault(subject, Tally()).add(change, pod)
    return found
