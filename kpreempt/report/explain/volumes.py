"""The claims that compete for equal volumes, in words."""

from __future__ import annotations

from kpreempt.report.evidence import join_names
from kpreempt.verdict.chance import VolumeChoice, VolumeChoices, VolumeFit

_NAMES_SHOWN = 4
_FITS = {
    VolumeFit.EVERY_ORDER: "there is room in every order, and the score differs",
    VolumeFit.SOME_ORDERS: "there is room in some orders, and in others not",
    VolumeFit.NO_ORDER: "there is room in no order, and the reason differs",
    VolumeFit.UNKNOWN: "there are too many orders to say whether there is room",
}


def competitions(choices: VolumeChoices) -> dict[str, list[str]]:
    """The nodes by what competes there, and for what."""
    groups: dict[str, list[str]] = {}
    for choice in choices.nodes:
        groups.setdefault(_competition(choice), []).append(choice.node)
    return groups


def _competition(choice: VolumeChoice) -> str:
    claims = join_names(choice.claims, limit=_NAMES_SHOWN)
    volumes = join_names(choice.volumes, limit=_NAMES_SHOWN)
    return f"{claims}: among {volumes} {_FITS[choice.fits]}"
