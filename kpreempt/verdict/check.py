"""What a rollout would do to a cluster, and whether the rules of a gate let it through."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from kpreempt.gate_rules import RuleId, RuleSeverity
from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.records import API_VERSION, Assumption, ClusterSummary
from kpreempt.verdict.simulation import Simulation

# What deletes an object that only the base has.
PRUNED = "--prune"


class ChangeKind(StrEnum):
    """What the change does to an object.

    ``Rolled``: a workload with another template. ``Scaled``: one with another size only. ``Updated``: an object that
    has no pods, or a workload whose pods stay. ``Drained``: a node that is to get empty. ``Rejected``: an object that
    the API server rejects, so that what the cluster has stays as it is.
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
    """An object of the change. ``object`` is its kind with ``namespace/name`` (``Deployment shop/api``).

    ``source`` and ``line`` are where it is written; of a stream, the file that a ``# Source:`` comment names is
    ``origin``. ``strategy`` is how its pods are replaced (``RollingUpdate``); ``replicas`` how many it asks for, and
    ``replicas_before`` how many it had. ``fields`` are the paths that differ, the first few. ``deleted_with`` is the
    object with which one goes that the change does not name (``Namespace shop``). ``deleted_by`` is what deletes one
    that no ``--delete`` names: ``--prune``, or the tool that applies the change. ``pods`` are the running pods that go
    with a deleted workload.
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
        """Whether the object is deleted without a ``--delete`` that names it."""
        return self.kind is ChangeKind.DELETED and bool(self.deleted_with or self.deleted_by)


class GateStanding(StrEnum):
    """What a finding counts for.

    ``Fails``: the gate is shut for it. ``Warns``: its rule only warns. ``Waived``: a waiver names the rule.
    ``Accepted``: the baseline has it. ``NotNew``: it is there without the change, too (``--base``).
    """

    FAILS = "Fails"
    WARNS = "Warns"
    WAIVED = "Waived"
    ACCEPTED = "Accepted"
    NOT_NEW = "NotNew"

    @property
    def counts(self) -> bool:
        """Whether nothing excuses it, so that it is told as it is."""
        return self in (GateStanding.FAILS, GateStanding.WARNS)


class GateFinding(SparseRecord, frozen=True, kw_only=True):
    """A rule that the change breaks, and how.

    ``subject`` is what it is about: a budget, a workload or a pod, as ``PodDisruptionBudget shop/api``. ``amount`` is
    what was measured and ``limit`` what is allowed. ``pods`` are those it is about, for victims in the order in which
    they go. ``chain`` is one line of evictions, from the pod of the change to the last victim. ``change`` is the object
    that brings it about, ``source``, ``line`` and ``origin`` are where that is written, empty where nothing of the
    change does. ``since`` is the second of the simulation at which it happens. ``detail`` is the scheduler's message,
    or what is not known and why; ``fix`` is what mends it, where that can be said of this very object. ``fingerprint``
    is the same from run to run as long as rule, subject and change are.

    ``reason`` and ``by`` say why it is waived or accepted, and where that is said; ``expires`` until when.

    Where the change was simulated several times, ``in_runs`` is in how many of the ``of_runs`` simulations this is so,
    and ``share`` how likely it is: exact where these are all simulations that there can be.
    """

    rule: RuleId
    subject: str
    standing: GateStanding = GateStanding.FAILS
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
    fingerprint: str = ""
    reason: str = ""
    by: str = ""
    expires: str = ""
    in_runs: int = 0
    of_runs: int = 0
    share: float = 1.0


class RuleResult(SparseRecord, frozen=True, kw_only=True):
    """A rule, with what it allows, and whether it holds; ``is_on`` is false where it is switched off.

    ``limit`` is ``None`` for rules that only hold or not. ``amount`` is the most that was measured. ``severity`` says
    whether its findings shut the gate or only warn. ``failures``, ``warnings``, ``waived``, ``accepted`` and
    ``not_new`` count its findings by what they count for.
    """

    rule: RuleId
    is_on: bool = True
    limit: int | None = None
    amount: int = 0
    severity: RuleSeverity = RuleSeverity.ERROR
    failures: int = 0
    warnings: int = 0
    waived: int = 0
    accepted: int = 0
    not_new: int = 0


class GateSource(SparseRecord, frozen=True, kw_only=True):
    """Where the rules are from, and which of them count for less than they do by default.

    ``config`` and ``baseline`` are the files that were read, as ``REF:PATH`` where they are of a commit. ``off`` are
    the rules that are switched off, ``warn_only`` those that only warn, ``waived`` those of which something is waived,
    and ``raised`` those with a higher limit; each with for what, where that is not everything.
    """

    config: str = ""
    baseline: str = ""
    off: list[str] = []
    warn_only: list[str] = []
    waived: list[str] = []
    raised: list[str] = []


class NodeRoom(SparseRecord, frozen=True, kw_only=True):
    """What a node has, and what its pods ask for before and after. CPU in milli-CPU, memory in bytes, pods by number.

    ``pods_before`` and ``pods_after`` are the workloads of its pods with how many, those first of which there are most.
    """

    node: str
    allocatable: dict[str, int]
    before: dict[str, int]
    after: dict[str, int]
    pods_before: dict[str, int] = {}
    pods_after: dict[str, int] = {}


class OutcomeShare(SparseRecord, frozen=True, kw_only=True):
    """An outcome that comes up in ``count`` of the runs; ``seed`` is the first that leads to it.

    ``share`` is how likely it is, which is exact where the runs are all that there can be.

    Equal outcomes have the same ``end``, as many ``victims``, ``violations`` of budgets and ``pending`` pods by
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
    """What became of something since a former run: what is ``New`` or ``Worse`` comes first, ``Gone`` is mended."""

    NEW = "New"
    WORSE = "Worse"
    BETTER = "Better"
    GONE = "Gone"


