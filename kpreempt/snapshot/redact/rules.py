"""The rules for the fields of records: which kind of name each field holds.

A field that is not listed here is replaced by a token of a separate space, so that nothing leaks; a test compares the
list with the records.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from kpreempt.model import (
    affinity,
    devices,
    event,
    kueue,
    labels,
    meta,
    node,
    pod,
    policy,
    storage,
    taints,
    volcano,
    workloads,
)
from kpreempt.model.cluster import REDACTED_AT
from kpreempt.model.creation_failures import parse_failure
from kpreempt.model.event import CreationStep
from kpreempt.model.terminations import with_names
from kpreempt.snapshot.minimize import MIGRATED_PLUGINS
from kpreempt.snapshot.redact import device_rules, kueue_rules, spaces, times, well_known
from kpreempt.snapshot.redact.autoscaler_rules import (
    NODE_CLAIM,
    autoscaler_text,
    component,
    config_map_name,
    status_data,
)
from kpreempt.snapshot.redact.spaces import WORDS, Renamer, Rule, each_item, joined, keyed, name_rule, nothing
from kpreempt.snapshot.redact.tokens import Space


def remembered(rule: Rule) -> Rule:
    """Return a rule that caches its results, for parts that many objects share."""

    def apply(renamer: Renamer, value: Any) -> Any:
        known = renamer.memo.get(id(value))
        if known is None:
            # Keep a reference to the part, so that no other object can get its address.
            known = renamer.memo[id(value)] = (value, rule(renamer, value))
        return known[1]

    return apply


_label_key = name_rule(spaces.LABEL_KEY)
_namespace = name_rule(spaces.NAMESPACE)
_storage_class_space = Space("storageclass")
_storage_class = name_rule(_storage_class_space)
_volume_space = Space("pv")
_volume = name_rule(_volume_space)
_node = name_rule(spaces.NODE)
_driver = name_rule(spaces.DRIVER)
_handle = each_item(Renamer.handle)
_uid = name_rule(spaces.UID)
_disk = name_rule(Space("disk", is_sorted=False))
_resource_claim_space = Space("resourceclaim")
_resource_claim = name_rule(_resource_claim_space)
_claim_template_space = Space("claimtemplate")
_pod_claim = name_rule(Space("podclaim"))
_container_space = Space("container", is_sorted=False)
_container = name_rule(_container_space)
_runtime_class_space = Space("runtimeclass")
_pod_group_space = Space("podgroup")
_pod_group = name_rule(_pod_group_space)
_queue = name_rule(spaces.QUEUE)
_task = name_rule(Space("task"))
_branch = name_rule(Space("branch", "root".__eq__))
_attributes_class = name_rule(Space("attributesclass", is_sorted=False))

# The spaces of object names, by kind.
_NAMES: dict[str, Space] = {
    "Pod": spaces.POD,
    "Node": spaces.NODE,
    "CSINode": spaces.NODE,
    "Namespace": spaces.NAMESPACE,
    "PriorityClass": spaces.PRIORITY_CLASS,
    "CSIDriver": spaces.DRIVER,
    "PersistentVolume": _volume_space,
    "StorageClass": _storage_class_space,
    "RuntimeClass": _runtime_class_space,
    "DeviceClass": spaces.DEVICE_CLASS,
    "ResourceClaim": _resource_claim_space,
    "ResourceClaimTemplate": _claim_template_space,
    "PodDisruptionBudget": Space("budget"),
    "PodGroup": _pod_group_space,
    "Queue": spaces.QUEUE,
    "NodePool": spaces.NODE_POOL,
    "NodeClaim": NODE_CLAIM,
    "ConfigMap": Space("configmap", config_map_name),
    **kueue_rules.NAMES,
}


def object_name(renamer: Renamer, kind: str, name: str) -> str:
    """Replace the name of an object of a kind, in the renamer's namespace."""
    if kind == "PersistentVolumeClaim":
        return renamer.claim(name)
    stem = kind.lower() if kind in well_known.KINDS else "owner"
    return renamer.rename(_NAMES.get(kind) or Space(stem), name)


