"""Finds protection that a change takes away from pods, and PodDisruptionBudgets (PDBs) that block drains after it.

Everything is compared with the cluster before the change, by specs alone; the current readiness of pods does not
matter. The expected pods of a PDB follow ``pkg/controller/disruption/disruption.go`` (``k8s.io/kubernetes`` v1.36.3),
with the sizes that workloads have before the change, so that scaling up does not count as weaker protection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from kpreempt.admission import fill_budget_statuses
from kpreempt.admission.limit_ranges import admit_limit_ranges, check_limit_ranges
from kpreempt.admission.priority import global_default, known_classes
from kpreempt.admission.resource_quotas import QuotaCounts
from kpreempt.analysis.budgets.findings import audit_specs
from kpreempt.analysis.budgets.protection import Protection
from kpreempt.analysis.budgets.remedies import BudgetRemedies
from kpreempt.analysis.check.gate import StaticFinding
from kpreempt.analysis.check.rollout.apply import is_complete
from kpreempt.analysis.check.rollout.records import Plan
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.naming import counted, some_of
from kpreempt.analysis.simulation.cluster import Workloads
from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import WITHOUT_SCALE, desired_healthy, needs_scale
from kpreempt.errors import InputError
from kpreempt.gate_rules import RuleId
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import mapping_in, mappings_in
from kpreempt.model.meta import ObjectMeta, grouped
from kpreempt.model.pod import Pod, ResourceList
from kpreempt.model.policy import (
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PriorityClass,
)
from kpreempt.verdict.budgets import AuditedBudget, Finding, FindingId, Severity
from kpreempt.verdict.check import ChangeKind

_PDB = "PodDisruptionBudget"
_NEVER = (FindingId.NEVER_ALLOWS, FindingId.MIN_AVAILABLE_ABOVE_PODS)
_BLOCKING = (
    *_NEVER,
    FindingId.OVERLAP,
    FindingId.NO_SCALE,
    FindingId.INVALID_AMOUNT,
    FindingId.UNMANAGED_PODS,
)
_SELECTORS = (
    FindingId.SELECTS_NOTHING,
    FindingId.SELECTS_EVERY_POD,
    FindingId.NULL_SELECTOR,
    FindingId.INVALID_SELECTOR,
)
_KINDS_WITHOUT_SCALE = {kind for _, kind in WITHOUT_SCALE}
# The sizes used to compare two PDBs without pods.
_CANDIDATE_SIZES = range(1, 11)
_ALWAYS_ALLOW = "AlwaysAllow"
_NEVER_PREEMPTS = "Never"
_DEFAULT_POLICY = "PreemptLowerPriority"
_PRIORITY_FIELDS = ("priorityClassName", "priority", "preemptionPolicy")
# A quota treats both names as the same resource.
_REQUESTS = {name: f"requests.{name}" for name in ("cpu", "memory", "ephemeral-storage")}
_POD_SECURITY = "pod-security.kubernetes.io/"


class ProtectionRules:
    """The protection violations of a plan, for any simulation of it."""

    def __init__(self, before: ClusterSnapshot, plan: Plan) -> None:
        """``before`` is the cluster without the change."""
        self._plan = plan
        self._changes = {each.object: each for each in plan.changes if each.kind is not ChangeKind.UNCHANGED}
        self._deleted = {
            each.object.partition(" ")[2]
            for each in plan.changes
            if each.object.startswith("Namespace ") and each.kind is ChangeKind.DELETED
        }
        old_sizes, new_sizes = plan.safeguards.minimum_sizes
        rescaled = {namespace for _, namespace, _ in dict(old_sizes.items() ^ new_sizes.items())}
        changed = {each.partition(" ")[2].partition("/")[0] for each in self._changes if "/" in each}
        self._namespaces = (changed | rescaled) - self._deleted
        self._cluster = before
        self._fixed = [
            *_of_classes(before, plan),
            *_of_templates(before, plan),
            *self._of_quotas(),
            *self._of_namespaces(),
            *(
                StaticFinding(
                    RuleId.OWNER_REMOVED, name, f"was controlled by {owner}, but its manifest has no controller"
                )
                for name, owner in plan.safeguards.released.items()
            ),
        ]

    def static_findings(self, after: ClusterSnapshot) -> list[StaticFinding]:
        """All protection violations; ``after`` is the cluster at the end."""
        namespaces = self._namespaces & {
            each.metadata.namespace for each in (*self._cluster.pod_disruption_budgets, *after.pod_disruption_budgets)
        }
        fixed = [*self._fixed, *self._tightened(after)]
        if not namespaces:
            return fixed
        sub_cluster = _within(after, self._namespaces)
        sizes = self._plan.safeguards.minimum_sizes[1]
        now = {each.budget: each for each in audit_specs(sub_cluster, sizes)}
        return [
            *self._of_findings(now, BudgetRemedies(sub_cluster, sizes)),
            *self._weakened(_Coverage(sub_cluster)),
            *fixed,
        ]

    @cached_property
    def _before(self) -> ClusterSnapshot:
        return _within(self._cluster, self._namespaces)

    @cached_property
    def _coverage(self) -> _Coverage:
        return _Coverage(self._before)

    @cached_property
    def _known(self) -> dict[str, set[str]]:
        """The findings about each PDB before the change, each as ``_sort_of`` names it."""
        audited = audit_specs(self._before, self._plan.safeguards.minimum_sizes[0])
        return {each.budget: {_sort_of(finding) for finding in each.findings} for each in audited}

    def _of_findings(self, audited: Mapping[str, AuditedBudget], remedies: BudgetRemedies) -> Iterator[StaticFinding]:
        """PDBs that block drains or select the wrong pods because of the change."""
        for key, item in audited.items():
            known = self._known.get(key, set())
            for finding in item.findings:
                rule = _rule_of(finding, item)
                if rule is not None and self._counts(rule, finding, key, known):
                    namespace = key.partition("/")[0]
                    owners = (each.workload.replace(" ", f" {namespace}/", 1) for each in item.workloads)
                    cause = next((each for each in (f"{_PDB} {key}", *owners) if each in self._changes), "")
                    yield StaticFinding(rule, f"{_PDB} {key}", _DETAILS[rule](finding, item), change=cause)

    def _counts(self, rule: RuleId, finding: Finding, key: str, known: set[str]) -> bool:
        """Whether the change causes a finding about a PDB that had the findings ``known`` before."""
        change = self._changes.get(f"{_PDB} {key}")
        is_new = _sort_of(finding) not in known
        if change is None:
            # If two PDBs select a pod, only the PDB of the change reports it. A workload may already have been at its
            # minimum.
            is_worse = is_new and not (rule is RuleId.PDB_BLOCKS_AT_HPA_MINIMUM and "never" in known)
            namespace = key.partition("/")[0]
            is_reported = any(
                each.startswith(f"{_PDB} ") and each.replace(" ", f" {namespace}/", 1) in self._changes
                for each in finding.objects
            )
            return is_worse and not is_reported and rule is not RuleId.PDB_SELECTOR
        is_of_spec = change.kind is ChangeKind.CREATED or any(each.startswith("spec") for each in change.fields)
        return is_new or is_of_spec or rule is not RuleId.PDB_SELECTOR

    def _weakened(self, after: _Coverage) -> Iterator[StaticFinding]:
        """PDBs that protect pods less than before, for any reason."""
        before = self._coverage
        moved = _Moved(before, after, self._plan)
        worst: dict[str, _Weaker] = {}
        for pod, strongest in before.strongest.items():
            found = moved.weaker(pod, strongest)
            if found is not None and (strongest not in worst or found.rank > worst[strongest].rank):
                worst[strongest] = found
        for key, budget in before.budgets.items():
            new_budget = after.budgets.get(key)
            if key in worst:
                yield self._of_weaker(key, worst[key], moved)
            elif new_budget is not None and (detail := _looser_spec(budget.spec, new_budget.spec, before.members[key])):
                yield StaticFinding(RuleId.PDB_WEAKENED, f"{_PDB} {key}", detail)
            if new_budget is not None and _ALWAYS_ALLOW == new_budget.spec.unhealthy_pod_eviction_policy != (
                budget.spec.unhealthy_pod_eviction_policy
            ):
                detail = "protected unready pods; unhealthyPodEvictionPolicy AlwaysAllow now lets a drain evict them"
                yield StaticFinding(RuleId.PDB_WEAKENED, f"{_PDB} {key}", detail)

    def _of_weaker(self, key: str, found: _Weaker, moved: _Moved) -> StaticFinding:
        name = f"{_PDB} {key}"
        if not found.by:
            lost = moved.lost[key]
            total = sum(self._coverage.members[key].values())
            remaining = total - sum(lost.values())
            now = f"{remaining:,}" if remaining else "none"
            suffix = " (deleted)" if name in self._changes and self._changes[name].kind is ChangeKind.DELETED else ""
            detail = f"protected {counted(total, 'pod')}, now {now}{suffix}: {some_of(list(lost))}"
        else:
            by = f" by {_PDB} {found.by}" if found.by != key else ""
            detail = f"allowed {counted(found.before, 'disruption')}, now {found.after:,}{by}"
        causes = (name, f"Pod {found.pod}", found.workload, *(f"{_PDB} {found.by}" if found.by else "",))
        cause = next((each for each in causes if each in self._changes), "")
        return StaticFinding(RuleId.PDB_WEAKENED, name, detail, change=cause)

    def _of_quotas(self) -> Iterator[StaticFinding]:
        """ResourceQuotas and LimitRanges that limit less than before."""
        looser: dict[str, list[str]] = {}
        for kind, old, new in (
            ("ResourceQuota", _quota_limits(self._cluster), _quota_limits(self._plan.cluster)),
            ("LimitRange", _range_limits(self._cluster), _range_limits(self._plan.cluster)),
        ):
            for (namespace, resource, scope), (amount, text, name) in old.items():
                now = new.get((namespace, resource, scope))
                if namespace not in self._deleted and (now is None or now[0] > amount):
                    what = " ".join(filter(None, (resource, scope)))
                    detail = f"limited {what} to {text}, now {now[1] if now is not None else 'unlimited'}"
                    looser.setdefault(f"{kind} {namespace}/{name}", []).append(detail)
        for subject, details in looser.items():
            yield StaticFinding(RuleId.QUOTA_LOOSENED, subject, "; ".join(details))

    def _tightened(self, after: ClusterSnapshot) -> Iterator[StaticFinding]:
        """Changed ResourceQuotas and LimitRanges that existing pods exceed, so that their next pods are rejected."""
        if not any(each.startswith(("ResourceQuota ", "LimitRange ")) for each in self._changes):
            return
        running = [pod for pod in after.pods if pod.is_active]
        counts = QuotaCounts(running)
        before = {each.key: each.limits for each in self._cluster.resource_quotas}
        for quota in after.resource_quotas:
            if f"ResourceQuota {quota.key}" not in self._changes:
                continue
            old, used = before.get(quota.key, {}), counts.counted(quota)
            lower = (name for name, amount in quota.limits.items() if name not in old or old[name].nano > amount.nano)
            over = [
                f"{name}: {used[name].text} used, {quota.limits[name].text} allowed"
                for name in lower
                if name in used and used[name].nano > quota.limits[name].nano
            ]
            if over:
                detail = f"{'; '.join(over)}, so new pods are rejected"
                yield StaticFinding(RuleId.QUOTA_REJECTIONS, f"ResourceQuota {quota.key}", detail)
        for limit_range in after.limit_ranges:
            namespace = limit_range.metadata.namespace
            subject = f"LimitRange {limit_range.metadata.namespace}/{limit_range.metadata.name}"
            if subject not in self._changes:
                continue
            with_this_range = msgspec.structs.replace(after, limit_ranges=[limit_range])
            rejected = [
                pod.key for pod in running if pod.metadata.namespace == namespace and _rejects(with_this_range, pod)
            ]
            if rejected:
                detail = f"rejects new pods like {some_of(rejected)}"
                yield StaticFinding(RuleId.QUOTA_REJECTIONS, subject, detail, pods=rejected)

    def _of_namespaces(self) -> Iterator[StaticFinding]:
        """Namespaces that lose or change labels that policies or pods select."""
        now = {each.metadata.name: each.metadata.labels for each in self._plan.cluster.namespaces}
        for each in self._cluster.namespaces:
            name, labels = each.metadata.name, each.metadata.labels
            if f"Namespace {name}" not in self._changes or name not in now:
                continue
            differing = [key for key in sorted({*labels, *now[name]}) if labels.get(key) != now[name].get(key)]
            selected = [key for key in differing if key.startswith(_POD_SECURITY) or key in self._selecting_keys]
            if selected:
                detail = "; ".join(f"had {_label(key, labels)}, now {_label(key, now[name])}" for key in selected)
                yield StaticFinding(RuleId.NAMESPACE_RELABELED, f"Namespace {name}", detail)

    @cached_property
    def _selecting_keys(self) -> set[str]:
        """The namespace labels that pods' affinity terms select."""
        return {
            key
            for pod in self._cluster.pods
            if pod.spec.affinity is not None
            for term in pod.spec.affinity.pod_terms
            if (selector := term.namespace_selector) is not None
            for key in (*selector.match_labels, *(each.key for each in selector.match_expressions))
        }


