"""The dry run of a change on the live cluster's API server, for ``check --server-dry-run``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kpreempt.analysis.check.rollout.hooks import is_recreated
from kpreempt.analysis.check.rollout.records import (
    ApplyOptions,
    ManifestDocument,
    ServerDecisions,
    is_nested_too_deeply,
)
from kpreempt.analysis.check.rollout.server_dry_run import (
    alters,
    changes_of,
    is_new_name,
    is_rejection,
    is_without_namespace,
    new_object,
    place_of,
    prerequisites,
    secret_values,
    server_problem,
)
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.naming import some_of
from kpreempt.errors import InputError, UsageError
from kpreempt.verdict import Assumption, AssumptionKind

if TYPE_CHECKING:
    from kpreempt.snapshot.live.connection import Connection
    from kpreempt.snapshot.live.dry_runs import Decision, DryRuns, Endpoint

_FIELD = "dryRun"
_REQUESTS_AT_ONCE = 6
# No answer, an unknown user, and a server that stays busy.
_ALL_FAIL = (0, 401, 429)
_T = TypeVar("_T")


class _Request(NamedTuple):
    """What to send for an object: a new object, or the ``changes`` of an existing one. Or why nothing can be sent."""

    document: Document
    endpoint: Endpoint | None = None
    is_new: bool = False
    content: Document = {}
    problem: str = ""


def dry_run(live: Connection | None, change: Sequence[ManifestDocument], options: ApplyOptions) -> ServerDecisions:
    """Let the API server decide about each object of the change, without storing anything.

    Whatever keeps it from deciding is among the assumptions. Raises ``UsageError`` without a live cluster.
    """
    if live is None:
        raise UsageError("--server-dry-run needs a live cluster, not a snapshot")
    from kpreempt.snapshot.live.api import Api
    from kpreempt.snapshot.live.dry_runs import DryRuns

    documents = [each.document for each in options.prepared(change).documents]
    api = Api(live)
    try:
        session = _Session(DryRuns(api, {str(each["apiVersion"]) for each in documents}), options)
        requests = _in_parallel([partial(session.request_for, each) for each in documents])
        new = [each.document for each in requests if each.is_new]
        altered = [each.document for each in requests if each.is_new or alters(each.content)]
        return _joined(_in_parallel([partial(session.decide, each, new, altered) for each in requests]))
    finally:
        api.close()


class _Session:
    """Sends requests, until one gets no answer."""

    def __init__(self, runs: DryRuns, options: ApplyOptions) -> None:
        self._runs = runs
        self._options = options
        self._failure = ""

    def request_for(self, document: Document) -> _Request:
        """Return the request for an object, which depends on the cluster's object."""
        applier, kind, metadata = self._options.applier, str(document["kind"]), document["metadata"]
        endpoint = self._runs.endpoint(str(document["apiVersion"]), kind)
        if is_nested_too_deeply(document):
            return _Request(document, problem="it is nested too deeply")
        if endpoint is None:
            return _Request(document, problem=f"the API server does not show that it supports dry runs of {kind}")
        if is_new_name(document):
            return _Request(document, endpoint, is_new=True, content=new_object(document, applier))
        if self._failure:
            return _Request(document, endpoint, problem=self._failure)
        try:
            live = self._runs.find(endpoint, metadata.get("namespace") or "", metadata["name"])
        except InputError as error:
            return _Request(document, endpoint, problem=self._noted(error))
        if live is None:
            return _Request(document, endpoint, is_new=True, content=new_object(document, applier))
        if is_recreated(document, applier):
            return _Request(document, endpoint, problem="it is deleted and created again")
        content = changes_of(document, live, applier, merges_lists=endpoint.merges_lists)
        return _Request(document, endpoint, content=content)

    def decide(self, request: _Request, new: Sequence[Document], altered: Sequence[Document]) -> ServerDecisions:
        """Send the request, and return the server's decision or why there is none.

        ``new`` and ``altered`` are objects of the change that the server does not have, or not yet like that.
        """
        name = describe(request.document)
        place = place_of(request.document, [each for each in new if each is not request.document])
        if place is not None:
            return _unknown(name, f"{describe(place)} does not exist yet; the change creates it")
        if problem := request.problem or self._failure:
            return _unknown(name, problem)
        if not request.is_new and not request.content:
            return ServerDecisions(accepted=frozenset({name}))
        try:
            decision = self._sent(request)
        except InputError as error:
            return _unknown(name, self._noted(error))
        if decision.status < 400:
            warnings = [
                Assumption(name, _FIELD, f"the API server warns: {each}", AssumptionKind.NOTE)
                for each in decision.warnings
            ]
            return ServerDecisions(frozenset({name}), assumptions=warnings)
        words = decision.words
        if not is_rejection(decision.status, words):
            return _unknown(name, f"the API server did not decide ({decision.status}): {words}")
        if self._options.creates_namespaces and is_without_namespace(decision.status, words):
            return _unknown(name, "its namespace does not exist yet; --create-namespace creates it")
        if others := prerequisites(request.document, altered):
            names = some_of([describe(each) for each in others])
            return _unknown(name, f"the API server rejects it before the change of {names}: {words}")
        return ServerDecisions(rejections={name: server_problem(words, decision.field)})

    def _sent(self, request: _Request) -> Decision:
        assert request.endpoint is not None
        metadata, secrets = request.document["metadata"], secret_values(request.document)
        namespace = metadata.get("namespace") or ""
        if request.is_new:
            return self._runs.create(request.endpoint, namespace, request.content, secrets)
        return self._runs.patch(request.endpoint, namespace, metadata["name"], request.content, secrets)

    def _noted(self, error: InputError) -> str:
        """Return the problem; if it concerns all requests, no more are sent."""
        if getattr(error, "status", 0) in _ALL_FAIL:
            self._failure = error.problem
        return error.problem


def _unknown(name: str, why: str) -> ServerDecisions:
    assumption = Assumption(name, _FIELD, f"not decided by the dry run: {why}", AssumptionKind.UNCERTAIN)
    return ServerDecisions(assumptions=[assumption])


def _joined(decisions: Sequence[ServerDecisions]) -> ServerDecisions:
    return ServerDecisions(
        frozenset[str]().union(*(each.accepted for each in decisions)),
        {name: problem for each in decisions for name, problem in each.rejections.items()},
        [each for decision in decisions for each in decision.assumptions],
    )


def _in_parallel(tasks: Sequence[Callable[[], _T]]) -> list[_T]:
    """Return the results of the tasks, in their order."""
    from kpreempt.snapshot.live.lists import Workers

    def numbered(number: int) -> tuple[int, _T]:
        return number, tasks[number]()

    workers = Workers[tuple[int, _T]](min(_REQUESTS_AT_ONCE, len(tasks)))
    try:
        for number in range(len(tasks)):
            workers.submit(partial(numbered, number))
        return [result for _, result in sorted((workers.result() for _ in tasks), key=itemgetter(0))]
    finally:
        workers.end()
