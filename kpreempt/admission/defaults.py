"""API server defaults for pods, workloads, claims, nodes and namespaces, for both records and plain data.

A record keeps only the part of an object that the scheduler reads; a manifest that is compared with the cluster needs
all fields. For workloads only fields that controllers read are defaulted. Follows ``k8s.io/kubernetes`` v1.36.3
``pkg/apis/{core,apps,batch,resource}/v1/defaults.go`` and the declared defaults of ``zz_generated.defaults.go``. Sums
and rounding are in ``api_defaults``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from operator import is_not
from typing import Any, TypeVar

import msgspec

from kpreempt.model.devices import EXACT_COUNT, ResourceClaim, ResourceClaimTemplate
from kpreempt.model.node import Node
from kpreempt.model.pod import (
    DEFAULT_AZURE_DISK_KIND,
    DEFAULT_GRACE_SECONDS,
    DEFAULT_PROTOCOL,
    DEFAULT_RBD_POOL,
    DEFAULT_RESTART_POLICY,
    DEFAULT_SCHEDULER_NAME,
)
from kpreempt.model.workloads import Namespace

# Computes a field's value from the part that contains it and the given value.
Rule = Callable[[Any, Any], Any]
NAME_LABEL = "kubernetes.io/metadata.name"
_ROLLING = "RollingUpdate"
_INT32 = 2**31 - 1
_Given = TypeVar("_Given")


class Part:
    """The defaulted fields of one part of an object, by their names in the API.

    A part is also the rule of a field that holds such a part, or a list of them.
    """

    def __init__(self, **rules: Rule) -> None:
        self._rules = rules
        self._rules_of: dict[type, dict[str, Rule]] = {}

    def filled(self, part: _Given) -> _Given:
        """Return the part, a mapping or a record, with its defaults; the same object if nothing is missing.

        Values of a wrong type are unchanged: decoding the object reports them.
        """
        is_plain = isinstance(part, dict)
        changes = {}
        for field, rule in (self._rules if is_plain else self.rules_of(type(part))).items():
            given = part.get(field) if is_plain else getattr(part, field)  # type: ignore[attr-defined]
            value = rule(part, given)
            if value is not given:
                changes[field] = value
        if not changes:
            return part
        filled: Any = {**part, **changes} if is_plain else msgspec.structs.replace(part, **changes)  # type: ignore[dict-item, type-var]
        return filled  # type: ignore[no-any-return]

    def rules_of(self, kind: type) -> dict[str, Rule]:
        """Return the rules for the fields of a record type, by their names in the record."""
        rules = self._rules_of.get(kind)
        if rules is None:
            fields = msgspec.structs.fields(kind) if issubclass(kind, msgspec.Struct) else ()
            rules = {each.name: self._rules[each.encode_name] for each in fields if each.encode_name in self._rules}
            self._rules_of[kind] = rules
        return rules

    def __call__(self, _: Any, given: Any) -> Any:
        """Apply ``filled`` to a field's value, or to each element of a list."""
        if not isinstance(given, list):
            return self.filled(given)
        filled = [self.filled(each) for each in given]
        return filled if any(map(is_not, filled, given)) else given


def when_missing(default: Any) -> Rule:
    """Default a field in which zero and an empty string are valid values."""
    return lambda _, given: default if given is None else given


def when_empty(default: Any) -> Rule:
    """Default a field whose type cannot distinguish missing from zero or an empty string."""
    kind = type(default)
    return lambda _, given: default if given is None or (type(given) is kind and not given) else given


def _image_policy(field: str) -> Rule:
    """Default the pull policy: an image without tag and digest is ``latest``, which is always pulled."""
    return lambda part, given: (
        ("Always" if _is_latest(part.get(field)) else "IfNotPresent") if given in (None, "") else given
    )


def _is_latest(image: object) -> bool:
    if not isinstance(image, str):
        return False
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return tag == "latest" or not (tag or digest)


def _with_limits(resources: Any, requests: Any) -> Any:
    """Return the requests, adding limits of resources without a request."""
    limits = resources.get("limits") if isinstance(resources, dict) else resources.limits
    known = requests if isinstance(requests, dict) else {}
    return {**limits, **known} if isinstance(limits, dict) and not limits.keys() <= known.keys() else requests


def _empty_dir(volume: Any, given: Any) -> Any:
    """Default a volume without any source to emptyDir; records do not keep all sources, so they are unchanged."""
    if not isinstance(volume, dict):
        return given
    return given if any(value is not None for key, value in volume.items() if key != "name") else {}


_VOLUME_MODE = when_missing("Filesystem")
CLAIM_SPEC = Part(volumeMode=_VOLUME_MODE)

_HTTP_GET = Part(path=when_empty("/"), scheme=when_empty("HTTP"))
_PROBE = Part(
    timeoutSeconds=when_empty(1),
    periodSeconds=when_empty(10),
    successThreshold=when_empty(1),
    failureThreshold=when_empty(3),
    httpGet=_HTTP_GET,
    grpc=Part(service=when_missing("")),
)
_HOOK = Part(httpGet=_HTTP_GET)
# The source of a variable's or a file's value.
_REFERENCE = Part(
    fieldRef=Part(apiVersion=when_empty("v1")),
    resourceFieldRef=Part(divisor=when_empty("0")),
    fileKeyRef=Part(optional=when_missing(False)),
)
_MODE = when_missing(0o644)

