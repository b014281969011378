"""The plugins of Kubernetes 1.25 that Volcano calls, where they differ from those of 1.36.

Follows ``pkg/scheduler/framework/plugins`` of ``k8s.io/kubernetes`` v1.25.0, with its feature gates as they are
are by default: those that it has off, or does not have, are off in ``kube_view.FEATURES``. There ``minDomains`` does
not count, and neither do the node policies and label keys of spread constraints, nor sidecars.
"""
