"""What the rule about blocked drains says of a finding: why pods stay, and the change that helps."""

from __future__ import annotations

from kpreempt.verdict.drain import BlockedEviction, BlockReason, Unblock, UnblockAction


def detail_of(blocked: BlockedEviction) -> str:
    """Why they stay, in a few words."""
    wants = f"it wants {blocked.desired:,} healthy of {blocked.expected:,}"
    reason = blocked.reason
    if reason is BlockReason.SEVERAL_BUDGETS:
        return f"more than one budget selects the pod: {', '.join(blocked.budgets)}"
    if reason in (BlockReason.NEVER_ALLOWS, BlockReason.SINGLE_REPLICA):
        return f"{wants}, so that it never allows a disruption"
    if reason is BlockReason.NO_ROOM:
        why = f": {blocked.pending_message}" if blocked.pending_message else ""
        return f"{wants} and has {blocked.healthy:,}; {_pods(len(blocked.pending))} pending{why}"
    if reason is BlockReason.NOT_READY:
        return f"{wants} and has {blocked.healthy:,}; {_pods(len(blocked.unready))} not ready"
    if reason is BlockReason.TOO_FEW:
        return f"{wants} and has {blocked.healthy:,}"
    if reason is BlockReason.TIMED_OUT:
        return "told to go, and still there when the time was over"
    return (blocked.cause or blocked.message).rstrip(".")


def fix_of(unblock: Unblock) -> str:
    """The change as an instruction."""
    target, value = unblock.target, unblock.value
    if unblock.action is UnblockAction.SET:
        return f"Set {unblock.field}: {value} on {target}."
    if unblock.action is UnblockAction.SCALE:
        return f"Scale {target} to {value} replicas first."
    if unblock.action is UnblockAction.DELETE:
        return f"Delete {target}."
    if unblock.action is UnblockAction.ADD_NODE:
        return f"Add a node like {target.removeprefix('Node ')} first."
    return f"Give {target}."


def _pods(count: int) -> str:
    return "1 pod is" if count == 1 else f"{count:,} pods are"
