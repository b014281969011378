"""The tools of the server: the library's questions. Nothing names a file, a URL or a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec

from kpreempt.errors import InputError, UsageError
from kpreempt.library.answers import Answer
from kpreempt.library.cluster import Cluster
from kpreempt.library.gate.settings import Gate
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.scheduler_table import LATEST_ALGORITHM
from kpreempt.snapshot import manifest_in
from kpreempt.snapshot.archives import Intake

# The least and the most characters of an answer, and how many there are where the caller does not say.
LEAST, MOST, USUAL = 1_000, 1_000_000, 20_000
_LARGEST_MANIFEST = 1 << 20

_Text = Annotated[str, msgspec.Meta(max_length=1_000)]
_Texts = Annotated[list[_Text], msgspec.Meta(max_length=1_000)]
_Manifest = Annotated[
    str, msgspec.Meta(max_length=_LARGEST_MANIFEST, description="YAML or JSON, as kubectl apply -f takes it")
]
_Runs = Annotated[int, msgspec.Meta(ge=1, le=20)]


class _Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every question may say."""

    max_chars: Annotated[
        int,
        msgspec.Meta(ge=LEAST, le=MOST, description="the answer is cut to so many characters, and says what is cut"),
    ] = USUAL


class _Nothing(_Asked, frozen=True, kw_only=True):
    pass


class _Explain(_Asked, frozen=True, kw_only=True):
    pod: Annotated[str, msgspec.Meta(description="NAME, NS/NAME or deploy/NAME of the cluster; or a manifest")] = ""
    manifest: _Manifest = ""
    namespace: _Text = DEFAULT_NAMESPACE
    priority: int | None = None
    priority_class: _Text | None = None
    replicas: Annotated[int, msgspec.Meta(ge=1, le=1_000)] | None = None
    node: Annotated[str, msgspec.Meta(description="also tells the whole story of this node")] = ""


class _Selected(_Asked, frozen=True, kw_only=True):
    namespace: _Text = ""
    selector: _Text = ""