class _Weaker(NamedTuple):
    """A pod of ``workload`` that is protected less: the disruptions allowed before and after.

    ``by`` is the PDB that allows the most after the change; it is empty if no PDB selects the pod any more.
    """

    pod: str
    workload: str
    before: int
    after: int
    by: str

    @property
    def rank(self) -> tuple[bool, int]:
        return not self.by, self.after - self.before


class _Coverage:
    """Which PDBs select which pods of a cluster, and how many disruptions each allows once all pods are ready."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self.budgets = {each.key: each for each in cluster.pod_disruption_budgets}
        self._in_namespace = grouped(cluster.pod_disruption_budgets, lambda each: each.metadata.namespace)
        workloads = Workloads(cluster)
        protection = Protection(cluster)
        self.pods = {pod.key: pod for pod in cluster.pods if pod.is_active and not pod.is_mirror}
        self.workload_of = {key: workloads.of(pod) for key, pod in self.pods.items()}
        self.number = Counter(self.workload_of.values())
        self.sizes = {
            name: number if (size := workloads.size_of(name)) is None else size for name, number in self.number.items()
        }
        self.covering = {key: [each.key for each in protection.budgets_of(key)] for key in self.pods}
        self.members = _members(self.budgets, self.covering, self.workload_of, self.number, self.sizes)
        self.allowed = {key: _allowed(each.spec, self.members[key]) for key, each in self.budgets.items()}
        self._by_labels: dict[tuple[str, frozenset[tuple[str, str]]], list[str]] = {}

    @cached_property
    def strongest(self) -> dict[str, str]:
        """For each pod that a PDB selects, the PDB that allows the fewest disruptions."""
        return {pod: min(keys, key=self.allowed.__getitem__) for pod, keys in self.covering.items() if keys}

    def covering_labels(self, namespace: str, labels: Mapping[str, str]) -> list[str]:
        """The PDBs that would select a pod with these labels."""
        key = namespace, frozenset(labels.items())
        if key not in self._by_labels:
            self._by_labels[key] = [
                each.key
                for each in self._in_namespace.get(namespace, ())
                if (selector := each.spec.selector) is not None and selector.is_valid() and selector.matches(labels)
            ]
        return self._by_labels[key]


class _Moved:
    """The pods from before the change with the PDBs and labels from after it.

    ``lost`` counts, for each PDB, the pods by workload that no PDB selects any more.
    """

    def __init__(self, before: _Coverage, after: _Coverage, plan: Plan) -> None:
        self._before, self._after = before, after
        # The old template is empty if it is unknown; pods then keep the labels that the new template does not set.
        self._templates = {
            each.change.object: (_template_labels(each.before), _template_labels(each.after))
            for each in plan.workloads
            if each.before is not None and each.after is not None
        }
        self._covering = {key: list(self._successors(key, pod)) for key, pod in before.pods.items()}
        union = {key: [budget for found in each for budget in found] for key, each in self._covering.items()}
        sizes = {**after.sizes, **before.sizes}
        number = {**after.number, **before.number}
        new = {key: workload for key, workload in after.workload_of.items() if workload not in before.number}
        union |= {key: after.covering[key] for key in new}
        members = _members(after.budgets, union, {**new, **before.workload_of}, number, sizes)
        self._allowed = {key: _allowed(each.spec, members[key]) for key, each in after.budgets.items()}
        self.lost: dict[str, Counter[str]] = {}

    def weaker(self, pod: str, budget: str) -> _Weaker | None:
        """How the pod is protected less than by ``budget``, its strongest PDB before; ``None`` if it is not."""
        workload = self._before.workload_of[pod]
        size = max(self._before.sizes[workload], self._before.number[workload])
        allowed = min(self._before.allowed[budget], size)
        found: list[_Weaker] = []
        for covering in self._covering[pod]:
            best = min(covering, key=self._allowed.__getitem__, default="")
            now = min(self._now_allowed(best, budget), size) if best else size
            found.append(_Weaker(pod, workload, allowed, now, best))
        worst = max(found, key=lambda each: each.rank, default=None)
        if worst is None or (worst.after <= allowed and worst.by):
            return None
        if not worst.by:
            self.lost.setdefault(budget, Counter())[workload] += 1
        return worst

    def _now_allowed(self, key: str, budget: str) -> int:
        """The disruptions a PDB allows; if its spec changed, the sizes after the change count, too."""
        allowed = self._allowed[key]
        old, new = self._before.budgets[budget].spec, self._after.budgets[key].spec
        if key == budget and _amounts(old) != _amounts(new):
            members = self._after.members[key]
            loosened = _allowed(new, members) - _allowed(old, members)
            return max(allowed, self._before.allowed[budget] + loosened)
        return allowed

    def _successors(self, key: str, pod: Pod) -> Iterator[list[str]]:
        """The PDBs that select the pod after the change, and those that select its replacements."""
        workload, labels = self._before.workload_of[key], pod.metadata.labels
        after, namespace = self._after, pod.metadata.namespace
        if workload not in after.number:
            return
        if key in after.pods:
            yield after.covering[key]
        old, new = self._templates.get(workload, ({}, {}))
        if old != new:
            retained = {name: value for name, value in labels.items() if name not in old}
            yield after.covering_labels(namespace, {**retained, **new})
        elif key not in after.pods:
            yield after.covering_labels(namespace, labels)


def _members(
    budgets: Iterable[str],
    covering: Mapping[str, Iterable[str]],
    workload_of: Mapping[str, str],
    pod_counts: Mapping[str, int],
    sizes: Mapping[str, int],
) -> dict[str, dict[str, int]]:
    """The number of pods of each workload that each PDB selects; if it selects all, the workload's desired size."""
    found: dict[str, Counter[str]] = {key: Counter() for key in budgets}
    for pod, keys in covering.items():
        for key in set(keys):
            found[key][workload_of[pod]] += 1
    return {
        key: {name: sizes[name] if count == pod_counts[name] else count for name, count in own.items()}
        for key, own in found.items()
    }