def owner(renamer: Renamer, reference: meta.OwnerReference) -> meta.OwnerReference:
    """Replace a reference to an owner; the scheduler knows some kinds of owners, in their groups."""
    return meta.OwnerReference(
        kind=renamer.rename(spaces.KIND, reference.kind),
        name=object_name(renamer, reference.kind, reference.name),
        uid=_uid(renamer, reference.uid),
        api_version=renamer.rename(spaces.API_VERSION, reference.api_version),
        controller=reference.controller,
    )


def _requirement(renamer: Renamer, requirement: Any) -> Any:
    """Replace an expression over labels."""
    key = requirement.key
    values = [renamer.label_value(key, value) for value in requirement.values]
    return msgspec.structs.replace(requirement, key=renamer.rename(spaces.LABEL_KEY, key), values=values)


def _pool_requirement(renamer: Renamer, requirement: node.NodePoolRequirement) -> Any:
    """Replace an expression whose operator may be any text."""
    operator = renamer.word(requirement.operator) if requirement.operator else ""
    return msgspec.structs.replace(_requirement(renamer, requirement), operator=operator)


def _fields(renamer: Renamer, requirements: list[labels.NodeSelectorRequirement]) -> Any:
    """Replace expressions over the fields of a node; only its name is supported."""
    return [
        msgspec.structs.replace(
            each, key=renamer.rename(spaces.LABEL_KEY, each.key), values=_node(renamer, each.values)
        )
        for each in requirements
    ]


def _taint(renamer: Renamer, taint: Any) -> Any:
    """Replace a taint or a toleration."""
    key, value = taint.key, taint.value
    key = renamer.rename(spaces.LABEL_KEY, key) if key else key
    return msgspec.structs.replace(taint, key=key, value=renamer.taint_value(taint.key, value) if value else value)


def _device_taint(renamer: Renamer, taint: Any) -> Any:
    """Replace a taint or a toleration whose effect and operator may be any text."""
    words = {name: renamer.word(text) for name in ("effect", "operator") if (text := getattr(taint, name, ""))}
    return msgspec.structs.replace(_taint(renamer, taint), **words)


def _reference(renamer: Renamer, reference: Any) -> Any:
    """Replace the claim that a volume belongs to, or the object that an event is about, which has a kind."""
    renamer.namespace = reference.namespace
    kind = getattr(reference, "kind", "PersistentVolumeClaim")
    kind_field = {"kind": renamer.rename(spaces.KIND, kind)} if getattr(reference, "kind", "") else {}
    return msgspec.structs.replace(
        reference,
        **kind_field,
        namespace=_namespace(renamer, reference.namespace),
        name=object_name(renamer, kind, reference.name) if reference.name else "",
        uid=_uid(renamer, reference.uid),
    )


def _event_text(renamer: Renamer, text: str) -> str:
    """Keep the scheduler's message to a victim, why a pod ended or could not be created, and reports of autoscalers.

    Any other text is removed.
    """
    match = _PREEMPTED.fullmatch(text)
    if match:
        return f"Preempted by pod {_uid(renamer, match[1])} on node {_node(renamer, match[2])}"
    return _end_text(renamer, text) or failure_text(renamer, text) or autoscaler_text(renamer, text)


def _end_text(renamer: Renamer, text: str) -> str:
    """Keep a known text about the end of a pod, with its names replaced; remove any other text."""
    rules: dict[str, Callable[[str], str]] = {
        "container": lambda name: renamer.rename(_container_space, name),
        "pod": lambda name: renamer.rename(spaces.POD, name),
        "namespace": lambda name: renamer.rename(spaces.NAMESPACE, name),
        "node": lambda name: renamer.rename(spaces.NODE, name),
        "resource": renamer.resource,
        "volume": lambda name: renamer.rename(spaces.VOLUME, name),
        "set": lambda name: object_name(renamer, "StatefulSet", name),
    }
    return with_names(text, lambda kind, name: rules[kind](name))