class _AtRisk(_Selected, frozen=True, kw_only=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 10


class _Check(_Asked, frozen=True, kw_only=True):
    manifest: _Manifest = ""
    delete: Annotated[list[_Text], msgspec.Meta(max_length=1_000, description="objects that go: deploy/NAME")] = []
    namespace: _Text = DEFAULT_NAMESPACE
    rules: Annotated[
        dict[str, int | str | bool | None],
        msgspec.Meta(max_length=100, description="limits by rule, such as max-victims; null switches one off"),
    ] = {}
    applied_by: Annotated[_Text | None, msgspec.Meta(description="tool that applies it: kubectl, helm, argocd")] = None
    runs: _Runs | None = None


class _Drain(_Asked, frozen=True, kw_only=True):
    nodes: _Texts = []
    selector: _Text | None = None
    force: bool = False
    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False
    disable_eviction: bool = False
    one_by_one: bool = False
    max_unavailable: Annotated[int, msgspec.Meta(ge=1)] | None = None
    surge: Annotated[int, msgspec.Meta(ge=1, le=1_000)] | None = None
    remove: bool = False
    runs: _Runs | None = None


class _Compare(_Asked, frozen=True, kw_only=True):
    algorithms: Annotated[list[_Text], msgspec.Meta(min_length=2, max_length=10)]
    pod: _Text = ""
    manifest: _Manifest = ""
    namespace: _Text | None = None


class Tool(NamedTuple):
    """A question: what it is for, what may be said, and how a cluster is asked. Raises ``KpreemptError``."""

    description: str
    asked: type[_Asked]
    ask: Callable[[Cluster, Any], Answer | Mapping[str, Any]]


def answered(name: str, arguments: Mapping[str, Any], cluster: Callable[[], Cluster]) -> tuple[dict[str, Any], int]:
    """The document that answers, and how many characters it may have. Raises ``KpreemptError``."""
    tool = TOOLS.get(name)
    if tool is None:
        raise UsageError(f"there is no tool {name[:40]!r}", hint=", ".join(TOOLS))
    try:
        asked = msgspec.convert(arguments, tool.asked)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {error}") from None
    found = tool.ask(cluster(), asked)
    return dict(found) if isinstance(found, Mapping) else found.to_dict(), asked.max_chars


def _objects(manifest: str) -> list[dict[str, Any]]:
    found = [each.document for each in manifest_in(manifest.encode(), "manifest", Intake(_LARGEST_MANIFEST * 16))]
    if not found:
        raise InputError("has no objects", source="manifest")
    return found


def _pods(asked: _Explain | _Compare) -> Any:
    if bool(asked.pod) and bool(asked.manifest):
        raise UsageError("a pod and a manifest are given: one of both")
    return asked.pod or _objects(asked.manifest) if asked.pod or asked.manifest else None


def _explain(cluster: Cluster, asked: _Explain) -> Answer:
    pods = _pods(asked)
    if pods is None:
        raise UsageError("a pod or a manifest is expected")
    said: dict[str, Any] = {
        "namespace": asked.namespace,
        "priority": asked.priority,
        "priority_class": asked.priority_class,
    }
    if isinstance(pods, str) or len(pods) == 1:
        return cluster.explain(
            pods if isinstance(pods, str) else pods[0], replicas=asked.replicas, node=asked.node, **said
        )
    return cluster.explain_all(pods, replicas=asked.replicas, **said)


def _check(cluster: Cluster, asked: _Check) -> Answer:
    change = _objects(asked.manifest) if asked.manifest else []
    return cluster.check(
        change,
        delete=asked.delete,
        namespace=asked.namespace,
        applied_by=asked.applied_by,
        runs=asked.runs,
        gate=Gate(rules=asked.rules),
    )


def _drain(cluster: Cluster, asked: _Drain) -> Answer:
    options = {name: getattr(asked, name) for name in asked.__struct_fields__ if name not in ("max_chars", "nodes")}
    return cluster.drain(asked.nodes, **options)


def _about(cluster: Cluster, _asked: _Nothing) -> Mapping[str, Any]:
    snapshot = cluster.snapshot
    return {
        "version": cluster.version,
        "takenAt": snapshot.taken_at.isoformat() if snapshot.taken_at else None,
        "nodes": len(snapshot.nodes),
        "pods": len(snapshot.pods),
        "podDisruptionBudgets": len(snapshot.pod_disruption_budgets),
        "priorityClasses": sorted(each.metadata.name for each in snapshot.priority_classes),
    }


TOOLS: Mapping[str, Tool] = {
    "cluster": Tool("Which cluster this is: version, age of the snapshot, nodes, pods.", _Nothing, _about),
    "explain": Tool(
        "Where a pod would land, whom it would evict, which budgets break, and why; or why it never lands.",
        _Explain,
        _explain,
    ),
    "pending": Tool(
        "What becomes of each pending pod, in the order of the scheduler's queue.",
        _Selected,
        lambda cluster, asked: cluster.pending(namespace=asked.namespace, selector=asked.selector),
    ),
    "budgets": Tool(
        "Which PodDisruptionBudgets block drains, protect nothing, or would be violated, and by whom.",
        _Selected,
        lambda cluster, asked: cluster.budgets(namespace=asked.namespace, selector=asked.selector),
    ),
    "at_risk": Tool(
        "Which running pods would be evicted, and for whom.",
        _AtRisk,
        lambda cluster, asked: cluster.at_risk(namespace=asked.namespace, selector=asked.selector, limit=asked.limit),
    ),
    "check": Tool(
        "What a change of manifests would do to the cluster, and whether it keeps the rules.", _Check, _check
    ),
    "drain": Tool("What becomes of nodes that are drained: what is blocked, and where pods go.", _Drain, _drain),
    "compare": Tool(
        f"Where several versions of the scheduler would put the same pods, such as auto and {LATEST_ALGORITHM}.",
        _Compare,
        lambda cluster, asked: cluster.compare(asked.algorithms, _pods(asked), namespace=asked.namespace),
    ),
}