def _allowed(spec: PodDisruptionBudgetSpec, members: Mapping[str, int]) -> int:
    """The disruptions a PDB allows once all its pods are ready; 0 if its controller cannot compute it."""
    kinds = {name.partition(" ")[0] for name in members}
    is_scaled = needs_scale(spec)
    if is_scaled and kinds & (_KINDS_WITHOUT_SCALE - {"Pod"}):
        return 0
    expected = sum(size for name, size in members.items() if not (is_scaled and name.startswith("Pod ")))
    try:
        return max(expected - desired_healthy(spec, expected), 0)
    except SyncError:
        return 0


def _looser_spec(old: PodDisruptionBudgetSpec, new: PodDisruptionBudgetSpec, members: Mapping[str, int]) -> str:
    """Describe how a PDB that does not restrict its current pods allows more than before at another size."""
    if _amounts(old) == _amounts(new) or _allowed(old, members) < sum(members.values()):
        return ""
    for size in _CANDIDATE_SIZES:
        before, after = (_allowed(spec, {"Deployment": size}) for spec in (old, new))
        if after > before:
            return f"allowed {counted(before, 'disruption')} of {counted(size, 'pod')}, now {after:,}"
    return ""


def _amounts(spec: PodDisruptionBudgetSpec) -> tuple[int | str | None, int | str | None]:
    return spec.min_available, spec.max_unavailable


