"""``kpreempt verify``: compares each decision in a recording with its prediction and writes differences to files."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.image_sizes import ImageSizes
from kpreempt.analysis.verification import Judgment, Prediction
from kpreempt.cli.output import atomic_file
from kpreempt.cli.record import record_into, seconds_of
from kpreempt.cli.runner import CommandRun
from kpreempt.cli.terminal import EXIT_GATE, Progress
from kpreempt.errors import UsageError
from kpreempt.files import name_of, unreadable
from kpreempt.library.handlers import answer
from kpreempt.library.reading import LoadedCluster
from kpreempt.library.schedulers import Context
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kinds import KINDS
from kpreempt.report.escape import printable_json_bytes
from kpreempt.snapshot.recording.segments import Limits
from kpreempt.snapshot.redact import redaction_of
from kpreempt.snapshot.write import line_of
from kpreempt.verdict.unread import require
from kpreempt.verdict.verify import Cause, DecisionKind, TakenDecision, Verification

if TYPE_CHECKING:
    from kpreempt.cli.requests import VerifyRequest

# Unexplained differences are worth a file each; this many are enough.
_FILED = (Cause.CONFIGURATION, Cause.UNKNOWN)
_MAX_FILES = 20


def verify(request: VerifyRequest) -> int:
    """Compare the decisions in the recording, write the answer, and return the exit code."""
    if (request.folder is None) == (request.duration is None):
        raise UsageError(
            "either a recording or --for is required", hint="kpreempt verify DIR, kpreempt verify --for 10m"
        )
    if request.folder is not None and (given := request.connection.as_arguments()):
        raise UsageError(f"a recording and {given[0]} cannot be used together")
    if request.duration is not None:
        seconds_of("--for", request.duration)
    if request.fail_below is not None and not 0 <= request.fail_below <= 100:
        raise UsageError(f"--fail-below {request.fail_below:g}: expected a percentage", hint="--fail-below 99.5")
    run = CommandRun(request)
    factory = run.read_scheduler()
    with ExitStack() as stack:
        folder = request.folder
        if folder is None:
            assert request.duration is not None
            folder = stack.enter_context(TemporaryDirectory(prefix="kpreempt-"))
            seconds = seconds_of("--for", request.duration)
            # Recording would be in vain.
            record_into(folder, request.connection, Limits(), seconds, partial(require, kind="Node", what="prediction"))
        progress = Progress()
        stack.callback(progress.close)
        name = name_of(folder)
        progress.show(f"reading {name}")
        context = Context(LoadedCluster(ClusterSnapshot(), []), factory, run.now())
        verification = request.having(
            recording=folder,
            is_configured=request.scheduler_config is not None,
            file_difference=_Files(request.differences).filed,
            report_progress=lambda done, all_: progress.show(f"{done:,} of {all_:,} decisions verified: {name}"),
        )
        found: Verification = answer(context, verification).record
    run.write_once(found, found.ends)
    if request.fail_below is not None and (found.score is None or found.score < request.fail_below):
        return EXIT_GATE
    return 0


class _Files:
    """Writes unexplained differences to a directory, if one is given."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._written = 0

    def filed(self, judgment: Judgment) -> Judgment:
        """Return the judgment with the file that shows its difference."""
        difference, predicted = judgment.difference, judgment.predicted
        if self._folder is None or difference is None or predicted is None:
            return judgment
        if difference.cause not in _FILED or self._written == _MAX_FILES:
            return judgment
        self._written += 1
        file = _write(Path(self._folder), self._written, difference.decision, predicted)
        return judgment._replace(difference=msgspec.structs.replace(difference, file=file))


def _write(folder: Path, number: int, decision: TakenDecision, predicted: Prediction) -> str:
    """Write a redacted line for ``kpreempt batch`` that repeats the prediction, and return the file's name."""
    cluster, pod = predicted.cluster, predicted.pod
    redaction = redaction_of(cluster, decision.at, secrets.token_bytes(), ImageSizes(cluster).rounded)
    objects = [
        msgspec.Raw(line_of(kind, redaction.record(record)))
        for kind in KINDS.values()
        if kind.name != "Event"
        for record in getattr(cluster, kind.field)
        if record is not pod
    ]
    # The decision, with the redacted names of the file.
    if decision.decision is DecisionKind.UNSCHEDULABLE:
        decided = "decided: unschedulable"
    else:
        node = next((each for each in predicted.cluster.nodes if each.metadata.name == decision.node), None)
        name = redaction.record(node).metadata.name if node is not None else "a missing node"
        words = f"decided: {decision.decision.lower()} to {name}"
        victims = ["/".join(redaction.key("Pod", *key.split("/", 1))) for key in decision.victims]
        decided = f"{words}, evicting {', '.join(victims)}" if victims else words
    line = {
        "name": decided,
        "algorithm": predicted.verdict.algorithm,
        "queued": True,
        "objects": objects,
        "pod": msgspec.Raw(line_of(KINDS["Pod"], redaction.record(pod))),
    }
    path = folder / f"difference-{number}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unreadable(name_of(str(folder)), error) from error
    with atomic_file(str(path)) as file:
        file.buffer.write(printable_json_bytes(msgspec.json.encode(line)) + b"\n")
    return str(path)
