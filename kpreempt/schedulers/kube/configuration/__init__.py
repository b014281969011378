"""Reads a KubeSchedulerConfiguration as kube-scheduler 1.36 does: decode strictly, fill in, validate, make profiles."""

from kpreempt.schedulers.kube.configuration.foreign_plugins import FoundPlugin
from kpreempt.schedulers.kube.configuration.loading import scheduler_from_configuration

__all__ = ["FoundPlugin", "scheduler_from_configuration"]