def _within(cluster: ClusterSnapshot, namespaces: set[str]) -> ClusterSnapshot:
    """The pods, owners and PDBs of some namespaces; the PDB status is computed, with no disruption allowed."""

    def own(records: Iterable[Any]) -> list[Any]:
        return [each for each in records if each.metadata.namespace in namespaces]

    part = ClusterSnapshot(
        pods=own(cluster.pods),
        pod_disruption_budgets=[
            msgspec.structs.replace(each, status=None) for each in own(cluster.pod_disruption_budgets)
        ],
        replica_sets=own(cluster.replica_sets),
        deployments=own(cluster.deployments),
        stateful_sets=own(cluster.stateful_sets),
        replication_controllers=own(cluster.replication_controllers),
        jobs=own(cluster.jobs),
        taken_at=cluster.taken_at,
    )
    filled, _ = fill_budget_statuses(part)
    without_disruptions = [
        msgspec.structs.replace(
            each,
            status=msgspec.structs.replace(each.status or PodDisruptionBudgetStatus(), disruptions_allowed=0),
        )
        for each in filled.pod_disruption_budgets
    ]
    return msgspec.structs.replace(filled, pod_disruption_budgets=without_disruptions)


def _sort_of(finding: Finding) -> str:
    """A key that is equal for findings of a PDB that are equally bad."""
    if finding.id in _NEVER:
        return "never"
    return " ".join([finding.id, *(finding.objects if finding.id is FindingId.OVERLAP else ())])