def _condition(renamer: Renamer, condition: workloads.WorkloadCondition) -> workloads.WorkloadCondition:
    return msgspec.structs.replace(
        condition,
        type=renamer.word(condition.type),
        status=renamer.word(condition.status),
        reason=renamer.word(condition.reason) if condition.reason else "",
        message=failure_text(renamer, condition.message),
        last_transition_time=condition.last_transition_time and renamer.time(condition.last_transition_time),
    )


def failure_text(renamer: Renamer, text: str) -> str:
    """Rewrite why an object could not be created with new names; empty for a text without a known form.

    Details that may be anything are removed: what a webhook or a policy says, and which containers violate a standard.
    """
    failure = parse_failure(text)
    pod = f"create Pod {renamer.rename(spaces.POD, failure.pod)} in StatefulSet x failed error: " if failure.pod else ""
    kind = _SUBJECTS.get(failure.step, "")
    name = object_name(renamer, kind, failure.name) if kind and failure.name else failure.name
    match failure.step:
        case CreationStep.SERVICE_ACCOUNT if name:
            namespace = _namespace(renamer, renamer.namespace)
            words = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        case CreationStep.POD_SECURITY:
            words = f'violates PodSecurity "{name}"'
        case CreationStep.SECURITY_CONTEXT:
            words = "unable to validate against any security context constraint"
        case CreationStep.QUOTA if failure.brief.startswith("exceeded") and name:
            words = f"exceeded quota: {name}, {_amounts(renamer, failure.brief.partition(', ')[2])}"
        case CreationStep.QUOTA if name:
            words = f"failed quota: {name}: the limits that the pods lack are redacted"
        case CreationStep.LIMIT_RANGE:
            words = ", ".join(
                f"{each[1]} {renamer.resource(each[2])} usage per {each[3]}{each[4]}"
                for each in _USAGE.finditer(failure.brief)
            )
        case CreationStep.PRIORITY_CLASS:
            words = f"no PriorityClass with name {name} was found"
        case CreationStep.RUNTIME_CLASS if name:
            words = f'pod rejected: RuntimeClass "{name}" not found'
        case CreationStep.WEBHOOK_CALL:
            words = f'failed calling webhook "{name}"'
        case CreationStep.WEBHOOK:
            words = f'admission webhook "{name}" denied the request'
        case CreationStep.POLICY:
            words = f"ValidatingAdmissionPolicy '{name}' with binding x denied request"
        case CreationStep.NAMESPACE:
            words = f"unable to create new content in namespace {name} because it is being terminated"
        case _:
            words = ""
    return f"{pod}{words}" if words else ""


def _amounts(renamer: Renamer, text: str) -> str:
    """Rewrite ``requested: pods=1,cpu=2, used: ...``: the resources of a quota."""
    return _AMOUNT.sub(lambda match: f"{renamer.resource(match[1])}={match[2]}", text)


def _annotations(renamer: Renamer, annotations: dict[str, str]) -> dict[str, str]:
    """Replace the annotations that are read; dumps have no others."""
    return {key: _ANNOTATIONS.get(key, _flag)(renamer, value) for key, value in annotations.items()}


def _shaped(shape: str) -> Rule:
    """Return the rule for a text that is kept if it has the shape, which reveals nothing."""
    is_shaped = re.compile(shape).fullmatch
    return lambda renamer, value: value if is_shaped(value) else renamer.rename(spaces.TEXT, value)


def _images(renamer: Renamer, images: list[node.ContainerImage]) -> list[node.ContainerImage]:
    return [
        msgspec.structs.replace(image, names=list(map(renamer.image, image.names)))
        for image in renamer.rounded_images(images)
    ]


def _disrupted(renamer: Renamer, pods: dict[str, str]) -> dict[str, str]:
    return {renamer.rename(spaces.POD, name): renamer.written_time(time) for name, time in pods.items()}


# The message of an event about a victim (framework/preemption/executor.go).
_PREEMPTED = re.compile(r"Preempted by pod (\S+) on node (\S+)")

