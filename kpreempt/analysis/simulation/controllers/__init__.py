"""The controllers of the workloads that a change is about, each with what it remembers during a simulation."""

from kpreempt.analysis.simulation.controllers.daemon_set import DaemonSetController
from kpreempt.analysis.simulation.controllers.deletion import DeletionController
from kpreempt.analysis.simulation.controllers.deployment import DeploymentController, SimulatedReplicaSet
from kpreempt.analysis.simulation.controllers.job import JobController
from kpreempt.analysis.simulation.controllers.replica_set import ReplicaSetController
from kpreempt.analysis.simulation.controllers.stateful_set import StatefulSetController

__all__ = [
    "DaemonSetController",
    "DeletionController",
    "DeploymentController",
    "JobController",
    "ReplicaSetController",
    "SimulatedReplicaSet",
    "StatefulSetController",
]