def _rule_of(finding: Finding, item: AuditedBudget) -> RuleId | None:
    """The rule that a finding violates, if any. A drain ignores the pods of DaemonSets."""
    if finding.id in _BLOCKING and finding.severity is Severity.ERROR:
        is_ignored = all(each.workload.startswith("DaemonSet ") for each in item.workloads)
        return None if is_ignored and finding.id is FindingId.NO_SCALE else RuleId.PDB_BLOCKS_DRAIN
    # If the workload's pods do not exist yet, the finding is a note.
    if finding.id in _SELECTORS and finding.severity is not Severity.NOTE:
        return RuleId.PDB_SELECTOR
    return RuleId.PDB_BLOCKS_AT_HPA_MINIMUM if finding.id is FindingId.ALLOWS_NONE_AT_HPA_MINIMUM else None


def _amount_in(finding: Finding) -> str:
    """The proven amount that the PDB should have (``maxUnavailable: 1``); empty if there is none."""
    changes = [each.changes[0] for each in finding.remedies if not each.manager]
    amounts = [each for each in changes if each.field in ("spec.minAvailable", "spec.maxUnavailable")]
    return f"{amounts[0].field.removeprefix('spec.')}: {amounts[0].value}" if amounts else ""


def _why_blocked(finding: Finding, item: AuditedBudget) -> str:
    if finding.id is FindingId.OVERLAP:
        others = some_of([each.partition(" ")[2] for each in finding.objects])
        return (
            f"{some_of(finding.pods)} also {'have' if len(finding.pods) > 1 else 'has'} the PDB {others}, and the"
            " eviction API rejects a pod with more than one PodDisruptionBudget"
        )
    if finding.id is FindingId.NO_SCALE:
        owners = some_of(finding.objects)
        return (
            f"its value requires the scale subresource of the pods' controllers, but {owners} has none, so it allows no"
            " disruption"
        )
    if finding.id is FindingId.INVALID_AMOUNT:
        return "its value is neither an integer nor a percentage, so it allows no disruptions"
    if finding.id is FindingId.UNMANAGED_PODS:
        return "its value requires a controller, but its pods have none, so it allows no disruptions"
    number = finding.number or item.pods
    pods = "its only pod is" if number == 1 else f"all {number:,} of its pods are"
    return f"it allows no disruptions even if {pods} healthy"


