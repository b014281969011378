"""The rules of the gate in words: what each is called, what it limits, and what helps where it does not hold."""

from __future__ import annotations

from typing import NamedTuple

from kpreempt.verdict.check import RuleId


class RuleWords(NamedTuple):
    """A rule in words: a title without a full stop, what it limits, and what to do where it does not hold."""

    title: str
    meaning: str
    advice: str


def rule_title(rule: RuleId) -> str:
    """A rule in a few words, as ``budgets stay whole``."""
    return RULES[rule].title


RULES: dict[RuleId, RuleWords] = {
    RuleId.MAX_PDB_VIOLATIONS: RuleWords(
        "budgets stay whole",
        "Pods that have to go although their PodDisruptionBudget does not allow it. The scheduler prefers other"
        " victims, and takes these where there are none.",
        "Make room first, give the change a lower priority, or let the budget allow more.",
    ),
    RuleId.MAX_VICTIMS: RuleWords(
        "few pods are evicted",
        "Pods that have to go for the change, all in all, those that go for the replacement of another included.",
        "Make room first, ask for less, or give the change a lower priority.",
    ),
    RuleId.MAX_VICTIMS_PER_WORKLOAD: RuleWords(
        "no workload loses many pods",
        "Pods of one workload that have to go for the change.",
        "Give the workload a budget or a higher priority, or make room for the change elsewhere.",
    ),
    RuleId.FORBID_VICTIMS: RuleWords(
        "protected pods stay",
        "Pods that must not have to go, by their namespace, their labels or their priority class.",
        "Raise the priority of the protected pods above that of the change, or make room first.",
    ),
    RuleId.REQUIRE_SCHEDULABLE: RuleWords(
        "every pod of the change finds a node",
        "Pods of the change that have no node in the end.",
        "Ask for less, loosen what the pod requires of a node, or add nodes.",
    ),
    RuleId.MAX_CASCADE_DEPTH: RuleWords(
        "evictions do not cascade",
        "How many evictions follow from one another: a victim's replacement may evict in turn.",
        "Make room for what is displaced, or set its preemptionPolicy to Never.",
    ),
    RuleId.MAX_PENDING: RuleWords(
        "what ran finds a node again",
        "Pods that take the place of one that ran, and have no node in the end.",
        "Add room for them, or ask for less in the change.",
    ),
    RuleId.MAX_STRANDED: RuleWords(
        "nothing loses what it needs",
        "What is left without something that it needs, though nobody evicts it: a service without a ready pod, a pod"
        " without those that it has to be near, a node without the pod of a DaemonSet.",
        "Protect what it needs by a budget or a priority, or run more of it.",
    ),
    RuleId.LOST_PODS: RuleWords(
        "nothing is lost for good",
        "Pods that have to go, or go with their node, and that nothing makes again, since no controller owns them.",
        "Run them under a controller, give them a priority above that of the change, or make room first.",
    ),
    RuleId.MAX_DELETIONS: RuleWords(
        "nothing goes unnamed",
        "Workloads that run and go along with something that is deleted, such as their namespace, though the change"
        " does not name them.",
        "Name what is to go by --delete, move it first, or keep the namespace.",
    ),
    RuleId.QUOTA_REFUSALS: RuleWords(
        "quotas have room for the change",
        "Pods that a ResourceQuota does not let be made, in the end or only until another pod is gone.",
        "Raise the quota, ask for less, or let the rollout take pods away first (maxSurge: 0).",
    ),
    RuleId.FORBID_LOOPS: RuleWords(
        "it comes to an end",
        "Pods that displace one another over and over, so that the cluster never settles.",
        "Give the workloads that go round one priority, or make room for both.",
    ),
    RuleId.MAX_SNAPSHOT_AGE: RuleWords(
        "the snapshot is recent",
        "How old the picture of the cluster is. What it does not show yet cannot be foretold.",
        "Take a new snapshot, or ask the live cluster.",
    ),
    RuleId.BUDGETS_UNREADABLE: RuleWords(
        "budgets are known",
        "PodDisruptionBudgets that could not be read: whether one breaks is not known.",
        "Let the account list poddisruptionbudgets in all namespaces, or waive the rule by its name.",
    ),
    RuleId.OBJECTS_SET_ASIDE: RuleWords(
        "every object is counted",
        "Objects that were left out because they could not be read.",
        "Mend the objects, or waive the rule by its name.",
    ),
    RuleId.FIELDS_NOT_MODELLED: RuleWords(
        "everything asked for is evaluated",
        "Something in the input that is not evaluated and could change the answer.",
        "Look at what it says, and waive the rule by its name where it does not matter.",
    ),
    RuleId.OUTCOME_UNCERTAIN: RuleWords(
        "the outcome is certain",
        "Pods of which it cannot be told what becomes.",
        "Look at what it says, and waive the rule by its name where it does not matter.",
    ),
}
