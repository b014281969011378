"""How the pods of a cluster differ from those of the one before it, where whoever changed them knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kpreempt.model.pod import Pod


class PodChanges(NamedTuple):
    """The pods that are other objects now: each as it was and as it is, ``None`` where it was not there, or is not.

    ``rank`` has for the key of every pod that is there its place among all pods: the lower comes first.
    """

    pods: Sequence[tuple[Pod | None, Pod | None]]
    rank: Mapping[str, int]
