"""The gate's rules, one row each: what ``check`` measures, what it allows, and how a finding is worded.

A row defines everything about a rule except its measure, which is a function in ``analysis.check``: the option, the
default, the severity, the sentence of a finding, the text of the rule's page, and an example that violates it with its
fix. The options of ``kpreempt check``, the keys of ``kpreempt.toml``, the findings in all formats, the rules of SARIF,
GitLab's severities, the pages in ``docs/rules`` and the table in ``docs/gate.md`` are generated from these rows.

``--help`` needs this package, so it is below the records and imports none of them: a sentence is a template that
``report.check.words`` fills in. ``GateFlags`` holds the gate's options before any file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, StrEnum
from functools import partial
from typing import Any, NamedTuple, Protocol

from kpreempt.gate_rules import manifests
from kpreempt.gate_rules.rejections import REJECTIONS, Topic

# For a custom rule, whose promise is its expression.
_LONGEST_PROMISE = 72
# The subject of a finding that is not about a single object.
CLUSTER = "cluster"
# How the detail of a finding about a rollout deadlock starts.
DEADLOCK = "rollout deadlock"
# For findings whose detail completes the sentence.
_IN_FULL = "{subject}{detail: }"
# Subjects of assumptions that need an article in a sentence.
_WITH_ARTICLE = ("scheduler", "simulation")
# How details about kinds that could not be listed start.
_UNREADABLE = ("cannot be ", "could not be ", "can be listed only ", "is not served ")


class OptionType(Enum):
    """The type of a rule's option. Each value is shown in the option's help.

    ``SWITCH``: the rule has no limit, it is on or off. ``PODS``: pods that must not be victims; without any, the rule
    is off. ``NOTHING``: the rule reports unknowns and has no option; only a waiver or the baseline lets a finding pass.
    """

    NUMBER = "N|off"
    TIME = "TIME|off"
    SWITCH = ""
    PODS = "WHAT=VALUE"
    NOTHING = None


class RuleSeverity(StrEnum):
    """The severity of a rule: ``error`` fails the check, ``warn`` only reports, ``off`` disables the rule."""

    ERROR = "error"
    WARN = "warn"
    OFF = "off"


class Finding(Protocol):
    """The fields of a ``GateFinding`` that select the template of its sentence."""

    @property
    def subject(self) -> str:
        """The object that the finding is about, such as ``Deployment shop/api``, or ``cluster``."""

    @property
    def amount(self) -> int:
        """The measured amount."""

    @property
    def pods(self) -> Sequence[str]:
        """The pods that the finding is about."""

    @property
    def detail(self) -> str:
        """Additional text."""


# A template of ``report.check.words``, or a function that selects one for a finding.
Sentence = str | Callable[[Finding], str]


class Example(NamedTuple):
    """A change that violates a rule in ``fixtures/check/rules/cluster.yaml``, which commands call ``cluster.yaml``.

    ``explanation`` describes the situation in a sentence or two. ``fails`` violates the rule, ``fix`` does not. Both
    are manifests, or commands that begin with ``kpreempt``; ``files`` are the files that these commands name, except
    ``cluster.yaml``. ``options`` are the options of ``check`` that the rule needs. A test runs both, and the rule's
    page shows the output.
    """

    explanation: str
    fails: str
    fix: str
    options: tuple[str, ...] = ()
    files: Mapping[str, str] = {}

    @property
    def uses_commands(self) -> bool:
        """Whether the example consists of commands instead of manifests."""
        return self.fails.startswith("kpreempt ")


class Rule(NamedTuple):
    """A row. ``name`` does not change from version to version.

    - ``promise``: what holds if the rule is not violated, in a few words
    - ``meaning``: what the rule limits, in sentences
    - ``advice``: how to fix a violation
    - ``option``: the help of the rule's option, without the default
    - ``is_everyday``: whether the short help shows the option
    - ``default``: the default limit, in seconds for a time; ``None`` is off
    - ``is_overridable``: whether an override may set another limit; false for rules about the cluster, and for rules
      that select their own subjects
    - ``is_pooled``: whether the limit applies to the sum over all subjects instead of each subject
    - ``about_input``: whether the rule is about the input, not effects of the change; ``--base`` suppresses nothing
    - ``is_damage``: whether the rule is about what the change itself removes or weakens, compared with the cluster
      before it; neither ``--base`` nor an annotation in the change suppresses a finding
    - ``weakens``: whether the rule is about protection that the change removes; headlines name these findings first
    - ``waived_by_delete``: kinds; a ``--delete`` that names an object of such a kind waives the rule for that object
    - ``gitlab``: GitLab's severity; ``blocker`` if a violation breaks a running service
    - ``severity``: the default severity
    - ``commands``: the commands that apply the rule
    - ``concept``: a page of the Kubernetes documentation on the rule's topic
    - ``topics``: what the rule checks in detail, and what it does not
    """

    name: str
    promise: str
    meaning: str
    advice: str
    example: Example = Example("", "", "")
    sentence: Sentence = "{message}"
    option: str = ""
    takes: OptionType = OptionType.NUMBER
    is_everyday: bool = False
    default: int | None = 0
    is_overridable: bool = True
    is_pooled: bool = False
    about_input: bool = False
    is_damage: bool = False
    weakens: bool = False
    waived_by_delete: tuple[str, ...] = ()
    gitlab: str = "blocker"
    severity: RuleSeverity = RuleSeverity.ERROR
    commands: tuple[str, ...] = ("check", "drain")
    concept: str = "concepts/scheduling-eviction/pod-priority-preemption/"
    topics: tuple[Topic, ...] = ()

    @property
    def has_limit(self) -> bool:
        """Whether the rule has a numeric limit. Without one, every finding is a violation."""
        return self.takes in (OptionType.NUMBER, OptionType.TIME)

    @property
    def concept_url(self) -> str:
        """The URL of ``concept``."""
        return f"https://kubernetes.io/docs/{self.concept}"

    @property
    def default_text(self) -> str:
        """The default as written on the command line."""
        if self.takes is OptionType.PODS:
            return "none"
        if self.default is None:
            return "off"
        return str(self.default) if self.has_limit else "on"


def _one_or_all(one: str, everything: str) -> Sentence:
    """Select ``one`` for a finding about an object, and ``everything`` for one about the cluster."""
    return lambda finding: everything if finding.subject in ("", CLUSTER) else one


def _is_about_its_pod(finding: Finding) -> bool:
    """Whether the subject is the finding's only pod, which the sentence then does not repeat."""
    return [finding.subject] == [f"Pod {each}" for each in finding.pods]


