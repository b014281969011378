"""``kpreempt history``: what happened to a pod, a node or a budget while it was recorded."""

from __future__ import annotations

from kpreempt.cli.requests import HistoryRequest
from kpreempt.cli.runner import Run
from kpreempt.errors import UsageError
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.snapshot.recording.chronicle import Subject, history_of

_KINDS = {
    "Pod": ("pod", "pods", "po"),
    "Node": ("node", "nodes", "no"),
    "PodDisruptionBudget": ("poddisruptionbudget", "poddisruptionbudgets", "pdb"),
}


def history(request: HistoryRequest) -> int:
    """Answer the request, and return the exit code."""
    kind_word, slash, name = request.subject.rpartition("/")
    kind = next((kind for kind, words in _KINDS.items() if kind_word.partition(".")[0].lower() in words), "")
    if slash and not kind:
        raise UsageError(f'"{request.subject[:100]}" is no pod, node or budget', hint="pod/NAME, node/NAME, pdb/NAME")
    if len(request.snapshots) != 1:
        raise UsageError("one recording is needed", hint="--snapshot DIR, of kpreempt record --to DIR")
    kind = kind or "Pod"
    namespace = "" if kind == "Node" else request.namespace or DEFAULT_NAMESPACE
    run = Run(request)
    answer = history_of(request.snapshots[0], Subject(kind, namespace, name))
    run.write_once(answer, answer.ends)
    return 0
