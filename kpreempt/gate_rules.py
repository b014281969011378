"""The rules of the gate, one row each: what ``check`` measures, what it allows, and how that is told.

From these rows come the options of ``kpreempt check``, the keys of ``kpreempt.toml``, the rules of SARIF, GitLab's
severities and the table in ``docs/gate.md``. It stands below the records and loads nothing, since ``--help`` needs it.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Any, NamedTuple

# Of a rule of one's own, whose promise is its expression.
_LONGEST_PROMISE = 72


class Takes(Enum):
    """What sets a rule. The values show it in the help of its option.

    ``SWITCH``: it only holds or not. ``PODS``: pods that must not be victims; without any the rule is off. ``NOTHING``:
    it is about what is not known; no option sets it, and only a waiver or the baseline lets a finding pass.
    """

    NUMBER = "N|off"
    TIME = "TIME|off"
    SWITCH = ""
    PODS = "WHAT=VALUE"
    NOTHING = None


class RuleSeverity(StrEnum):
    """What a rule counts for: an ``error`` shuts the gate, a ``warn`` is told only, ``off`` is not looked at."""

    ERROR = "error"
    WARN = "warn"
    OFF = "off"


class Rule(NamedTuple):
    """A row. ``name`` stays as it is from version to version.

    ``promise`` is what is so where the rule holds, in a few words, ``meaning`` what it limits, in sentences, ``advice``
    what helps where it does not hold, and ``option`` the help of its option without the default. ``default`` is what is
    allowed, in seconds where it is a time; ``None`` is off. An override may say something else where it
    ``is_overridable``; other rules are about the cluster as a whole, or name their own. Where it ``is_pooled``, the sum
    over all subjects counts, else each alone. One that is ``about_input`` says nothing of what the change brings about,
    so that ``--base`` excuses none of it. One that ``is_damage`` is about what the change itself removes or weakens,
    measured against the cluster before it: neither ``--base`` nor an annotation of the change excuses any of it.
    ``gitlab`` is GitLab's severity: what breaks a running service blocks.
    ``severity`` is what it counts for where nobody says otherwise, and ``concept`` the page of Kubernetes' own
    documentation on what the rule is about. ``commands`` are those that ask it.
    """

    name: str
    promise: str
    meaning: str
    advice: str
    option: str = ""
    takes: Takes = Takes.NUMBER
    default: int | None = 0
    is_overridable: bool = True
    is_pooled: bool = False
    about_input: bool = False
    is_damage: bool = False
    gitlab: str = "blocker"
    severity: RuleSeverity = RuleSeverity.ERROR
    commands: tuple[str, ...] = ("check", "drain")
    concept: str = "concepts/scheduling-eviction/pod-priority-preemption/"

    @property
    def has_limit(self) -> bool:
        """Whether there is a number of what is allowed; of other rules whatever they find is too much."""
        return self.takes in (Takes.NUMBER, Takes.TIME)

    @property
    def concept_url(self) -> str:
        """The address of ``concept``."""
        return f"https://kubernetes.io/docs/{self.concept}"

    @property
    def default_text(self) -> str:
        """The default as an option has it."""
        if self.takes is Takes.PODS:
            return "nobody"
        if self.default is None:
            return "off"
        return str(self.default) if self.has_limit else "on"


class RuleId(StrEnum):
    """A rule by its name; ``row`` is all there is to say about it.

    The members are the rules that come with kpreempt. Those of a ``kpreempt.toml`` (``of_expression``) are no members,
    and otherwise alike: iterating does not come to them, nor does ``RuleId(name)``.
    """

    row: Rule

    def __new__(cls, name: str, *facts: Any) -> RuleId:
        """The member of a row, which Enum hands over field by field."""
        rule = str.__new__(cls, name)
        rule._value_, rule.row = name, Rule(name, *facts)
        return rule

    @classmethod
    def of_expression(cls, name: str, expression: str, severity: RuleSeverity = RuleSeverity.ERROR) -> RuleId:
        """A rule of one's own, which asks for an expression to be true."""
        one_line = " ".join(expression.split())
        rule = str.__new__(cls, name)
        rule._name_ = rule._value_ = name
        rule.row = Rule(
            name,
            promise=one_line if len(one_line) <= _LONGEST_PROMISE else f"{one_line[: _LONGEST_PROMISE - 1]}…",
            meaning=f"A rule of kpreempt.toml: the expression must be true: {expression}",
            advice="Change what the expression asks about, or waive the rule by its name.",
            takes=Takes.SWITCH,
            is_overridable=False,
            about_input=True,
            gitlab="major",
            severity=severity,
        )
        return rule

    @property
    def is_custom(self) -> bool:
        """Whether it is a rule of one's own."""
        return self._name_ not in type(self).__members__

    MAX_PDB_VIOLATIONS = Rule(
        "max-pdb-violations",
        promise="no known budget is violated",
        meaning="Evictions beyond the allowed disruptions of a PodDisruptionBudget. The scheduler prefers other"
        " victims, and takes these where there are none.",
        advice="Make room first, give the change a lower priority, or let the budget allow more.",
        option="So many victims may violate PodDisruptionBudgets.",
        is_pooled=True,
        concept="concepts/workloads/pods/disruptions/",
    )
    MAX_VICTIMS = Rule(
        "max-victims",
        promise="few pods are evicted",
        meaning="Pods evicted because of the change, those that a replacement preempts included.",
        advice="Make room first, request less, or give the change a lower priority.",
        option="So many pods may be evicted in all.",
        default=None,
        gitlab="major",
    )
    MAX_VICTIMS_PER_WORKLOAD = Rule(
        "max-victims-per-workload",
        promise="no workload loses many pods",
        meaning="Pods of one workload evicted because of the change.",
        advice="Give the workload a budget or a higher priority, or make room for the change elsewhere.",
        option="So many pods of each workload may be evicted.",
        default=None,
        gitlab="major",
    )
    FORBID_VICTIMS = Rule(
        "forbid-victims",
        promise="protected pods are not evicted",
        meaning="Evictions of protected pods, by namespace, labels or priority class.",
        advice="Raise the priority of the protected pods above that of the change, or make room first.",
        option="Pods that must not be evicted: namespace=NAME, label=SELECTOR or priority-class=NAME; * is any text."
        " Repeatable.",
        takes=Takes.PODS,
        is_overridable=False,
    )
    REQUIRE_SCHEDULABLE = Rule(
        "require-schedulable",
        promise="every pod of the change is scheduled",
        meaning="Pods of the change that are still pending in the end.",
        advice="Request less, relax the pod's node constraints, or add nodes.",
        option="Every pod of the change must be scheduled.",
        takes=Takes.SWITCH,
        commands=("check",),
        concept="concepts/scheduling-eviction/kube-scheduler/",
    )
    MAX_CASCADE_DEPTH = Rule(
        "max-cascade-depth",
        promise="evictions do not cascade",
        meaning="How many evictions follow from one another: a victim's replacement may evict in turn.",
        advice="Make room for what is displaced, or set its preemptionPolicy to Never.",
        option="So many evictions may follow from one another.",
        default=1,
        gitlab="major",
    )
    MAX_PENDING = Rule(
        "max-pending",
        promise="what ran is scheduled again",
        meaning="Replacements of running pods that are still pending in the end.",
        advice="Add capacity for them, or request less in the change.",
        option="So many pods that ran may be pending in the end.",
        is_pooled=True,
    )
    MAX_STRANDED = Rule(
        "max-stranded",
        promise="nothing loses what it needs",
        meaning="What is left without something that it needs, though nobody evicts it: a service without a ready pod,"
        " a pod without those that it has to be near, a node without the pod of a DaemonSet.",
        advice="Protect what it needs by a budget or a priority, or run more of it.",
        option="So much may be left without something that it needs.",
        is_pooled=True,
    )
    LOST_PODS = Rule(
        "lost-pods",
        promise="nothing is lost for good",
        meaning="Pods evicted, or deleted with their node, that nothing recreates: no controller owns them.",
        advice="Run them under a controller, give them a priority above that of the change, or make room first.",
        option="So many pods may be lost that nothing recreates.",
        is_pooled=True,
        concept="concepts/workloads/pods/disruptions/",
    )
    MAX_DELETIONS = Rule(
        "max-deletions",
        promise="no unlisted deletions",
        meaning="Running workloads that the change deletes without a `--delete` that names them: pruned, or with their"
        " namespace.",
        advice="List what may be deleted with --delete KIND/NS/NAME, put it back into the manifests, or keep its"
        " namespace.",
        option="Maximum number of running workloads deleted without a --delete that names them.",
        is_pooled=True,
        is_damage=True,
        commands=("check",),
        concept="concepts/architecture/garbage-collection/",
    )
    NAMESPACE_DELETION = Rule(
        "namespace-deletion",
        promise="no namespace is deleted",
        meaning="Namespaces that the change deletes without a `--delete` that names them. Everything in them goes, also"
        " what the manifests do not have.",
        advice="Keep the namespace in the manifests, or allow it with --delete namespace/NAME and list what goes with"
        " it.",
        option="No namespace may be deleted without a --delete that names it.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        commands=("check",),
        concept="concepts/overview/working-with-objects/namespaces/",
    )
    VOLUME_DELETION = Rule(
        "volume-deletion",
        promise="no volume is deleted",
        meaning="Bound PersistentVolumeClaims, and PersistentVolumes that have a claim, that the change deletes without"
        " a `--delete` that names them: pruned, with their namespace or their owner, or by the retention policy of"
        " their StatefulSet.",
        advice="Keep the claim in the manifests, or back up its data and allow it with --delete pvc/NS/NAME.",
        option="No volume may be deleted without a --delete that names it.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        commands=("check",),
        concept="concepts/storage/persistent-volumes/",
    )
    SCALED_TO_ZERO = Rule(
        "scaled-to-zero",
        promise="workloads keep some pods",
        meaning="Workloads with pods that the change leaves without any: no replicas, a suspended Job or CronJob, a"
        " DaemonSet that no longer runs on any node.",
        advice="Keep one replica, or waive the rule for this workload.",
        option="Workloads with pods must keep some.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        commands=("check",),
        concept="concepts/workloads/controllers/",
    )
    SERVICE_OUTAGE = Rule(
        "service-outage",
        promise="Services keep their pods",
        meaning="Services with pods that the change deletes without a `--delete` that names them, or leaves without"
        " pods: their pods are deleted, scaled to zero or relabeled, or the selector no longer matches them. What"
        " evictions do to a Service is `max-stranded`.",
        advice="Make the selector match the labels of the pods, keep one of them, or allow the deletion with --delete"
        " service/NS/NAME.",
        option="Services with pods must keep some.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        commands=("check",),
        concept="concepts/services-networking/service/",
    )
    QUOTA_REFUSALS = Rule(
        "quota-refusals",
        promise="quotas have room for the change",
        meaning="Pods that a ResourceQuota refuses, in the end or only until another pod is gone, quotas of other"
        " objects or of storage that the change exceeds, and ResourceQuotas and LimitRanges of the change that running"
        " pods exceed already, so that the next ones are rejected.",
        advice="Raise the quota, request less, or let the rollout take pods away first (maxSurge: 0).",
        option="So many pods may a ResourceQuota refuse.",
        is_pooled=True,
        gitlab="major",
        concept="concepts/policy/resource-quotas/",
    )
    FORBID_LOOPS = Rule(
        "forbid-loops",
        promise="the cluster settles",
        meaning="Pods that preempt one another over and over, so that the cluster never settles.",
        advice="Give these workloads one priority, or make room for both.",
        option="The cluster must settle.",
        takes=Takes.SWITCH,
    )
    MIN_READY = Rule(
        "min-ready",
        promise="workloads stay ready",
        meaning="Workloads with two or more ready pods that are left with no more than this share of them, in percent,"
        " at some moment of the rollout; those that are deleted are `max-deletions`, and those that are scaled to zero"
        " `scaled-to-zero`."
        " DaemonSets do not count, whose pods leave a gap on their node however they are replaced.",
        advice="Let the rollout keep old pods until new ones are ready (RollingUpdate, a smaller maxUnavailable), or"
        " protect the pods by a budget or a priority.",
        option="The share of ready pods, in percent, to which or below which no workload may fall.",
        concept="concepts/workloads/controllers/deployment/",
    )
    APPLY_REFUSED = Rule(
        "apply-refused",
        promise="the API server takes the change",
        meaning="Objects of the change that the API server refuses: a field differs that cannot be changed, such as a"
        " selector, a field or a resource has a name that the API server does not know, or the namespace is not there.",
        advice="Leave the field as it is, give the object another name, or delete it first, knowing that its pods go."
        " Make the namespace before what is in it (--create-namespace).",
        option="The API server must take every object.",
        takes=Takes.SWITCH,
        is_overridable=False,
        about_input=True,
        commands=("check",),
        concept="reference/using-api/api-concepts/",
    )
    REMOVED_API = Rule(
        "removed-api",
        promise="the next version serves all APIs",
        meaning="Objects of the change of an API version that the cluster's version, or the next minor version, does"
        " not serve.",
        advice="Write the object in the API version that takes its place; kubectl convert does it.",
        option="The next minor version must serve the API of every object.",
        takes=Takes.SWITCH,
        is_overridable=False,
        about_input=True,
        gitlab="major",
        commands=("check",),
        concept="reference/using-api/deprecation-guide/",
    )
    BLOCKED_DRAINS = Rule(
        "blocked-drains",
        promise="nodes can be drained",
        meaning="PodDisruptionBudgets that can never allow a disruption after the change, or that share a pod with"
        " another one, so that no node with one of their pods can be drained: those of the change, and those that did"
        " not block drains before it.",
        advice="Let the PDB allow one disruption (maxUnavailable: 1), run one more pod, or keep one PDB per pod.",
        option="Every PDB of the change, and of the pods it touches, must be able to allow a disruption.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        gitlab="major",
        commands=("check",),
        concept="tasks/run-application/configure-pdb/",
    )
    PDB_SELECTOR = Rule(
        "pdb-selector",
        promise="PDBs select their pods",
        meaning="PodDisruptionBudgets of the change whose selector matches no pod, as a mistyped one does, or is empty"
        " and matches every pod of the namespace.",
        advice="Select the pods by their labels, as spec.selector of their workload does.",
        option="Every PDB of the change must select some pods, and not all of the namespace by an empty selector.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        gitlab="major",
        commands=("check",),
        concept="tasks/run-application/configure-pdb/",
    )
    PDB_BLOCKS_AT_HPA_MINIMUM = Rule(
        "pdb-blocks-at-hpa-minimum",
        promise="PDBs allow disruptions at minReplicas",
        meaning="PodDisruptionBudgets that allow no disruption once a HorizontalPodAutoscaler has scaled their workload"
        " down to its minReplicas.",
        advice="Set maxUnavailable: 1 in the PDB, or raise minReplicas above its minAvailable.",
        option="Every PDB must allow a disruption at the minReplicas of its workload's autoscaler.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        gitlab="minor",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="tasks/run-application/configure-pdb/",
    )
    PDB_WEAKENED = Rule(
        "pdb-weakened",
        promise="PDBs protect pods as before",
        meaning="Pods that PodDisruptionBudgets protect less after the change: a PDB allows more disruptions for the"
        " same number of pods, is deleted, or no longer selects them because its selector or their labels change.",
        advice="Keep the PDB and the labels of its pods. If the change is meant, waive the rule for this PDB by an"
        " option or in kpreempt.toml of the target branch; a --delete that names the PDB does it, too.",
        option="No PDB may protect its pods less than before the change.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        commands=("check",),
        concept="concepts/workloads/pods/disruptions/",
    )
    PRIORITY_LOWERED = Rule(
        "priority-lowered",
        promise="pods keep their priority",
        meaning="Workloads, pods and PriorityClasses that get a lower priority, so that other pods may preempt pods"
        " that were safe, or preemptionPolicy Never, so that they no longer preempt.",
        advice="Keep the PriorityClass, or name one that is as high. If the change is meant, waive the rule for this"
        " object.",
        option="No running workload may get a lower priority.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        commands=("check",),
    )
    PRIORITY_CLASS_IN_USE = Rule(
        "priority-class-in-use",
        promise="PriorityClasses in use stay",
        meaning="PriorityClasses that the change deletes, though workloads name them: the API server rejects the next"
        " pods of these workloads.",
        advice="Give the workloads another PriorityClass first, or keep this one.",
        option="No PriorityClass that a workload names may be deleted.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        commands=("check",),
    )
    DEFAULT_PRIORITY_CHANGED = Rule(
        "default-priority-changed",
        promise="the default priority stays",
        meaning="PriorityClasses with globalDefault that come, go or change, so that the next pods without a"
        " PriorityClass get another priority than the pods they replace, and may preempt them or be preempted.",
        advice="Name the PriorityClass in the workloads that need it, without globalDefault.",
        option="Pods without a PriorityClass must get the same priority as before.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        commands=("check",),
    )
    QUOTA_LOOSENED = Rule(
        "quota-loosened",
        promise="quotas limit as before",
        meaning="ResourceQuotas and LimitRanges that allow more than before the change, or no longer limit a resource.",
        advice="Keep the limit. If the change is meant, waive the rule for this quota; a --delete that names the quota"
        " does it, too.",
        option="No ResourceQuota or LimitRange may allow more than before the change.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        gitlab="major",
        commands=("check",),
        concept="concepts/policy/resource-quotas/",
    )
    NAMESPACE_RELABELED = Rule(
        "namespace-relabeled",
        promise="labels of namespaces stay",
        meaning="Namespaces that lose or change a label of Pod Security Admission, or one by which the affinity of"
        " pods selects namespaces.",
        advice="Keep the label. If the change is meant, waive the rule for this namespace.",
        option="No namespace may change labels of Pod Security Admission, or by which pods select it.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        gitlab="major",
        commands=("check",),
        concept="concepts/security/pod-security-admission/",
    )
    OWNER_REMOVED = Rule(
        "owner-removed",
        promise="pods keep their controller",
        meaning="Pods, ReplicaSets and Jobs whose manifests leave out the controller that owns them in the cluster:"
        " without it, nothing replaces them, and PDBs count them differently.",
        advice="Leave the object to its controller, and change the controller's manifest instead.",
        option="No manifest may leave out the controller of its object.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        gitlab="major",
        commands=("check",),
        concept="concepts/overview/working-with-objects/owners-dependents/",
    )
    DRAIN_BLOCKED = Rule(
        "drain-blocked",
        promise="every node gets empty",
        meaning="Pods that a drain cannot evict, so that it waits for ever or gives up: a budget that never allows it,"
        " or not as long as other pods are pending or not ready; two budgets on one pod; pods that kubectl drain leaves"
        " alone without an option.",
        advice="Let the budget allow one disruption (maxUnavailable: 1), run one pod more, or make room first.",
        option="Every pod that is to go must be evicted in the end.",
        takes=Takes.SWITCH,
        is_overridable=False,
        commands=("drain",),
        concept="tasks/administer-cluster/safely-drain-node/",
    )
    AUTOSCALED_REPLICAS = Rule(
        "autoscaled-replicas",
        promise="autoscalers keep their sizes",
        meaning="Workloads of the change whose manifests set `replicas` back from what a HorizontalPodAutoscaler has"
        " set: their pods are deleted, or made, until the autoscaler sets it again.",
        advice="Leave replicas out of the manifest, and out of what was applied last (kubectl apply"
        " edit-last-applied).",
        option="No manifest may set back what an autoscaler has set.",
        takes=Takes.SWITCH,
        is_overridable=False,
        gitlab="major",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="tasks/run-application/horizontal-pod-autoscale/",
    )
    DUPLICATE_OBJECTS = Rule(
        "duplicate-objects",
        promise="every object is written once",
        meaning="Objects that the change has more than once, in documents that differ. They are applied one after the"
        " other: the last one counts, and is simulated, but what an earlier one starts in between is not.",
        advice="Remove the documents that do not count.",
        option="No object may be in the change twice, unless the earlier document changes nothing.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        commands=("check",),
        concept="concepts/overview/working-with-objects/",
    )
    AUTOSCALED_MAXIMUM = Rule(
        "autoscaled-maximum",
        promise="autoscaled workloads fit at their maximum",
        meaning="Workloads of the change that don't fit, or evict pods, at the `maxReplicas` of a"
        " HorizontalPodAutoscaler that the change creates or changes.",
        advice="Lower maxReplicas, request less, or add nodes.",
        option="Workloads must fit at the maximum of a new or changed autoscaler.",
        takes=Takes.SWITCH,
        is_overridable=False,
        gitlab="major",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="tasks/run-application/horizontal-pod-autoscale/",
    )
    ROLLOUT_STUCK = Rule(
        "rollout-stuck",
        promise="rollouts replace all pods",
        meaning="Changed workloads that keep pods of the old template, with the cause: a partition, OnDelete, a pause,"
        " or new pods that must not be on a node with old ones.",
        advice="Set the partition to 0, delete the old pods, or let one go before the new one comes (maxSurge: 0,"
        " maxUnavailable: 1).",
        option="No changed workload may keep old pods.",
        takes=Takes.SWITCH,
        is_overridable=False,
        gitlab="major",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="concepts/workloads/controllers/deployment/",
    )
    VOLUME_ATTACHED_ELSEWHERE = Rule(
        "volume-attached-elsewhere",
        promise="pods get their volumes",
        meaning="Pods that never start, because a volume of theirs can be attached to one node at a time"
        " (ReadWriteOnce) and stays attached to another node, where other pods use it.",
        advice="Let the old pod go before the new one comes (Recreate, or maxSurge: 0), use a volume with"
        " ReadWriteMany, or give each pod a claim of its own in a StatefulSet.",
        option="No pod may wait for a volume that is attached to another node.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        gitlab="major",
        commands=("check",),
        concept="concepts/storage/persistent-volumes/#access-modes",
    )
    BYPASSES_SCHEDULER = Rule(
        "bypasses-scheduler",
        promise="the scheduler places all pods",
        meaning="Pods and pod templates of the change that newly name a node in `nodeName`. The scheduler never sees"
        " these pods. The kubelet rejects those that do not fit, and for critical ones it evicts others without"
        " checking PodDisruptionBudgets. An error unless they fit on a node that is ready and not cordoned.",
        advice="Leave out nodeName; to choose the node, use a node selector or node affinity.",
        option="No pod of the change may name its node.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="concepts/scheduling-eviction/assign-pod-node/#nodename",
    )
    ADOPTED_PODS = Rule(
        "adopted-pods",
        promise="no controller takes over pods",
        meaning="Pods, or ReplicaSets with their pods, that no controller owns and that a controller adopts because of"
        " the change, as its selector matches them. An error if it deletes some of them.",
        advice="Give the selector a label that only its own pods have.",
        option="No pod may be adopted by a controller.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="concepts/workloads/controllers/replicaset/#non-template-pod-acquisitions",
    )
    CREATED_NODES = Rule(
        "created-nodes",
        promise="nodes come with their kubelets",
        meaning="Node objects that the change creates. They add no capacity: the API server taints them as not ready,"
        " and no kubelet runs there.",
        advice="Leave the Node out: a node registers itself. --add-node simulates new nodes in kpreempt drain and"
        " explain.",
        option="The change may not create Node objects.",
        takes=Takes.SWITCH,
        is_overridable=False,
        is_damage=True,
        gitlab="major",
        commands=("check",),
        concept="concepts/architecture/nodes/#management",
    )
    MAX_SNAPSHOT_AGE = Rule(
        "max-snapshot-age",
        promise="the snapshot is recent",
        meaning="How old the snapshot is. What it does not show yet cannot be predicted.",
        advice="Take a new snapshot, or ask the live cluster.",
        option="How old the snapshot may be: 30m, 12h; unknown fails.",
        takes=Takes.TIME,
        default=None,
        is_overridable=False,
        about_input=True,
        gitlab="minor",
    )
    BUDGETS_UNREADABLE = Rule(
        "budgets-unreadable",
        promise="budgets are known",
        meaning="PodDisruptionBudgets that could not be read: whether one is violated is unknown.",
        advice="Let the account list poddisruptionbudgets in all namespaces, or waive the rule by its name.",
        takes=Takes.NOTHING,
        is_overridable=False,
        about_input=True,
        gitlab="major",
        concept="concepts/workloads/pods/disruptions/",
    )
    ABSENT_KINDS = Rule(
        "absent-kinds",
        promise="all that decides is in the dump",
        meaning="Kinds that the dump has no object of and that could change this verdict, because the cluster may have"
        " some: PodDisruptionBudgets if pods are evicted, ResourceQuotas if new workloads make pods, PriorityClasses"
        " and volumes if pods refer to them. Also pods on nodes that are not in the dump.",
        advice="Add the kind to the dump by the kubectl get that the finding names. If the cluster has none, say so by"
        " --assume-none KIND, or assume-none in kpreempt.toml.",
        takes=Takes.NOTHING,
        is_overridable=False,
        about_input=True,
        gitlab="major",
        concept="reference/kubectl/generated/kubectl_get/",
    )
    OBJECTS_SET_ASIDE = Rule(
        "objects-set-aside",
        promise="every object is counted",
        meaning="Objects and files that were skipped because they could not be read.",
        advice="Fix the objects or files, or waive the rule by its name.",
        takes=Takes.NOTHING,
        is_overridable=False,
        about_input=True,
        gitlab="major",
        concept="concepts/overview/working-with-objects/",
    )
    FIELDS_NOT_MODELLED = Rule(
        "fields-not-modelled",
        promise="everything is modelled",
        meaning="Something in the input that is not modelled and could change the answer.",
        advice="Look at what it says, and waive the rule by its name where it does not matter.",
        takes=Takes.NOTHING,
        is_overridable=False,
        about_input=True,
        gitlab="major",
    )
    CUSTOM_RESOURCES = Rule(
        "custom-resources",
        promise="custom resources are compared",
        meaning="Custom resources of the change of kinds of which the dump has none: whether they are new or changed,"
        " and what their controllers make of that, is not known. One with a pod template is a `fields-not-modelled`.",
        advice="Add the kind to the dump by the `kubectl get` that the finding names.",
        takes=Takes.NOTHING,
        is_overridable=False,
        about_input=True,
        gitlab="minor",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="concepts/extend-kubernetes/api-extension/custom-resources/",
    )
    OUTCOME_UNCERTAIN = Rule(
        "outcome-uncertain",
        promise="the outcome is certain",
        meaning="Pods whose outcome is not certain: chance or the scheduler's memory decides.",
        advice="Look at what it says, and waive the rule by its name where it does not matter.",
        takes=Takes.NOTHING,
        is_overridable=False,
        about_input=True,
        gitlab="major",
    )
