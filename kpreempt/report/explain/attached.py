"""The other inputs of a decision: devices for claims, equal volumes with competing claims, and extender calls."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.meta import grouped
from kpreempt.report.amounts import count
from kpreempt.report.blocks import Block, Listing, Phrase, Section, Sentence, Span, strong
from kpreempt.report.evidence import by_text, join_names
from kpreempt.report.explain.headline import destinations
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import AllocatedDevice, ExtenderCall, Verdict
from kpreempt.verdict.chance import VolumeFit
from kpreempt.verdict.details import EXTENDED_RESOURCES

_NODES_SHOWN = 3
_DEVICES_SHOWN = 8
_CALLS_SHOWN = 8
_NAMES_SHOWN = 5
_REASONS_SHOWN = 3
_GROUPS_SHOWN = 5
_FITS = {
    VolumeFit.EVERY_ORDER: "the claims fit in every order, but the score differs",
    VolumeFit.SOME_ORDERS: "the claims fit in some orders but not in others",
    VolumeFit.NO_ORDER: "the claims don't fit in any order, but the reason differs",
    VolumeFit.UNKNOWN: "there are too many orders to check whether the claims fit",
}
_NOUNS = {"preempt": "candidate"}
_DEVICES, _EXTENDERS = 80, 55


def devices_section(verdict: Verdict, options: RenderOptions) -> Section:
    """``DEVICES``: the devices allocated to each request, for the nodes that the pod may end up on."""
    nodes = [node for node in destinations(verdict) if verdict.devices.get(node)]
    if not nodes:
        return Section("DEVICES")
    shown = nodes if options.verbose else nodes[:_NODES_SHOWN]
    rest = f", and on {len(nodes) - len(shown):,} more" if len(nodes) > len(shown) else ""
    blocks: list[Block] = []
    for node in shown:
        if len(nodes) > 1:
            blocks.append(Sentence(strong(node)))
        blocks.append(Listing([[line] for line in describe_devices(verdict.devices[node])], noun="request"))
    on = ("on ", strong(nodes[0]), f", if it is picked from {len(nodes):,} tied nodes:") if len(nodes) > 1 else ""
    first = Listing([[line] for line in describe_devices(verdict.devices[nodes[0]])], noun="request")
    return Section(
        "DEVICES",
        f"allocated to the pod on {join_names(shown)}{rest}",
        blocks,
        is_reasoning=True,
        priority=_DEVICES,
        short=Section("DEVICES", on, [first]),
    )


def describe_devices(devices: Sequence[AllocatedDevice]) -> list[Phrase]:
    """One line per request: ``gpu-0 and gpu-1 of gpu.example.com/node-a for request gpu of claim shop/c``."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for each in devices:
        share = f" ({', '.join(f'{name} {amount}' for name, amount in each.consumed.items())})" if each.consumed else ""
        key = (each.claim, each.request, f"{each.driver}/{each.pool}")
        found.setdefault(key, []).append(each.device + share)
    lines: list[Phrase] = []
    for (claim, request, pool), names in found.items():
        # The claim that the scheduler would make for extended resources has no name yet.
        of = "its extended resources" if claim.endswith(f"/{EXTENDED_RESOURCES}") else f"claim {claim}"
        lines.append((strong(join_names(names, limit=_DEVICES_SHOWN)), f" of {pool} for request {request} of {of}"))
    return lines


def volumes_section(verdict: Verdict) -> Section:
    """``VOLUMES``: the claims that compete for equal volumes, and the effect on each node."""
    if verdict.volume_choices is None:
        return Section("VOLUMES")
    groups = grouped(
        verdict.volume_choices.nodes,
        lambda choice: f"{_names(choice.claims)} compete for {_names(choice.volumes)}: {_FITS[choice.fits]}",
    )
    items = [
        [(strong(_names([each.node for each in nodes])), f"  {competition}")] for competition, nodes in groups.items()
    ]
    taken = "tied volumes are bound in random order; this answer uses the order of the input"
    return Section("VOLUMES", taken, [Listing(items, noun="group of nodes", shown=_GROUPS_SHOWN)], is_reasoning=True)


def extenders_section(verdict: Verdict) -> Section:
    """``EXTENDERS``: every call and its effect; on a screen, failed calls come first."""
    calls = sorted(verdict.extender_calls, key=lambda call: not call.error)
    return Section(
        "EXTENDERS",
        blocks=[Listing([[describe_call(each)] for each in verdict.extender_calls], noun="call", shown=_CALLS_SHOWN)],
        is_inline=True,
        is_reasoning=True,
        priority=_EXTENDERS,
        short=Section("EXTENDERS", blocks=[Listing([[describe_call(each)] for each in calls], noun="call")]),
    )


def describe_call(call: ExtenderCall) -> Phrase:
    """The extender, the verb, and the effect of the call."""
    sent = count(call.nodes_sent, _NOUNS.get(call.verb, "node"))
    without = " without the victims" if call.without_victims else ""
    start: Phrase = (strong(call.extender), f" {call.verb}, {sent}{without}: ")
    if call.error:
        end = " (ignored)" if call.ignored else ""
        return (*start, Span("fails:", "bad"), f" {call.error}{end}")
    return (*start, "; ".join(_changes(call)) or "no change")


def _changes(call: ExtenderCall) -> list[str]:
    parts = [f"rejects {names}{because}" for names, because in _rejections(call)]
    if call.unresolvable:
        parts.append(f"preemption doesn't help on {_names(call.unresolvable)}")
    if call.added:
        parts.append(f"adds {_names(call.added)}, which it was not sent")
    if call.returns_nodes:
        parts.append("returns full Node objects, which are scored as if they had no pods")
    if call.removed:
        parts.append(f"drops {_names(call.removed)}")
    parts += [
        f"changes the victims on {node} to {_names(pods)}" for node, pods in list(call.changed.items())[:_NAMES_SHOWN]
    ]
    if len(call.changed) > _NAMES_SHOWN:
        parts.append(f"changes the victims on {len(call.changed) - _NAMES_SHOWN:,} more nodes")
    if call.violations:
        numbers = [f"{number:,} on {node}" for node, number in call.violations.items()]
        parts.append(f"sets the budget violations to {_names(numbers)}")
    if call.scores:
        parts.append(f"scores {_names([f'{node} {score:,}' for node, score in call.scores.items()])}")
    return parts


def _rejections(call: ExtenderCall) -> list[tuple[str, str]]:
    """The rejected nodes by reason, and the reason; the rarer reasons are merged into one."""
    groups = list(by_text(call.rejected).items())
    shown = [(_names(nodes), f": {reason}" if reason else " without a reason") for reason, nodes in groups]
    rest = groups[_REASONS_SHOWN:]
    nodes = _names([node for _, nodes in rest for node in nodes])
    return [*shown[:_REASONS_SHOWN], (nodes, f" for {count(len(rest), 'more reason')}")] if rest else shown


def _names(names: list[str]) -> str:
    return join_names(names, limit=_NAMES_SHOWN)
