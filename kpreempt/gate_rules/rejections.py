"""What ``apply-rejected`` checks and what it does not, for the rule's page and ``kpreempt rules``.

An item that is not checked has its reason. ``fixtures/admission`` shows how often each kind's rules agree with the API
server's.
"""

from __future__ import annotations

from typing import NamedTuple


class Topic(NamedTuple):
    """A section of a rule's page: a heading, a first sentence, and a list of sentences. Code is in backticks."""

    heading: str
    lead: str
    items: tuple[str, ...]


_CHECKED = Topic(
    "What is checked",
    "Each object of the change goes through the same steps as in the API server. The first step that finds a problem"
    " rejects the object.",
    (
        "Decoding, as strict as with `kubectl apply`: unknown fields, names of resources, and values of another type"
        " than the field's. Names are case-sensitive. A Secret or ConfigMap may have the key `sops`.",
        "Validation on creation and on update, of Pods, Deployments, ReplicaSets, StatefulSets, DaemonSets,"
        " ReplicationControllers, Jobs, CronJobs, PodDisruptionBudgets, PriorityClasses, Services,"
        " PersistentVolumeClaims, StorageClasses, HorizontalPodAutoscalers, ResourceQuotas, LimitRanges and"
        " Namespaces. An update compares the complete object after the apply with the object in the cluster.",
        "Custom resources, by the schema in their CustomResourceDefinition: types, unknown and required fields, enums,"
        " bounds, patterns, duplicates in lists, and CEL rules. The definition is in the change, in the cluster, or"
        " published by the API server.",
        "Admission plugins: NamespaceLifecycle, LimitRanger, ServiceAccount, PodSecurity, Priority,"
        " PersistentVolumeClaimResize, RuntimeClass and ResourceQuota. They compare an object with the cluster and with"
        " the objects that were applied before it. Amounts that exceed a quota are the rule `quota-rejections`.",
        "ValidatingAdmissionPolicies, with their bindings, parameters and failure policies.",
        "The pods of a workload. If they are rejected, the workload exists but has no pods.",
        "With `--server-dry-run`, the API server's own decision. It replaces kpreempt's, unless the object depends on"
        " another object of the change.",
    ),
)
_VERSIONS = Topic(
    "Which version's rules apply",
    "Fields, types and rules are those of the cluster's version, from 1.29 up to 1.38.",
    (
        "If the version is unknown, the fields of all versions are accepted, and the rules are those of the"
        " algorithm's version.",
        "A live API server publishes its types in `/openapi/v3`. They replace kpreempt's for the groups in the change."
        " `kpreempt snapshot -f FILE` keeps the types for the groups in the manifest.",
        "Feature gates have their defaults. As in the API server, fields whose gate is off are dropped, not rejected"
        " (`scheduling` of a Job from 1.37). Values whose gate is off are rejected, such as the toleration operators"
        " `Lt` and `Gt`. If your cluster enables such a gate, use `--server-dry-run`, or waive the finding.",
        "An update may keep a value that the object in the cluster already has, if the API server tolerates it.",
    ),
)
_ALL_KINDS = Topic(
    "Not checked: all kinds",
    "The API server can reject an object for one of the following reasons, and kpreempt accepts it.",
    (
        "Permissions, and roles that grant more than the user has: kpreempt does not know which user applies the"
        " change.",
        "Fields that the API server sets (`uid`, `resourceVersion`, `managedFields`, `status`): they are not part of a"
        " change.",
        "Subresources, such as `resize` and `ephemeralcontainers`: `kubectl apply` does not use them.",
        "The size of the annotation with the manifest that `kubectl apply` adds, and of the stored object: other tools"
        " add no annotation, and the limit for objects is an option of the API server.",
        "On update, what depends on a field that a dump lacks although the API server sets it: its value is unknown.",
        "Served API versions: the rule `removed-api` reports those that are not.",
    ),
)
_WORKLOADS = Topic(
    "Not checked: workloads and Jobs",
    "",
    (
        "In parts that may not change, such as a Job's template, adding or removing a zero or an empty value"
        " (`runAsGroup: 0`, `lifecycle: {}`, `affinity: {}`): it counts as missing, because a dump does not always"
        " have it.",
        "A missing `status` in `onPodConditions` of a CronJob before 1.34: it gets the default that Jobs have.",
        "A CronJob schedule `@every` of more than 292 years: only the form of the duration is checked.",
        "The deprecated annotations with a DaemonSet's template generation and a Deployment's rollback revision: no"
        " current tool writes them.",
        "Annotations about fields of a ReplicationController that could not be converted: only the API server writes"
        " them.",
        "A new Job with `metadata.uid` and controller-uid labels of another cluster: the labels match the UID in the"
        " manifest. The API server generates another UID.",
    ),
)
_PODS = Topic(
    "Not checked: pods and pod templates",
    "",
    (
        "Privileged containers, and `hostProcess` on Windows, on a server without `--allow-privileged`: all common"
        " installers set the option.",
        "A projected `serviceAccountToken` without `serviceAccountName`: the plugin ServiceAccount sets the account"
        " before the validation.",
        "The tolerations in the annotation `scheduler.alpha.kubernetes.io/tolerations`: only their form is checked. No"
        " supported version uses them.",
        "An empty list in a field that is not allowed (`supplementalGroups` of a Windows pod, `claims` of a pod's"
        " `resources`): it counts as missing.",
        "Resource claims of static pods: a manifest for the API server has no static pods.",
        "In a template with `hostNetwork`, two containers with the same port and host port: kpreempt's defaults set"
        " host ports, but the API server sets them only in pods.",
        "On update of a pod, removing its `priority`, its `preemptionPolicy`, a default toleration, or one of its"
        " pod-level requests or limits: admission may have set them.",
        "On update of a pod, adding or removing an empty value: it counts as missing.",
    ),
)
_OTHERS = Topic(
    "Not checked: Services, claims, autoscalers",
    "",
    (
        "Whether an IP address or a node port is in the cluster's range, whether it is in use, and which IP families"
        " the cluster has: no dump shows the ranges.",
        "A modified `healthCheckNodePort` of a Service, if the dump does not have the old one.",
        "On update of a PersistentVolumeClaim, an empty `selector`, an empty text in a data source, or an empty"
        " `volumeAttributesClassName`, instead of a missing one: they count as missing.",
        "On update of a PersistentVolumeClaim without a status, whether it is bound: it is, if it has a volume.",
        "Metrics and behavior in annotations of an `autoscaling/v1` HorizontalPodAutoscaler: `autoscaling/v2` has"
        " fields for them.",
    ),
)
_CUSTOM = Topic(
    "Not checked: custom resources",
    "",
    (
        "Custom resources whose definition is neither in the change nor in the input: their schema is unknown. A note"
        " in the answer lists them.",
        "Formats of texts (`date-time`, `ipv4`), and the ranges of the formats `int32` and `float`.",
        "Patterns that exceed the limits of kpreempt's regular expressions.",
        "CEL rules about values that have their own type in CEL: `null`, texts with the format `byte`, `date`,"
        " `date-time` or `duration`, and fields with escaped names (`__dot__`). The same applies to rules with"
        " `optionalOldSelf`.",
        "CEL rules about transitions (`oldSelf`) of elements of a list, and of lists that are sets or maps: their"
        " elements are compared in any order.",
        "`messageExpression` of a CEL rule: the finding has the rule's `message` instead.",
        "Status replicas and selector of the scale subresource: they are part of the status.",
    ),
)
_OTHER_KINDS = Topic(
    "Not checked: rules of other built-in kinds",
    "The rules of these kinds rarely decide whether pods run, so they are checked only in part.",
    (
        "Names, labels, annotations, and most required fields and enums are checked for ConfigMap, Endpoints, Node,"
        " PersistentVolume, PodTemplate, Secret, ServiceAccount, Lease, EndpointSlice, Ingress, IngressClass,"
        " NetworkPolicy, Role, RoleBinding, ClusterRole, ClusterRoleBinding, RuntimeClass, CSIDriver,"
        " VolumeAttachment, VolumeAttributesClass, DeviceClass, ResourceClaim, ResourceClaimTemplate, and for webhook"
        " configurations and ValidatingAdmissionPolicies with their bindings.",
        "All others are only decoded: APIService, CertificateSigningRequest, ClusterTrustBundle, ControllerRevision,"
        " CSINode, CSIStorageCapacity, CustomResourceDefinition, DeviceTaintRule, Event, FlowSchema, IPAddress,"
        " MutatingAdmissionPolicy and its binding, PodGroup, PriorityLevelConfiguration, ResourceSlice, ServiceCIDR,"
        " StorageVersionMigration, Workload, and requests that are not stored, such as reviews and evictions.",
    ),
)
_PLUGINS = Topic(
    "Not checked: admission plugins",
    "",
    (
        "PodNodeSelector, which is off by default: a pod that conflicts with the annotation of its namespace is an"
        " assumption.",
        "Other plugins that are off by default: AlwaysPullImages, DenyServiceExternalIPs, EventRateLimit,"
        " ExtendedResourceToleration, ImagePolicyWebhook, LimitPodHardAntiAffinityTopology, NodeRestriction,"
        " OwnerReferencesPermissionEnforcement and PodTolerationRestriction. No dump shows which plugins are on.",
        "The PodSecurity configuration file of the API server: its defaults are assumed to be `privileged`, without"
        " exemptions.",
        "The ResourceQuota configuration file of the API server, which names classes that need a quota: only GKE's is"
        " known, by the quota `gcp-critical-pods` in `kube-system`.",
        "ServiceAccount: a missing account is found only if the dump has the accounts of the namespace. Secrets that"
        " an account does not list are accepted, because few accounts require that.",
        "CertificateApproval, CertificateSigning, CertificateSubjectRestriction and ClusterTrustBundleAttest: they"
        " decide by user, or about certificate requests, which are not applied as manifests.",
        "NodeDeclaredFeatureValidator and PodResizeValidator: they decide about updates of pods on a node, which"
        " workloads do not make.",
        "JobValidation and PodGroupWorkloadExists: their feature gates are off by default.",
    ),
)
_POLICIES = Topic(
    "Not checked: policies and webhooks",
    "If one of these applies to an object of the change, an assumption lists it, and the check fails.",
    (
        "Webhooks, and MutatingAdmissionPolicies: they are not called or evaluated. If one of them may modify the"
        " object first, a denial by a ValidatingAdmissionPolicy is an assumption, too.",
        "Expressions that use `authorizer`, `request.userInfo` or `request.options`: kpreempt does not know which user"
        " applies the change.",
        "Policies whose bindings or parameters are not in the input, or that depend on labels of a namespace that is"
        " not.",
        "Expressions that use fields that the API server sets after the defaults, and expressions that exceed the cost"
        " limit.",
        "ReplicaSets and Jobs that controllers create: only the objects of the change and the pods of its workloads are"
        " evaluated.",
    ),
)

REJECTIONS = (
    *(_CHECKED, _VERSIONS, _ALL_KINDS, _WORKLOADS, _PODS, _OTHERS, _CUSTOM, _OTHER_KINDS, _PLUGINS, _POLICIES),
)
