"""A decision held against the verdict from just before: host, victims and message.

Of what is up to chance, and of the order of equal pods, anything counts that the verdict tells.
"""

from __future__ import annotations

from collections.abc import Collection

from kpreempt.verdict import PossibleOutcome, Verdict
from kpreempt.verdict.verify import REDACTED, DecisionKind, TakenDecision

# From 1.37 on a message goes on with the node that is picked, and its victims' number (``Preempt``, ``preemption.go``).
PLACEMENT = "preemption: found a potential placement for pod on node "
_SHOWN = 5


def differences(verdict: Verdict, decision: TakenDecision, leaving: Collection[str] = ()) -> list[str]:
    """What was decided otherwise than the verdict says, a line each; none where it is as predicted.

    Pods that are ``leaving`` already nobody evicts again.
    """
    hosts = possible_hosts(verdict)
    if hosts or decision.decision is DecisionKind.BOUND:
        if decision.decision is DecisionKind.BOUND and decision.node in hosts:
            return []
        return [f"{_did(decision)}; predicted: {_outcome(verdict)}"]
    lines = []
    told = verdict.possible_outcomes
    gone = leaving_of(verdict) | set(leaving)
    if decision.decision is DecisionKind.REFUSED:
        if told:
            return [f"{_did(decision)}; predicted: {_outcome(verdict)}"]
    elif decision.node not in {each.node for each in told}:
        return [f"{_did(decision)}; predicted: {_outcome(verdict)}"]
    elif not any(each.node == decision.node and is_outcome(each, decision.victims, gone) for each in told):
        expected = " or ".join(_victims(each) for each in told if each.node == decision.node)
        lines.append(f"evicted {_listed(decision.victims)} from {decision.node}; predicted: {expected}")
    if REDACTED not in decision.message and decision.message not in (messages := told_messages(verdict, decision.node)):
        expected = " or ".join(f'"{each}"' for each in sorted(messages))
        lines.append(f'said "{decision.message}"; predicted: {expected}')
    return lines


def possible_hosts(verdict: Verdict) -> list[str]:
    """The nodes that the pod may be bound to; where a search stops early, each that fits may be the best it finds."""
    return verdict.feasible_nodes if verdict.sampling is not None else verdict.lands_on


def leaving_of(verdict: Verdict) -> set[str]:
    """The victims that are on their way out already."""
    return {victim.pod for victims in verdict.victims.values() for victim in victims if victim.terminating}


def is_outcome(outcome: PossibleOutcome, evicted: Collection[str], leaving: Collection[str]) -> bool:
    """Whether just these pods may be evicted, where victims that are leaving are not evicted once more."""
    seen, gone = set(evicted), set(leaving) - set(evicted)
    chosen = [(choice.count, len(seen & set(choice.pods)), len(gone & set(choice.pods))) for choice in outcome.choices]
    is_whole = set(outcome.victims) - gone <= seen <= set(outcome.pods)
    return is_whole and all(went <= count <= went + may_have for count, went, may_have in chosen)


def told_messages(verdict: Verdict, node: str) -> set[str]:
    """What the scheduler may say where ``node`` is picked: the verdict's message is about one of those that tie."""
    start, placement, _ = verdict.message.partition(PLACEMENT)
    if not placement or node not in verdict.nominated_nodes:
        return {verdict.message}
    sizes = {each.num_victims for each in verdict.possible_outcomes if each.node == node}
    return {f"{start}{placement}{node}, preempting {size} victims" for size in sizes}


def _did(decision: TakenDecision) -> str:
    if decision.decision is DecisionKind.BOUND:
        return f"bound to {decision.node}"
    if decision.decision is DecisionKind.NOMINATED:
        return f"nominated to {decision.node}, evicting {_listed(decision.victims)}"
    return f'refused ("{decision.message}")'


def _outcome(verdict: Verdict) -> str:
    if hosts := possible_hosts(verdict):
        return f"bound to {' or '.join(_first(hosts))}"
    if told := verdict.possible_outcomes:
        return " or ".join(_first([f"nominated to {each.node}, evicting {_victims(each)}" for each in told]))
    if verdict.message:
        return f'refused ("{verdict.message}")'
    return f"not tried ({verdict.reason or verdict.held_by})"


def _victims(outcome: PossibleOutcome) -> str:
    choices = [f"{each.count} of {_listed(each.pods)}" for each in outcome.choices]
    return " and ".join([*([_listed(outcome.victims)] if outcome.victims or not choices else []), *choices])


def _listed(pods: Collection[str]) -> str:
    return ", ".join(_first(sorted(pods))) or "nobody"


def _first(texts: list[str]) -> list[str]:
    return texts if len(texts) <= _SHOWN else [*texts[:_SHOWN], f"{len(texts) - _SHOWN} more"]
