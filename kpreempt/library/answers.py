"""Answers as a library gives them: the records that ``-o json`` writes, which can show themselves."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from kpreempt.verdict import at_risk, budgets, check, compare, drain, pending, records

_Record = TypeVar("_Record", bound=msgspec.Struct)


class Answer:
    """What every answer can do; its fields are those of the record that it is."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The document that ``-o json`` writes, as plain data."""
        from kpreempt.report.document import encode_json

        document: dict[str, Any] = msgspec.json.decode(encode_json(self._record()))
        return document

    def render(self, format: str = "text", *, width: int = 80, verbose: bool = False) -> str:  # noqa: A002 - as -o
        """The answer in a format that the command has: ``text``, ``json``, ``markdown``, ``html`` where there is one.

        ``width`` is in characters; a text is whole where it is ``verbose``, else it keeps to a screen. Raises
        ``UsageError`` for a format that there is not.
        """
        from kpreempt.report.answers import render_answer
        from kpreempt.report.options import Extent, RenderOptions

        extent = Extent.REPORT if verbose else Extent.SCREEN
        now = getattr(self, "at", None)
        return render_answer(
            self._record(), format, RenderOptions(width=width, verbose=verbose, extent=extent, now=now)
        )

    def _repr_html_(self) -> str:
        """The page, where the command has one, in a frame of its own; else the text."""
        from html import escape

        from kpreempt.report.answers import formats_of

        if "html" in formats_of(self._record()):
            page = escape(self.render("html"), quote=True)
            return f'<iframe srcdoc="{page}" sandbox="" style="width: 100%; height: 40em; border: 0"></iframe>'
        return f"<pre>{escape(self.render())}</pre>"

    def _record(self) -> msgspec.Struct:
        if not isinstance(self, msgspec.Struct):
            raise TypeError(f"{type(self).__name__} is no record")
        return self


class Verdict(records.Verdict, Answer, frozen=True, kw_only=True):
    """Where a pod lands, whom it evicts to land, or why it does not (``kpreempt explain``)."""


class VerdictList(records.VerdictList, Answer, frozen=True, kw_only=True):
    """The verdicts on several pods, each against the same cluster."""


class PendingPods(pending.PendingPods, Answer, frozen=True, kw_only=True):
    """What becomes of each pending pod (``kpreempt pending``)."""


class BudgetAudit(budgets.BudgetAudit, Answer, frozen=True, kw_only=True):
    """What is wrong with budgets, and who would break them (``kpreempt budgets``)."""


class PodsAtRisk(at_risk.PodsAtRisk, Answer, frozen=True, kw_only=True):
    """Which running pods would be evicted, and for whom (``kpreempt at-risk``)."""


class Comparison(compare.Comparison, Answer, frozen=True, kw_only=True):
    """Several schedulers side by side (``kpreempt compare``)."""


class Check(check.Check, Answer, frozen=True, kw_only=True):
    """What a change does to a cluster, and whether it may (``kpreempt check``)."""


class Drain(drain.Drain, Answer, frozen=True, kw_only=True):
    """What becomes of nodes that are drained, and of their pods (``kpreempt drain``)."""


def as_answer(record: msgspec.Struct, kind: type[_Record]) -> _Record:
    """The record as an answer of that class, which has the same fields."""
    return kind(**{name: getattr(record, name) for name in record.__struct_fields__})
