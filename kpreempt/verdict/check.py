"""What a rollout would do to a cluster, and whether it passes the rules of the gate."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.gate_rules import RuleId, RuleSeverity
from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.headroom import HeadroomUse
from kpreempt.verdict.records import API_VERSION, Assumption, ClusterSummary
from kpreempt.verdict.remedies import Remedy, RemedySearch
from kpreempt.verdict.simulation import Simulation

# The reason why an object that only exists in the base is deleted.
PRUNED = "--prune"


class ChangeKind(StrEnum):
    """What the change does to an object.

    ``Rolled``: a workload whose pod template changes. ``Scaled``: a workload that changes only its number of replicas.
    ``Updated``: a changed object without pods, or a changed workload whose pods stay. ``Drained``: a node to be
    drained. ``Rejected``: an object that the API server rejects, so that the cluster's object stays as it is.
    """

    CREATED = "Created"
    ROLLED = "Rolled"
    SCALED = "Scaled"
    UPDATED = "Updated"
    DELETED = "Deleted"
    UNCHANGED = "Unchanged"
    DRAINED = "Drained"
    REJECTED = "Rejected"


class Change(SparseRecord, frozen=True, kw_only=True):
    """An object in the change. ``object`` is its kind with ``namespace/name`` (``Deployment shop/api``).

    ``source`` and ``line`` locate its manifest; in a stream, ``origin`` is the file named by a ``# Source:`` comment.
    ``strategy`` is how its pods are replaced (``RollingUpdate``); ``replicas`` is the desired number, and
    ``replicas_before`` the previous one. ``fields`` are the first few paths that differ. ``deleted_with`` is the object
    with which one is deleted that the change does not name (``Namespace shop``). ``deleted_by`` is what deletes an
    object that no ``--delete`` names: ``--prune``, or the tool that applies the change. ``pods`` are the running pods
    of a deleted workload.
    """

    object: str
    kind: ChangeKind
    strategy: str = ""
    replicas: int | None = None
    replicas_before: int | None = None
    fields: list[str] = []
    source: str = ""
    line: int = 0
    origin: str = ""
    deleted_with: str = ""
    deleted_by: str = ""
    pods: list[str] = []

    @property
    def is_unlisted_deletion(self) -> bool:
        """Whether the object is deleted although no ``--delete`` names it."""
        return self.kind is ChangeKind.DELETED and bool(self.deleted_with or self.deleted_by)


class FindingStatus(StrEnum):
    """The status of a finding.

    ``Fails``: the finding fails the gate. ``Warns``: the finding's rule only warns. ``Waived``: a waiver covers the
    finding. ``Accepted``: the finding is in the baseline. ``NotNew``: the finding also exists without the change, or
    with the old manifests (``--base``), under the same draws.
    """

    FAILS = "Fails"
    WARNS = "Warns"
    WAIVED = "Waived"
    ACCEPTED = "Accepted"
    NOT_NEW = "NotNew"

    @property
    def counts(self) -> bool:
        """Whether nothing suppresses the finding."""
        return self in (FindingStatus.FAILS, FindingStatus.WARNS)


class GateFinding(SparseRecord, frozen=True, kw_only=True):
    """A rule that the change violates, and how.

    ``subject`` is the object it is about: a budget, a workload or a pod, such as ``PodDisruptionBudget shop/api``.
    ``amount`` is the measured value and ``limit`` the allowed one. ``pods`` are the affected pods, victims in the order
    of their eviction. ``chain`` is one cascade of evictions, from the pod in the change to the last victim. ``change``
    is the object that causes the finding, and ``source``, ``line`` and ``origin`` locate its manifest; all are empty if
    nothing in the change causes it. ``since`` is the second of the simulation at which it starts. ``detail`` is the
    scheduler's message, or what is unknown and why; ``fix`` is advice about this object that is not tested.
    ``remedies`` are tested: with each of them, the finding is gone and nothing else is worse. ``search`` says how
    thorough the search for them was; it is empty if nothing was tried. ``fingerprint`` is the same in all runs with the
    same rule, subject and change.

    ``reason`` and ``by`` say why the finding is waived or accepted, and where that is stated; ``expires`` says until
    when.

    If the change was simulated several times, ``in_runs`` of the ``of_runs`` simulations have the finding, and
    ``share`` is its probability, which is exact if these are all possible simulations.
    """

    rule: RuleId
    subject: str
    status: FindingStatus = FindingStatus.FAILS
    amount: int = 0
    limit: int = 0
    pods: list[str] = []
    chain: list[str] = []
    change: str = ""
    source: str = ""
    line: int = 0
    origin: str = ""
    since: float = 0.0
    detail: str = ""
    fix: str = ""
    remedies: list[Remedy] = []
    search: RemedySearch = RemedySearch()
    fingerprint: str = ""
    reason: str = ""
    by: str = ""
    expires: str = ""
    in_runs: int = 0
    of_runs: int = 0
    share: float = 1.0


class RuleResult(SparseRecord, frozen=True, kw_only=True):
    """The result of a rule; ``is_on`` is false if the rule is off.

    ``is_evaluated`` is false if the rule depends on where pods land, and the input does not show that.

    ``limit`` is ``None`` for rules without one. ``amount`` is the highest measured value. ``severity`` says whether
    findings fail the gate or only warn. ``failures``, ``warnings``, ``waived``, ``accepted`` and ``not_new`` count the
    findings by status.
    """

    rule: RuleId
    is_on: bool = True
    is_evaluated: bool = True
    limit: int | None = None
    amount: int = 0
    severity: RuleSeverity = RuleSeverity.ERROR
    failures: int = 0
    warnings: int = 0
    waived: int = 0
    accepted: int = 0
    not_new: int = 0


class GateSource(SparseRecord, frozen=True, kw_only=True):
    """The source of the rules, and the rules that are relaxed compared with the defaults.

    ``config`` and ``baseline`` are the files that were read, as ``REF:PATH`` if they are from a commit. ``off`` are the
    disabled rules, ``warn_only`` the rules that only warn, ``waived`` those with waivers, and ``raised`` those with a
    higher limit; each with its scope, if limited. ``expendable`` are workloads whose evictions are no finding.
    """

    config: str = ""
    baseline: str = ""
    off: list[str] = []
    warn_only: list[str] = []
    waived: list[str] = []
    raised: list[str] = []
    expendable: list[str] = []


class NodeUtilization(SparseRecord, frozen=True, kw_only=True):
    """A node's allocatable resources, and its pods' requests before and after, in milli-CPU, bytes, and pods.

    ``pods_before`` and ``pods_after`` count its pods by workload, the largest numbers first.
    """

    node: str
    allocatable: dict[str, int]
    before: dict[str, int]
    after: dict[str, int]
    pods_before: dict[str, int] = {}
    pods_after: dict[str, int] = {}


class OutcomeShare(SparseRecord, frozen=True, kw_only=True):
    """An outcome that occurs in ``count`` of the runs; ``seed`` is the seed of the first such run.

    ``share`` is its probability, which is exact if the runs cover all possible ones.

    Equal outcomes have the same ``end``, the same numbers of ``victims``, budget ``violations`` and ``pending`` pods by
    workload or budget, and the same ``depth``.
    """

    count: int
    seed: int
    share: float = 1.0
    end: str
    victims: dict[str, int] = {}
    violations: dict[str, int] = {}
    pending: dict[str, int] = {}
    depth: int = 0
    fails: bool = False


class DriftKind(StrEnum):
    """How something compares with a previous run; ``New`` and ``Worse`` come first."""

    NEW = "New"
    WORSE = "Worse"
    BETTER = "Better"
    FIXED = "Fixed"


class Drift(SparseRecord, frozen=True, kw_only=True):
    """A finding (``rule`` and ``subject``) or a figure (``metric``) that differs from the previous run."""

    kind: DriftKind
    rule: str = ""
    subject: str = ""
    metric: str = ""
    before: int = 0
    after: int = 0


class PreviousRun(SparseRecord, frozen=True, kw_only=True):
    """The differences from a previous run (``--compare-with``), with facts from that run's document.

    Only findings that are not suppressed are compared; one that is suppressed now counts as fixed. ``is_complete`` is
    false if the document is from another version and lacks something, which is then not compared.
    """

    passed: bool | None = None
    summary: str = ""
    algorithm: str = ""
    at: str = ""
    drifts: list[Drift] = []
    is_complete: bool = True


class Range(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A range of numbers."""

    min: int = 0
    max: int = 0