class Drift(SparseRecord, frozen=True, kw_only=True):
    """A finding, by ``rule`` and ``subject``, or a figure (``what``) that is another one than in a former run."""

    kind: DriftKind
    rule: str = ""
    subject: str = ""
    what: str = ""
    before: int = 0
    after: int = 0


class Since(SparseRecord, frozen=True, kw_only=True):
    """What differs from a former run (``--compare-with``), with what its document says of itself.

    Findings are compared that nothing excuses; one that is excused now is gone. ``is_whole`` is false where the
    document, of another version, lacks something: that is not compared.
    """

    passed: bool | None = None
    summary: str = ""
    algorithm: str = ""
    at: str = ""
    drifts: list[Drift] = []
    is_whole: bool = True


class Range(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """From the least number to the most."""

    least: int = 0
    most: int = 0


class Check(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The answer of ``kpreempt check``.

    The rules were put to each of ``runs`` simulations, of which ``failing_runs`` break one; ``failing_share`` is how
    likely that is. ``findings`` are those of all of them, ``simulation`` is the only one or the worst, and ``outcomes``
    are those that came up where there were several. ``explored_all`` says whether these were all that can come up.
    ``evictions`` is how many pods have to go in them, from the least to the most. ``nodes`` are those on which
    something changes, ``spare`` is what all nodes have left in the end. ``summary`` is the whole in one sentence.
    ``since`` is what differs from a former run, where one was given. ``gate`` tells where the rules are from.
    ``only_in_base`` are the objects of the base that the manifests lack and that stay in the cluster, as nothing prunes
    them.
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
    simulation: Simulation = msgspec.field(name="play")
    seed: int = 0
    runs: int = 1
    failing_runs: int = 0
    failing_share: float = 0.0
    outcomes: list[OutcomeShare] = []
    explored_all: bool = False
    evictions: Range = Range()
    nodes: list[NodeRoom] = []
    spare: dict[str, int] = {}
    since: Since | None = None
    gate: GateSource = GateSource()
    only_in_base: list[str] = []
    assumptions: list[Assumption] = []