VOLUME = Part(
    emptyDir=_empty_dir,
    azureDisk=Part(
        cachingMode=when_missing("ReadWrite"),
        fsType=when_missing("ext4"),
        readOnly=when_missing(False),
        kind=when_missing(DEFAULT_AZURE_DISK_KIND),
    ),
    iscsi=Part(iscsiInterface=when_empty("default")),
    rbd=Part(pool=when_empty(DEFAULT_RBD_POOL), user=when_empty("admin"), keyring=when_empty("/etc/ceph/keyring")),
    scaleIO=Part(storageMode=when_empty("ThinProvisioned"), fsType=when_empty("xfs")),
    hostPath=Part(type=when_missing("")),
    secret=Part(defaultMode=_MODE),
    configMap=Part(defaultMode=_MODE),
    downwardAPI=Part(defaultMode=_MODE, items=_REFERENCE),
    projected=Part(
        defaultMode=_MODE,
        sources=Part(
            serviceAccountToken=Part(expirationSeconds=when_missing(3600)), downwardAPI=Part(items=_REFERENCE)
        ),
    ),
    image=Part(pullPolicy=_image_policy("reference")),
    ephemeral=Part(volumeClaimTemplate=Part(spec=CLAIM_SPEC)),
)

_SPEC: dict[str, Rule] = {
    "dnsPolicy": when_empty("ClusterFirst"),
    "restartPolicy": when_empty(DEFAULT_RESTART_POLICY),
    "schedulerName": when_empty(DEFAULT_SCHEDULER_NAME),
    "terminationGracePeriodSeconds": when_missing(DEFAULT_GRACE_SECONDS),
    "securityContext": when_missing({}),
    # The API serves both the old and the new name of the field.
    "serviceAccountName": lambda spec, given: given or spec.get("serviceAccount") or given,
    "serviceAccount": lambda spec, given: spec.get("serviceAccountName") or given,
    "volumes": VOLUME,
}
# All of a pod's spec except its containers.
POD_SPEC = Part(**_SPEC)


@cache
def container_defaults(*, is_pod: bool = False, on_host_network: bool = False) -> Part:
    """Return the defaults of a container; ``is_pod`` adds those that a template does not get."""
    host_port: dict[str, Rule] = {}
    if on_host_network:
        host_port["hostPort"] = lambda port, given: (
            given or (port.get("containerPort", given) if isinstance(port, dict) else port.container_port)
        )
    requests: dict[str, Rule] = {"resources": Part(requests=_with_limits)} if is_pod else {}
    return Part(
        imagePullPolicy=_image_policy("image"),
        terminationMessagePath=when_empty("/dev/termination-log"),
        terminationMessagePolicy=when_empty("File"),
        ports=Part(protocol=when_empty(DEFAULT_PROTOCOL), **host_port),
        livenessProbe=_PROBE,
        readinessProbe=_PROBE,
        startupProbe=_PROBE,
        lifecycle=Part(postStart=_HOOK, preStop=_HOOK),
        env=Part(valueFrom=_REFERENCE),
        **requests,
    )


def template_with_defaults(template: dict[str, Any], *, is_pod: bool = False) -> dict[str, Any]:
    """Apply API defaults to a pod template as plain data; ``is_pod`` adds those that only pods get."""
    spec = template.get("spec")
    return _template(is_pod, isinstance(spec, dict) and bool(spec.get("hostNetwork"))).filled(template)


@cache
def _template(is_pod: bool, on_host_network: bool) -> Part:
    # Older API servers gave templates host ports as well.
    container = container_defaults(is_pod=is_pod, on_host_network=on_host_network)
    of_pods: dict[str, Rule] = {"enableServiceLinks": when_missing(True)} if is_pod else {}
    return Part(
        spec=Part(
            **_SPEC,
            containers=container,
            initContainers=container,
            ephemeralContainers=container_defaults(),
            **of_pods,
        )
    )


def _filled_template(_: Any, given: Any) -> Any:
    return template_with_defaults(given) if isinstance(given, dict) else given


def _strategy(kind: str, **amounts: Rule) -> Rule:
    """Defaults of an update strategy, with ``amounts`` for its rolling update."""
    rolling_update = Part(**amounts)

    def rolling(strategy: dict[str, Any], given: Any) -> Any:
        # A StatefulSet that sets only the type does not get this part.
        is_bare = given is None and kind == "StatefulSet" and strategy.get("type")
        if is_bare or (strategy.get("type") or _ROLLING) != _ROLLING:
            return given
        return rolling_update.filled({} if given is None else given)

    return _whole(type=when_empty(_ROLLING), rollingUpdate=rolling)


