"""What questions to Kueue are put to: the cluster with Kueue's objects, and the manager's configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from kpreempt.analysis.kueue.objects import KUEUE_WANTED, kueue_objects
from kpreempt.analysis.pod_selection import PodSelection
from kpreempt.cli.answering import Run, select_pods
from kpreempt.cli.clusters import usual_namespace
from kpreempt.cli.kueue_configuration import read_kueue_configuration
from kpreempt.cli.options import AnswerRequest
from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import Workload
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.model.wanted import Wanted
from kpreempt.scheduler_table import KUEUE
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects
from kpreempt.snapshot import decode_document
from kpreempt.verdict import Assumption


class KueueGround(NamedTuple):
    """A cluster with what Kueue reads of it, and what is assumed of both. ``namespace`` is the usual one."""

    objects: KueueObjects
    config: KueueConfiguration
    assumptions: list[Assumption]
    now: datetime
    namespace: str


def read_ground(
    run: Run,
    *,
    wanted: Wanted = KUEUE_WANTED,
    additions: Sequence[str] = (),
    change: Callable[[ClusterSnapshot, str], ClusterSnapshot] | None = None,
    reads_configuration: bool = True,
    with_events: bool = False,
) -> KueueGround:
    """Read what a request asks about, and ``change`` the cluster. Raises ``InputError`` and ``UsageError``."""
    request = run.request
    now = run.now()
    live = run.connect()
    config, said = KueueConfiguration(), list[Assumption]()
    if reads_configuration:
        config, said = read_kueue_configuration(request.scheduler_config, live)
    namespace = request.namespace or usual_namespace(live) or DEFAULT_NAMESPACE
    loaded = run.load(live, wanted | KUEUE_WANTED, additions=additions, with_events=with_events)
    cluster = change(loaded.cluster, namespace) if change else loaded.cluster
    with run.stopwatch.phase("decode"):
        objects = kueue_objects(cluster, decode_document)
    return KueueGround(objects, config, [*loaded.assumptions, *said], run.time_of(cluster, now), namespace)


def refuse_options(given: Mapping[str, object]) -> None:
    """Raise ``UsageError`` for an option that says nothing to Kueue."""
    for option, value in given.items():
        if value:
            raise UsageError(f"{option} says nothing to {KUEUE}, which decides on whole Workloads")


def refuse_options_of_pods(request: AnswerRequest) -> None:
    """The same for those that all commands share."""
    refuse_options(
        {
            "--policy-config": request.policy_config,
            "--feature-gates": request.feature_gates,
            "--plugin": request.extensions.plugins,
            "--call-extenders": request.extensions.calls_extenders,
            "--context with several names": "," in (request.connection.context or ""),
        }
    )


def select_workloads(request: AnswerRequest) -> Callable[[Workload], bool]:
    """Whether the question is about a Workload, by ``-n``, ``-A`` and ``-l``. Raises ``UsageError``."""
    selection: PodSelection = select_pods(request)

    def is_asked(workload: Workload) -> bool:
        metadata = workload.metadata
        return selection.namespace in ("", metadata.namespace) and selection.selector.matches(metadata.labels)

    return is_asked
