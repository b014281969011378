"""The controllers of the workloads that a change is about, each with what it remembers during a play."""

from kpreempt.analysis.play.actors.daemon_set import DaemonSetActor
from kpreempt.analysis.play.actors.deletion import DeletionActor
from kpreempt.analysis.play.actors.deployment import DeploymentActor, PlayedReplicaSet
from kpreempt.analysis.play.actors.job import JobActor
from kpreempt.analysis.play.actors.replica_set import ReplicaSetActor
from kpreempt.analysis.play.actors.stateful_set import StatefulSetActor

__all__ = [
    "DaemonSetActor",
    "DeletionActor",
    "DeploymentActor",
    "JobActor",
    "PlayedReplicaSet",
    "ReplicaSetActor",
    "StatefulSetActor",
]