def _unknown(one: str, everything: str) -> Sentence:
    """Select a template for something unknown about an object or the cluster, followed by the pods and the detail."""

    def sentence(finding: Finding) -> str:
        subject = "the {subject}" if finding.subject in _WITH_ARTICLE else "{subject}"
        if finding.detail.startswith(_UNREADABLE):
            return f"{subject} {{message}}"
        words = everything if finding.subject in ("", CLUSTER) else f"{subject} {one}"
        has_pods = finding.pods and not _is_about_its_pod(finding)
        return f"{words}{{pods}}{{detail:; }}" if has_pods else f"{words}{{detail}}"

    return sentence


def _or_deadlock(sentence: str) -> Sentence:
    """Select a template for a rollout deadlock, or ``sentence``."""
    return lambda finding: "{subject} is in a {message}" if finding.detail.startswith(DEADLOCK) else sentence


def _unschedulable(finding: Finding) -> str:
    if finding.detail.startswith(DEADLOCK):
        return "{subject} is in a {message}"
    if finding.subject.startswith("PersistentVolumeClaim "):
        return "{subject} cannot be bound{detail}"
    if not finding.pods:
        return "{subject} is not complete at the end{detail:; }"
    return "{subject}: {amount:pod} unschedulable{pods}{detail:; }"


def _broken_dependency(finding: Finding) -> str:
    if finding.subject.startswith("Service "):
        return "{subject} has no ready pod{detail}"
    return (
        "{subject:the cluster}: {amount:pod} left without something {plural:it depends|they depend} on{pods}{detail:; }"
    )


def _lost(finding: Finding) -> str:
    if _is_about_its_pod(finding):
        return "{subject} is evicted or deleted, and no controller recreates it (limit {limit})"
    return (
        "{subject:the cluster}: {amount:pod} evicted or deleted, and no controller recreates {plural:it|them} (limit"
        " {limit}){pods}"
    )


def _deletion(finding: Finding) -> str:
    reason = "{message}" if finding.detail else "with {change}"
    pods = "" if _is_about_its_pod(finding) else "{counted_pods}"
    return f"{{subject:a workload}} is deleted {reason} (limit {{limit}}){pods}"


def _quota_rejection(finding: Finding) -> str:
    if finding.subject.startswith(("ResourceQuota ", "LimitRange ")):
        return "{subject} is exceeded{detail}"
    return "{subject}: {amount:pod} rejected (limit {limit}){detail:; }"


# How the reasons begin why objects cannot be in a namespace, as the plan of a change has them.
_MISSING_NAMESPACE = ("neither in the cluster", "the change creates it")


def _apply_rejected(finding: Finding) -> str:
    if finding.detail.startswith("its pods are rejected"):
        return "{subject}{detail}"
    # A missing namespace rejects its objects; an invalid one is rejected itself.
    is_missing = finding.subject.startswith("Namespace ") and finding.detail.startswith(_MISSING_NAMESPACE)
    return "{subject} does not exist{detail}" if is_missing else "{subject} cannot be applied{detail}"


def _drain_blocked(finding: Finding) -> str:
    is_node = finding.subject.startswith("Node ")
    effect = "cannot be drained because of" if is_node else "blocks the eviction of"
    return f"{{subject:the drain}} {effect} {{names}}{{detail}}"


def _snapshot_age(finding: Finding) -> str:
    if finding.amount > 0:
        return "the snapshot is {age} old (limit {limit:time}){detail}"
    return "{message}" if finding.detail else "the age of the snapshot is unknown"


# Rules without a limit about what the change itself removes, weakens or gets wrong.
_about_change = partial(Rule, takes=OptionType.SWITCH, is_overridable=False, is_damage=True, commands=("check",))
# Rules about unknowns, which have no option.
_about_unknown = partial(Rule, takes=OptionType.NOTHING, is_overridable=False, about_input=True)


