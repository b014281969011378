"""The devices that a pod gets for its claims, in words."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.evidence import join_names
from kpreempt.report.explain.headline import destinations
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import AllocatedDevice, Verdict
from kpreempt.verdict.details import EXTENDED_RESOURCES

_NODES_SHOWN = 3
_DEVICES_SHOWN = 8


def devices_by_request(devices: Sequence[AllocatedDevice]) -> dict[tuple[str, str, str], list[str]]:
    """The names of the devices by claim, request, and the driver with its pool."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for each in devices:
        share = f" ({', '.join(f'{name} {amount}' for name, amount in each.consumed.items())})" if each.consumed else ""
        key = (each.claim, each.request, f"{each.driver}/{each.pool}")
        found.setdefault(key, []).append(each.device + share)
    return found


def describe_devices(devices: Sequence[AllocatedDevice]) -> list[Phrase]:
    """A line for each request: ``gpu-0 and gpu-1 of gpu.example.com/node-a for request gpu of claim shop/c``."""
    return [
        (strong(join_names(names, limit=_DEVICES_SHOWN)), f" of {pool} for request {request} of {claim_name(claim)}")
        for (claim, request, pool), names in devices_by_request(devices).items()
    ]


def claim_name(claim: str) -> str:
    """``claim shop/c``, or what stands for the claim that the scheduler would make."""
    return "its extended resources" if claim.endswith(f"/{EXTENDED_RESOURCES}") else f"claim {claim}"


def told_nodes(verdict: Verdict) -> list[str]:
    """The nodes on which the pod may end, as far as devices are known there."""
    return [node for node in destinations(verdict) if verdict.devices.get(node)]


def add_devices_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``DEVICES``: what each request gets on the nodes on which the pod may end."""
    nodes = told_nodes(verdict)
    if not nodes:
        return
    page.blank()
    shown = nodes if options.verbose else nodes[:_NODES_SHOWN]
    rest = f", and on {len(nodes) - len(shown):,} more (-v -v)" if len(nodes) > len(shown) else ""
    page.labelled(Span("DEVICES", "heading"), f"that the pod gets on {join_names(shown)}{rest}", column=LABEL_COLUMN)
    for node in shown:
        if len(nodes) > 1:
            page.paragraph(strong(node), indent=2)
        for line in describe_devices(verdict.devices[node]):
            page.paragraph(*line, indent=4 if len(nodes) > 1 else 2, hanging=2)
