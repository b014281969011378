"""The tools of the server: the library's questions. Nothing names a file, a URL or a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec

from kpreempt.errors import InputError, UsageError
from kpreempt.library.answers import Answer
from kpreempt.library.cluster import Cluster
from kpreempt.library.gate.settings import Gate
from kpreempt.library.options import Request, fields_of, kind_of, option_of
from kpreempt.library.requests import AtRisk, Budgets, Check, Compare, Drain, Explain, Pending
from kpreempt.scheduler_table import LATEST_ALGORITHM
from kpreempt.snapshot.archives import Intake
from kpreempt.snapshot.manifest import manifest_in

# The least and the most characters of an answer, and how many there are where the caller does not say.
LEAST, MOST, USUAL = 1_000, 1_000_000, 20_000
_LARGEST_MANIFEST = 1 << 20

_Manifest = Annotated[
    str, msgspec.Meta(max_length=_LARGEST_MANIFEST, description="YAML or JSON, as kubectl apply -f takes it")
]
_MAX_CHARS = Annotated[
    int,
    msgspec.Meta(ge=LEAST, le=MOST, description="the answer is cut to so many characters, and says what is cut"),
]
_RULES = Annotated[
    dict[str, int | str | bool | None],
    msgspec.Meta(max_length=100, description="limits by rule, such as max-victims; null switches one off"),
]
_ALGORITHMS = Annotated[list[Annotated[str, msgspec.Meta(max_length=1_000)]], msgspec.Meta(min_length=2, max_length=10)]
_LONGEST = 1_000


def _arguments(question: type[Request], *more: tuple[str, Any] | tuple[str, Any, Any]) -> type[msgspec.Struct]:
    """What a tool takes: the options of a question that assistants may give, within bounds, and ``more`` than that."""
    fields: list[Any] = [*more, ("max_chars", _MAX_CHARS, USUAL)]
    for name, annotation in fields_of(question).items():
        option = option_of(annotation)
        if option is None or not option.in_tools:
            continue
        kind: Any = kind_of(annotation)
        default = getattr(question, name)
        if kind is list:
            kind = list[Annotated[str, msgspec.Meta(max_length=_LONGEST)]]
        meta: Any = msgspec.Meta(  # type: ignore[call-overload]
            ge=option.min if kind is int else None,
            le=option.most_in_tools if kind is int else None,
            max_length=None if kind in (int, bool) else _LONGEST,
            description=option.help if isinstance(option.help, str) else "",
        )
        bounded: Any = Annotated[kind, meta]
        fields.append((name, bounded | None if default is None else bounded, default))
    return msgspec.defstruct(
        question.__name__, fields, frozen=True, kw_only=True, forbid_unknown_fields=True, module=__name__
    )


class Tool(NamedTuple):
    """A question: what it is for, what may be said, and how a cluster is asked. Raises ``KpreemptError``."""

    description: str
    arguments: type[msgspec.Struct]
    ask: Callable[[Cluster, dict[str, Any]], Answer | Mapping[str, Any]]


def answered(name: str, arguments: Mapping[str, Any], cluster: Callable[[], Cluster]) -> tuple[dict[str, Any], int]:
    """The document that answers, and how many characters it may have. Raises ``KpreemptError``."""
    tool = TOOLS.get(name)
    if tool is None:
        raise UsageError(f"there is no tool {name[:40]!r}", hint=", ".join(TOOLS))
    try:
        asked = msgspec.convert(arguments, tool.arguments)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {error}") from None
    given = {name: getattr(asked, name) for name in asked.__struct_fields__}
    size = given.pop("max_chars")
    found = tool.ask(cluster(), given)
    return dict(found) if isinstance(found, Mapping) else found.to_dict(), size


def _objects(manifest: str) -> list[dict[str, Any]]:
    found = [each.document for each in manifest_in(manifest.encode(), "manifest", Intake(_LARGEST_MANIFEST * 16))]
    if not found:
        raise InputError("has no objects", source="manifest")
    return found


def _pods(given: dict[str, Any]) -> Any:
    """The pod that is named, or the objects of the manifest; both are taken out of what is given."""
    pod, manifest = given.pop("pod"), given.pop("manifest")
    if pod and manifest:
        raise UsageError("a pod and a manifest are given: one of both")
    return pod or (_objects(manifest) if manifest else None)


def _explain(cluster: Cluster, given: dict[str, Any]) -> Answer:
    pods = _pods(given)
    if pods is None:
        raise UsageError("a pod or a manifest is expected")
    if isinstance(pods, str) or len(pods) == 1:
        return cluster.explain(pods if isinstance(pods, str) else pods[0], **given)
    # A node's story is about one pod.
    return cluster.explain_all(pods, **{**given, "node": None})


def _check(cluster: Cluster, given: dict[str, Any]) -> Answer:
    manifest, rules = given.pop("manifest"), given.pop("rules")
    return cluster.check(_objects(manifest) if manifest else [], gate=Gate(rules=rules), **given)


def _compare(cluster: Cluster, given: dict[str, Any]) -> Answer:
    return cluster.compare(given["algorithms"], _pods(given), namespace=given["namespace"])


def _about(cluster: Cluster, _given: dict[str, Any]) -> Mapping[str, Any]:
    snapshot = cluster.snapshot
    return {
        "version": cluster.version,
        "takenAt": snapshot.taken_at.isoformat() if snapshot.taken_at else None,
        "nodes": len(snapshot.nodes),
        "pods": len(snapshot.pods),
        "podDisruptionBudgets": len(snapshot.pod_disruption_budgets),
        "priorityClasses": sorted(each.metadata.name for each in snapshot.priority_classes),
    }


_MANIFEST = ("manifest", _Manifest, "")
TOOLS: Mapping[str, Tool] = {
    "cluster": Tool("Which cluster this is: version, age of the snapshot, nodes, pods.", _arguments(Request), _about),
    "explain": Tool(
        "Where a pod would land, whom it would evict, which budgets break, and why; or why it never lands.",
        _arguments(Explain, _MANIFEST),
        _explain,
    ),
    "pending": Tool(
        "What becomes of each pending pod, in the order of the scheduler's queue.",
        _arguments(Pending),
        lambda cluster, given: cluster.pending(**given),
    ),
    "budgets": Tool(
        "Which PodDisruptionBudgets block drains, protect nothing, or would be violated, and by whom.",
        _arguments(Budgets),
        lambda cluster, given: cluster.budgets(**given),
    ),
    "at_risk": Tool(
        "Which running pods would be evicted, and for whom.",
        _arguments(AtRisk),
        lambda cluster, given: cluster.at_risk(**given),
    ),
    "check": Tool(
        "What a change of manifests would do to the cluster, and whether it keeps the rules.",
        _arguments(Check, _MANIFEST, ("rules", _RULES, {})),
        _check,
    ),
    "drain": Tool(
        "What becomes of nodes that are drained: what is blocked, and where pods go.",
        _arguments(Drain),
        lambda cluster, given: cluster.drain(**given),
    ),
    "compare": Tool(
        f"Where several versions of the scheduler would put the same pods, such as auto and {LATEST_ALGORITHM}.",
        _arguments(Compare, _MANIFEST, ("algorithms", _ALGORITHMS)),
        _compare,
    ),
}