def _why_wrong(finding: Finding, item: AuditedBudget) -> str:
    if finding.id is FindingId.SELECTS_EVERY_POD:
        return f"its selector is empty, so it selects every pod of the namespace ({item.pods:,})"
    if finding.id is FindingId.NULL_SELECTOR:
        return "it has no selector, so it selects no pod"
    if finding.id is FindingId.INVALID_SELECTOR:
        return f"its selector is invalid: {item.selector}"
    near = [f"{each.workload} has {each.found or 'no such label'}, not {each.expected}" for each in finding.near_misses]
    return "; ".join([f"no pod matches {item.selector}", *near])


def _at_minimum(finding: Finding, _item: AuditedBudget) -> str:
    pods = counted(finding.number or 0, "pod")
    names = some_of(finding.objects)
    return f"with {pods} (minReplicas of the HorizontalPodAutoscaler for {names}), it allows no disruptions"


_DETAILS: dict[RuleId, Callable[[Finding, AuditedBudget], str]] = {
    RuleId.PDB_BLOCKS_DRAIN: _why_blocked,
    RuleId.PDB_SELECTOR: _why_wrong,
    RuleId.PDB_BLOCKS_AT_HPA_MINIMUM: _at_minimum,
}


def _given(spec: Document, cluster: ClusterSnapshot) -> tuple[int, str] | None:
    """The priority and preemption policy that a pod with this spec gets; ``None`` if its class does not exist."""
    name = _class_in(spec)
    chosen = known_classes(cluster).get(name) if name else global_default(cluster.priority_classes)
    if name and chosen is None:
        return None
    stated, policy = spec.get("priority"), spec.get("preemptionPolicy")
    default_priority, default_policy = _effect(chosen)
    priority = stated if type(stated) is int else default_priority
    return priority, policy if isinstance(policy, str) else default_policy


