"""The controllers of the workloads that a change is about, each with what it remembers during a simulation."""

from kpreempt.analysis.simulation.controllers.daemon_set import DaemonSetActor
from kpreempt.analysis.simulation.controllers.deletion import DeletionActor
from kpreempt.analysis.simulation.controllers.deployment import DeploymentActor, SimulatedReplicaSet
from kpreempt.analysis.simulation.controllers.job import JobActor
from kpreempt.analysis.simulation.controllers.replica_set import ReplicaSetActor
from kpreempt.analysis.simulation.controllers.stateful_set import StatefulSetActor

__all__ = [
    "DaemonSetActor",
    "DeletionActor",
    "DeploymentActor",
    "JobActor",
    "ReplicaSetActor",
    "SimulatedReplicaSet",
    "StatefulSetActor",
]
