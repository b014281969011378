"""``kpreempt history``: what happened to a pod, a node or a budget while it was recorded."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from kpreempt.cli.options import AnswerRequest

_OF_INPUT = ["at", "skip_bad_objects", "assume_none", "intake", "connection"]
_NOT_ASKED = [*_OF_INPUT, "all_namespaces", "selector", "algorithm", "strict"]
_OF_SCHEDULERS = ["scheduler_config", "policy_config", "feature_gates", "extensions", "jobs", "verbose", "profile_json"]
_KINDS = {
    "Pod": ("pod", "pods", "po"),
    "Node": ("node", "nodes", "no"),
    "PodDisruptionBudget": ("poddisruptionbudget", "poddisruptionbudgets", "pdb"),
}


class HistoryRequest(AnswerRequest, without=[*_NOT_ASKED, *_OF_SCHEDULERS, "now"]):
    """What the options of ``kpreempt history`` ask for."""

    # Options of other commands, of which nothing is asked here.
    verbose = False
    subject: Annotated[
        str, Argument(metavar="[KIND/]NAME", help="A pod, node/NAME or pdb/NAME; it may be gone. Without a KIND a pod.")
    ]
    snapshots: Annotated[
        list[str], Option("--snapshot", metavar="DIR", help="A recording: what kpreempt record --to DIR made.")
    ] = []
    namespace: Annotated[
        str | None, Option("-n", "--namespace", metavar="NS", help="Where it is, or was (default: default).")
    ] = None


def history(request: HistoryRequest) -> int:
    """Tell what happened to a pod, a node or a budget, attempt by attempt, from a recording.

    Of a pod when it was refused and why, nominated, bound, and evicted for whom; of a node what came to it and left it;
    of a budget what it allowed, and which of its pods had to go. Each decision with the command that explains it.
    """
    from kpreempt.cli.answering import Run
    from kpreempt.errors import UsageError
    from kpreempt.model.meta import DEFAULT_NAMESPACE
    from kpreempt.snapshot.recording.chronicle import Subject, history_of

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