def _of_classes(before: ClusterSnapshot, plan: Plan) -> Iterator[StaticFinding]:
    """PriorityClasses whose change affects the next pods of running workloads."""
    if before.priority_classes == plan.cluster.priority_classes:
        return
    old = {each.metadata.name: each for each in before.priority_classes}
    new = {each.metadata.name: each for each in plan.cluster.priority_classes}
    users = _users_of_classes(before, plan)
    yield from _of_default(old, new, users)
    for name, old_class in old.items():
        new_class = new.get(name)
        if new_class is None and users.get(name):
            detail = (
                f"is deleted, and the next pods of {some_of(sorted(users[name]))} are rejected: no PriorityClass with"
                f" name {name} was found"
            )
            yield StaticFinding(RuleId.PRIORITY_CLASS_IN_USE, f"PriorityClass {name}", detail)
        elif new_class is not None and (detail := _lower(_effect(old_class), _effect(new_class))):
            yield StaticFinding(RuleId.PRIORITY_LOWERED, f"PriorityClass {name}", detail)


def _of_default(
    old: Mapping[str, PriorityClass], new: Mapping[str, PriorityClass], users: Mapping[str, set[str]]
) -> Iterator[StaticFinding]:
    """Changes to the default class, and to what pods without a class get."""
    rule = RuleId.DEFAULT_PRIORITY_CHANGED
    default, now = global_default([*old.values()]), global_default([*new.values()])
    if (effect := _effect(now)) == (was := _effect(default)):
        return
    changed = [each for each in (now, default) if each is not None and old.get(each.metadata.name) != each]
    subject = next(iter(changed), default)
    without = sorted({*users.get("", ()), *users.get(default.metadata.name if default is not None else "", ())})
    before, after = (
        f"priority {value:,}{' and did not preempt' if policy == _NEVER_PREEMPTS else ''}"
        for value, policy in (was, effect)
    )
    whose = f", including the next pods of {some_of(without)}" if without else ""
    detail = f"changes the default for pods without a PriorityClass: they had {before} and now get {after}{whose}"
    yield StaticFinding(rule, f"PriorityClass {subject.metadata.name if subject is not None else ''}", detail)


def _effect(chosen: PriorityClass | None) -> tuple[int, str]:
    """The priority and preemption policy that a class gives, or the defaults without a class."""
    if chosen is None:
        return 0, _DEFAULT_POLICY
    return chosen.value, chosen.preemption_policy or _DEFAULT_POLICY


def _users_of_classes(before: ClusterSnapshot, plan: Plan) -> dict[str, set[str]]:
    """The workloads whose next pods use each class; the empty name is for workloads without one.

    For workloads of the change, the new template counts; for others the template in the cluster, or else their pods.
    """
    default = global_default(before.priority_classes)
    filled_in = {default.metadata.name if default is not None else ""}
    classes_of: dict[str, set[str]] = {}
    workloads = Workloads(before)
    for pod in before.pods:
        if not pod.is_terminal and not pod.is_mirror:
            classes_of.setdefault(workloads.of(pod), set()).add(pod.spec.priority_class_name)
    for each in plan.safeguards.workloads:
        owners = mappings_in(mapping_in(each, "metadata"), "ownerReferences")
        if _pod_spec(each).get("containers") and not any(owner.get("controller") for owner in owners):
            # Only the template shows whether the default was set or filled in.
            name = describe(each)
            classes_of[name] = classes_of.get(name, set()) - filled_in | {_class_in(_pod_spec(each))}
    for planned in plan.workloads:
        classes_of[planned.change.object] = (
            {_class_in(_pod_spec(planned.after))} if planned.after is not None else set()
        )
    # A pod without a controller is not recreated.
    found: dict[str, set[str]] = {}
    for workload, names in classes_of.items():
        for name in names if not workload.startswith("Pod ") else ():
            found.setdefault(name, set()).add(workload)
    return found


