"""HTML pages for tests: of recorded results, the same with hostile names, and very large ones."""

from __future__ import annotations

from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from kpreempt.report.answers import render_answer
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Verdict, VerdictList
from kpreempt.verdict.compare import Comparison
from kpreempt.verdict.node_report import NodeUse, Occupancy
from kpreempt.verdict.pending import PendingPods
from kpreempt.verdict.who_evicted import EvictionsOfPod
from tests.checks import MARKUP
from tests.factories import NOW

FIXTURES = Path(__file__).parents[1] / "fixtures"
_ANSWERS = FIXTURES / "golden-answers"
_GI = 2**30

Answer = Verdict | VerdictList | PendingPods | Comparison | EvictionsOfPod


@cache
def answers() -> dict[str, Answer]:
    """Recorded results of every kind that has a page, by name."""
    verdicts: dict[str, Verdict | VerdictList] = {}
    for path in sorted((FIXTURES / "golden").glob("*/verdict.json")):
        document = path.read_bytes()
        kind = msgspec.json.decode(document)["kind"]
        if kind in ("Verdict", "VerdictList"):
            verdicts[path.parent.name] = msgspec.json.decode(
                document, type=Verdict if kind == "Verdict" else VerdictList
            )
    return {
        **verdicts,
        "aftermath": msgspec.json.decode((_ANSWERS / "aftermath.json").read_bytes(), type=Verdict),
        "pending": msgspec.json.decode((_ANSWERS / "pending.json").read_bytes(), type=PendingPods),
        "compare": msgspec.json.decode((_ANSWERS / "compare-all-differ.json").read_bytes(), type=Comparison),
        "who-evicted": msgspec.json.decode((_ANSWERS / "who-evicted.json").read_bytes(), type=EvictionsOfPod),
        "many-verdicts": VerdictList(items=[each for each in verdicts.values() if isinstance(each, Verdict)][:6]),
    }


def occupancy(answer: Answer) -> Occupancy:
    """Node utilization for its verdicts; each victim frees a core."""
    verdicts = answer.items if isinstance(answer, VerdictList) else [answer] if isinstance(answer, Verdict) else []
    use = NodeUse({"cpu": 4000, "memory": 8 * _GI, "pods": 110}, {"cpu": 3000, "memory": 2 * _GI, "pods": 3})
    nodes = {node: use for verdict in verdicts for node in verdict.filter}
    victims = {pod for verdict in verdicts for candidate in verdict.candidates for pod in candidate.victims}
    return Occupancy(nodes, {pod: {"cpu": 1000, "pods": 1} for pod in sorted(victims)})


def page_of(answer: Answer, *, verbose: bool = False) -> str:
    """The page, with the nodes drawn."""
    return render_answer(answer, "html", RenderOptions(now=NOW, verbose=verbose, occupancy=occupancy(answer)))


def spoilt(answer: Answer) -> Answer:
    """The result with markup before every text in it, including names that are keys."""
    changed: Answer = _spoilt(answer)
    return changed


def _spoilt(value: Any) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return f"{MARKUP}{value}" if value else value
    if isinstance(value, list):
        return [_spoilt(each) for each in value]
    if isinstance(value, dict):
        return {_spoilt(key): _spoilt(each) for key, each in value.items()}
    if isinstance(value, msgspec.Struct):
        fields = {field: _spoilt(getattr(value, field)) for field in value.__struct_fields__}
        return type(value)(**fields)
    return value