class RuleId(StrEnum):
    """The name of a rule; ``row`` describes it.

    The members are kpreempt's built-in rules. Custom rules of a ``kpreempt.toml`` (``of_expression``) have the same
    type but are not members: neither iteration nor ``RuleId(name)`` returns them.
    """

    row: Rule

    def __new__(cls, name: str, *facts: Any) -> RuleId:
        """Create the member for a row, which Enum passes field by field."""
        rule = str.__new__(cls, name)
        rule._value_, rule.row = name, Rule(name, *facts)
        return rule

    @classmethod
    def of_expression(cls, name: str, expression: str, severity: RuleSeverity = RuleSeverity.ERROR) -> RuleId:
        """Create a custom rule that requires an expression to be true."""
        one_line = " ".join(expression.split())
        rule = str.__new__(cls, name)
        rule._name_ = rule._value_ = name
        rule.row = Rule(
            name,
            promise=one_line if len(one_line) <= _LONGEST_PROMISE else f"{one_line[: _LONGEST_PROMISE - 1]}…",
            meaning=f"A custom rule of kpreempt.toml. This expression must be true: {expression}",
            advice="Change what the expression checks, or waive the rule by name.",
            takes=OptionType.SWITCH,
            is_overridable=False,
            about_input=True,
            gitlab="major",
            severity=severity,
        )
        return rule

    @property
    def is_custom(self) -> bool:
        """Whether the rule is a custom rule of a ``kpreempt.toml``."""
        return self._name_ not in type(self).__members__

    MAX_PDB_VIOLATIONS = Rule(
        "max-pdb-violations",
        promise="no known budget is violated",
        meaning="Evictions that violate a PodDisruptionBudget. The scheduler evicts these pods only if it finds no"
        " other victims.",
        advice="Add capacity first, or let the change request less or have a lower priority.",
        sentence="budget {name}: {amount:eviction} beyond its allowed disruptions (limit {limit}){pods}",
        option="Maximum number of evictions that may violate a PodDisruptionBudget.",
        is_everyday=True,
        is_pooled=True,
        concept="concepts/workloads/pods/disruptions/",
        example=Example(
            f"{manifests.FULL} and whose budget allows no disruptions. The new pod preempts one of them. With a smaller"
            " request it fits.",
            manifests.PREEMPTS,
            manifests.FITS,
        ),
    )
    MAX_VICTIMS = Rule(
        "max-victims",
        promise="few pods are evicted",
        meaning="Pods evicted because of the change, including pods that a victim's replacement preempts.",
        advice="Add capacity first, request less, or give the change a lower priority.",
        sentence=_one_or_all(
            "{subject}: {amount:pod} evicted (limit {limit}){pods}", "{amount:pod} evicted (limit {limit}){pods}"
        ),
        option="Maximum number of evicted pods in total.",
        is_everyday=True,
        default=None,
        gitlab="major",
        example=Example(
            f"{manifests.FULL}. No pod may be evicted.",
            manifests.PREEMPTS,
            manifests.FITS,
            ("--max-victims", "0"),
        ),
    )
    MAX_VICTIMS_PER_WORKLOAD = Rule(
        "max-victims-per-workload",
        promise="no workload loses many pods",
        meaning="Pods of one workload evicted because of the change.",
        advice="Add capacity for the change elsewhere, or let it request less or have a lower priority.",
        sentence="{subject:a workload}: {amount:pod} evicted (limit {limit}){pods}",
        option="Maximum number of evicted pods per workload.",
        default=None,
        gitlab="major",
        example=Example(
            f"{manifests.FULL}. No workload may lose a pod.",
            manifests.PREEMPTS,
            manifests.FITS,
            ("--max-victims-per-workload", "0"),
        ),
    )
    FORBID_VICTIMS = Rule(
        "forbid-victims",
        promise="protected pods are not evicted",
        meaning="Evictions of protected pods, which you select by namespace, labels or priority class.",
        advice="Raise the priority of the protected pods above the priority of the change, or add capacity first.",
        sentence="{subject:a workload} is protected, but {amount:pod} {plural:is|are} evicted{pods}{detail:;"
        " forbidden by }",
        option="Pods that must not be evicted: namespace=NAME, label=SELECTOR or priority-class=NAME; * matches any"
        " text. Repeatable.",
        is_everyday=True,
        takes=OptionType.PODS,
        is_overridable=False,
        example=Example(
            f"{manifests.FULL}. The pods of the namespace are protected.",
            manifests.PREEMPTS,
            manifests.FITS,
            ("--forbid-victims", "namespace=shop"),
        ),
    )
    REQUIRE_SCHEDULABLE = Rule(
        "require-schedulable",
        promise="every pod in the change is scheduled",
        meaning="Pods in the change that are still pending at the end.",
        advice="Request less, relax the pod's node constraints, or add nodes.",
        sentence=_unschedulable,
        option="Every pod in the change must be scheduled.",
        takes=OptionType.SWITCH,
        commands=("check",),
        concept="concepts/scheduling-eviction/kube-scheduler/",
        example=Example(
            "No node has three CPUs, so the pod stays pending.",
            manifests.workload("3"),
            manifests.workload("100m"),
        ),
    )
    MAX_CASCADE_DEPTH = Rule(
        "max-cascade-depth",
        promise="evictions do not cascade",
        meaning="The length of a chain of evictions: the replacement of a victim may evict other pods in turn.",
        advice="Add capacity for the displaced pods, or set their preemptionPolicy to Never.",
        sentence="{chain}: {amount:eviction} in a chain (limit {limit})",
        option="Maximum length of a chain of evictions.",
        default=1,
        gitlab="major",
        example=Example(
            f"{manifests.FULL}. The victim's replacement preempts another pod in zone b.",
            manifests.PREEMPTS,
            manifests.FITS,
        ),
    )
    MAX_PENDING = Rule(
        "max-pending",
        promise="evicted pods reschedule",
        meaning="Replacement pods that are still pending at the end.",
        advice="Add capacity for the replacements, or request less in the change.",
        sentence="{subject:the cluster}: {amount:replacement pod} {plural:stays|stay} pending (limit"
        " {limit}){pods}{detail:; }",
        option="Maximum number of replacement pods still pending at the end.",
        is_everyday=True,
        is_pooled=True,
        example=Example(
            f"{manifests.FULL}. The replacement of the last victim does not fit on any node.",
            manifests.PREEMPTS,
            manifests.FITS,
        ),
    )
    MAX_BROKEN_DEPENDENCIES = Rule(
        "max-broken-dependencies",
        promise="no dependency is broken",
        meaning="Services, pods and nodes that lose something they depend on, without being evicted themselves: a"
        " Service without a ready pod, a pod without the pods that its affinity requires, a node without its"
        " DaemonSet pod.",
        advice="Run at least two replicas: a single one always leaves a gap when it moves. If pods are evicted, add"
        " capacity for the change that evicts them.",
        sentence=_broken_dependency,
        option="Maximum number of Services, pods or nodes left without something they depend on.",
        is_pooled=True,
        example=Example(
            f"{manifests.FULL}. The evictions end with the only pod of `Service batch/report`.",
            manifests.PREEMPTS,
            manifests.FITS,
        ),
    )
    BRIEF_INTERRUPTION = Rule(
        "brief-interruption",
        promise="no Service is interrupted",
        meaning="Services whose only ready pod moves: until its new pod is ready, nothing answers. The gap is a"
        " minimum, because pods are simulated to start at once. One that lasts longer than 5 minutes violates"
        " `max-broken-dependencies` instead, and so does any gap of a Service with several pods.",
        advice="Accept the gap, or run at least two replicas. A PodDisruptionBudget for a single pod would block the"
        " drain forever.",
        sentence="{subject} has no ready pod{detail: }",
        option="No Service may be interrupted while its only pod moves.",
        takes=OptionType.SWITCH,
        is_overridable=False,
        severity=RuleSeverity.WARN,
        gitlab="minor",
        concept="concepts/services-networking/service/",
        example=Example(
            "The only pod of `Service batch/report` runs on `n3`, and `n4` has free capacity.",
            "kpreempt drain n3 --snapshot cluster.yaml --with node.yaml --severity brief-interruption=error\n",
            "kpreempt drain n3 --snapshot cluster.yaml --with node.yaml --with second.yaml \\\n"
            "  --severity brief-interruption=error\n",
            files={"node.yaml": manifests.EMPTY_NODE, "second.yaml": manifests.SECOND_REPORT},
        ),
    )
    LOST_PODS = Rule(
        "lost-pods",
        promise="no pod is lost permanently",
        meaning="Pods that are evicted, or deleted with their node, and that no controller recreates.",
        advice="Run the pods under a controller, give them a higher priority than the change, or add capacity first.",
        sentence=_lost,
        option="Maximum number of evicted pods that no controller will recreate.",
        is_pooled=True,
        concept="concepts/workloads/pods/disruptions/",
        example=Example(
            "`Pod batch/notebook` runs on node n1, and no controller owns it. It is preempted, and nothing recreates"
            " it.",
            manifests.workload("500m", more="priorityClassName: high\nnodeSelector: {kubernetes.io/hostname: n1}"),
            manifests.workload("100m", more="priorityClassName: high\nnodeSelector: {kubernetes.io/hostname: n1}"),
        ),
    )
    MAX_DELETIONS = Rule(
        "max-deletions",
        promise="no unlisted deletions",
        meaning="Running workloads that the change deletes, by pruning or with their namespace, and that are not"
        " listed with `--delete`.",
        advice="Allow each deletion with --delete KIND/NS/NAME, restore the workload's manifest, or keep its"
        " namespace.",
        sentence=_deletion,
        option="Maximum number of running workloads deleted without being listed with --delete.",
        is_pooled=True,
        is_damage=True,
        commands=("check",),
        concept="concepts/architecture/garbage-collection/",
        example=Example(
            "`Deployment batch/report` and `Pod batch/notebook` run in the namespace, and no `--delete` lists them.",
            "kpreempt check --snapshot cluster.yaml --delete namespace/batch\n",
            "kpreempt check --snapshot cluster.yaml --delete namespace/batch \\\n"
            "  --delete deployment/batch/report --delete service/batch/report --delete pod/batch/notebook\n",
        ),
    )
    NAMESPACE_DELETION = _about_change(
        "namespace-deletion",
        promise="no namespace is deleted",
        meaning="Namespaces that the change deletes and that are not listed with `--delete`. Deleting a namespace"
        " also deletes its objects that are not in the manifests.",
        advice="Keep the namespace in the manifests, or allow the deletion with --delete namespace/NAME and list the"
        " objects that are deleted with it.",
        sentence="{subject} is deleted{detail: }",
        option="No namespace may be deleted unless --delete lists it.",
        concept="concepts/overview/working-with-objects/namespaces/",
        example=Example(
            "`Namespace batch` is missing from the new manifests. `Deployment batch/report` is deleted with it,"
            " although it was never in a manifest.",
            "kpreempt check -f new.yaml --base old.yaml --prune --snapshot cluster.yaml\n",
            "kpreempt check -f new.yaml --base old.yaml --snapshot cluster.yaml\n",
            files={"old.yaml": manifests.NAMESPACES, "new.yaml": manifests.namespace("shop")},
        ),
    )
    VOLUME_DELETION = _about_change(
        "volume-deletion",
        promise="no volume is deleted",
        meaning="Bound PersistentVolumeClaims, and PersistentVolumes with a claim, that the change deletes (by"
        " pruning, with their namespace or owner, or by the retention policy of their StatefulSet) and that are not"
        " listed with `--delete`.",
        advice="Keep the claim in the manifests, or back up its data and allow it with --delete pvc/NS/NAME.",
        sentence="{subject} is deleted{detail: }",
        option="No volume may be deleted unless --delete lists it.",
        concept="concepts/storage/persistent-volumes/",
        example=Example(
            "The bound claim `data` is missing from the new manifests.",
            "kpreempt check -f new.yaml --base old.yaml --prune --snapshot cluster.yaml\n",
            "kpreempt check -f new.yaml --base old.yaml --prune --snapshot cluster.yaml \\\n"
            "  --delete pvc/archive/data\n",
            files={
                "old.yaml": manifests.namespace("archive") + "---\n" + manifests.CLAIM,
                "new.yaml": manifests.namespace("archive"),
            },
        ),
    )
    SCALED_TO_ZERO = _about_change(
        "scaled-to-zero",
        promise="workloads keep at least one pod",
        meaning="Workloads that lose all their pods: no replicas, a suspended Job or CronJob, or a DaemonSet that no"
        " longer runs on any node.",
        advice="Keep one replica, or waive the rule for this workload.",
        sentence="{subject} is scaled to zero{detail}",
        option="A workload with pods must keep at least one.",
        concept="concepts/workloads/controllers/",
        example=Example(
            "`Deployment shop/web` has two pods.",
            manifests.web(size="  replicas: 0\n"),
            manifests.web(),
        ),
    )
    SERVICE_OUTAGE = _about_change(
        "service-outage",
        promise="Services keep their pods",
        meaning="Services with pods, if the change deletes the Service and `--delete` does not list it. Also"
        " Services that lose all pods because the change deletes, scales down or relabels the pods, or modifies the"
        " selector."
        " For Services that lose their pods to evictions, see `max-broken-dependencies`.",
        advice="Make the selector match the labels of the pods, keep at least one pod, or allow the deletion with"
        " --delete"
        " service/NS/NAME.",
        sentence=_IN_FULL,
        option="A Service with pods must keep at least one.",
        concept="concepts/services-networking/service/",
        example=Example(
            "The selector has a typo, so `Service shop/web` no longer selects the pods of `Deployment shop/web`.",
            manifests.service("app: wbe"),
            manifests.service("app: web"),
        ),
    )
    QUOTA_REJECTIONS = Rule(
        "quota-rejections",
        promise="the change fits in its quotas",
        meaning="Pods that a ResourceQuota rejects, permanently or until another pod is deleted. Also quotas for"
        " other objects or storage, if the change exceeds them, and ResourceQuotas and LimitRanges in the change, if"
        " running pods already exceed them and new pods would be rejected.",
        advice="Raise the quota, request less, or let the rollout delete old pods first (maxSurge: 0).",
        sentence=_quota_rejection,
        option="Maximum number of pods a ResourceQuota may reject.",
        is_pooled=True,
        gitlab="major",
        concept="concepts/policy/resource-quotas/",
        example=Example(
            "The ResourceQuota of the namespace allows one pod.",
            manifests.workload("100m", namespace="tight", replicas=2),
            manifests.workload("100m", namespace="tight"),
        ),
    )
    FORBID_LOOPS = Rule(
        "forbid-loops",
        promise="the cluster settles",
        meaning="Pods that preempt each other repeatedly, so the cluster never settles.",
        advice="Give these workloads the same priority, or add capacity for both.",
        sentence="{subject:the cluster} never settles{pods}{detail:; }",
        option="Pods must not preempt each other repeatedly.",
        takes=OptionType.SWITCH,
        example=Example(
            "kube-scheduler's own preemption always settles, because a victim always has the lower priority. The"
            " plugin in this example accepts any victim in zone b, whose only node has capacity for either `shop/api`"
            " or `batch/report`, but not for both.",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --plugin newest.py:NewestFirst\n",
            "kpreempt check -f fixed.yaml --snapshot cluster.yaml --plugin newest.py:NewestFirst\n",
            files={
                "change.yaml": manifests.workload("1500m", more="nodeSelector: {zone: b}"),
                "fixed.yaml": manifests.workload("100m", more="nodeSelector: {zone: b}"),
                "newest.py": manifests.NEWEST_FIRST,
            },
        ),
    )
    MIN_READY = Rule(
        "min-ready",
        promise="workloads stay ready",
        meaning="Workloads with at least two ready pods, if their share of ready pods drops to this percentage or less"
        " during the rollout. For deleted workloads, see `max-deletions`; for workloads scaled to zero,"
        " `scaled-to-zero`."
        " DaemonSets are exempt: replacing their pods always leaves a gap.",
        advice="If the change replaces the pods, let it keep old pods until new ones are ready (RollingUpdate, a"
        " smaller maxUnavailable); a PodDisruptionBudget has no effect on a rollout. If other pods evict them, add"
        " capacity for those.",
        sentence="{subject:a workload} drops to{detail: } (limit {limit}%)",
        option="Fail if a workload's ready pods drop to N percent or less.",
        concept="concepts/workloads/controllers/deployment/",
        example=Example(
            "`Deployment shop/web` has two ready pods. With Recreate, both are deleted before the first new pod is"
            " created.",
            manifests.web(strategy="{type: Recreate}"),
            manifests.web(),
        ),
    )
    APPLY_REJECTED = Rule(
        "apply-rejected",
        promise="the API server accepts the change",
        meaning="Objects in the change that the API server rejects: they have unknown fields or values of the wrong"
        " type, break a validation rule of their kind, modify an immutable field, are in a namespace that does not"
        " exist, or are rejected by an admission plugin or a policy. Also workloads whose pods would be rejected. None"
        " of these objects is simulated.",
        advice="Correct the field in the message. An immutable field must stay as it is in the cluster: keep its value,"
        " rename the object, or delete the object first (this deletes its pods, too). Create a namespace before the"
        " objects in it (--create-namespace).",
        sentence=_apply_rejected,
        option="The API server must accept every object.",
        takes=OptionType.SWITCH,
        is_overridable=False,
        about_input=True,
        commands=("check",),
        concept="reference/using-api/api-concepts/",
        example=Example(
            "`Deployment shop/web` exists, and the selector of a Deployment is immutable.",
            manifests.web(label="tier: web"),
            manifests.web(),
        ),
        topics=REJECTIONS,
    )
    REMOVED_API = Rule(
        "removed-api",
        promise="the next version serves all APIs",
        meaning="Objects in the change with an API version that the cluster's version or the next minor version does"
        " not serve.",
        advice="Migrate the object to the replacement API version, for example with kubectl convert.",
        sentence="{subject} uses a removed API version{detail}",
        option="The next minor version must serve the API of every object.",
        takes=OptionType.SWITCH,
        is_overridable=False,
        about_input=True,
        gitlab="major",
        commands=("check",),
        concept="reference/using-api/deprecation-guide/",
        example=Example(
            "The cluster runs 1.36.",
            manifests.report_budget("maxUnavailable: 1", api="policy/v1beta1"),
            manifests.report_budget("maxUnavailable: 1"),
        ),
    )
    PDB_BLOCKS_DRAIN = _about_change(
        "pdb-blocks-drain",
        promise="nodes can be drained",
        meaning="PodDisruptionBudgets that never allow a disruption after the change, or that share a pod with"
        " another PodDisruptionBudget, so no node with one of their pods can be drained. Covers the budgets in the"
        " change, and other budgets that did not block drains before the change.",
        advice="Run at least two pods and let the PDB allow one disruption (maxUnavailable: 1), or keep one PDB per"
        " pod. A PDB for a single pod blocks every drain.",
        sentence="{subject} blocks all drains{detail}",
        option="Every PDB in the change, and every PDB for a pod that the change affects, must be able to allow a"
        " disruption.",
        gitlab="major",
        concept="tasks/run-application/configure-pdb/",
        example=Example(
            "`Deployment batch/report` has one pod, and the PDB does not allow its eviction.",
            manifests.report_budget("minAvailable: 1"),
            manifests.report_budget("maxUnavailable: 1"),
        ),
    )
    PDB_SELECTOR = _about_change(
        "pdb-selector",
        promise="PDBs select their pods",
        meaning="PodDisruptionBudgets in the change whose selector matches no pod, for example because of a typo, or"
        " is empty and matches every pod of the namespace.",
        advice="Select the pods by the labels in the spec.selector of their workload.",
        sentence="{subject} selects the wrong pods{detail}",
        option="Every PDB in the change must select pods, and must not select the whole namespace with an empty"
        " selector.",
        gitlab="major",
        concept="tasks/run-application/configure-pdb/",
        example=Example(
            "The selector has a typo: the pods have the label `app: report`.",
            manifests.report_budget("maxUnavailable: 1", selector="{matchLabels: {app: reprot}}"),
            manifests.report_budget("maxUnavailable: 1"),
        ),
    )
    PDB_BLOCKS_AT_HPA_MINIMUM = _about_change(
        "pdb-blocks-at-hpa-minimum",
        promise="PDBs allow disruptions at minReplicas",
        meaning="PodDisruptionBudgets that allow no disruptions once a HorizontalPodAutoscaler has scaled their"
        " workload down to minReplicas.",
        advice="Set maxUnavailable: 1 in the PDB, or raise minReplicas above the PDB's minAvailable.",
        sentence="{subject} blocks drains at an autoscaler's minimum{detail}",
        option="Every PDB must allow a disruption at the minReplicas of its workload's autoscaler.",
        gitlab="minor",
        severity=RuleSeverity.WARN,
        concept="tasks/run-application/configure-pdb/",
        example=Example(
            "A HorizontalPodAutoscaler scales down to one pod at night, and the PDB does not allow its eviction.",
            manifests.scaled_with_budget("minAvailable: 1"),
            manifests.scaled_with_budget("maxUnavailable: 1"),
            ("--autoscaled", "max", "--severity", "pdb-blocks-at-hpa-minimum=error"),
        ),
    )
    PDB_WEAKENED = _about_change(
        "pdb-weakened",
        promise="PDBs protect pods as before",
        meaning="Pods that PodDisruptionBudgets protect less after the change: a PDB allows more disruptions for the"
        " same number of pods, is deleted, or no longer selects them because its selector or their labels change.",
        advice="Keep the PDB and the labels of its pods. If the change is intended, waive the rule for this PDB with"
        " an option or in the kpreempt.toml of the target branch, or list the PDB with --delete.",
        sentence=_IN_FULL,
        option="No PDB may protect its pods less than before the change.",
        waived_by_delete=("PodDisruptionBudget",),
        weakens=True,
        concept="concepts/workloads/pods/disruptions/",
        example=Example(
            "The PDB `shop/web` requires two healthy pods. The change reduces this to one.",
            manifests.budget("1", name="web"),
            manifests.budget("2", name="web"),
        ),
    )
    PRIORITY_LOWERED = _about_change(
        "priority-lowered",
        promise="pods keep their priority",
        meaning="Workloads, pods and PriorityClasses that get a lower priority (other pods may then preempt their"
        " pods) or the preemptionPolicy Never (their pods no longer preempt).",
        advice="Keep the PriorityClass, or use one with the same priority. If the change is intended, waive the rule"
        " for this object.",
        sentence=_IN_FULL,
        option="The change must not lower the priority of a running workload.",
        weakens=True,
        example=Example(
            "The pods of `Deployment shop/web` have priority 0, and the class `low` has -100.",
            manifests.web(more="      priorityClassName: low\n"),
            manifests.web(),
        ),
    )
    PRIORITY_CLASS_IN_USE = _about_change(
        "priority-class-in-use",
        promise="PriorityClasses in use are kept",
        meaning="PriorityClasses that the change deletes while workloads use them. The API server rejects new pods of"
        " these workloads.",
        advice="Give the workloads another PriorityClass first, or keep this one.",
        sentence=_IN_FULL,
        option="The change must not delete a PriorityClass that a workload uses.",
        weakens=True,
        example=Example(
            "`Deployment batch/report` uses the class `low`. No workload uses `high`.",
            "kpreempt check --snapshot cluster.yaml --delete priorityclass/low\n",
            "kpreempt check --snapshot cluster.yaml --delete priorityclass/high\n",
        ),
    )
    DEFAULT_PRIORITY_CHANGED = _about_change(
        "default-priority-changed",
        promise="the default priority is unchanged",
        meaning="PriorityClasses with globalDefault that the change creates, deletes or modifies. New pods without a"
        " PriorityClass then get a different priority from the pods they replace, and may preempt or be preempted.",
        advice="Keep the default unchanged, and set the PriorityClass in the workloads that need it.",
        sentence=_IN_FULL,
        option="Pods without a PriorityClass must keep the same default priority.",
        weakens=True,
        example=Example(
            "`Deployment shop/web` has no PriorityClass. With a default class, its new pods get priority 500.",
            manifests.default_class("true"),
            manifests.default_class("false"),
        ),
    )
    QUOTA_LOOSENED = _about_change(
        "quota-loosened",
        promise="quotas are not loosened",
        meaning="ResourceQuotas and LimitRanges that allow more than before the change, or no longer limit a resource.",
        advice="Keep the limit. If the change is intended, waive the rule for this quota, or list the quota with"
        " --delete.",
        sentence=_IN_FULL,
        option="No ResourceQuota or LimitRange may allow more than before.",
        waived_by_delete=("ResourceQuota", "LimitRange"),
        weakens=True,
        gitlab="major",
        concept="concepts/policy/resource-quotas/",
        example=Example(
            "The ResourceQuota of the namespace allows one pod.",
            manifests.quota("10"),
            manifests.quota("1"),
        ),
    )
    NAMESPACE_RELABELED = _about_change(
        "namespace-relabeled",
        promise="namespace labels are unchanged",
        meaning="Namespaces for which the change removes or modifies a label of Pod Security Admission, or a label"
        " that a namespaceSelector in pod affinity uses.",
        advice="Keep the label. If the change is intended, waive the rule for this namespace.",
        sentence=_IN_FULL,
        option="Namespace labels used by Pod Security Admission or pod affinity must not change.",
        weakens=True,
        gitlab="major",
        concept="concepts/security/pod-security-admission/",
        example=Example(
            "Pod Security Admission enforces the level `baseline` in the namespace.",
            manifests.restricted_namespace("privileged"),
            manifests.restricted_namespace("baseline"),
        ),
    )
    OWNER_REMOVED = _about_change(
        "owner-removed",
        promise="pods keep their controller",
        meaning="Pods, ReplicaSets and Jobs whose manifests omit the controller that owns them in the cluster."
        " Without a controller, they are not replaced, and PDBs count them differently.",
        advice="Remove the object from the change, and change its controller's manifest instead.",
        sentence=_IN_FULL,
        option="No manifest may omit the controller's owner reference if the object in the cluster has one.",
        weakens=True,
        gitlab="major",
        concept="concepts/overview/working-with-objects/owners-dependents/",
        example=Example(
            "`ReplicaSet shop/web-1` controls the pod and would replace it.",
            manifests.web_pod(""),
            manifests.web_pod(
                "  ownerReferences:\n"
                "  - {apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: r-web, controller: true}\n"
            ),
        ),
    )
    DRAIN_INCOMPLETE = Rule(
        "drain-incomplete",
        promise="every node drains",
        meaning="Pods that a drain cannot evict, so it waits forever or gives up: a PodDisruptionBudget never allows"
        " the eviction, or does not allow it while other pods are pending or not ready; two PodDisruptionBudgets"
        " select the same"
        " pod; or kubectl drain needs an option to delete the pod.",
        advice="Repair pods that are not ready, restart or scale up the workload, add capacity, or let the budget allow"
        " one disruption (maxUnavailable: 1).",
        sentence=_drain_blocked,
        option="Every pod that the drain selects must be evicted.",
        takes=OptionType.SWITCH,
        is_overridable=False,
        commands=("drain",),
        concept="tasks/administer-cluster/safely-drain-node/",
        example=Example(
            "The budget `shop/web` requires both pods of its Deployment to be healthy. One of them runs on `n2`; `n4`"
            " has free capacity.",
            "kpreempt drain n2 --snapshot cluster.yaml --with node.yaml\n",
            "kpreempt drain n2 --snapshot cluster.yaml --with node.yaml --with budget.yaml\n",
            files={"node.yaml": manifests.EMPTY_NODE, "budget.yaml": manifests.budget("1", name="web")},
        ),
    )
    AUTOSCALED_REPLICAS = Rule(
        "autoscaled-replicas",
        promise="replicas set by autoscalers are kept",
        meaning="Workloads in the change whose manifests reset the `replicas` that a HorizontalPodAutoscaler has set."
        " Pods are deleted or created until the autoscaler sets the number again.",
        advice="Remove replicas from the manifest, and from the last applied configuration (kubectl apply"
        " edit-last-applied).",
        sentence="{subject} has its replicas reset{detail}",
        option="No manifest may reset the replicas that an autoscaler has set.",
        takes=OptionType.SWITCH,
        is_overridable=False,
        gitlab="major",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="tasks/run-application/horizontal-pod-autoscale/",
        example=Example(
            "A HorizontalPodAutoscaler has set two replicas, but the manifest has one.",
            manifests.web(size="  replicas: 1\n"),
            manifests.web(size=""),
            ("--severity", "autoscaled-replicas=error"),
        ),
    )
    DUPLICATE_OBJECTS = _about_change(
        "duplicate-objects",
        promise="no object is defined twice",
        meaning="Objects that several documents in the change define differently. The documents are applied in order."
        " Only the last one is simulated; intermediate effects of the earlier documents are not.",
        advice="Remove the earlier documents.",
        sentence="{subject} is in the change more than once{detail}",
        option="The change must not define an object twice, unless the earlier document has no effect.",
        concept="concepts/overview/working-with-objects/",
        example=Example(
            "The file still has a copy of the Deployment with one replica. The Deployment is scaled to 1, then back to"
            " 2.",
            manifests.web(size="  replicas: 1\n") + "---\n" + manifests.web(),
            manifests.web(),
        ),
    )
    AUTOSCALED_MAXIMUM = Rule(
        "autoscaled-maximum",
        promise="autoscaled workloads fit at their maximum",
        meaning="Workloads in the change that do not fit, or that evict pods, at the `maxReplicas` of a"
        " HorizontalPodAutoscaler that the change creates or modifies.",
        advice="Lower maxReplicas, request less, or add nodes.",
        sentence="{subject} does not fit at the maxReplicas of {message}",
        option="Workloads must fit at the maxReplicas of a new or modified autoscaler.",
        takes=OptionType.SWITCH,
        is_overridable=False,
        gitlab="major",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="tasks/run-application/horizontal-pod-autoscale/",
        example=Example(
            "The HorizontalPodAutoscaler may scale `Deployment shop/web` to five pods, but only two fit in zone a.",
            manifests.web() + "---\n" + manifests.autoscaler(5),
            manifests.web() + "---\n" + manifests.autoscaler(2),
            ("--severity", "autoscaled-maximum=error"),
        ),
    )
    ROLLOUT_STUCK = Rule(
        "rollout-stuck",
        promise="rollouts replace all pods",
        meaning="Modified workloads that keep pods of the old template because of a partition, OnDelete, a paused"
        " rollout, or new pods that cannot share a node with old pods.",
        advice="Set the partition to 0, delete the old pods, resume the rollout, or delete each old pod before its"
        " replacement is created (maxSurge: 0, maxUnavailable: 1).",
        sentence=_or_deadlock("{subject} keeps old pods{detail}"),
        option="Rollouts of modified workloads must replace all old pods.",
        takes=OptionType.SWITCH,
        is_overridable=False,
        gitlab="major",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="concepts/workloads/controllers/deployment/",
        example=Example(
            "A paused Deployment keeps its old pods. So does a StatefulSet with a partition or OnDelete.",
            manifests.web(paused="true"),
            manifests.web(),
            ("--severity", "rollout-stuck=error"),
        ),
    )
    VOLUME_ATTACHED_ELSEWHERE = _about_change(
        "volume-attached-elsewhere",
        promise="pods get their volumes",
        meaning="Pods that never start because their volume can be attached to only one node at a time (ReadWriteOnce)"
        " and stays attached to another node, where other pods use it.",
        advice="Delete the old pod before creating the new one (Recreate, or maxSurge: 0), use a ReadWriteMany"
        " volume, or use a StatefulSet to give each pod its own claim.",
        sentence=_or_deadlock("{subject} has pods that never get their volume{detail}"),
        option="No pod may wait for a volume attached to another node.",
        gitlab="major",
        concept="concepts/storage/persistent-volumes/#access-modes",
        example=Example(
            "No node has capacity for two of these pods, and the volume of `PersistentVolumeClaim shop/notes` can be"
            " attached to only one node at a time.",
            manifests.workload("400m", replicas=2, more=manifests.WITH_CLAIM),
            manifests.workload("400m", more=manifests.WITH_CLAIM),
        ),
    )
    BYPASSES_SCHEDULER = _about_change(
        "bypasses-scheduler",
        promise="the scheduler places all pods",
        meaning="Pods and pod templates for which the change sets `nodeName`. The scheduler never sees these pods."
        " The kubelet rejects pods that do not fit, and evicts other pods for critical pods without checking"
        " PodDisruptionBudgets. This is an error unless the pods fit on a node that is ready and not cordoned.",
        advice="Remove nodeName. To select the node, use a node selector or node affinity.",
        sentence="{subject} bypasses the scheduler{detail}",
        option="No pod in the change may set nodeName.",
        severity=RuleSeverity.WARN,
        concept="concepts/scheduling-eviction/assign-pod-node/#nodename",
        example=Example(
            "Node `n3` has half a CPU free. Its kubelet rejects the pod, and the ReplicaSet keeps creating new ones.",
            manifests.workload("1500m", more="nodeName: n3"),
            manifests.workload("500m", more="nodeSelector: {zone: b}"),
        ),
    )
    ADOPTED_PODS = _about_change(
        "adopted-pods",
        promise="no controller adopts pods",
        meaning="Pods and ReplicaSets without a controller that a controller adopts because its selector matches them"
        " after the change. This is an error if the controller then deletes some of the pods.",
        advice="Make the selector match only the controller's own pods, for example with an additional label.",
        sentence="{subject} adopts objects without a controller{detail}",
        option="No controller may adopt existing pods.",
        severity=RuleSeverity.WARN,
        concept="concepts/workloads/controllers/replicaset/#non-template-pod-acquisitions",
        example=Example(
            "`Pod batch/notebook` has no controller. The selector of this ReplicaSet matches it, and the ReplicaSet"
            " has no replicas, so it deletes the pod.",
            manifests.replica_set("app: notebook"),
            manifests.replica_set("app: notebook, team: data"),
        ),
    )
    CREATED_NODES = _about_change(
        "created-nodes",
        promise="no Node objects are created",
        meaning="Node objects that the change creates. They add no capacity: the API server taints them as not ready,"
        " and no kubelet runs for them.",
        advice="Remove the Node: a node registers itself. To simulate new nodes, use --add-node.",
        sentence="{subject} adds no capacity{detail}",
        option="The change must not create Node objects.",
        gitlab="major",
        concept="concepts/architecture/nodes/#management",
        example=Example(
            "The pod fits on the existing nodes. The Node object is not backed by a machine, so no pod can run there.",
            f"{manifests.EMPTY_NODE}---\n{manifests.workload('400m')}",
            manifests.workload("400m"),
        ),
    )
    MAX_SNAPSHOT_AGE = Rule(
        "max-snapshot-age",
        promise="the snapshot is recent",
        meaning="The age of the snapshot. kpreempt cannot take into account what changed after it was taken.",
        advice="Take a new snapshot, or read the live cluster.",
        sentence=_snapshot_age,
        option="Maximum age of the snapshot, such as 30m or 12h; an unknown age fails.",
        takes=OptionType.TIME,
        default=None,
        is_overridable=False,
        about_input=True,
        gitlab="minor",
        example=Example(
            "The dump is from the day before. `kpreempt snapshot --to new.yaml` takes a new one.",
            "kpreempt check -f change.yaml --snapshot old.yaml --max-snapshot-age 1h --now 2026-11-21T00:30:00Z\n",
            "kpreempt check -f change.yaml --snapshot new.yaml --max-snapshot-age 1h --now 2026-11-21T00:30:00Z\n",
            files={
                "change.yaml": manifests.workload("100m"),
                "old.yaml": manifests.dump('kpreempt.io/taken-at: "2026-11-20T00:00:00Z"', manifests.NODE),
                "new.yaml": manifests.dump('kpreempt.io/taken-at: "2026-11-21T00:00:00Z"', manifests.NODE),
            },
        ),
    )
    PDBS_UNREADABLE = _about_unknown(
        "pdbs-unreadable",
        promise="budgets are known",
        meaning="PodDisruptionBudgets that could not be read, so violations are unknown.",
        advice="Allow the account to list poddisruptionbudgets in all namespaces, or waive the rule by name.",
        sentence=_unknown("could not be read", "budgets could not be read"),
        gitlab="major",
        concept="concepts/workloads/pods/disruptions/",
        example=Example(
            "The account that took the dump had no permission to list budgets. `deploy/cluster-role.yaml` grants it.",
            "kpreempt check -f change.yaml --snapshot without-rights.yaml --max-victims 1 --lost-pods 1\n",
            "kpreempt check -f change.yaml --snapshot with-rights.yaml --max-victims 1 --lost-pods 1\n",
            files={
                "change.yaml": manifests.workload("1500m", more="priorityClassName: high"),
                "without-rights.yaml": manifests.dump(
                    "kpreempt.io/unread: '{\"PodDisruptionBudget\": 403}'",
                    manifests.NODE,
                    manifests.HIGH,
                    manifests.RUNNING,
                ),
                "with-rights.yaml": manifests.dump("", manifests.NODE, manifests.HIGH, manifests.RUNNING),
            },
        ),
    )
    ABSENT_KINDS = _about_unknown(
        "absent-kinds",
        promise="the snapshot is complete",
        meaning="Kinds that are missing from the dump and could change this verdict:"
        " PodDisruptionBudgets if pods are evicted, ResourceQuotas if new workloads create pods, PriorityClasses and"
        " volumes if pods refer to them. Also nodes that are missing from the dump although pods run on them.",
        advice="Add the kind to the dump with the kubectl get command in the finding. If the cluster has no such"
        " objects, use --assume-none KIND, or assume-none in kpreempt.toml.",
        sentence=_unknown("may be missing from the snapshot", "the dump may be incomplete"),
        gitlab="major",
        concept="reference/kubectl/generated/kubectl_get/",
        example=Example(
            "The dump has no PodDisruptionBudget, and the change evicts a pod that a budget may protect. The second"
            " run states that the cluster has none.",
            "kpreempt check -f change.yaml --snapshot dump.yaml --max-victims 1 --lost-pods 1 --assume-none quota\n",
            "kpreempt check -f change.yaml --snapshot dump.yaml --max-victims 1 --lost-pods 1 --assume-none quota \\\n"
            "  --assume-none pdb\n",
            files={
                "change.yaml": manifests.workload("1500m", more="priorityClassName: high"),
                "dump.yaml": "\n---\n".join((manifests.NODE, manifests.HIGH, manifests.RUNNING)) + "\n",
            },
        ),
    )
    SKIPPED_OBJECTS = _about_unknown(
        "skipped-objects",
        promise="no object is skipped",
        meaning="Objects and files that were skipped because they could not be read.",
        advice="Fix the objects or files, or waive the rule by name.",
        sentence=_unknown("is skipped", "objects are skipped"),
        gitlab="major",
        concept="concepts/overview/working-with-objects/",
        example=Example(
            "An object of the dump is invalid and is skipped.",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --snapshot damaged.yaml --skip-bad-objects\n",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --snapshot fixed.yaml --skip-bad-objects\n",
            files={
                "change.yaml": manifests.workload("100m"),
                "damaged.yaml": manifests.bare_pod("nodeName: 3"),
                "fixed.yaml": manifests.bare_pod("nodeName: n3"),
            },
        ),
    )
    UNMODELED_INPUT = _about_unknown(
        "unmodeled-input",
        promise="everything is modeled",
        meaning="Something in the input that is not modeled and could change the answer.",
        advice="Read the finding, and waive the rule by name if it does not matter.",
        sentence=_unknown("is not fully modeled", "not everything is modeled"),
        gitlab="major",
        example=Example(
            "The change modifies a HorizontalPodAutoscaler, but does not include the Deployment that it scales, so"
            " the Deployment is not simulated.",
            manifests.autoscaler(2),
            manifests.web() + "---\n" + manifests.autoscaler(2),
        ),
    )
    CUSTOM_RESOURCES = _about_unknown(
        "custom-resources",
        promise="custom resources are compared",
        meaning="Custom resources of a kind that is missing from the dump. It is unknown whether the change creates or"
        " modifies them, and what their controllers do. For custom resources with a pod template, see"
        " `unmodeled-input`.",
        advice="Add the kind to the dump with the `kubectl get` command in the finding.",
        sentence=_unknown("is not compared", "custom resources are not compared"),
        gitlab="minor",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="concepts/extend-kubernetes/api-extension/custom-resources/",
        example=Example(
            "The dump has no Widgets, so it is unknown whether this one is new.",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --severity custom-resources=error\n",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --snapshot widgets.yaml"
            " --severity custom-resources=error\n",
            files={"change.yaml": manifests.WIDGET, "widgets.yaml": manifests.WIDGET},
        ),
    )
    OUTCOME_UNCERTAIN = _about_unknown(
        "outcome-uncertain",
        promise="the outcome is certain",
        meaning="Pods whose outcome is not certain because it depends on chance or on the scheduler's internal state.",
        advice="Read the finding, and waive the rule by name if it does not matter.",
        sentence=_unknown("may have another outcome", "the outcome is uncertain"),
        gitlab="major",
        example=Example(
            "There are more possible outcomes than the first command simulates.",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --worst-case --max-runs 1\n",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --worst-case --max-runs 100\n",
            files={"change.yaml": manifests.workload("100m", replicas=3)},
        ),
    )


class GateFlags(NamedTuple):
    """The gate's options as given; ``rules`` maps a rule to the value of its option: a text, a switch, or a list."""

    config: str | None = None
    config_from: str | None = None
    no_annotation_waivers: bool = False
    rules: Mapping[RuleId, Any] = {}
    severity: Sequence[str] = ()
    report_only: bool = False
    waive: Sequence[str] = ()
    baseline: str | None = None
    write_baseline: str | None = None
    expires: str | None = None
