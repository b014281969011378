"""The functions of Kubernetes' CEL, a module for each library; importing this package declares all of them.

Which there are, and in which version, says ``k8s.io/apiserver`` v0.36.3 ``pkg/cel/environment/base.go``.
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
