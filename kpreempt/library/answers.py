"""Answers of the library: the records that ``-o json`` writes, with methods to render them."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from kpreempt.verdict import at_risk, budgets, check, compare, drain, messages, pending, records, who_evicted

_Record = TypeVar("_Record", bound=msgspec.Struct)


class Answer:
    """The methods that all answers share; their fields are those of the record."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``-o json`` writes, as plain data."""
        from kpreempt.report.document import encode_json

        document: dict[str, Any] = msgspec.json.decode(encode_json(self._record()))
        return document

    def render(self, format: str = "text", *, width: int = 80, verbose: bool = False) -> str:  # noqa: A002 - as -o
        """Render the answer in a format of the command: ``text``, ``json``, ``markdown``, or ``html`` if it has one.

        ``width`` is in characters. Text is complete if ``verbose``; otherwise it fits on one screen. Raises
        ``UsageError`` for an unknown format.
        """
        from kpreempt.report.answers import render_answer
        from kpreempt.report.options import Extent, RenderOptions

        extent = Extent.REPORT if verbose else Extent.SCREEN
        now = getattr(self, "at", None)
        return render_answer(
            self._record(), format, RenderOptions(width=width, verbose=verbose, extent=extent, now=now)
        )

    def _repr_html_(self) -> str:
        """Return the HTML page in a frame if the command has one, else the text."""
        from html import escape

        from kpreempt.report.answers import formats_of

        if "html" in formats_of(self._record()):
            page = escape(self.render("html"), quote=True)
            return f'<iframe srcdoc="{page}" sandbox="" style="width: 100%; height: 40em; border: 0"></iframe>'
        return f"<pre>{escape(self.render())}</pre>"

    def _record(self) -> msgspec.Struct:
        if not isinstance(self, msgspec.Struct):
            raise TypeError(f"{type(self).__name__} is not a record")
        return self


class Verdict(records.Verdict, Answer, frozen=True, kw_only=True):
    """Where a pod lands, which pods it evicts, or why it is unschedulable (``kpreempt explain``)."""


class VerdictList(records.VerdictList, Answer, frozen=True, kw_only=True):
    """The verdicts on several pods, each against the same cluster."""


class PendingPods(pending.PendingPods, Answer, frozen=True, kw_only=True):
    """What happens to each pending pod (``kpreempt pending``)."""


class BudgetAudit(budgets.BudgetAudit, Answer, frozen=True, kw_only=True):
    """Problems with budgets, and which pods would violate them (``kpreempt budgets``)."""


class PodsAtRisk(at_risk.PodsAtRisk, Answer, frozen=True, kw_only=True):
    """Which running pods would be preempted, and by what (``kpreempt at-risk``)."""


class EvictionsOfPod(who_evicted.EvictionsOfPod, Answer, frozen=True, kw_only=True):
    """What evicted a pod, or ended it otherwise (``kpreempt who-evicted``)."""


class EvictedPods(who_evicted.EvictedPods, Answer, frozen=True, kw_only=True):
    """What happened to the pods of a workload or a namespace (``kpreempt who-evicted``)."""


class ExplainedEvents(messages.ExplainedEvents, Answer, frozen=True, kw_only=True):
    """What pasted messages and events say (``kpreempt explain --event``)."""


class Comparison(compare.Comparison, Answer, frozen=True, kw_only=True):
    """Several schedulers compared (``kpreempt compare``)."""


class Check(check.Check, Answer, frozen=True, kw_only=True):
    """What a change does to a cluster, and whether it passes the rules (``kpreempt check``)."""


class Drain(drain.Drain, Answer, frozen=True, kw_only=True):
    """What happens to drained nodes and their pods (``kpreempt drain``)."""


def as_answer(record: msgspec.Struct, kind: type[_Record]) -> _Record:
    """Convert the record to an answer of the class ``kind``, which has the same fields."""
    return kind(**{name: getattr(record, name) for name in record.__struct_fields__})
