"""The evidence: frozen records of what a scheduler decided, step by step, and why.

Schedulers return these and reports render them; nothing here computes or prints. The records are the JSON document that
``-o json`` writes, so a field's camel-case name is an interface. Within ``kpreempt.io/v1alpha1`` fields may be added.
"""

from kpreempt.verdict.comparison import ComparedPod, Comparison, Decision, Difference, Pair, Step
from kpreempt.verdict.details import Detail
from kpreempt.verdict.extenders import ExtenderCall
from kpreempt.verdict.outcome import Outcome
from kpreempt.verdict.preempted import (
    Evidence,
    PodPhase,
    Preemption,
    PreemptionsOfPod,
    Reconstruction,
    ReconstructionResult,
    Whereabouts,
)
from kpreempt.verdict.queue import (
    Agreement,
    Leaving,
    PendingGroup,
    PendingPod,
    PendingPods,
    PendingState,
    QueueTimeSource,
)
from kpreempt.verdict.records import (
    API_VERSION,
    Admitted,
    Assumption,
    AssumptionKind,
    BudgetUse,
    Candidate,
    ClusterSummary,
    Effect,
    Eligibility,
    PodSummary,
    Reprieve,
    Selection,
    TieBreakRound,
    Verdict,
    VerdictList,
    Victim,
)
from kpreempt.verdict.risk import NodeOrder, PodAtRisk, PodsAtRisk, SizeName, Standing, Threat, Threshold
from kpreempt.verdict.scheduling_queue import (
    Mover,
    MoverKind,
    Place,
    PodMove,
    QueuedPod,
    QueueStep,
    SchedulingQueueState,
)
from kpreempt.verdict.search import Odds, OddsOutcome, Sampling, SearchOrder
from kpreempt.verdict.status import SUCCESS, Code, Status
from kpreempt.verdict.story import Change, ChangeKind, NodeEvaluation, NodeStory, Proposal, ProposalSearch

__all__ = [
    "API_VERSION",
    "SUCCESS",
    "Admitted",
    "Agreement",
    "Assumption",
    "AssumptionKind",
    "BudgetUse",
    "Candidate",
    "Change",
    "ChangeKind",
    "ClusterSummary",
    "Code",
    "ComparedPod",
    "Comparison",
    "Decision",
    "Detail",
    "Difference",
    "Effect",
    "Eligibility",
    "Evidence",
    "ExtenderCall",
    "Leaving",
    "Mover",
    "MoverKind",
    "NodeEvaluation",
    "NodeOrder",
    "NodeStory",
    "Odds",
    "OddsOutcome",
    "Outcome",
    "Pair",
    "PendingGroup",
    "PendingPod",
    "PendingPods",
    "PendingState",
    "Place",
    "PodAtRisk",
    "PodMove",
    "PodPhase",
    "PodSummary",
    "PodsAtRisk",
    "Preemption",
    "PreemptionsOfPod",
    "Proposal",
    "ProposalSearch",
    "QueueStep",
    "QueueTimeSource",
    "QueuedPod",
    "Reconstruction",
    "ReconstructionResult",
    "Reprieve",
    "Sampling",
    "SchedulingQueueState",
    "SearchOrder",
    "Selection",
    "SizeName",
    "Standing",
    "Status",
    "Step",
    "Threat",
    "Threshold",
    "TieBreakRound",
    "Verdict",
    "VerdictList",
    "Victim",
    "Whereabouts",
]
