"""Validate objects as the API server does, on creation and on update.

Documents are decoded: values have the types of the API, and nothing is ``null``. They have the API's defaults. The
rules are those of the ``Validate…`` functions and registry strategies in ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis`` and
``pkg/registry``; differences between versions are in the functions that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from kpreempt.admission.validation.problems import Document, Problem, Problems, Server
from kpreempt.model.documents import group_of

__all__ = ["KINDS", "Problem", "Server", "Validator", "problems_of"]

# ``old`` is the object in the cluster, or ``None`` for a new one.
Validator = Callable[[Document, Document | None, Server], Problems]

# The module of this package with the validator of each kind, by group and kind. It is in the module's ``VALIDATORS``.
KINDS: Mapping[tuple[str, str], str] = {
    ("", "LimitRange"): "limits",
    ("", "Namespace"): "namespaces",
    ("", "PersistentVolumeClaim"): "claims",
    ("", "Pod"): "pods",
    ("", "ReplicationController"): "workloads",
    ("", "ResourceQuota"): "limits",
    ("", "Service"): "services",
    ("apps", "DaemonSet"): "workloads",
    ("apps", "Deployment"): "workloads",
    ("apps", "ReplicaSet"): "workloads",
    ("apps", "StatefulSet"): "workloads",
    ("autoscaling", "HorizontalPodAutoscaler"): "autoscalers",
    ("batch", "CronJob"): "jobs",
    ("batch", "Job"): "jobs",
    ("policy", "PodDisruptionBudget"): "budgets",
    ("scheduling.k8s.io", "PriorityClass"): "priority_classes",
    ("storage.k8s.io", "StorageClass"): "storage_classes",
}


def problems_of(document: Document, old: Document | None, server: Server) -> Problems:
    """Yield why the API server rejects a new object, or its update from ``old``.

    Kinds without a module are checked by ``other_kinds``, as far as their schema allows.
    """
    kind = str(document.get("kind"))
    group = group_of(document)
    name = KINDS.get((group, kind))
    if name is None:
        from kpreempt.admission.validation.other_kinds import check_other_kind  # noqa: PLC0415 - few kinds need it

        yield from check_other_kind(document, old, server)
        return
    validators: Mapping[str, Validator] = import_module(f"{__name__}.{name}").VALIDATORS
    yield from validators[kind](document, old, server)
