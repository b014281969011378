"""The rules of the gate, one row each: what ``check`` measures, what it allows, and how that is told.

A row is all there is of a rule but its measure, which is a function next to those of its family in
``analysis.check``: its option, default and severity, its sentence, the text of its page, and a change that breaks it
with the same one mended.
From these rows come the options of ``kpreempt check``, the keys of ``kpreempt.toml``, the findings in all formats, the
rules of SARIF, GitLab's severities, the pages in ``docs/rules`` and the table in ``docs/gate.md``. This package stands
below the records and loads nothing, since ``--help`` needs it: a sentence is a template that ``report.check.words``
fills in.

What is asked of a gate, before any file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, StrEnum
from functools import partial
from typing import Any, NamedTuple, Protocol

from kpreempt.gate_rules import manifests

# Of a rule of one's own, whose promise is its expression.
_LONGEST_PROMISE = 72
# The subject of what is about no single object.
CLUSTER = "cluster"
# Of findings whose detail is the rest of the sentence.
_IN_FULL = "{subject}{detail: }"


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


class Finding(Protocol):
    """What a sentence depends on: the part of a ``GateFinding`` that chooses its template."""

    @property
    def subject(self) -> str:
        """What it is about: ``Deployment shop/api``, or ``cluster``."""

    @property
    def amount(self) -> int:
        """How much of it there is."""

    @property
    def pods(self) -> Sequence[str]:
        """Those that it is about."""

    @property
    def detail(self) -> str:
        """What else there is to say."""


# A template of ``report.check.words``, or what chooses one for a finding.
Sentence = str | Callable[[Finding], str]


class Example(NamedTuple):
    """A change that breaks a rule, put to ``fixtures/check/rules/cluster.yaml``, which commands call ``cluster.yaml``.

    ``story`` is the situation, in a sentence; ``fails`` breaks the rule, and ``fix`` does not. Both are manifests, or
    commands that begin with ``kpreempt``; ``files`` are those that the commands name, besides ``cluster.yaml``.
    ``options`` are those of ``check`` that the rule needs. A test runs both, and the page of the rule shows what is
    printed then.
    """

    story: str
    fails: str
    fix: str
    options: tuple[str, ...] = ()
    files: Mapping[str, str] = {}

    @property
    def is_of_commands(self) -> bool:
        """Whether it is commands, and no manifests."""
        return self.fails.startswith("kpreempt ")


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
    documentation on what the rule is about. ``commands`` are those that ask it. One that ``weakens`` is about
    protection that a change takes away, which a headline names first. A ``--delete`` that names an object of a kind in
    ``waived_by_delete`` waives it for this object.
    """

    name: str
    promise: str
    meaning: str
    advice: str
    example: Example = Example("", "", "")
    sentence: Sentence = "{message}"
    option: str = ""
    takes: Takes = Takes.NUMBER
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


def _one_or_all(one: str, everything: str) -> Sentence:
    """A template about an object, and one for what is about the cluster as a whole."""
    return lambda finding: everything if finding.subject in ("", CLUSTER) else one


def _unknown(one: str, everything: str) -> Sentence:
    """Templates about something that is not known, of an object and as a whole, with what is said about it."""

    def sentence(finding: Finding) -> str:
        words = everything if finding.subject in ("", CLUSTER) else f"{{subject}} {one}"
        return f"{words}{{pods}}{{detail:; }}" if finding.pods else f"{words}{{detail}}"

    return sentence


def _unschedulable(finding: Finding) -> str:
    if finding.subject.startswith("PersistentVolumeClaim "):
        return "{subject} cannot be bound{detail}"
    if not finding.pods:
        return "{subject}: not completed in the end{detail:; }"
    return "{subject}: {amount:pod} of it unschedulable{pods}{detail:; }"


def _stranded(finding: Finding) -> str:
    if finding.subject.startswith("Service "):
        return "{subject} is without a ready pod{detail}"
    return "{subject:the cluster}: {amount:pod} left without what {plural:it needs|they need}{pods}{detail:; }"


def _lost(finding: Finding) -> str:
    pods = "" if [finding.subject] == [f"Pod {each}" for each in finding.pods] else "{pods}"
    return f"{{subject:a pod}} evicted or deleted, and nothing recreates {{plural:it|them}} (limit {{limit}}){pods}"


def _deletion(finding: Finding) -> str:
    reason = "{message}" if finding.detail else "with {change}"
    pods = "" if [finding.subject] == [f"Pod {each}" for each in finding.pods] else "{counted_pods}"
    return f"{{subject:a workload}} is deleted {reason} (limit {{limit}}){pods}"


def _refused(finding: Finding) -> str:
    if finding.subject.startswith(("ResourceQuota ", "LimitRange ")):
        return "{subject} is exceeded{detail}"
    return "{subject}: {amount:pod} of it {plural:is|are} refused (limit {limit}){detail:; }"


