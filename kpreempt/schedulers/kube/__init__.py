"""Today's kube-scheduler, version 1.36."""

from kpreempt.schedulers.kube.configuration import scheduler_from_configuration
from kpreempt.schedulers.kube.framework.features import FeatureGates, feature_gates, parse_feature_gates
from kpreempt.schedulers.kube.scheduler import ALGORITHM, KubeScheduler, Prepared

__all__ = [
    "ALGORITHM",
    "FeatureGates",
    "KubeScheduler",
    "Prepared",
    "feature_gates",
    "parse_feature_gates",
    "scheduler_from_configuration",
]
