"""The scheduling framework: statuses, cycle state, nodes with their pods, extension points, and the plugin runner.

Follows ``k8s.io/kube-scheduler`` v0.36.3 ``framework/`` and ``k8s.io/kubernetes`` v1.36.3 ``pkg/scheduler/framework/``.
"""
