"""A complete run of ``kubectl drain`` on a replayed cluster: what it prints, when, and how it ends.

Follows ``k8s.io/kubectl`` v0.36.3 ``pkg/cmd/drain/drain.go`` and ``pkg/drain/drain.go``. Differences in parts that are
random in the real program: pods are first evicted in list order, and errors and warnings are sorted.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence

import msgspec

from kpreempt.analysis.drain.kubectl import RETRY_SECONDS
from kpreempt.controllers.actions import is_ready
from kpreempt.eviction.kubectl_drain import (
    DEADLINE,
    Choice,
    choose_pods,
    not_evicted,
    still_there,
    timed_out,
)
from kpreempt.eviction.records import TOO_MANY_REQUESTS, Answer
from kpreempt.eviction.selectors import Requirement
from kpreempt.eviction.subresource import is_of_terminating_namespace
from kpreempt.model.pod import Pod
from tests.conformance.drain_command import DrainCommand
from tests.conformance.replayed_cluster import ReplayedCluster

_POLL = 1.0
_COLLISION = 0.5
_SERVER_ERROR = 500
# kubectl's client: ten requests at once, then five per second.
_BURST = 10
_BETWEEN_REQUESTS = 0.2
# The client silently retries a rejection with a retry delay this often.
_SILENT_RETRIES = 10
# Nothing more can happen that would allow a pod's eviction.
_FOREVER = 3600.0
_MAX_STEPS = 200_000
_OUT, _ERR = "stdout", "stderr"


class Line(msgspec.Struct, frozen=True):
    """A line that is printed, and when, in seconds since the start."""

    t: float
    stream: str
    text: str


class Run(msgspec.Struct, frozen=True):
    """How a run ends. ``exit`` is ``None`` if it never does."""

    exit: int | None
    seconds: float
    lines: list[Line]


class _EndlessError(Exception):
    """The run never ends."""


_Work = Generator[float, None, str]


class DrainRun:
    """A run of a command with the pod selector ``selector``.

    ``daemon_sets`` are namespaces and names of existing ones. An endless run is ``stopped_after`` this many seconds, or
    after an hour without any event.
    """

    def __init__(
        self,
        cluster: ReplayedCluster,
        command: DrainCommand,
        selector: Collection[Requirement],
        daemon_sets: Collection[tuple[str, str]],
        stopped_after: float | None = None,
    ) -> None:
        self._cluster, self._command, self._stopped_after = cluster, command, stopped_after
        self._selector, self._daemon_sets = selector, daemon_sets
        self._lines: list[Line] = []

    def run(self, nodes: Sequence[str]) -> Run:
        """Drain the nodes one after the other."""
        dry = {"client": " (dry run)", "server": " (server dry run)"}.get(self._command.dry_run, "")
        for node in nodes:
            is_cordoned = node in self._cluster.cordoned
            self._print(_OUT, f"node/{node} {'already cordoned' if is_cordoned else 'cordoned'}{dry}")
            if not dry:
                self._cluster.cordoned.add(node)
        failed: dict[str, list[str]] = {}
        try:
            for node in nodes:
                errors = self._drain(node)
                if not errors:
                    self._print(_OUT, f"node/{node} drained{dry}")
                    continue
                failed[node] = errors
                text = _joined(errors)
                self._print(_ERR, f'error: unable to drain node "{node}" due to error: {text}, continuing command...')
        except _EndlessError:
            end = self._cluster.seconds if self._stopped_after is None else self._stopped_after
            return Run(None, end, [line for line in self._lines if line.t <= end])
        self._tell(failed)
        return Run(1 if failed else 0, self._cluster.seconds, self._lines)

    def _tell(self, failed: dict[str, list[str]]) -> None:
        if not failed:
            return
        self._print(_ERR, "There are pending nodes to be drained:")
        for node in failed:
            self._print(_ERR, f" {node}")
        if len(failed) > 1:
            texts = list(dict.fromkeys(_joined(errors) for errors in failed.values()))
        else:
            texts = list(dict.fromkeys(*failed.values()))
        is_plain = self._command.options.disable_eviction and len(failed) == 1 and texts == [DEADLINE]
        for text in texts:
            self._print(_ERR, f"error: {text}" if is_plain else text)

    def _drain(self, node: str) -> list[str]:
        """Drain a node, and return what went wrong."""
        choice = self._choose(node)
        if choice.errors:
            return choice.shown_errors()
        if choice.warnings:
            self._print(_ERR, f"Warning: {'; '.join(choice.shown_warnings())}")
        if self._command.dry_run == "client":
            for each in choice.pods:
                self._print(_OUT, f"evicting pod {each.key} (dry run)")
            return []
        errors = self._delete(choice.pods) if self._command.options.disable_eviction else self._evict(choice.pods)
        if errors:
            left = self._choose(node)
            if left.pods:
                joined = _joined(errors)
                self._print(_ERR, f'There are pending pods in node "{node}" when an error occurred: {joined}')
                for each in left.pods:
                    self._print(_ERR, f"pod/{each.metadata.name}")
        return errors

    def _choose(self, node: str) -> Choice:
        cluster, options = self._cluster, self._command.options
        return choose_pods(cluster.pods.values(), node, options, self._selector, self._daemon_sets, cluster.now)

    def _evict(self, pods: Sequence[Pod]) -> list[str]:
        deadline = self._deadline()
        works = [self._eviction(each, place, deadline) for place, each in enumerate(pods)]
        return self._together(works)

    def _delete(self, pods: Sequence[Pod]) -> list[str]:
        deadline = self._deadline()
        is_dry_run = self._command.dry_run == "server"
        for each in pods:
            self._cluster.delete(each.key, self._command.options.grace, is_dry_run=is_dry_run)
        return self._together([self._wait_for_all(pods, deadline)]) if pods else []

    def _together(self, works: Sequence[_Work]) -> list[str]:
        """Continue all until each has ended; errors are in order of occurrence."""
        errors: list[str] = []
        left = len(works)

        def go_on(work: _Work) -> None:
            nonlocal left
            try:
                pause = next(work)
            except StopIteration as end:
                left -= 1
                if end.value:
                    errors.append(end.value)
            else:
                self._cluster.after(pause, lambda: go_on(work))

        for work in works:
            go_on(work)
        since, shown = self._cluster.seconds, self._state()
        for _ in range(_MAX_STEPS):
            if not left:
                return errors
            self._cluster.step()
            state = self._state()
            if state != shown:
                since, shown = self._cluster.seconds, state
            is_idle = self._cluster.seconds - since > max(_FOREVER, 2 * self._command.options.timeout)
            is_stopped = self._stopped_after is not None and self._cluster.seconds > self._stopped_after
            if is_idle or is_stopped:
                break
        raise _EndlessError

    def _state(self) -> object:
        """The state that another eviction could depend on."""
        return [
            (
                each.metadata.uid,
                each.metadata.deletion_timestamp is None,
                each.spec.node_name,
                is_ready(each),
            )
            for each in self._cluster.pods.values()
        ]

    def _eviction(self, each: Pod, place: int, deadline: float) -> _Work:
        """Evict a pod and wait until it is gone. Yields pauses in seconds; returns an error or an empty string."""
        blocked_pods = max(place - _BURST + 1, 0) * _BETWEEN_REQUESTS
        pod, cluster, is_dry_run = each, self._cluster, self._command.dry_run == "server"
        while True:
            self._print(_OUT, f"evicting pod {pod.key}{' (server dry run)' if is_dry_run else ''}")
            if cluster.seconds >= deadline:
                return not_evicted(pod, timed_out(self._command.options.timeout))
            if blocked_pods:
                yield blocked_pods
                blocked_pods = 0.0
            answer = yield from self._requested(pod.key, is_dry_run=is_dry_run)
            if answer.status < 300:
                break
            if answer.status == 404:
                return ""
            if is_of_terminating_namespace(answer):
                if pod.metadata.deletion_timestamp is not None:
                    break
                self._print(
                    _ERR,
                    _refused(
                        f'pod "{pod.metadata.name}" from terminating namespace "{pod.metadata.namespace}"', answer
                    ),
                )
            elif answer.status == TOO_MANY_REQUESTS:
                self._print(_ERR, _refused(f'pods/"{pod.metadata.name}" -n "{pod.metadata.namespace}"', answer))
            else:
                return not_evicted(pod, answer.message)
            yield RETRY_SECONDS
            fresh = cluster.pods.get(pod.key)
            pod = fresh if fresh is not None else pod
        if is_dry_run:
            return ""
        error = yield from self._wait_for_all([pod], deadline)
        return still_there(pod, error) if error else ""

    def _requested(self, key: str, *, is_dry_run: bool) -> Generator[float, None, Answer]:
        """Return the answer that kubectl sees: the server retries after a conflict, the client after a retry delay."""
        cluster = self._cluster
        for silent in range(_SILENT_RETRIES + 1):
            found = cluster.pods.get(key)
            if found is not None and not is_dry_run and cluster.collides(found):
                yield _COLLISION
            answer = cluster.evict(key, self._command.options.grace, is_dry_run=is_dry_run)
            wait = answer.details.retry_after_seconds if answer.details is not None else 0
            if not wait or silent == _SILENT_RETRIES:
                break
            yield float(wait)
        return answer

    def _wait_for_all(self, pods: Sequence[Pod], deadline: float) -> _Work:
        """Check every second whether the pods are gone; returns an error or an empty string."""
        done = "deleted" if self._command.options.disable_eviction else "evicted"
        patience = self._command.options.skip_wait_for_delete_timeout_seconds
        left = list(pods)
        while True:
            waiting: list[Pod] = []
            for each in left:
                name, found = each.metadata.name, self._cluster.pods.get(each.key)
                if found is None or found.metadata.uid != each.metadata.uid:
                    self._print(_OUT, f"pod/{name} {done}")
                    continue
                until = found.metadata.deletion_timestamp
                if patience > 0 and until is not None and int((self._cluster.now - until).total_seconds()) > patience:
                    age = f"has DeletionTimestamp older than {patience} seconds, skipping"
                    self._print(_OUT, f'pod "{name}" {age}')
                    continue
                waiting.append(each)
            left = waiting
            if not left:
                return ""
            pause = min(_POLL, deadline - self._cluster.seconds)
            if pause > 0:
                yield pause
            if self._cluster.seconds >= deadline:
                return DEADLINE

    def _deadline(self) -> float:
        timeout = self._command.options.timeout
        return self._cluster.seconds + timeout if timeout else float("inf")

    def _print(self, stream: str, text: str) -> None:
        self._lines.append(Line(round(self._cluster.seconds, 1), stream, text))


def _joined(errors: Sequence[str]) -> str:
    different = list(dict.fromkeys(errors))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"


def _refused(subject: str, answer: Answer) -> str:
    """Handle a pod that is not evicted yet."""
    return f"error when evicting {subject} (will retry after 5s): {answer.message}"
