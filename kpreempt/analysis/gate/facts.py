"""What the rules look at beside the play."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kpreempt.verdict import Assumption


class PodFacts(msgspec.Struct, frozen=True):
    """What a pod is known by."""

    labels: Mapping[str, str] = {}
    priority_class: str = ""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's part in the question.

    ``pods`` are those of the cluster and of the change, by key (``shop/api-0``); what takes the place of one is known
    as that one. ``workloads`` says what belongs to what in the end: ``Deployment shop/api`` by
    ``ReplicaSet shop/api-7f9c``, ``CronJob shop/backup`` by its Job; what it does not name belongs to itself.
    ``assumptions`` are those of the input and of the play. ``snapshot_age`` is in seconds, ``None`` where nothing says
    when the snapshot was taken; of a live cluster (``is_live``) it does not matter.
    """

    pods: Mapping[str, PodFacts] = {}
    workloads: Mapping[str, str] = {}
    assumptions: Sequence[Assumption] = ()
    snapshot_age: float | None = None
    is_live: bool = False
