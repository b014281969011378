"""What happens to a pod if equal volumes are in a different order: one full cycle for each possible result."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.extender_session import extender_session_of
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.runner import Framework
from kpreempt.schedulers.kube.plugins.volume_binding.plugin import VolumeBinding, set_order
from kpreempt.verdict import Assumption, AssumptionKind, Code, Outcome, Verdict
from kpreempt.verdict.chance import VolumeChoices, VolumeOutcome

# Limits the number of other orders, so that no more nodes than this are evaluated in total.
_MAX_ORDERS = 32
_MAX_NODES = 5_000
_MIN_ORDERS = 4
_MAX_LISTED = 4

# Runs a cycle with this state and returns a verdict.
Run = Callable[[CycleState], Verdict]


def with_volume_choices(verdict: Verdict, pod: Pod, state: CycleState, framework: Framework, run: Run) -> Verdict:
    """Add to the verdict what other orders of equal volumes would result in.

    ``state`` is the state of the verdict's cycle, and ``run`` runs another cycle.
    """
    filters = framework.plugins.filters
    position = next((index for index, each in enumerate(filters) if isinstance(each, VolumeBinding)), None)
    if position is None:
        return verdict
    plugin = filters[position]
    assert isinstance(plugin, VolumeBinding)
    before = frozenset(each.name for each in filters[:position])
    nodes = (each.node for each in framework.cluster.node_infos if _may_become(verdict, each.name, before))
    limit = max(_MIN_ORDERS, min(_MAX_ORDERS, _MAX_NODES // max(1, len(framework.cluster.node_infos))))
    found = plugin.other_orders(state, nodes, limit)
    if found is None:
        return verdict
    # Extenders would have to be called again for each order.
    runs_others = extender_session_of(state) is None
    others = []
    for order in found.orders if runs_others else ():
        ordered = CycleState(records_steps=False)
        set_order(ordered, order)
        others.append(run(ordered))
    choices = [
        each for each in found.choices if any(_resulted_in(one, each.node, before) for one in (verdict, *others))
    ]
    if not choices:
        return verdict
    own = _outcome_of(verdict)
    outcomes: list[VolumeOutcome] = []
    for each in map(_outcome_of, others):
        if each != own and each not in outcomes:
            outcomes.append(each)
    is_complete = found.is_complete and runs_others
    is_uncertain = not is_complete or any(
        msgspec.structs.replace(each, message=own.message) != own for each in outcomes
    )
    # The claims that compete, and the results of other orders.
    claims = dict.fromkeys(claim for each in choices for claim in each.claims)
    volumes = dict.fromkeys(volume for each in choices for volume in each.volumes)
    message = (
        f"on {_join_names([each.node for each in choices])} the claims {_join_names(claims)} compete for the volumes"
        f" {_join_names(volumes)}; the scheduler tries tied volumes in random order; here, it is the input order"
    )
    ends = list(dict.fromkeys(map(_end, outcomes)))
    if not is_uncertain:
        message += ", and the outcome is the same in every order"
    elif ends:
        message += f", and in another order the pod {' or '.join(ends)}"
    if not is_complete:
        message += "; not all orders were tried"
    kind = AssumptionKind.UNCERTAIN if is_uncertain else AssumptionKind.INFORMATIONAL
    return msgspec.structs.replace(
        verdict,
        volume_choices=VolumeChoices(choices, outcomes, is_complete, is_uncertain),
        assumptions=[*verdict.assumptions, Assumption(f"Pod {pod.key}", "spec.volumes", message, kind)],
    )


def _may_become(verdict: Verdict, node: str, before: frozenset[str]) -> bool:
    """Return whether the plugin runs on the node in this cycle, or in a cycle with another order.

    It does not if a plugin in ``before`` rejects the node permanently.
    """
    status = verdict.filter.get(node)
    if status is None:
        return True
    return status.code != Code.UNSCHEDULABLE_AND_UNRESOLVABLE or status.plugin not in before


def _resulted_in(verdict: Verdict, node: str, before: frozenset[str]) -> bool:
    """Return whether the plugin ran on the node: it passed all earlier plugins, with or without its victims."""
    status = verdict.filter.get(node)
    if status is None or node in verdict.potential_nodes:
        return True
    return status.is_success or status.plugin not in before


def _outcome_of(verdict: Verdict) -> VolumeOutcome:
    victims = {node: sorted(victim.pod for victim in each) for node, each in verdict.victims.items()}
    nodes = sorted(verdict.nominated_nodes or verdict.lands_on)
    return VolumeOutcome(verdict.outcome, nodes, victims, verdict.message or verdict.reason)


def _end(outcome: VolumeOutcome) -> str:
    nodes = _join_names(outcome.nodes)
    if not nodes:
        return "stays pending"
    if outcome.outcome is Outcome.PREEMPTS_VIOLATING_BUDGETS:
        return f"evicts pods from {nodes} and violates budgets"
    return f"evicts pods from {nodes}" if outcome.victims else f"lands on {nodes}"


def _join_names(names: Iterable[str]) -> str:
    """Join the names, or the first few and the number of others."""
    listed = list(dict.fromkeys(names))
    if len(listed) <= _MAX_LISTED:
        return " and ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)
    return f"{', '.join(listed[:_MAX_LISTED])} and {len(listed) - _MAX_LISTED} more"
