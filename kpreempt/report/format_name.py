"""Names of nodes, one a line, for scripts: ``node/NAME`` as kubectl prints them."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.escape import printable
from kpreempt.report.headline import destinations
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Verdict


def render(verdicts: Sequence[Verdict], _options: RenderOptions) -> str:
    """Every node that a pod can end on, or is nominated to; nothing for a pod that lands nowhere."""
    return "".join(f"node/{printable(node)}\n" for verdict in verdicts for node in destinations(verdict))
