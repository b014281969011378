"""Names of resources: which ones are valid in which place.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/helper/helpers.go`` and ``validateResourceName`` in
``pkg/apis/core/validation/validation.go``. Functions that check a name return why it is invalid, or an empty string.
"""

from __future__ import annotations

from kpreempt.admission.validation.values import qualified_name

COUNTED_RESOURCES = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
HUGE_PAGES = "hugepages-"
_REQUESTS = "requests."
_NATIVE_DOMAIN = "kubernetes.io/"
_OF_CONTAINERS = frozenset({"cpu", "memory", "ephemeral-storage"})
_OF_QUOTAS = frozenset(
    {
        *COUNTED_RESOURCES,
        *_OF_CONTAINERS,
        *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _OF_CONTAINERS),
        "requests.storage",
    }
)


def is_native(name: str) -> bool:
    """Whether a resource belongs to Kubernetes."""
    return "/" not in name or _NATIVE_DOMAIN in name


def is_extended(name: str) -> bool:
    """Whether a resource is an extended one, which is counted in integers."""
    return not is_native(name) and not name.startswith(_REQUESTS) and not qualified_name(f"{_REQUESTS}{name}")


def is_overcommitted(name: str) -> bool:
    """Whether requests of a resource may be lower than its limits."""
    return is_native(name) and not name.startswith(HUGE_PAGES)


def is_standard_in_quotas(name: str) -> bool:
    """Whether quotas know a resource without a domain."""
    return name in _OF_QUOTAS or name.removeprefix(_REQUESTS).startswith(HUGE_PAGES)


def resource_name(name: str) -> str:
    """Check the name of any resource: a standard one, or one with a domain."""
    if problem := qualified_name(name):
        return problem
    is_known = "/" in name or name == "storage" or is_standard_in_quotas(name)
    return "" if is_known else "must be a standard resource type or fully qualified"


def container_resource_name(name: str) -> str:
    """Check the name of a resource that a container may request."""
    if problem := resource_name(name):
        return problem
    if "/" not in name:
        is_standard = name in _OF_CONTAINERS or name.startswith(HUGE_PAGES)
        return "" if is_standard else "must be a standard resource for containers"
    return "" if is_native(name) or is_extended(name) else "doesn't follow extended resource name standard"


def quota_resource_name(name: str) -> str:
    """Check the name of a resource in a ResourceQuota."""
    if problem := resource_name(name):
        return problem
    return "" if "/" in name or is_standard_in_quotas(name) else "must be a standard resource for quota"