_AMOUNT = re.compile(r"([\w./-]+)=([\w.]+)")
_USAGE = re.compile(
    r"(minimum|maximum) (\S+) usage per (Container|Pod|PersistentVolumeClaim)"
    r"( is [\w.]+(?:, but (?:request|limit) is [\w.]+|\.  No (?:request|limit) is specified))"
)
# The kinds of the objects that failures name; the name of a level of Pod Security is public.
_SUBJECTS = {
    CreationStep.SERVICE_ACCOUNT: "ServiceAccount",
    CreationStep.QUOTA: "ResourceQuota",
    CreationStep.PRIORITY_CLASS: "PriorityClass",
    CreationStep.RUNTIME_CLASS: "RuntimeClass",
    CreationStep.WEBHOOK_CALL: "ValidatingWebhookConfiguration",
    CreationStep.WEBHOOK: "ValidatingWebhookConfiguration",
    CreationStep.POLICY: "ValidatingAdmissionPolicy",
    CreationStep.NAMESPACE: "Namespace",
}

_boolean = _shaped("|".join(sorted(spaces.GO_BOOLEANS)))
_number = _shaped(r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")
_count = _shaped(r"[-+]?[0-9]+%?")
_duration = _shaped(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?(?:ns|us|ms|s|m|h))+")
_flag = _shaped("true|false|yes")
_any_zone = _shaped(r"\*")

_ANNOTATIONS: dict[str, Rule] = {
    storage.BETA_STORAGE_CLASS_ANNOTATION: _storage_class,
    storage.SELECTED_NODE_ANNOTATION: _node,
    MIGRATED_PLUGINS: joined(",", _driver),
    volcano.QUEUE_NAME: _queue,
    kueue.PRIORITY_BOOST: _number,
    volcano.PREEMPTABLE: _boolean,
    volcano.OFFLINE_JOB_EVICTING: _boolean,
    volcano.OVERSUBSCRIPTION_CPU: _number,
    volcano.OVERSUBSCRIPTION_MEMORY: _number,
    volcano.REVOCABLE_ZONE: _any_zone,
    volcano.JDB_MIN_AVAILABLE: _count,
    volcano.JDB_MAX_UNAVAILABLE: _count,
    volcano.SLA_WAITING_TIME: _duration,
    volcano.OLD_SLA_WAITING_TIME: _duration,
    node.STATUS_ANNOTATION: nothing,
    volcano.HIERARCHY: joined("/", _branch),
    volcano.HIERARCHY_WEIGHTS: joined("/", _number),
}

# Records that need more than a rule per field.
RECORDS: dict[type[msgspec.Struct], Rule] = {
    meta.OwnerReference: owner,
    labels.LabelSelectorRequirement: _requirement,
    labels.NodeSelectorRequirement: _requirement,
    storage.TopologySelectorLabelRequirement: _requirement,
    node.NodePoolRequirement: _pool_requirement,
    storage.ObjectReference: _reference,
    event.ObjectReference: _reference,
    workloads.WorkloadCondition: _condition,
    taints.Taint: _taint,
    taints.Toleration: _taint,
    devices.DeviceTaint: _device_taint,
    devices.DeviceToleration: _device_taint,
    **device_rules.RECORDS,
    **kueue_rules.RECORDS,
}

LABELS: Rule = remembered(Renamer.labels)

FIELDS: dict[type[msgspec.Struct], dict[str, Rule]] = {
    meta.ObjectMeta: {
        "name": lambda _, name: name,
        "namespace": _namespace,
        "uid": _uid,
        "resource_version": nothing,
        "labels": LABELS,
        "finalizers": name_rule(spaces.FINALIZER),
        "creation_timestamp": times.nothing,
        "deletion_timestamp": lambda _, __: REDACTED_AT,
    },
    pod.PodMeta: {"deletion_timestamp": Renamer.time},
    meta.AnnotatedMeta: {"annotations": _annotations},
    labels.LabelSelector: {"match_labels": LABELS},
    affinity.NodeSelectorTerm: {"match_fields": _fields},
    affinity.PodAffinityTerm: {
        "topology_key": _label_key,
        "namespaces": _namespace,
        "match_label_keys": _label_key,
        "mismatch_label_keys": _label_key,
    },
    node.NodeCondition: {"type": WORDS, "status": WORDS, "reason": WORDS, "message": nothing},
    node.NodeSystemInfo: {"kubelet_version": lambda _, text: spaces.public_version(text)},
    node.NodeStatus: {"images": _images, "declared_features": name_rule(spaces.FEATURE)},
    pod.ResourceClaimUse: {"name": _pod_claim, "request": name_rule(Space("request"))},
    pod.ContainerPort: {"host_ip": each_item(Renamer.address), "protocol": WORDS},
    pod.ContainerRestartRule: {"action": WORDS},
    pod.Container: {"name": _container, "image": each_item(Renamer.image), "restart_policy": WORDS},
    pod.PersistentVolumeClaimVolume: {"claim_name": each_item(Renamer.claim)},
    pod.GCEPersistentDisk: {"pd_name": _handle},
    pod.AWSElasticBlockStore: {"volume_id": _handle},
    pod.ISCSIVolume: {"iqn": _disk},
    pod.RBDVolume: {
        "monitors": name_rule(Space("monitor", is_sorted=False)),
        "image": _disk,
        "pool": name_rule(spaces.POOL),
    },
    pod.AzureDisk: {"disk_name": _disk, "disk_uri": _handle, "kind": WORDS},
    pod.CinderVolume: {"volume_id": _handle},
    pod.VsphereVolume: {"volume_path": _handle},
    pod.PortworxVolume: {"volume_id": _handle},
    pod.ClaimTemplateSpec: {
        "storage_class_name": _storage_class,
        "access_modes": WORDS,
        "volume_mode": WORDS,
        "volume_attributes_class_name": _attributes_class,
    },
    pod.CSIVolume: {"driver": _driver},
    pod.ImageVolume: {"reference": each_item(Renamer.image)},
    pod.EmptyDirVolume: {"medium": WORDS},
    pod.Volume: {"name": name_rule(spaces.VOLUME)},
    pod.PodAnnotations: {
        "nominated_node_name": _node,
        "group_name": _pod_group,
        "queue_name": _queue,
        "task_spec": _task,
        "task_priority": _count,
        "preemptable": _boolean,
        "revocable_zone": _any_zone,
        "template_uid": name_rule(Space("template")),
        "numa_policy": WORDS,
        "deletion_cost": _count,
        "config_mirror": nothing,
        "safe_to_evict": _boolean,
        "safe_local_volumes": joined(",", name_rule(spaces.VOLUME)),
        "do_not_disrupt": WORDS,
    },
    pod.PodSchedulingGate: {"name": name_rule(spaces.GATE)},
    pod.TopologySpreadConstraint: {"topology_key": _label_key, "match_label_keys": _label_key},
    pod.PodResourceClaim: {
        "name": _pod_claim,
        "resource_claim_name": _resource_claim,
        "resource_claim_template_name": name_rule(_claim_template_space),
    },
    pod.PodSchedulingGroup: {"pod_group_name": _pod_group},
    pod.PodWorkloadReference: {"name": name_rule(Space("workload")), "pod_group": _pod_group},
    pod.PodSpec: {
        "node_name": _node,
        "priority_class_name": name_rule(spaces.PRIORITY_CLASS),
        "scheduler_name": name_rule(spaces.SCHEDULER),
        "node_selector": LABELS,
        "runtime_class_name": name_rule(_runtime_class_space),
        "restart_policy": WORDS,
    },
    pod.PodCondition: {"type": WORDS, "status": WORDS, "reason": WORDS, "message": _end_text},
    pod.ContainerStateWaiting: {"reason": WORDS, "message": nothing},
    pod.ContainerStateTerminated: {"reason": WORDS, "message": nothing},
    pod.ContainerStatus: {"name": _container},
    pod.ResourceClaimStatus: {"name": _pod_claim, "resource_claim_name": _resource_claim},
    pod.PodStatus: {
        "phase": WORDS,
        "reason": WORDS,
        "message": _end_text,
        "nominated_node_name": _node,
        "resize": WORDS,
        "start_time": Renamer.start,
    },
    policy.PodDisruptionBudgetSpec: {
        "min_available": Renamer.amount,
        "max_unavailable": Renamer.amount,
        "unhealthy_pod_eviction_policy": WORDS,
    },
    policy.PodDisruptionBudgetStatus: {"disrupted_pods": _disrupted},
    storage.PersistentVolumeClaimSpec: {
        "access_modes": WORDS,
        "storage_class_name": _storage_class,
        "volume_name": _volume,
        "volume_mode": WORDS,
        "volume_attributes_class_name": _attributes_class,
    },
    storage.PersistentVolumeClaimStatus: {"phase": WORDS},
    storage.CSIPersistentVolume: {"driver": _driver, "volume_handle": _handle},
    storage.PersistentVolumeSpec: {
        "access_modes": WORDS,
        "storage_class_name": _storage_class,
        "volume_mode": WORDS,
        "volume_attributes_class_name": _attributes_class,
    },
    storage.PersistentVolumeStatus: {"phase": WORDS},
    storage.StorageClass: {"provisioner": _driver},
    storage.CSINodeDriver: {"name": _driver, "node_id": nothing, "topology_keys": _label_key},
    storage.CSIStorageCapacity: {"storage_class_name": _storage_class},
    storage.VolumeAttachmentSource: {"persistent_volume_name": _volume},
    storage.VolumeAttachmentSpec: {"attacher": _driver, "node_name": _node},
    workloads.RuntimeClassScheduling: {"node_selector": LABELS},
    workloads.DeploymentStrategy: {"type": WORDS},
    workloads.RollingUpdate: {"max_unavailable": Renamer.amount, "max_surge": Renamer.amount},
    workloads.RuntimeClass: {"handler": name_rule(Space("handler"))},
    workloads.NamespaceStatus: {"phase": WORDS},
    workloads.StatefulSetSpec: {"pod_management_policy": WORDS},
    workloads.JobSpec: {"managed_by": WORDS},
    workloads.LimitRangeItem: {"type": WORDS},
    workloads.ScopeRequirement: {"scope_name": WORDS, "operator": WORDS, "values": name_rule(spaces.PRIORITY_CLASS)},
    workloads.ResourceQuotaSpec: {"scopes": WORDS},
    workloads.ServiceSpec: {"selector": LABELS},
    workloads.ReplicationControllerSpec: {"selector": LABELS},
    volcano.PodGroupSpec: {
        "min_task_member": keyed(_task),
        "queue": _queue,
        "priority_class_name": name_rule(spaces.PRIORITY_CLASS),
    },
    volcano.PodGroupCondition: {
        "type": WORDS,
        "status": WORDS,
        "last_transition_time": times.nothing,
        "transition_id": nothing,
        "reason": WORDS,
        "message": nothing,
    },
    volcano.PodGroupStatus: {"phase": WORDS},
    volcano.QueueSpec: {"type": WORDS},
    volcano.QueueReservation: {"nodes": _node},
    volcano.QueueStatus: {"state": WORDS},
    node.NodePoolTemplateMeta: {"labels": LABELS},
    node.KarpenterCondition: {
        "type": WORDS,
        "status": WORDS,
        "reason": WORDS,
        "message": nothing,
        "last_transition_time": times.nothing,
    },
    node.NodeClaimStatus: {"node_name": _node},
    node.ConfigMap: {"data": status_data},
    event.EventSource: {"component": component, "host": _node},
    event.Event: {
        "type": WORDS,
        "reason": WORDS,
        "message": _event_text,
        "note": _event_text,
        "reporting_component": component,
        "reporting_controller": component,
    },
    **device_rules.FIELDS,
    **kueue_rules.FIELDS,
    devices.DeviceClassSpec: {"extended_resource_name": each_item(Renamer.resource)},
}
