"""The library's cluster: what was read, changes made since, and the requests that it answers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from inspect import Parameter, signature
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import msgspec

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.errors import UsageError, nearest
from kpreempt.library import requests
from kpreempt.library.answers import (
    BudgetAudit,
    Check,
    Comparison,
    Drain,
    EvictedPods,
    EvictionsOfPod,
    PendingPods,
    PodsAtRisk,
    Verdict,
    VerdictList,
    as_answer,
)
from kpreempt.library.handlers import answer
from kpreempt.library.manifests import Manifest, as_list, templates_of
from kpreempt.library.options import Request, fields_of, option_of
from kpreempt.library.reading import LoadedCluster, Source, files_listed, read_cluster, with_objects
from kpreempt.library.requests import AtRisk, Budgets, Compare, Explain, Pending, WhoEvicted
from kpreempt.library.schedulers import Context, SchedulerFactory
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.kinds import RECORDED, parse_kinds
from kpreempt.verdict import Outcome
from kpreempt.verdict.unread import invalidates_answer

if TYPE_CHECKING:
    from typing import Self

    from kpreempt.analysis.workload_pods import PodTemplate
    from kpreempt.library.gate.settings import Gate
    from kpreempt.model.cluster import ClusterSnapshot

Path = str | os.PathLike[str]
_Record = TypeVar("_Record", bound=msgspec.Struct)
_Request = TypeVar("_Request", bound=Request)
_Method = TypeVar("_Method", bound=Callable[..., Any])


class _Scheduling(msgspec.Struct, frozen=True):
    """The scheduler that decides: an algorithm, its configuration as plain data, and feature gates."""

    algorithm: str = "auto"
    configuration: dict[str, Any] | None = None
    feature_gates: dict[str, bool] = {}
    policy: dict[str, Any] | None = None

    def new_scheduler(self, algorithm: str | None = None) -> SchedulerFactory:
        """Build a new scheduler for each request, because schedulers cache data that threads must not share."""

        def make(name: str) -> Any:
            return scheduler_for(name, self.configuration, self.feature_gates, self.policy)

        return SchedulerFactory(algorithm or self.algorithm, make, self.configuration, self.feature_gates)


class _State(msgspec.Struct, frozen=True):
    """The complete state of a cluster; a change creates a new one."""

    loaded: LoadedCluster
    scheduling: _Scheduling = _Scheduling()
    live: Any = None
    max_unpacked: int | None = None
    now: datetime | None = None


def _takes(request: type[Request]) -> Callable[[_Method], _Method]:
    """Add the options of a request to the signature of a method."""

    def shown(method: _Method) -> _Method:
        plain = signature(method)
        options = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=getattr(request, name), annotation=get_args(each)[0])
            for name, each in fields_of(request).items()
            if name not in plain.parameters
        ]
        own = [each for each in plain.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        method.__signature__ = plain.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        return method

    return shown


class Cluster:
    """A cluster at a point in time. It never changes: what-if methods return another ``Cluster``.

    ``load`` reads a snapshot, ``fetch`` a live cluster, and ``of`` takes objects. Methods raise ``KpreemptError`` for
    invalid requests and unreadable sources. A cluster may be queried from several threads at once.
    """

    __slots__ = ("_state",)

    def __init__(self, state: _State) -> None:
        """Use ``load``, ``fetch`` or ``of`` instead."""
        self._state = state

    @classmethod
    def load(
        cls,
        *paths: Path,
        at: str | None = None,
        skip_bad_objects: bool = False,
        assume_none: Sequence[str] = (),
        max_unpacked: int | None = None,
        now: datetime | None = None,
    ) -> Self:
        """Load the cluster from files, directories and archives, all merged: the inputs of ``--snapshot``.

        ``at`` selects a time in a recording, like ``--at``. The cluster is assumed to have no objects of the kinds in
        ``assume_none`` (kubectl's names, such as ``pdb``) if the input lacks them. ``max_unpacked`` limits the total
        decompressed size in bytes (default 1 GiB). Ages count to ``now``, by default the time of the dump.
        """
        if not paths:
            raise UsageError("no snapshot given: expected a path")
        source = Source(
            skip_bad_objects=skip_bad_objects,
            assume_none=parse_kinds(assume_none, "assume_none"),
            input_limits=_input_limits(max_unpacked),
            paths=[os.fspath(each) for each in paths],
            at=at,
        )
        return cls(_State(read_cluster(source, _NEEDS), max_unpacked=max_unpacked, now=_zoned(now)))

    @classmethod
    def of(cls, manifests: Manifest | Sequence[Manifest], *, now: datetime | None = None) -> Self:
        """Build a cluster of these objects: nodes, pods and others, as plain data or from manifest files.

        The list is complete: the cluster has no other objects.
        """
        loaded = read_cluster(_source_of(manifests, None), _NEEDS)
        cluster = msgspec.structs.replace(loaded.cluster, unread={}, listed=tuple(sorted(RECORDED)))
        return cls(_State(msgspec.structs.replace(loaded, cluster=cluster), now=_zoned(now)))

    @classmethod
    def fetch(
        cls,
        *,
        kubeconfig: str = "",
        context: str = "",
        request_timeout: str = "",
        skip_bad_objects: bool = False,
        assume_none: Sequence[str] = (),
        now: datetime | None = None,
        **flags: Any,
    ) -> Self:
        """Read the live cluster of a kubeconfig context, or the one in which the process runs, without changing it.

        ``flags`` are other connection flags of kubectl, such as ``as_user`` or ``server``.
        """
        from kpreempt.snapshot.kinds import COMPARED_KINDS
        from kpreempt.snapshot.live.connection import connect
        from kpreempt.snapshot.live.flags import ConnectionFlags

        if unknown := sorted(flags.keys() - set(ConnectionFlags.__struct_fields__)):
            raise UsageError(
                f"unknown kubectl flag {unknown[0]}", hint=nearest(unknown[0], ConnectionFlags.__struct_fields__)
            )
        given = ConnectionFlags(kubeconfig=kubeconfig, context=context, request_timeout=request_timeout, **flags)
        live = connect(given, os.environ)
        source = Source(
            skip_bad_objects=skip_bad_objects, assume_none=parse_kinds(assume_none, "assume_none"), live=live
        )
        loaded = read_cluster(
            source,
            msgspec.structs.replace(
                _NEEDS,
                with_events=True,
                with_autoscalers=True,
                with_evictions=True,
                compare_kinds=list(COMPARED_KINDS),
            ),
        )
        return cls(_State(loaded, live=live, now=_zoned(now)))

    @property
    def snapshot(self) -> ClusterSnapshot:
        """All records of the cluster, completed as the API server and its controllers would."""
        return self._state.loaded.cluster

    @property
    def version(self) -> str:
        """The Kubernetes version that the cluster reports; empty if it reports none."""
        return self.snapshot.version

    def __repr__(self) -> str:
        version = self.version or "unknown version"
        return f"<Cluster {version}: {len(self.snapshot.nodes):,} nodes, {len(self.snapshot.pods):,} pods>"

    # What-ifs.

    def with_scheduler(
        self,
        algorithm: str = "auto",
        *,
        configuration: Mapping[str, Any] | Path | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        policy: Mapping[str, Any] | Path | None = None,
    ) -> Self:
        """Return the cluster with another scheduler, from the values of ``--algorithm``, ``--scheduler-config`` etc.

        ``auto`` is the scheduler of the cluster's version. Invalid options are reported at once.
        """
        scheduling = _Scheduling(algorithm, _document(configuration), dict(feature_gates or {}), _document(policy))
        scheduling.new_scheduler().checked()
        return self._replaced(scheduling=scheduling)

    def with_objects(self, manifests: Manifest | Sequence[Manifest]) -> Self:
        """Return the cluster with these objects added; objects of the same name are replaced."""
        from kpreempt.admission import complete_cluster
        from kpreempt.snapshot.load import merge_clusters

        source = _source_of(manifests, self._state.max_unpacked)
        added = read_cluster(msgspec.structs.replace(source, completes=False), _NEEDS)
        before = self._state.loaded
        merged = merge_clusters(before.cluster, added.cluster)
        cluster, assumed = complete_cluster(merged, created={pod.key for pod in added.cluster.pods})
        assumptions = list(dict.fromkeys([*before.assumptions, *added.assumptions, *assumed]))
        return self._replaced(loaded=LoadedCluster(cluster, assumptions, [*before.documents, *added.documents]))

    def without(self, *targets: str, namespace: str = "") -> Self:
        """Return the cluster without these objects, named like ``pod/NS/NAME``, ``node/NAME`` or ``pdb/NS/NAME``.

        Names without a namespace are in ``namespace``, or in any if it is empty.
        """
        return self._changed(namespace, removed=targets)

    def cordon(self, *nodes: str) -> Self:
        """Return the cluster with these nodes cordoned."""
        return self._changed(edits=_node_edits(cordons=nodes))

    def uncordon(self, *nodes: str) -> Self:
        """Return the cluster with these nodes uncordoned."""
        return self._changed(edits=_node_edits(uncordons=nodes))

    def edit_nodes(
        self, *, labels: Sequence[str] = (), taints: Sequence[str] = (), settings: Sequence[str] = ()
    ) -> Self:
        """Return the cluster with edited nodes, as with ``--label-node``, ``--taint-node`` and ``--set-node``.

        ``NODE=KEY=VALUE``, ``NODE=KEY=VALUE:EFFECT`` and ``NODE:PATH=VALUE`` set something, ``NODE=KEY-``,
        ``NODE=KEY:EFFECT-`` and ``NODE:PATH-`` remove it. Pods that do not tolerate a new NoExecute taint are evicted.
        """
        return self._changed(edits=_node_edits(node_labels=labels, node_taints=taints, node_settings=settings))

    def with_allowed_disruptions(self, budget: str, number: int) -> Self:
        """Return the cluster with a budget ``NS/NAME`` that allows ``number`` disruptions."""
        return self._changed(budgets=[f"{budget}={number}"])

    def add_nodes(self, like: str | Mapping[str, Any], number: int = 1) -> Self:
        """Return the cluster with more nodes like an existing one, given by name, or like a Node as plain data."""
        if isinstance(like, str):
            return self._with_nodes(added=[f"node/{like.removeprefix('node/')}={number}"])
        return self._with_nodes(added=[f"-={number}"], node=like)

    def add_pool_nodes(self, pool: str, number: int = 1) -> Self:
        """Return the cluster with more nodes of a Karpenter NodePool."""
        return self._with_nodes(pools=[f"{pool}={number}"])

    def remove_nodes(self, *nodes: str) -> Self:
        """Return the cluster without these nodes and their pods."""
        return self._with_nodes(removed=nodes)

    # Requests. Their options are those of the commands, declared in ``kpreempt.library.requests``.

    @_takes(Explain)
    def explain(self, pod: str | Manifest, **options: Any) -> Verdict:
        """Explain where a pod lands, which pods it evicts, or why it is unschedulable.

        ``pod`` is the name of a pod in the cluster (``NAME``, ``NS/NAME``) or of a workload (``deploy/NAME``), or a
        manifest of one. ``replicas`` schedules several replicas, ``capacity`` counts how many more fit, ``aftermath``
        simulates what happens next, and ``node`` explains one node in full. The other options are ``namespace``,
        ``priority``, ``priority_class``, ``preemption_policy`` and ``settings``.
        """
        found = self._explained(pod, options)
        if len(found) != 1:
            raise UsageError(f"matches {len(found)} pods; explain takes one", hint="explain_all")
        return found[0]

    @_takes(Explain)
    def explain_all(self, pods: str | Manifest | Sequence[Manifest], **options: Any) -> VerdictList:
        """Explain each pod of the manifests on its own, preparing the scheduler only once.

        The options are those of ``explain``.
        """
        return VerdictList(items=list(self._explained(pods, options)))

    def can_schedule_pod(self, pod: str | Manifest, node: str = "", *, namespace: str | None = None) -> bool:
        """Return whether the scheduler finds a node for the pod without evictions, or whether it fits on ``node``.

        Also ``False`` if the answer is uncertain: ties or randomness may decide, or a kind could not be read.
        """
        verdict = self.explain(pod, namespace=namespace, node=node)
        if any(map(invalidates_answer, verdict.assumptions)):
            return False
        if not node:
            choices = verdict.volume_choices
            outcomes = [verdict.worst_outcome, *(each.outcome for each in (choices.outcomes if choices else []))]
            return (choices is None or choices.complete) and all(each == Outcome.LANDS for each in outcomes)
        found = verdict.node_report.evaluation if verdict.node_report is not None else None
        if found is None or found.pre_filter is not None or found.excluded_by:
            return False
        return verdict.outcome != Outcome.NOT_SCHEDULED and all(each.is_success for each in found.filters)

    def pending(self, *, namespace: str | None = None, selector: str | None = None) -> PendingPods:
        """Predict what happens to each pending pod on its own, in the order in which the queue would try them."""
        return self._answered(Pending(namespace=namespace, selector=selector), PendingPods)

    def budgets(self, *, namespace: str | None = None, selector: str | None = None) -> BudgetAudit:
        """Find problems with PodDisruptionBudgets, and the pods that would violate them."""
        return self._answered(Budgets(namespace=namespace, selector=selector), BudgetAudit)

    def at_risk(self, *, namespace: str | None = None, selector: str | None = None, limit: int = 10) -> PodsAtRisk:
        """Find the running pods that would be preempted, and by what; the ``limit`` most threatened ones."""
        return self._answered(AtRisk(namespace=namespace, selector=selector, limit=limit), PodsAtRisk)

    def who_evicted(self, pod: str | None = None, *, namespace: str | None = None) -> EvictionsOfPod | EvictedPods:
        """Find out what evicted a pod, or ended it otherwise.

        ``pod`` is the name of a pod, which may be gone (``NAME``, ``NS/NAME``), or of a workload (``deploy/NAME``).
        Without it, all pods of the namespace are listed. Without a namespace, all of them are searched.
        """
        request = WhoEvicted(pod=pod, namespace=namespace)
        record = answer(self._context(), request).record
        if record.kind == EvictedPods.__name__:
            return as_answer(record, EvictedPods)
        return as_answer(record, EvictionsOfPod)

    @_takes(requests.Check)
    def check(
        self,
        manifests: Manifest | Sequence[Manifest] = (),
        *,
        base: Manifest | Sequence[Manifest] = (),
        gate: Gate | None = None,
        **options: Any,
    ) -> Check:
        """Simulate a change: which pods land, which are evicted, and which budgets and rules are violated.

        ``manifests`` are applied like ``kubectl apply``, and objects in ``delete`` (``deploy/NAME``) are deleted.
        ``base`` has the previous manifests: problems that they cause as well don't count, and ``prune`` deletes objects
        that are only in the base. Without a ``gate``, the default rules apply; no file is searched for. The answer's
        ``passed`` is true if no rule is violated. ``applied_by`` is the tool that applies the change, ``kubectl`` (the
        default), ``helm`` or ``argocd``: hooks and waves only apply to the tool that reads their annotations. The other
        ``options`` are ``namespace``, ``autoscaled``, ``job_duration``, ``create_namespace``, ``seed``, ``runs``,
        ``worst_case`` and ``max_runs``. ``server_dry_run`` also sends each object to the API server of a live cluster
        in a dry run, which stores nothing, but shows the manifests to its admission webhooks. A warning lists ignored
        parts of the manifests.
        """
        from kpreempt.analysis.check.rollout.cluster_documents import NeededObjects
        from kpreempt.library.check import check_options, server_decisions
        from kpreempt.library.gate.settings import settings_of
        from kpreempt.library.manifests import change_of

        input_limits = _input_limits(self._state.max_unpacked)
        change, before = change_of(manifests, input_limits), change_of(base, input_limits)
        request = _build_request(requests.Check, options).having(change=change, before=before)
        if not change and not request.delete and not request.prune:
            raise UsageError("no manifests given")
        if request.prune and not before:
            raise UsageError("prune needs a base: it deletes objects that are only in the base")
        check_options(request)
        needed = NeededObjects([*change, *before], request.namespace or DEFAULT_NAMESPACE)
        names = [*needed.objects, *needed.for_policies(self._state.loaded.documents)]
        with_others = with_objects(self._state.loaded, self._state.live, names, needed.api_versions)
        listed = files_listed(input_limits.take_skipped())
        with_others = msgspec.structs.replace(with_others, assumptions=[*with_others.assumptions, *listed])
        context = self._context()._replace(loaded=with_others, warn=partial(warnings.warn, stacklevel=4))
        rules = settings_of(gate, context.now, "check")
        namespace = request.namespace or context.namespace
        decisions = server_decisions(self._state.live, request, rules, namespace)
        return as_answer(answer(context, request.having(rules=rules, decisions=decisions)).record, Check)

    @_takes(requests.Drain)
    def drain(self, nodes: str | Sequence[str] = (), *, gate: Gate | None = None, **options: Any) -> Drain:
        """Simulate draining nodes: what is blocked, by which budget, and where the pods go.

        ``options`` are those of ``kpreempt drain``: ``selector`` or ``pool`` instead of names, ``ignore_daemonsets``,
        ``force``, ``delete_emptydir_data`` and the others of ``kubectl drain``, ``one_by_one``, ``max_unavailable``,
        ``surge``, ``best_order``, ``remove``, ``runs``, ``seed`` and ``worst_case``.
        """
        from kpreempt.library.gate.settings import settings_of

        request = _build_request(
            requests.Drain, {**options, "nodes": [nodes] if isinstance(nodes, str) else list(nodes)}
        )
        context = self._context()
        request = request.having(rules=settings_of(gate, context.now, "drain"))
        return as_answer(answer(context, request).record, Drain)

    def compare(
        self,
        algorithms: Sequence[str],
        pods: str | Manifest | Sequence[Manifest] | None = None,
        *,
        namespace: str | None = None,
    ) -> Comparison:
        """Compare where several schedulers would place the same pods; the first is the reference.

        ``pods`` are a pod of the cluster by name, pods of manifests, or by default every pending pod.
        """
        if len(algorithms) < 2 or len(set(algorithms)) < len(algorithms):
            raise UsageError("compare needs two or more schedulers", hint='["kube-1.33", "auto"]')
        schedulers = {name: self._state.scheduling.new_scheduler(name) for name in algorithms}
        request = Compare(namespace=namespace, schedulers=schedulers)
        if isinstance(pods, str):
            request = request.having(pod=pods)
        elif pods is not None:
            request = request.having(templates=self._templates(pods, namespace))
        return self._answered(request, Comparison)

    def _explained(self, pods: str | Manifest | Sequence[Manifest], options: Mapping[str, Any]) -> list[Verdict]:
        request = _build_request(Explain, options)
        if isinstance(pods, str):
            request = request.having(pod=pods)
        else:
            request = request.having(templates=self._templates(pods, request.namespace))
        record = answer(self._context(), request).record
        return [as_answer(each, Verdict) for each in (record.items if hasattr(record, "items") else [record])]

    def _templates(self, pods: Manifest | Sequence[Manifest], namespace: str | None) -> list[PodTemplate]:
        return templates_of(pods, namespace or DEFAULT_NAMESPACE, _input_limits(self._state.max_unpacked))

    def _answered(self, request: Request, kind: type[_Record]) -> _Record:
        return as_answer(answer(self._context(), request).record, kind)

    def _context(self) -> Context:
        state = self._state
        now = state.now or datetime.now(UTC)
        is_dump = state.now is None and state.loaded.cluster.taken_at is not None
        return Context(
            state.loaded,
            state.scheduling.new_scheduler(),
            now,
            None if is_dump else now,
            is_live=state.live is not None,
        )

    def _changed(self, namespace: str = "", **changes: Any) -> Self:
        from kpreempt.analysis.nodes.edits import with_changes

        return self._with_cluster(*with_changes(self.snapshot, namespace, now=self._context().at, **changes))

    def _with_nodes(
        self,
        *,
        added: Sequence[str] = (),
        pools: Sequence[str] = (),
        removed: Sequence[str] = (),
        node: Mapping[str, Any] | None = None,
    ) -> Self:
        from kpreempt.analysis.nodes.changes import with_changed_nodes
        from kpreempt.analysis.nodes.edits import requested_nodes

        def read_file(_path: str) -> ClusterSnapshot:
            return read_cluster(_source_of([node], None)).cluster

        cluster, assumptions = with_changed_nodes(
            self.snapshot, added=added, pools=pools, removed=removed, read_file=read_file, now=self._context().at
        )
        return self._with_cluster(cluster, [*requested_nodes(added=added, pools=pools, removed=removed), *assumptions])

    def _with_cluster(self, cluster: ClusterSnapshot, assumptions: Sequence[Any] = ()) -> Self:
        before = self._state.loaded
        loaded = msgspec.structs.replace(before, cluster=cluster, assumptions=[*before.assumptions, *assumptions])
        return self._replaced(loaded=loaded)

    def _replaced(self, **changes: Any) -> Self:
        return type(self)(msgspec.structs.replace(self._state, **changes))


def _node_edits(**texts: Sequence[str]) -> Any:
    from kpreempt.analysis.nodes.edits import node_edits

    return node_edits(**texts)


def _is_compared(kind: str, record: Any) -> bool:
    """Return whether to keep the document of an object: a manifest or request may name it."""
    from kpreempt.model.meta import controller_of

    return kind not in ("Node", "Event") and (kind != "Pod" or controller_of(record.metadata) is None)


# For a cluster that may get any request.
_NEEDS = Needs(keep_document=_is_compared)


def _build_request(request: type[_Request], options: Mapping[str, Any]) -> _Request:
    """Build the request with these options. Raises ``UsageError`` for an unknown option."""
    known = {name for name, each in fields_of(request).items() if option_of(each)}
    if unknown := sorted(options.keys() - known):
        name = request.__name__.lower()
        raise UsageError(f"{name} has no option {unknown[0]}", hint=nearest(unknown[0], known))
    return request(**options)


def _input_limits(max_unpacked: int | None) -> InputLimits:
    return InputLimits() if max_unpacked is None else InputLimits(max_unpacked)


def _source_of(manifests: Any, max_unpacked: int | None) -> Source:
    """Build a source in which ``-`` stands for these objects."""
    content = as_list(manifests, _input_limits(max_unpacked))
    return Source(paths=["-"], stdin=lambda: BytesIO(content))


def _document(given: Mapping[str, Any] | Path | None) -> dict[str, Any] | None:
    """Return a configuration as plain data, reading it if it is a path."""
    from kpreempt.snapshot.documents import read_document

    if given is None:
        return None
    return dict(given) if isinstance(given, Mapping) else read_document(os.fspath(given))


def _zoned(now: datetime | None) -> datetime | None:
    if now is not None and now.tzinfo is None:
        raise UsageError("now must have a time zone", hint="datetime.now(UTC)")
    return now
