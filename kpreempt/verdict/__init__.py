"""The evidence: frozen records of what a scheduler decided, step by step, and why.

Schedulers return these and reports render them; nothing here computes or prints. The records are the JSON document of
``-o json``, so the camel-case name of a field is part of the interface. Within ``kpreempt.io/v1alpha1``, fields may be
added.

Names used by many packages are exported here; records of a single answer are imported from their own module.
"""

from kpreempt.verdict.chance import Odds, OddsOutcome, Sampling, SearchOrder
from kpreempt.verdict.details import Detail, ExtenderCall
from kpreempt.verdict.node_report import NodeEvaluation, NodeReport
from kpreempt.verdict.records import (
    API_VERSION,
    AllocatedDevice,
    Alternatives,
    Assumption,
    AssumptionKind,
    BudgetUse,
    Candidate,
    ClusterSummary,
    DefaultedField,
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
from kpreempt.verdict.remedies import Change, ChangeKind, Remedy, RemedySearch
from kpreempt.verdict.status import SUCCESS, Code, Outcome, Status

__all__ = [
    "API_VERSION",
    "SUCCESS",
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
    "DefaultedField",
    "Detail",
    "Effect",
    "Eligibility",
    "ExtenderCall",
    "NodeEvaluation",
    "NodeReport",
    "Odds",
    "OddsOutcome",
    "Outcome",
    "PodChoice",
    "PodSummary",
    "PossibleOutcome",
    "Remedy",
    "RemedySearch",
    "Reprieve",
    "Sampling",
    "SearchOrder",
    "Selection",
    "Status",
    "TieBreakRound",
    "Verdict",
    "VerdictList",
    "Victim",
]
