"""What is known of a kind of object: it was read, the input has none, or it could not be read.

A live cluster and kpreempt's own snapshots say which kinds were read, so that an empty list is a fact. A dump of
kubectl's doesn't: a kind it has no object of was not dumped, or there is none. ``ClusterSnapshot.unread`` has every
kind that is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from kpreempt.model.cluster import ClusterSnapshot

FORBIDDEN = 403
# The status of a kind that no request was made for.
ABSENT = 0


class KindState(Enum):
    """``READ``: the lists are all there is. ``ABSENT``: the input has none. ``UNREADABLE``: reading was refused."""

    READ = "read"
    ABSENT = "absent"
    UNREADABLE = "unreadable"


class Unread(msgspec.Struct, frozen=True):
    """Why a kind was not read: the HTTP ``status`` of the refusal, 403 where a right is missing, 0 if it is absent.

    ``resource`` is what would have been listed, with its group, as ``kubectl auth can-i list`` takes it:
    ``poddisruptionbudgets.policy``.
    """

    status: int = FORBIDDEN
    resource: str = ""

    @property
    def state(self) -> KindState:
        """``ABSENT`` or ``UNREADABLE``."""
        return KindState.ABSENT if self.status == ABSENT else KindState.UNREADABLE


def state_of(cluster: ClusterSnapshot, kind: str) -> KindState:
    """What is known of the objects of a kind of which a snapshot has records or documents."""
    unread = cluster.unread.get(kind)
    return KindState.READ if unread is None else unread.state


# What ``kubectl api-resources`` lists as short names, of kinds that decide about pods.
SHORT_NAMES: Mapping[str, str] = {
    "Node": "no",
    "Pod": "po",
    "PodDisruptionBudget": "pdb",
    "PriorityClass": "pc",
    "Namespace": "ns",
    "PersistentVolumeClaim": "pvc",
    "PersistentVolume": "pv",
    "StorageClass": "sc",
    "LimitRange": "limits",
    "ResourceQuota": "quota",
    "Service": "svc",
    "ReplicationController": "rc",
    "ReplicaSet": "rs",
    "StatefulSet": "sts",
    "Deployment": "deploy",
    "DaemonSet": "ds",
    "Event": "ev",
    "CronJob": "cj",
    "HorizontalPodAutoscaler": "hpa",
}
