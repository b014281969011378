"""The evidence: frozen records of what a scheduler decided, step by step, and why.

Schedulers return these and reports render them; nothing here computes or prints. The records are the JSON document that
``-o json`` writes, so a field's camel-case name is an interface. Within ``kpreempt.io/v1alpha1`` fields may be added.
"""

from kpreempt.verdict.details import Detail
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
    BudgetUse,
    Candidate,
    ClusterSummary,
    Effect,
    Eligibility,
    Odds,
    OddsGroup,
    PodSummary,
    Reprieve,
    Sampling,
    Selection,
    TieBreakRound,
    Verdict,
    VerdictList,
    Victim,
)
from kpreempt.verdict.risk import NodeOrder, PodAtRisk, PodsAtRisk, SizeName, Standing, Threat, Threshold
from kpreempt.verdict.status import SUCCESS, Code, Status
from kpreempt.verdict.story import Change, ChangeKind, NodeEvaluation, NodeStory, Proposal, ProposalSearch

__all__ = [
    "API_VERSION",
    "SUCCESS",
    "Admitted",
    "Agreement",
    "Assumption",
    "BudgetUse",
    "Candidate",
    "Change",
    "ChangeKind",
    "ClusterSummary",
    "Code",
    "Detail",
    "Effect",
    "Eligibility",
    "Evidence",
    "Leaving",
    "NodeEvaluation",
    "NodeOrder",
    "NodeStory",
    "Odds",
    "OddsGroup",
    "Outcome",
    "PendingGroup",
    "PendingPod",
    "PendingPods",
    "PendingState",
    "PodAtRisk",
    "PodPhase",
    "PodSummary",
    "PodsAtRisk",
    "Preemption",
    "PreemptionsOfPod",
    "Proposal",
    "ProposalSearch",
    "QueueTimeSource",
    "Reconstruction",
    "ReconstructionResult",
    "Reprieve",
    "Sampling",
    "Selection",
    "SizeName",
    "Standing",
    "Status",
    "Threat",
    "Threshold",
    "TieBreakRound",
    "Verdict",
    "VerdictList",
    "Victim",
    "Whereabouts",
]