def _apply_refused(finding: Finding) -> str:
    if finding.detail.startswith("its pods are refused"):
        return "{subject}{detail}"
    # Of a namespace it is what is in it that is refused, of a class who names it, unless the object itself is rejected.
    is_missing = finding.subject.startswith(("Namespace ", "PriorityClass ")) and not finding.detail.startswith(
        "unknown "
    )
    return "{subject} is not there{detail}" if is_missing else "{subject} cannot be applied{detail}"


def _drain_blocked(finding: Finding) -> str:
    is_node = finding.subject.startswith("Node ")
    return f"{{subject:the drain}} {'is kept from getting empty by' if is_node else 'keeps'} {{names}}{{detail}}"


def _snapshot_age(finding: Finding) -> str:
    if finding.amount > 0:
        return "the snapshot is {age} old (limit {limit:time}){detail}"
    return "{message}" if finding.detail else "the age of the snapshot is unknown"


# Rules about what the change itself removes, weakens or gets wrong, which only hold or not.
_about_change = partial(Rule, takes=Takes.SWITCH, is_overridable=False, is_damage=True, commands=("check",))
# Rules about what is not known, which no option sets.
_about_unknown = partial(Rule, takes=Takes.NOTHING, is_overridable=False, about_input=True)


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
        sentence="budget {name}: {amount:eviction} beyond its allowed disruptions (limit {limit}){pods}",
        option="So many victims may violate PodDisruptionBudgets.",
        is_pooled=True,
        concept="concepts/workloads/pods/disruptions/",
        example=Example(
            f"{manifests.FULL}, and whose budget allows no disruption. The pod preempts one of them; with less to"
            " ask for it fits.",
            manifests.PREEMPTS,
            manifests.FITS,
        ),
    )
    MAX_VICTIMS = Rule(
        "max-victims",
        promise="few pods are evicted",
        meaning="Pods evicted because of the change, those that a replacement preempts included.",
        advice="Make room first, request less, or give the change a lower priority.",
        sentence=_one_or_all(
            "{subject}: {amount:pod} evicted (limit {limit}){pods}", "{amount:pod} evicted (limit {limit}){pods}"
        ),
        option="So many pods may be evicted in all.",
        default=None,
        gitlab="major",
        example=Example(
            f"{manifests.FULL}, and nobody is to be evicted.",
            manifests.PREEMPTS,
            manifests.FITS,
            ("--max-victims", "0"),
        ),
    )
    MAX_VICTIMS_PER_WORKLOAD = Rule(
        "max-victims-per-workload",
        promise="no workload loses many pods",
        meaning="Pods of one workload evicted because of the change.",
        advice="Give the workload a budget or a higher priority, or make room for the change elsewhere.",
        sentence="{subject:a workload}: {amount:pod} of it evicted (limit {limit}){pods}",
        option="So many pods of each workload may be evicted.",
        default=None,
        gitlab="major",
        example=Example(
            f"{manifests.FULL}, and no workload is to lose a pod.",
            manifests.PREEMPTS,
            manifests.FITS,
            ("--max-victims-per-workload", "0"),
        ),
    )
    FORBID_VICTIMS = Rule(
        "forbid-victims",
        promise="protected pods are not evicted",
        meaning="Evictions of protected pods, by namespace, labels or priority class.",
        advice="Raise the priority of the protected pods above that of the change, or make room first.",
        sentence="{subject:a workload} is protected, and {amount:pod} of it {plural:is|are} evicted{pods}"
        "{detail:; forbidden by }",
        option="Pods that must not be evicted: namespace=NAME, label=SELECTOR or priority-class=NAME; * is any text."
        " Repeatable.",
        takes=Takes.PODS,
        is_overridable=False,
        example=Example(
            f"{manifests.FULL}, and the pods of the namespace are protected.",
            manifests.PREEMPTS,
            manifests.FITS,
            ("--forbid-victims", "namespace=shop"),
        ),
    )
    REQUIRE_SCHEDULABLE = Rule(
        "require-schedulable",
        promise="every pod of the change is scheduled",
        meaning="Pods of the change that are still pending in the end.",
        advice="Request less, relax the pod's node constraints, or add nodes.",
        sentence=_unschedulable,
        option="Every pod of the change must be scheduled.",
        takes=Takes.SWITCH,
        commands=("check",),
        concept="concepts/scheduling-eviction/kube-scheduler/",
        example=Example(
            "No node has three CPUs, so that the pod stays pending.",
            manifests.workload("3"),
            manifests.workload("100m"),
        ),
    )
    MAX_CASCADE_DEPTH = Rule(
        "max-cascade-depth",
        promise="evictions do not cascade",
        meaning="How many evictions follow from one another: a victim's replacement may evict in turn.",
        advice="Make room for what is displaced, or set its preemptionPolicy to Never.",
        sentence="{chain}: {amount:eviction} in a chain (limit {limit})",
        option="So many evictions may follow from one another.",
        default=1,
        gitlab="major",
        example=Example(
            f"{manifests.FULL}. The pod that takes the place of the victim preempts another one in zone b.",
            manifests.PREEMPTS,
            manifests.FITS,
        ),
    )
    MAX_PENDING = Rule(
        "max-pending",
        promise="what ran is scheduled again",
        meaning="Replacements of running pods that are still pending in the end.",
        advice="Add capacity for them, or request less in the change.",
        sentence="{subject:the cluster}: {amount:pod} that ran {plural:is|are} left pending (limit {limit}){pods}"
        "{detail:; }",
        option="So many pods that ran may be pending in the end.",
        is_pooled=True,
        example=Example(
            f"{manifests.FULL}. The last pod that is evicted for it has no place left.",
            manifests.PREEMPTS,
            manifests.FITS,
        ),
    )
    MAX_STRANDED = Rule(
        "max-stranded",
        promise="nothing loses what it needs",
        meaning="What is left without something that it needs, though nobody evicts it: a service without a ready pod,"
        " a pod without those that it has to be near, a node without the pod of a DaemonSet.",
        advice="Protect what it needs by a budget or a priority, or run more of it.",
        sentence=_stranded,
        option="So much may be left without something that it needs.",
        is_pooled=True,
        example=Example(
            f"{manifests.FULL}. In the end the only pod behind `Service batch/report` is gone.",
            manifests.PREEMPTS,
            manifests.FITS,
        ),
    )
    LOST_PODS = Rule(
        "lost-pods",
        promise="nothing is lost for good",
        meaning="Pods evicted, or deleted with their node, that nothing recreates: no controller owns them.",
        advice="Run them under a controller, give them a priority above that of the change, or make room first.",
        sentence=_lost,
        option="So many pods may be lost that nothing recreates.",
        is_pooled=True,
        concept="concepts/workloads/pods/disruptions/",
        example=Example(
            "On node n1 runs `Pod batch/notebook`, which no controller owns. It is preempted, and nothing makes"
            " it again.",
            manifests.workload("500m", more="priorityClassName: high\nnodeSelector: {kubernetes.io/hostname: n1}"),
            manifests.workload("100m", more="priorityClassName: high\nnodeSelector: {kubernetes.io/hostname: n1}"),
        ),
    )
    MAX_DELETIONS = Rule(
        "max-deletions",
        promise="no unlisted deletions",
        meaning="Running workloads that the change deletes without a `--delete` that names them: pruned, or with their"
        " namespace.",
        advice="List what may be deleted with --delete KIND/NS/NAME, put it back into the manifests, or keep its"
        " namespace.",
        sentence=_deletion,
        option="Maximum number of running workloads deleted without a --delete that names them.",
        is_pooled=True,
        is_damage=True,
        commands=("check",),
        concept="concepts/architecture/garbage-collection/",
        example=Example(
            "`Deployment batch/report` and `Pod batch/notebook` run in the namespace, and are not named.",
            "kpreempt check --snapshot cluster.yaml --delete namespace/batch\n",
            "kpreempt check --snapshot cluster.yaml --delete namespace/batch \\\n"
            "  --delete deployment/batch/report --delete service/batch/report --delete pod/batch/notebook\n",
        ),
    )
    NAMESPACE_DELETION = _about_change(
        "namespace-deletion",
        promise="no namespace is deleted",
        meaning="Namespaces that the change deletes without a `--delete` that names them. Everything in them goes, also"
        " what the manifests do not have.",
        advice="Keep the namespace in the manifests, or allow it with --delete namespace/NAME and list what goes with"
        " it.",
        sentence="{subject} is deleted{detail: }",
        option="No namespace may be deleted without a --delete that names it.",
        concept="concepts/overview/working-with-objects/namespaces/",
        example=Example(
            "The new render lacks `Namespace batch`. `Deployment batch/report` goes with it and was never in a"
            " manifest.",
            "kpreempt check -f new.yaml --base old.yaml --prune --snapshot cluster.yaml\n",
            "kpreempt check -f new.yaml --base old.yaml --snapshot cluster.yaml\n",
            files={"old.yaml": manifests.NAMESPACES, "new.yaml": manifests.namespace("shop")},
        ),
    )
    VOLUME_DELETION = _about_change(
        "volume-deletion",
        promise="no volume is deleted",
        meaning="Bound PersistentVolumeClaims, and PersistentVolumes that have a claim, that the change deletes without"
        " a `--delete` that names them: pruned, with their namespace or their owner, or by the retention policy of"
        " their StatefulSet.",
        advice="Keep the claim in the manifests, or back up its data and allow it with --delete pvc/NS/NAME.",
        sentence="{subject} is deleted{detail: }",
        option="No volume may be deleted without a --delete that names it.",
        concept="concepts/storage/persistent-volumes/",
        example=Example(
            "The new render lacks the claim `data`, which is bound.",
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
        promise="workloads keep some pods",
        meaning="Workloads with pods that the change leaves without any: no replicas, a suspended Job or CronJob, a"
        " DaemonSet that no longer runs on any node.",
        advice="Keep one replica, or waive the rule for this workload.",
        sentence="{subject} is scaled to zero{detail}",
        option="Workloads with pods must keep some.",
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
        meaning="Services with pods that the change deletes without a `--delete` that names them, or leaves without"
        " pods: their pods are deleted, scaled to zero or relabeled, or the selector no longer matches them. What"
        " evictions do to a Service is `max-stranded`.",
        advice="Make the selector match the labels of the pods, keep one of them, or allow the deletion with --delete"
        " service/NS/NAME.",
        sentence=_IN_FULL,
        option="Services with pods must keep some.",
        concept="concepts/services-networking/service/",
        example=Example(
            "A mistyped selector: `Service shop/web` no longer selects the pods of `Deployment shop/web`.",
            manifests.service("app: wbe"),
            manifests.service("app: web"),
        ),
    )
    QUOTA_REFUSALS = Rule(
        "quota-refusals",
        promise="quotas have room for the change",
        meaning="Pods that a ResourceQuota refuses, in the end or only until another pod is gone, quotas of other"
        " objects or of storage that the change exceeds, and ResourceQuotas and LimitRanges of the change that running"
        " pods exceed already, so that the next ones are rejected.",
        advice="Raise the quota, request less, or let the rollout take pods away first (maxSurge: 0).",
        sentence=_refused,
        option="So many pods may a ResourceQuota refuse.",
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
        meaning="Pods that preempt one another over and over, so that the cluster never settles.",
        advice="Give these workloads one priority, or make room for both.",
        sentence="{subject:the cluster} never settles{pods}{detail:; }",
        option="The cluster must settle.",
        takes=Takes.SWITCH,
        example=Example(
            "kube-scheduler's own preemption always settles, for a victim always has the lower priority. This plugin"
            " takes any victim in zone b, where the one node has room for one of these pods.",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --plugin newest.py:NewestFirst\n",
            "kpreempt check -f mended.yaml --snapshot cluster.yaml --plugin newest.py:NewestFirst\n",
            files={
                "change.yaml": manifests.workload("1500m", more="nodeSelector: {zone: b}"),
                "mended.yaml": manifests.workload("100m", more="nodeSelector: {zone: b}"),
                "newest.py": manifests.NEWEST_FIRST,
            },
        ),
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
        sentence="{subject:a workload} falls to{detail: } (limit {limit} %)",
        option="The share of ready pods, in percent, to which or below which no workload may fall.",
        concept="concepts/workloads/controllers/deployment/",
        example=Example(
            "`Deployment shop/web` has two ready pods. With Recreate both go before the first new one comes.",
            manifests.web(strategy="{type: Recreate}"),
            manifests.web(),
        ),
    )
    APPLY_REFUSED = Rule(
        "apply-refused",
        promise="the API server takes the change",
        meaning="Objects of the change that the API server refuses: a field differs that cannot be changed, such as a"
        " selector, a field or a resource has a name that the API server does not know, or the namespace is not there.",
        advice="Leave the field as it is, give the object another name, or delete it first, knowing that its pods go."
        " Make the namespace before what is in it (--create-namespace).",
        sentence=_apply_refused,
        option="The API server must take every object.",
        takes=Takes.SWITCH,
        is_overridable=False,
        about_input=True,
        commands=("check",),
        concept="reference/using-api/api-concepts/",
        example=Example(
            "`Deployment shop/web` runs, and the selector of a Deployment cannot be changed.",
            manifests.web(label="tier: web"),
            manifests.web(),
        ),
    )
    REMOVED_API = Rule(
        "removed-api",
        promise="the next version serves all APIs",
        meaning="Objects of the change of an API version that the cluster's version, or the next minor version, does"
        " not serve.",
        advice="Write the object in the API version that takes its place; kubectl convert does it.",
        sentence="{subject} is of an API version that goes{detail}",
        option="The next minor version must serve the API of every object.",
        takes=Takes.SWITCH,
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
    BLOCKED_DRAINS = _about_change(
        "blocked-drains",
        promise="nodes can be drained",
        meaning="PodDisruptionBudgets that can never allow a disruption after the change, or that share a pod with"
        " another one, so that no node with one of their pods can be drained: those of the change, and those that did"
        " not block drains before it.",
        advice="Let the PDB allow one disruption (maxUnavailable: 1), run one more pod, or keep one PDB per pod.",
        sentence="{subject} blocks all drains{detail}",
        option="Every PDB of the change, and of the pods it touches, must be able to allow a disruption.",
        gitlab="major",
        concept="tasks/run-application/configure-pdb/",
        example=Example(
            "`Deployment batch/report` has one pod, and the PDB does not allow it to be evicted.",
            manifests.report_budget("minAvailable: 1"),
            manifests.report_budget("maxUnavailable: 1"),
        ),
    )
    PDB_SELECTOR = _about_change(
        "pdb-selector",
        promise="PDBs select their pods",
        meaning="PodDisruptionBudgets of the change whose selector matches no pod, as a mistyped one does, or is empty"
        " and matches every pod of the namespace.",
        advice="Select the pods by their labels, as spec.selector of their workload does.",
        sentence="{subject} selects the wrong pods{detail}",
        option="Every PDB of the change must select some pods, and not all of the namespace by an empty selector.",
        gitlab="major",
        concept="tasks/run-application/configure-pdb/",
        example=Example(
            "The selector is mistyped: the pods have the label `app: report`.",
            manifests.report_budget("maxUnavailable: 1", selector="{matchLabels: {app: reprot}}"),
            manifests.report_budget("maxUnavailable: 1"),
        ),
    )
    PDB_BLOCKS_AT_HPA_MINIMUM = _about_change(
        "pdb-blocks-at-hpa-minimum",
        promise="PDBs allow disruptions at minReplicas",
        meaning="PodDisruptionBudgets that allow no disruption once a HorizontalPodAutoscaler has scaled their workload"
        " down to its minReplicas.",
        advice="Set maxUnavailable: 1 in the PDB, or raise minReplicas above its minAvailable.",
        sentence="{subject} blocks drains at the minimum of an autoscaler{detail}",
        option="Every PDB must allow a disruption at the minReplicas of its workload's autoscaler.",
        gitlab="minor",
        severity=RuleSeverity.WARN,
        concept="tasks/run-application/configure-pdb/",
        example=Example(
            "A HorizontalPodAutoscaler runs one pod at night, and the PDB does not allow it to be evicted.",
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
        advice="Keep the PDB and the labels of its pods. If the change is meant, waive the rule for this PDB by an"
        " option or in kpreempt.toml of the target branch; a --delete that names the PDB does it, too.",
        sentence=_IN_FULL,
        option="No PDB may protect its pods less than before the change.",
        waived_by_delete=("PodDisruptionBudget",),
        weakens=True,
        concept="concepts/workloads/pods/disruptions/",
        example=Example(
            "The PDB `shop/web` keeps two pods ready, and the change makes it keep one.",
            manifests.budget("1", name="web"),
            manifests.budget("2", name="web"),
        ),
    )
    PRIORITY_LOWERED = _about_change(
        "priority-lowered",
        promise="pods keep their priority",
        meaning="Workloads, pods and PriorityClasses that get a lower priority, so that other pods may preempt pods"
        " that were safe, or preemptionPolicy Never, so that they no longer preempt.",
        advice="Keep the PriorityClass, or name one that is as high. If the change is meant, waive the rule for this"
        " object.",
        sentence=_IN_FULL,
        option="No running workload may get a lower priority.",
        weakens=True,
        example=Example(
            "The pods of `Deployment shop/web` have priority 0, and the class `low` has -100.",
            manifests.web(more="      priorityClassName: low\n"),
            manifests.web(),
        ),
    )
    PRIORITY_CLASS_IN_USE = _about_change(
        "priority-class-in-use",
        promise="PriorityClasses in use stay",
        meaning="PriorityClasses that the change deletes, though workloads name them: the API server rejects the next"
        " pods of these workloads.",
        advice="Give the workloads another PriorityClass first, or keep this one.",
        sentence=_IN_FULL,
        option="No PriorityClass that a workload names may be deleted.",
        weakens=True,
        example=Example(
            "`Deployment batch/report` names the class `low`; no workload names `high`.",
            "kpreempt check --snapshot cluster.yaml --delete priorityclass/low\n",
            "kpreempt check --snapshot cluster.yaml --delete priorityclass/high\n",
        ),
    )
    DEFAULT_PRIORITY_CHANGED = _about_change(
        "default-priority-changed",
        promise="the default priority stays",
        meaning="PriorityClasses with globalDefault that come, go or change, so that the next pods without a"
        " PriorityClass get another priority than the pods they replace, and may preempt them or be preempted.",
        advice="Name the PriorityClass in the workloads that need it, without globalDefault.",
        sentence=_IN_FULL,
        option="Pods without a PriorityClass must get the same priority as before.",
        weakens=True,
        example=Example(
            "`Deployment shop/web` names no PriorityClass. With a default class, its next pods have priority 500.",
            manifests.default_class("true"),
            manifests.default_class("false"),
        ),
    )
    QUOTA_LOOSENED = _about_change(
        "quota-loosened",
        promise="quotas limit as before",
        meaning="ResourceQuotas and LimitRanges that allow more than before the change, or no longer limit a resource.",
        advice="Keep the limit. If the change is meant, waive the rule for this quota; a --delete that names the quota"
        " does it, too.",
        sentence=_IN_FULL,
        option="No ResourceQuota or LimitRange may allow more than before the change.",
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
        promise="labels of namespaces stay",
        meaning="Namespaces that lose or change a label of Pod Security Admission, or one by which the affinity of"
        " pods selects namespaces.",
        advice="Keep the label. If the change is meant, waive the rule for this namespace.",
        sentence=_IN_FULL,
        option="No namespace may change labels of Pod Security Admission, or by which pods select it.",
        weakens=True,
        gitlab="major",
        concept="concepts/security/pod-security-admission/",
        example=Example(
            "Pod Security Admission enforces the level `restricted` in the namespace.",
            manifests.restricted_namespace("privileged"),
            manifests.restricted_namespace("restricted"),
        ),
    )
    OWNER_REMOVED = _about_change(
        "owner-removed",
        promise="pods keep their controller",
        meaning="Pods, ReplicaSets and Jobs whose manifests leave out the controller that owns them in the cluster:"
        " without it, nothing replaces them, and PDBs count them differently.",
        advice="Leave the object to its controller, and change the controller's manifest instead.",
        sentence=_IN_FULL,
        option="No manifest may leave out the controller of its object.",
        weakens=True,
        gitlab="major",
        concept="concepts/overview/working-with-objects/owners-dependents/",
        example=Example(
            "`ReplicaSet shop/web-1` controls the pod, and would replace it.",
            manifests.web_pod(""),
            manifests.web_pod(
                "  ownerReferences:\n"
                "  - {apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: r-web, controller: true}\n"
            ),
        ),
    )
    DRAIN_BLOCKED = Rule(
        "drain-blocked",
        promise="every node gets empty",
        meaning="Pods that a drain cannot evict, so that it waits for ever or gives up: a budget that never allows it,"
        " or not as long as other pods are pending or not ready; two budgets on one pod; pods that kubectl drain leaves"
        " alone without an option.",
        advice="Let the budget allow one disruption (maxUnavailable: 1), run one pod more, or make room first.",
        sentence=_drain_blocked,
        option="Every pod that is to go must be evicted in the end.",
        takes=Takes.SWITCH,
        is_overridable=False,
        commands=("drain",),
        concept="tasks/administer-cluster/safely-drain-node/",
        example=Example(
            "The budget `shop/web` wants both pods of its Deployment, one of which is on `n2`; there is room on `n4`.",
            "kpreempt drain n2 --snapshot cluster.yaml --with node.yaml\n",
            "kpreempt drain n2 --snapshot cluster.yaml --with node.yaml --with budget.yaml\n",
            files={"node.yaml": manifests.ROOM_FOR_IT, "budget.yaml": manifests.budget("1", name="web")},
        ),
    )
    AUTOSCALED_REPLICAS = Rule(
        "autoscaled-replicas",
        promise="autoscalers keep their sizes",
        meaning="Workloads of the change whose manifests set `replicas` back from what a HorizontalPodAutoscaler has"
        " set: their pods are deleted, or made, until the autoscaler sets it again.",
        advice="Leave replicas out of the manifest, and out of what was applied last (kubectl apply"
        " edit-last-applied).",
        sentence="{subject} has its replicas reset{detail}",
        option="No manifest may set back what an autoscaler has set.",
        takes=Takes.SWITCH,
        is_overridable=False,
        gitlab="major",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="tasks/run-application/horizontal-pod-autoscale/",
        example=Example(
            "A HorizontalPodAutoscaler has set two replicas, and the manifest says one.",
            manifests.web(size="  replicas: 1\n"),
            manifests.web(size=""),
            ("--severity", "autoscaled-replicas=error"),
        ),
    )
    DUPLICATE_OBJECTS = _about_change(
        "duplicate-objects",
        promise="every object is written once",
        meaning="Objects that the change has more than once, in documents that differ. They are applied one after the"
        " other: the last one counts, and is simulated, but what an earlier one starts in between is not.",
        advice="Remove the documents that do not count.",
        sentence="{subject} is in the change more than once{detail}",
        option="No object may be in the change twice, unless the earlier document changes nothing.",
        concept="concepts/overview/working-with-objects/",
        example=Example(
            "A copy of the Deployment with one replica is left in the file: it is scaled to 1, then back to 2.",
            manifests.web(size="  replicas: 1\n") + "---\n" + manifests.web(),
            manifests.web(),
        ),
    )
    AUTOSCALED_MAXIMUM = Rule(
        "autoscaled-maximum",
        promise="autoscaled workloads fit at their maximum",
        meaning="Workloads of the change that don't fit, or evict pods, at the `maxReplicas` of a"
        " HorizontalPodAutoscaler that the change creates or changes.",
        advice="Lower maxReplicas, request less, or add nodes.",
        sentence="{subject} does not fit at its maximum{detail}",
        option="Workloads must fit at the maximum of a new or changed autoscaler.",
        takes=Takes.SWITCH,
        is_overridable=False,
        gitlab="major",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="tasks/run-application/horizontal-pod-autoscale/",
        example=Example(
            "A HorizontalPodAutoscaler may scale `Deployment shop/web` to five pods then, and zone a has room for two.",
            manifests.web() + "---\n" + manifests.autoscaler(5),
            manifests.web() + "---\n" + manifests.autoscaler(2),
            ("--severity", "autoscaled-maximum=error"),
        ),
    )
    ROLLOUT_STUCK = Rule(
        "rollout-stuck",
        promise="rollouts replace all pods",
        meaning="Changed workloads that keep pods of the old template, with the cause: a partition, OnDelete, a pause,"
        " or new pods that must not be on a node with old ones.",
        advice="Set the partition to 0, delete the old pods, or let one go before the new one comes (maxSurge: 0,"
        " maxUnavailable: 1).",
        sentence="{subject} keeps old pods{detail}",
        option="No changed workload may keep old pods.",
        takes=Takes.SWITCH,
        is_overridable=False,
        gitlab="major",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="concepts/workloads/controllers/deployment/",
        example=Example(
            "A Deployment that is paused keeps its pods; so does a StatefulSet with a partition or OnDelete.",
            manifests.web(paused="true"),
            manifests.web(),
            ("--severity", "rollout-stuck=error"),
        ),
    )
    VOLUME_ATTACHED_ELSEWHERE = _about_change(
        "volume-attached-elsewhere",
        promise="pods get their volumes",
        meaning="Pods that never start, because a volume of theirs can be attached to one node at a time"
        " (ReadWriteOnce) and stays attached to another node, where other pods use it.",
        advice="Let the old pod go before the new one comes (Recreate, or maxSurge: 0), use a volume with"
        " ReadWriteMany, or give each pod a claim of its own in a StatefulSet.",
        sentence="{subject} has pods that never get their volume{detail}",
        option="No pod may wait for a volume that is attached to another node.",
        gitlab="major",
        concept="concepts/storage/persistent-volumes/#access-modes",
        example=Example(
            "No node has room for two of these pods, and the volume of `PersistentVolumeClaim shop/notes` can be"
            " attached"
            " to one node at a time.",
            manifests.workload("400m", replicas=2, more=manifests.WITH_CLAIM),
            manifests.workload("400m", more=manifests.WITH_CLAIM),
        ),
    )
    BYPASSES_SCHEDULER = _about_change(
        "bypasses-scheduler",
        promise="the scheduler places all pods",
        meaning="Pods and pod templates of the change that newly name a node in `nodeName`. The scheduler never sees"
        " these pods. The kubelet rejects those that do not fit, and for critical ones it evicts others without"
        " checking PodDisruptionBudgets. An error unless they fit on a node that is ready and not cordoned.",
        advice="Leave out nodeName; to choose the node, use a node selector or node affinity.",
        sentence="{subject} bypasses the scheduler{detail}",
        option="No pod of the change may name its node.",
        severity=RuleSeverity.WARN,
        concept="concepts/scheduling-eviction/assign-pod-node/#nodename",
        example=Example(
            "Half a CPU is free on node `n3`. Its kubelet rejects the pod, and the ReplicaSet creates another one, over"
            " and over.",
            manifests.workload("1500m", more="nodeName: n3"),
            manifests.workload("500m", more="nodeSelector: {zone: b}"),
        ),
    )
    ADOPTED_PODS = _about_change(
        "adopted-pods",
        promise="no controller takes over pods",
        meaning="Pods, or ReplicaSets with their pods, that no controller owns and that a controller adopts because of"
        " the change, as its selector matches them. An error if it deletes some of them.",
        advice="Give the selector a label that only its own pods have.",
        sentence="{subject} adopts what no controller owns{detail}",
        option="No pod may be adopted by a controller.",
        severity=RuleSeverity.WARN,
        concept="concepts/workloads/controllers/replicaset/#non-template-pod-acquisitions",
        example=Example(
            "No controller owns `Pod batch/notebook`. The selector of this ReplicaSet matches it, and it wants"
            " no pods.",
            manifests.replica_set("app: notebook"),
            manifests.replica_set("app: notebook, team: data"),
        ),
    )
    CREATED_NODES = _about_change(
        "created-nodes",
        promise="nodes come with their kubelets",
        meaning="Node objects that the change creates. They add no capacity: the API server taints them as not ready,"
        " and no kubelet runs there.",
        advice="Leave the Node out: a node registers itself. --add-node simulates new nodes in kpreempt drain and"
        " explain.",
        sentence="{subject} adds no capacity{detail}",
        option="The change may not create Node objects.",
        gitlab="major",
        concept="concepts/architecture/nodes/#management",
        example=Example(
            "The pod fits on the nodes of the cluster. The Node is no machine, and nothing runs there.",
            f"{manifests.ROOM_FOR_IT}---\n{manifests.workload('400m')}",
            manifests.workload("400m"),
        ),
    )
    MAX_SNAPSHOT_AGE = Rule(
        "max-snapshot-age",
        promise="the snapshot is recent",
        meaning="How old the snapshot is. What it does not show yet cannot be predicted.",
        advice="Take a new snapshot, or ask the live cluster.",
        sentence=_snapshot_age,
        option="How old the snapshot may be: 30m, 12h; unknown fails.",
        takes=Takes.TIME,
        default=None,
        is_overridable=False,
        about_input=True,
        gitlab="minor",
        example=Example(
            "The dump was taken the day before. A new one is taken by `kpreempt snapshot --to new.yaml`.",
            "kpreempt check -f change.yaml --snapshot old.yaml --max-snapshot-age 1h --now 2026-11-21T00:30:00Z\n",
            "kpreempt check -f change.yaml --snapshot new.yaml --max-snapshot-age 1h --now 2026-11-21T00:30:00Z\n",
            files={
                "change.yaml": manifests.workload("100m"),
                "old.yaml": manifests.dump('kpreempt.io/taken-at: "2026-11-20T00:00:00Z"', manifests.NODE),
                "new.yaml": manifests.dump('kpreempt.io/taken-at: "2026-11-21T00:00:00Z"', manifests.NODE),
            },
        ),
    )
    BUDGETS_UNREADABLE = _about_unknown(
        "budgets-unreadable",
        promise="budgets are known",
        meaning="PodDisruptionBudgets that could not be read: whether one is violated is unknown.",
        advice="Let the account list poddisruptionbudgets in all namespaces, or waive the rule by its name.",
        sentence=_unknown("could not be read", "budgets could not be read"),
        gitlab="major",
        concept="concepts/workloads/pods/disruptions/",
        example=Example(
            "The account that took the dump might not list budgets. One that has the rights of"
            " `deploy/cluster-role.yaml`"
            " may.",
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
        promise="all that decides is in the dump",
        meaning="Kinds that the dump has no object of and that could change this verdict, because the cluster may have"
        " some: PodDisruptionBudgets if pods are evicted, ResourceQuotas if new workloads make pods, PriorityClasses"
        " and volumes if pods refer to them. Also pods on nodes that are not in the dump.",
        advice="Add the kind to the dump by the kubectl get that the finding names. If the cluster has none, say so by"
        " --assume-none KIND, or assume-none in kpreempt.toml.",
        sentence=_unknown("may be missing", "the dump may lack something"),
        gitlab="major",
        concept="reference/kubectl/generated/kubectl_get/",
        example=Example(
            "The dump has no PodDisruptionBudget, and the change evicts a pod that one may protect. In the"
            " second run the"
            " user says that the cluster has none.",
            "kpreempt check -f change.yaml --snapshot dump.yaml --max-victims 1 --lost-pods 1 --assume-none quota\n",
            "kpreempt check -f change.yaml --snapshot dump.yaml --max-victims 1 --lost-pods 1 --assume-none quota \\\n"
            "  --assume-none pdb\n",
            files={
                "change.yaml": manifests.workload("1500m", more="priorityClassName: high"),
                "dump.yaml": "\n---\n".join((manifests.NODE, manifests.HIGH, manifests.RUNNING)) + "\n",
            },
        ),
    )
    OBJECTS_SET_ASIDE = _about_unknown(
        "objects-set-aside",
        promise="every object is counted",
        meaning="Objects and files that were skipped because they could not be read.",
        advice="Fix the objects or files, or waive the rule by its name.",
        sentence=_unknown("is left out", "objects are left out"),
        gitlab="major",
        concept="concepts/overview/working-with-objects/",
        example=Example(
            "An object of the dump is damaged, and is set aside.",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --snapshot damaged.yaml --skip-bad-objects\n",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --snapshot mended.yaml --skip-bad-objects\n",
            files={
                "change.yaml": manifests.workload("100m"),
                "damaged.yaml": manifests.bare_pod("nodeName: 3"),
                "mended.yaml": manifests.bare_pod("nodeName: n3"),
            },
        ),
    )
    FIELDS_NOT_MODELLED = _about_unknown(
        "fields-not-modelled",
        promise="everything is modelled",
        meaning="Something in the input that is not modelled and could change the answer.",
        advice="Look at what it says, and waive the rule by its name where it does not matter.",
        sentence=_unknown("is not fully modelled", "not everything is modelled"),
        gitlab="major",
        example=Example(
            "A HorizontalPodAutoscaler changes, and the Deployment that it scales is not in the change to be"
            " simulated.",
            manifests.autoscaler(2),
            manifests.web() + "---\n" + manifests.autoscaler(2),
        ),
    )
    CUSTOM_RESOURCES = _about_unknown(
        "custom-resources",
        promise="custom resources are compared",
        meaning="Custom resources of the change of kinds of which the dump has none: whether they are new or changed,"
        " and what their controllers make of that, is not known. One with a pod template is a `fields-not-modelled`.",
        advice="Add the kind to the dump by the `kubectl get` that the finding names.",
        sentence=_unknown("is not compared", "custom resources are not compared"),
        gitlab="minor",
        severity=RuleSeverity.WARN,
        commands=("check",),
        concept="concepts/extend-kubernetes/api-extension/custom-resources/",
        example=Example(
            "The dump has no Widgets, so that nothing says whether this one is new.",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --severity custom-resources=error\n",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --snapshot widgets.yaml"
            " --severity custom-resources=error\n",
            files={"change.yaml": manifests.WIDGET, "widgets.yaml": manifests.WIDGET},
        ),
    )
    OUTCOME_UNCERTAIN = _about_unknown(
        "outcome-uncertain",
        promise="the outcome is certain",
        meaning="Pods whose outcome is not certain: chance or the scheduler's memory decides.",
        advice="Look at what it says, and waive the rule by its name where it does not matter.",
        sentence=_unknown("may have another outcome", "the outcome is uncertain"),
        gitlab="major",
        example=Example(
            "Chance leaves more outcomes than were looked at.",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --worst-case --max-plays 1\n",
            "kpreempt check -f change.yaml --snapshot cluster.yaml --worst-case --max-plays 100\n",
            files={"change.yaml": manifests.workload("100m", replicas=3)},
        ),
    )


class GateFlags(NamedTuple):
    """The options as they were given; ``rules`` has what is given of rules: a text, whether it is on, or a list."""

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
