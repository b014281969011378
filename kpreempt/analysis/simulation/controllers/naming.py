"""The pods that controllers make of a template, named as the API server would name them, but by number."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import msgspec

from kpreempt.model.pod import Pod

_LONGEST_STEM = 58


class Maker:
    """Makes pods that are like a prototype. ``stem`` begins their names."""

    def __init__(self, prototype: Pod, stem: str) -> None:
        self._prototype = prototype
        self._stem = stem[:_LONGEST_STEM]
        self._numbers = itertools.count(1)

    @property
    def prototype(self) -> Pod:
        """What the pods are like."""
        return self._prototype

    def make(self, *, name: str = "", labels: Mapping[str, str] | None = None) -> Pod:
        """The next pod, under a ``name`` of its own where it has one to bear."""
        number = next(self._numbers)
        name = name or f"{self._stem}-{number}"
        old = self._prototype.metadata
        labels = {**old.labels, **(labels or {})}
        # Where the name is that of a pod before, the number tells them apart.
        metadata = msgspec.structs.replace(old, name=name, uid=f"{name}.{number}", labels=labels)
        return msgspec.structs.replace(self._prototype, metadata=metadata)
