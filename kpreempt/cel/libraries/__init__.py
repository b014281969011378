"""Kubernetes' CEL functions, a module for each library; importing this package declares all of them.

``k8s.io/apiserver`` v0.36.3 ``pkg/cel/environment/base.go`` lists the functions and their versions.
"""

from kpreempt.cel.libraries import (  # noqa: F401
    conversions,
    formats,
    lists,
    networks,
    operators,
    quantities,
    strings,
    times,
)
