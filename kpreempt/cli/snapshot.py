"""``kpreempt snapshot``: loads a cluster, optionally redacts it, and writes it atomically.

``--redact-map`` writes the names and times behind the tokens to a file that only its owner can read.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from kpreempt import __version__
from kpreempt.admission.published_types import KIND as PUBLISHED
from kpreempt.analysis.algorithms import api_server_of
from kpreempt.analysis.check.rollout.kept_documents import is_compared, is_kept, kept, salt_for
from kpreempt.analysis.image_sizes import ImageSizes
from kpreempt.analysis.kueue.objects import KUEUE_EXTRAS, KUEUE_KINDS, recorded_kueue, redactable
from kpreempt.analysis.pod_inputs import inputs_of
from kpreempt.analysis.what_if import Overrides
from kpreempt.analysis.workload_pods import PodTemplate
from kpreempt.cli.clusters import default_namespace, live_connection, load_cluster, single_use_of_stdin, snapshot_source
from kpreempt.cli.manifests import picked, read_subjects
from kpreempt.cli.output import atomic_file, write_stdout_pieces
from kpreempt.cli.terminal import complain
from kpreempt.errors import UsageError
from kpreempt.library.reading import published_types
from kpreempt.model.cluster import REDACTED_AT, ClusterSnapshot
from kpreempt.model.kinds import KINDS
from kpreempt.model.pod import Pod
from kpreempt.report.escape import printable_json_bytes
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.decode import decode_document, decode_object
from kpreempt.snapshot.kinds import COMPARED_KINDS
from kpreempt.snapshot.minimize import minimized
from kpreempt.snapshot.redact import Redaction, redaction_of
from kpreempt.snapshot.redact.spaces import public_version
from kpreempt.snapshot.write import DumpHeader, count_objects, dump_pieces, form_of, packed, status_of
from kpreempt.verdict import API_VERSION, Assumption
from kpreempt.verdict.unread import missing_permissions, unreadable_of

if TYPE_CHECKING:
    from kpreempt.cli.requests import SnapshotRequest


def check_map(path: str | None, *, redacts: bool) -> None:
    """Raise ``UsageError`` if the option has no file, or without ``--redact``."""
    if path is None:
        return
    if not redacts:
        raise UsageError("--redact-map needs --redact", hint="--redact")
    if path in ("", "-"):
        raise UsageError("--redact-map: file name missing", hint="--redact-map names.json")


def map_file(path: str | None) -> AbstractContextManager[TextIO | None]:
    """Open the map file, which appears when the block succeeds."""
    return atomic_file(path, mode=_OWNER_ONLY) if path else nullcontext()


def write_map(file: TextIO | None, redaction: Redaction | None) -> None:
    """Write all tokens, if there is a file for them."""
    if file is None or redaction is None:
        return
    found = {"names": dict(redaction.pairs()), "times": dict(redaction.times())}
    document = {"apiVersion": API_VERSION, "kind": "RedactionMap", **found}
    file.buffer.write(printable_json_bytes(msgspec.json.encode(document)) + b"\n")


_OWNER_ONLY = 0o600
_STANDARD = "-"
# The assumption that an older kpreempt dump has none of these.
_LACKING = frozenset((kind, "snapshot") for kind in KUEUE_KINDS)


def snapshot(request: SnapshotRequest) -> int:
    """Write the cluster, report it, and return the exit code."""
    form = form_of(request.to)
    _check(request)
    live = live_connection(request.snapshots, request.connection)
    # Read the manifest first: it is small, and most mistakes are in it.
    subjects = read_subjects(request.files, default_namespace(live), request.input_limits)
    templates = picked(subjects.templates, (), request.namespace)
    # The reader of the dump fills in missing data and reports it.
    needs = Needs(
        # With redacted names, manifests cannot be compared with the objects.
        keep_document=None if request.redact else _is_kept,
        compare_kinds=() if request.redact else COMPARED_KINDS,
        extra_fields=KUEUE_EXTRAS,
        with_events=True,
        with_autoscalers=True,
        with_evictions=True,
    )
    loaded = load_cluster(msgspec.structs.replace(snapshot_source(request), live=live, completes=False), needs)
    cluster, pending = _with_pods(loaded.cluster, templates)
    taken_at = cluster.taken_at or datetime.now(UTC).replace(microsecond=0)
    redaction = None
    if request.redact:
        queueing = redactable(loaded.cluster, decode_document)
        rounded = ImageSizes(cluster).rounded
        redaction = redaction_of(cluster, taken_at, secrets.token_bytes(), rounded, queueing=queueing)
    kueue_documents = recorded_kueue(loaded.cluster, decode_document, redaction.record if redaction else None)
    # Reading the dump shows the assumptions again; files without objects, however, are only known now.
    assumptions = [
        each for each in loaded.assumptions if (each.subject, each.field) not in _LACKING and not each.lists_files
    ]
    header = _header(cluster, taken_at, assumptions, redaction, listed=KUEUE_KINDS if kueue_documents else ())
    rewrite = redaction.record if redaction else minimized
    documents = [*_documents(loaded.documents, cluster), *kueue_documents]
    if not request.redact:
        documents += published_types(live, subjects.api_versions)
        documents += [each for each in loaded.documents if each["kind"] == PUBLISHED]
    plain = dump_pieces(cluster, header, rewrite, as_lines=form.as_lines, documents=documents)
    size = _write(request, packed(map(printable_json_bytes, plain), form), redaction)
    if size is not None and not request.quiet:
        _report(request, cluster, size, pending, redaction)
    return 0


def _check(request: SnapshotRequest) -> None:
    """Raise ``UsageError`` if the options contradict each other or a required one is missing."""
    check_map(request.redact_map, redacts=request.redact)
    if (
        request.redact_map
        and request.to != _STANDARD
        and Path(request.to).resolve() == Path(request.redact_map).resolve()
    ):
        raise UsageError("--redact-map and --to use the same file")
    if request.namespace is not None and not request.files:
        raise UsageError("--namespace needs a manifest", hint="-f FILE")
    single_use_of_stdin(request)


def _with_pods(cluster: ClusterSnapshot, templates: list[PodTemplate]) -> tuple[ClusterSnapshot, list[Pod]]:
    """Add the pods to the cluster as pending, stored as the API server would; also return them."""
    if not templates:
        return cluster, []
    requested = inputs_of(cluster, templates, Overrides(), decode_object, api_server_of(cluster))
    pods = [
        msgspec.structs.replace(each.pod, status=msgspec.structs.replace(each.pod.status, phase="Pending"))
        for each in requested.inputs
    ]
    return msgspec.structs.replace(requested.cluster, pods=[*requested.cluster.pods, *pods]), pods


def _is_kept(kind: str, record: Any) -> bool:
    return kind == PUBLISHED or is_kept(kind, record)


def _documents(found: Sequence[dict[str, Any]], cluster: ClusterSnapshot) -> list[dict[str, Any]]:
    """Build the documents of the dump; plain pods get the status of their records."""
    compared_documents = [each for each in found if is_compared(each)]
    salt = salt_for(compared_documents)
    documents = [kept(each, salt) for each in compared_documents]
    pods = {pod.key: pod for pod in cluster.pods}
    for each in documents:
        if each["kind"] == "Pod":
            each["status"] = status_of(pods[f"{each['metadata']['namespace']}/{each['metadata']['name']}"])
    return documents


def _header(
    cluster: ClusterSnapshot,
    taken_at: datetime,
    assumptions: list[Assumption],
    redaction: Redaction | None,
    listed: Sequence[str] = (),
) -> DumpHeader:
    if redaction is None:
        version, skipped = cluster.version, cluster.skipped
    else:
        version, skipped = public_version(cluster.version), redaction.skipped(cluster.skipped)
        assumptions = redaction.assumptions(assumptions)
    return DumpHeader(
        server_version=version,
        taken_at=taken_at if redaction is None else REDACTED_AT,
        kpreempt_version=__version__,
        skipped=skipped,
        assumptions=assumptions,
        # The names of kinds that every cluster has reveal nothing; that of a namespace does.
        unread=cluster.unread
        if redaction is None
        else {kind: msgspec.structs.replace(each, namespace="") for kind, each in cluster.unread.items()},
        # With redacted names, documents of other kinds are not kept.
        listed=[*(kind for kind in cluster.listed if redaction is None or kind in KINDS), *listed],
    )


def _write(request: SnapshotRequest, pieces: Iterator[bytes], redaction: Redaction | None) -> int | None:
    """Write the dump and, if requested, the map of names; return the size of the dump in bytes.

    Returns ``None`` if the reader of standard output is gone.
    """
    with ExitStack() as stack:
        write_map(stack.enter_context(map_file(request.redact_map)), redaction)
        if request.to == _STANDARD:
            return write_stdout_pieces(pieces)
        # Without redaction, the dump reveals everything about the cluster.
        dump = stack.enter_context(atomic_file(request.to, mode=None if request.redact else _OWNER_ONLY))
        return sum(map(dump.buffer.write, pieces))


def _report(
    request: SnapshotRequest, cluster: ClusterSnapshot, size: int, pending: list[Pod], redaction: Redaction | None
) -> None:
    counts = ", ".join(f"{name} {count:,}" for name, count in count_objects(cluster).items()) or "no objects"
    target = "standard output" if request.to == _STANDARD else request.to
    how = "redacted, " if request.redact else ""
    complain(f"wrote {target} ({how}{_in_words(size)}): {counts}")
    if missing := missing_permissions(unreadable_of(cluster, cluster.unread)):
        complain(missing)
    for pod in pending:
        namespace, name = pod.metadata.namespace, pod.metadata.name
        if redaction is not None:
            namespace, name = redaction.key("Pod", namespace, name)
        words = ["explain", f"pod/{name}", "-n", namespace, "--snapshot", request.to]
        complain(f"to explain {pod.key}: {request.program} {shlex.join(words)}")


def _in_words(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
