"""Where the order of equal volumes decides, node by node."""

from __future__ import annotations

from kpreempt.report.evidence import join_names
from kpreempt.report.layout import LABEL_COLUMN, Page, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Verdict
from kpreempt.verdict.volume_choices import VolumeChoice, VolumeFit

_GROUPS_SHOWN = 5
_NAMES_SHOWN = 4
_FITS = {
    VolumeFit.EVERY_ORDER: "there is room in every order, and the score differs",
    VolumeFit.SOME_ORDERS: "there is room in some orders, and in others not",
    VolumeFit.NO_ORDER: "there is room in no order, and the reason differs",
    VolumeFit.UNKNOWN: "there are too many orders to say whether there is room",
}


def add_volumes_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``VOLUMES``: the claims that compete for equal volumes, and what that means for the nodes."""
    choices = verdict.volume_choices
    if choices is None:
        return
    groups: dict[str, list[str]] = {}
    for choice in choices.nodes:
        groups.setdefault(_competition(choice), []).append(choice.node)
    page.blank()
    taken = "equal ones are taken in a random order, here in that of the input"
    page.labelled(Span("VOLUMES", "heading"), taken, column=LABEL_COLUMN)
    shown = list(groups.items())[: None if options.verbose else _GROUPS_SHOWN]
    for competition, nodes in shown:
        page.paragraph(strong(join_names(nodes, limit=_NAMES_SHOWN)), f"  {competition}", indent=2, hanging=2)
    if rest := len(groups) - len(shown):
        page.paragraph(Span(f"… and {rest:,} more (--verbose)", "dim"), indent=2)


def _competition(choice: VolumeChoice) -> str:
    claims = join_names(choice.claims, limit=_NAMES_SHOWN)
    volumes = join_names(choice.volumes, limit=_NAMES_SHOWN)
    return f"{claims}: among {volumes} {_FITS[choice.fits]}"