def _class_in(spec: Document) -> str:
    name = spec.get("priorityClassName")
    return name if isinstance(name, str) else ""


def _of_templates(before: ClusterSnapshot, plan: Plan) -> Iterator[StaticFinding]:
    """Changed workloads and pods whose next pods have a lower priority than those in the cluster."""
    pairs = [
        (each.change.object, _pod_spec(each.before), _pod_spec(each.after))
        for each in plan.workloads
        if each.before is not None and each.after is not None and is_complete(each.before)
    ]
    pairs += [(name, old, new) for name, (old, new) in plan.safeguards.cron_jobs.items()]
    running = {pod.key: pod for pod in before.pods} if plan.pods else {}
    for template in plan.pods:
        pod = running.get(f"{template.namespace}/{template.name}")
        if pod is not None:
            spec = {"priorityClassName": pod.spec.priority_class_name, "priority": pod.spec.priority}
            new = mapping_in(template.document, "spec")
            pairs.append((f"Pod {pod.key}", {**spec, "preemptionPolicy": pod.spec.preemption_policy}, new))
    for name, old, new in pairs:
        was, now = _given(old, before), _given(new, plan.cluster)
        # If only the value of the class changed, the finding is about that class, and about all that use it.
        if was is None or now is None or all(old.get(field) == new.get(field) for field in _PRIORITY_FIELDS):
            continue
        if detail := _lower(was, now):
            yield StaticFinding(RuleId.PRIORITY_LOWERED, name, detail)


def _lower(was: tuple[int, str], now: tuple[int, str]) -> str:
    """Describe how a priority and preemption policy is lower than another; empty if it is not."""
    lower = [f"had priority {was[0]:,}, now {now[0]:,}"] if now[0] < was[0] else []
    if now[1] == _NEVER_PREEMPTS != was[1]:
        lower.append(f"had preemptionPolicy {was[1]}, now {now[1]}")
    return "; ".join(lower)


# What a quota or a LimitRange limits (namespace, resource, scope), and to what.
_Limits = dict[tuple[str, str, str], tuple[int, str, str]]


def _quota_limits(cluster: ClusterSnapshot) -> _Limits:
    """The lowest limit of all ResourceQuotas: the amount in 1e-9 units, its text, and the quota's name."""
    found: _Limits = {}
    for quota in cluster.resource_quotas:
        selected = quota.spec.scope_selector.match_expressions if quota.spec.scope_selector is not None else ()
        scopes = [*quota.spec.scopes, *(" ".join([each.scope_name, each.operator, *each.values]) for each in selected)]
        scope = f"({', '.join(sorted(scopes))})" if scopes else ""
        hard = quota.spec.hard or quota.status.hard
        _add(found, quota.metadata, {_REQUESTS.get(key, key): amount for key, amount in hard.items()}, scope)
    return found


def _range_limits(cluster: ClusterSnapshot) -> _Limits:
    """The lowest maximum of all LimitRanges, as in ``_quota_limits``."""
    found: _Limits = {}
    for each in cluster.limit_ranges:
        for item in each.spec.limits:
            _add(found, each.metadata, item.max, f"of a {item.type}")
            _add(found, each.metadata, item.max_limit_request_ratio, f"of a {item.type}, as limit/request ratio")
    return found


def _add(found: _Limits, metadata: ObjectMeta, amounts: ResourceList, scope: str) -> None:
    for resource, amount in amounts.items():
        limit = (metadata.namespace, resource, scope)
        if limit not in found or amount.nano < found[limit][0]:
            found[limit] = amount.nano, amount.text, metadata.name


def _rejects(cluster: ClusterSnapshot, pod: Pod) -> bool:
    """Whether the LimitRanges of a cluster would reject a pod that already exists."""
    try:
        check_limit_ranges(admit_limit_ranges(pod, cluster).pod, cluster)
    except InputError:
        return True
    return False


def _label(key: str, labels: Mapping[str, str]) -> str:
    return f"{key}={labels[key]}" if key in labels else f"no {key}"


def _pod_spec(workload: Document | None) -> Document:
    spec = mapping_in(workload or {}, "spec")
    return mapping_in(mapping_in(spec, "jobTemplate", "spec") or spec, "template", "spec")


def _template_labels(workload: Document) -> dict[str, str]:
    labels = mapping_in(workload, "spec", "template", "metadata", "labels")
    return {key: str(value) for key, value in labels.items()}
