"""Reads a KubeSchedulerConfiguration as kube-scheduler 1.36 does: decode strictly, fill in, validate, make profiles."""

from kpreempt.schedulers.kube.configuration.loading import FoundPlugin, scheduler_from_configuration

__all__ = ["FoundPlugin", "scheduler_from_configuration"]
