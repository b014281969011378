"""Load a KubeSchedulerConfiguration as kube-scheduler 1.36 does: decode, set defaults, validate, create profiles."""

from kpreempt.schedulers.kube.configuration.loading import FoundPlugin, scheduler_from_configuration

__all__ = ["FoundPlugin", "scheduler_from_configuration"]