class Check(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The answer of ``kpreempt check``.

    The rules were evaluated for each of ``runs`` simulations, of which ``failing_runs`` violate one; ``failing_share``
    is the probability of that. ``findings`` are those of all simulations, ``simulation`` is the only or the worst one,
    and ``outcomes`` are the different outcomes if there are several. ``without_change`` is what happens anyway, under
    the same draws, if anything does; it has no steps. ``explored_all`` says whether these are all
    possible ones. ``headroom`` are the evicted placeholders, which are no
    finding. ``evictions`` is the range of the number of evicted pods. ``nodes`` are the nodes on which something
    changes, and ``free`` is the capacity left on all nodes at the end. ``summary`` is the answer in one sentence.
    ``previous_run`` has the differences from a previous run, if one was given. ``gate`` has the source of the rules.
    ``only_in_base`` are the objects of the base that the manifests lack and that stay in the cluster, because nothing
    prunes them.
    """

    api_version: str = API_VERSION
    kind: str = "Check"
    passed: bool
    summary: str = ""
    algorithm: str
    cluster: ClusterSummary = ClusterSummary()
    at: datetime | None = None
    changes: list[Change]
    rules: list[RuleResult]
    findings: list[GateFinding]
    simulation: Simulation
    without_change: Simulation | None = None
    seed: int = 0
    runs: int = 1
    failing_runs: int = 0
    failing_share: float = 0.0
    outcomes: list[OutcomeShare] = []
    explored_all: bool = False
    evictions: Range = Range()
    headroom: list[HeadroomUse] = []
    nodes: list[NodeUtilization] = []
    free: dict[str, int] = {}
    previous_run: PreviousRun | None = None
    gate: GateSource = GateSource()
    only_in_base: list[str] = []
    assumptions: list[Assumption] = []