def _whole(**rules: Rule) -> Rule:
    """A part that is created if missing."""
    part = Part(**rules)
    return lambda _, given: part.filled({} if given is None else given)


# In a CronJob, a Job gets only these; the others are added when it is created.
_OF_JOBS: dict[str, Rule] = {
    "template": _filled_template,
    "podFailurePolicy": Part(rules=Part(onPodConditions=Part(status=when_empty("True")))),
}
_REPLICAS = when_missing(1)
_SPECS: dict[str, dict[str, Rule]] = {
    "Deployment": {
        "template": _filled_template,
        "strategy": _strategy("Deployment", maxUnavailable=when_missing("25%"), maxSurge=when_missing("25%")),
        "revisionHistoryLimit": when_missing(10),
        "replicas": _REPLICAS,
        "progressDeadlineSeconds": when_missing(600),
    },
    "StatefulSet": {
        "template": _filled_template,
        "updateStrategy": _strategy("StatefulSet", partition=when_missing(0)),
        "revisionHistoryLimit": when_missing(10),
        "replicas": _REPLICAS,
        "podManagementPolicy": when_empty("OrderedReady"),
        "persistentVolumeClaimRetentionPolicy": _whole(
            whenDeleted=when_empty("Retain"), whenScaled=when_empty("Retain")
        ),
        "volumeClaimTemplates": Part(spec=CLAIM_SPEC),
    },
    "DaemonSet": {
        "template": _filled_template,
        "updateStrategy": _strategy("DaemonSet", maxUnavailable=when_missing(1), maxSurge=when_missing(0)),
        "revisionHistoryLimit": when_missing(10),
    },
    "ReplicaSet": {"template": _filled_template, "replicas": _REPLICAS},
    "ReplicationController": {"template": _filled_template, "replicas": _REPLICAS},
    "Job": {
        **_OF_JOBS,
        "completions": lambda job, given: 1 if given is None and job.get("parallelism") is None else given,
        "parallelism": when_missing(1),
        "backoffLimit": lambda job, given: (
            (6 if job.get("backoffLimitPerIndex") is None else _INT32) if given is None else given
        ),
        "completionMode": when_missing("NonIndexed"),
        "suspend": when_missing(False),
        "podReplacementPolicy": lambda job, given: (
            ("TerminatingOrFailed" if job.get("podFailurePolicy") is None else "Failed") if given is None else given
        ),
        "manualSelector": when_missing(False),
    },
    "CronJob": {
        "concurrencyPolicy": when_empty("Allow"),
        "suspend": when_missing(False),
        "successfulJobsHistoryLimit": when_missing(3),
        "failedJobsHistoryLimit": when_missing(1),
        "jobTemplate": Part(spec=Part(**_OF_JOBS)),
    },
}


def _limit_default(*sources: str) -> Rule:
    """Default amounts for containers to those of other fields, the first source first."""

    def rule(limit: dict[str, Any], given: Any) -> Any:
        if limit.get("type") != "Container":
            return given
        parts = [limit.get(field) for field in reversed(sources)]
        filled = {name: value for part in (*parts, given) if isinstance(part, dict) for name, value in part.items()}
        return filled if filled != (given or {}) else given

    return rule


_SPECS_OF_OTHERS: dict[str, dict[str, Rule]] = {
    "LimitRange": {
        # A default that follows from the maximum is also the default of the request.
        "limits": Part(default=_limit_default("max"), defaultRequest=_limit_default("default", "max", "min")),
    },
    "PersistentVolumeClaim": {"volumeMode": _VOLUME_MODE},
}
_KINDS = {kind: Part(spec=Part(**rules)) for kind, rules in (_SPECS | _SPECS_OF_OTHERS).items()}


def with_defaults(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of an object with API defaults, for a workload including those of its template."""
    result = deepcopy(dict(document))
    if document.get("kind") == "Pod":
        return template_with_defaults(result, is_pod=True)
    part = _KINDS.get(str(document.get("kind")))
    return result if part is None else part.filled(result)


def _device_count(request: Any, given: Any) -> Any:
    mode = request.get("allocationMode") if isinstance(request, dict) else request.allocation_mode
    return 1 if not given and mode in (None, "", EXACT_COUNT) else given


_DEVICES = Part(allocationMode=when_empty(EXACT_COUNT), count=_device_count)
_DEVICE_CLAIM_SPEC = Part(devices=Part(requests=Part(exactly=_DEVICES, firstAvailable=_DEVICES)))


def _name_label(metadata: Any, given: Any) -> Any:
    name = metadata.name
    return given if not name or given.get(NAME_LABEL) == name else {**given, NAME_LABEL: name}


# Rules of complete records other than pods.
RECORDS: Mapping[type, Part] = {
    Node: Part(status=Part(allocatable=lambda status, given: given or status.capacity or given)),
    Namespace: Part(metadata=Part(labels=_name_label)),
    ResourceClaim: Part(spec=_DEVICE_CLAIM_SPEC),
    ResourceClaimTemplate: Part(spec=Part(spec=_DEVICE_CLAIM_SPEC)),
}
