"""The evidence: frozen records of what a scheduler decided, step by step, and why.

Schedulers return these and reports render them; nothing here computes or prints. The records are the JSON document that
``-o json`` writes, so a field's camel-case name is an interface. Within ``kpreempt.io/v1alpha1`` fields may be added.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kpreempt.verdict.chance import Odds, OddsOutcome, Sampling, SearchOrder
from kpreempt.verdict.details import Detail, ExtenderCall
from kpreempt.verdict.records import (
    API_VERSION,
    Admitted,
    AllocatedDevice,
    Alternatives,
    Assumption,
    AssumptionKind,
    BudgetUse,
    Candidate,
    ClusterSummary,
    Effect,
    Eligibility,
    PodChoice,
    PodSummary,
    PossibleOutcome,
    Reprieve,
    Selection,
    TieBreakRound,
    Verdict,
    VerdictList,
    Victim,
)
from kpreempt.verdict.status import SUCCESS, Code, Outcome, Status
from kpreempt.verdict.story import Change, ChangeKind, NodeEvaluation, NodeStory, Proposal, ProposalSearch

if TYPE_CHECKING:
    from kpreempt.verdict.at_risk import NodeOrder, PodAtRisk, PodsAtRisk, SizeName, Standing, Threat, Threshold
    from kpreempt.verdict.compare import ComparedPod, Comparison, Decision, Difference, Pair, Step
    from kpreempt.verdict.pending import (
        Agreement,
        Leaving,
        PendingGroup,
        PendingPod,
        PendingPods,
        PendingState,
        QueueTimeSource,
    )
    from kpreempt.verdict.queue import (
        Mover,
        MoverKind,
        Place,
        PodMove,
        QueuedPod,
        QueueStep,
        SchedulingQueueState,
    )
    from kpreempt.verdict.who_preempted import (
        Evidence,
        PodPhase,
        Preemption,
        PreemptionsOfPod,
        Reconstruction,
        ReconstructionResult,
        Whereabouts,
    )

__all__ = [
    "API_VERSION",
    "SUCCESS",
    "Admitted",
    "Agreement",
    "AllocatedDevice",
    "Alternatives",
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
    "PodChoice",
    "PodMove",
    "PodPhase",
    "PodSummary",
    "PodsAtRisk",
    "PossibleOutcome",
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

# Records of one question each, imported where it is asked.
_MODULES = {
    "NodeOrder": "at_risk",
    "PodAtRisk": "at_risk",
    "PodsAtRisk": "at_risk",
    "SizeName": "at_risk",
    "Standing": "at_risk",
    "Threat": "at_risk",
    "Threshold": "at_risk",
    "ComparedPod": "compare",
    "Comparison": "compare",
    "Decision": "compare",
    "Difference": "compare",
    "Pair": "compare",
    "Step": "compare",
    "Agreement": "pending",
    "Leaving": "pending",
    "PendingGroup": "pending",
    "PendingPod": "pending",
    "PendingPods": "pending",
    "PendingState": "pending",
    "QueueTimeSource": "pending",
    "Mover": "queue",
    "MoverKind": "queue",
    "Place": "queue",
    "PodMove": "queue",
    "QueuedPod": "queue",
    "QueueStep": "queue",
    "SchedulingQueueState": "queue",
    "Evidence": "who_preempted",
    "PodPhase": "who_preempted",
    "Preemption": "who_preempted",
    "PreemptionsOfPod": "who_preempted",
    "Reconstruction": "who_preempted",
    "ReconstructionResult": "who_preempted",
    "Whereabouts": "who_preempted",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
