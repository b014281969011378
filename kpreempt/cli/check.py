"""Simulations that are checked against rules: a change to a cluster (``check``) and drained nodes (``drain``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.check.report import read_former, since
from kpreempt.analysis.check.rollout.autoscalers import KIND
from kpreempt.analysis.check.rollout.cluster_documents import NeededObjects
from kpreempt.analysis.check.rollout.records import ManifestDocument
from kpreempt.cli.clusters import default_namespace, reading_in
from kpreempt.cli.manifests import manifest_objects
from kpreempt.cli.runner import CommandRun, write_gated
from kpreempt.cli.workers import Spread
from kpreempt.errors import UsageError
from kpreempt.files import name_of, read_file
from kpreempt.library.check import applier_for, check_options, only_in_base, server_decisions
from kpreempt.library.drain import KINDS_FOR_REMEDIES, drain_options
from kpreempt.library.gate.settings import gate_settings
from kpreempt.library.handlers import answer
from kpreempt.library.manifests import as_change
from kpreempt.library.reading import with_objects
from kpreempt.model.documents import mapping_in
from kpreempt.snapshot.collect import Needs

if TYPE_CHECKING:
    from kpreempt.cli.gate_options import CheckRequest, DrainRequest
    from kpreempt.snapshot.archives import InputLimits
    from kpreempt.verdict.check import Check


def check(request: CheckRequest) -> int:
    """Answer the request and return the exit code."""
    if not request.files and not request.delete:
        raise UsageError("no manifests given", hint="-f FILE, -f DIRECTORY/, or helm template … | kpreempt check -f -")
    if request.prune and not request.base:
        raise UsageError("--prune needs --base: it deletes objects that are only in the base", hint="--base DIRECTORY")
    request.check_contradictions()
    if request.namespace and name_of(request.namespace) != request.namespace:
        raise UsageError("the namespace given with -n is not valid UTF-8")
    run = CommandRun(request)
    now = run.now()
    gate = gate_settings(request.gate, now)
    path = request.compare_with
    former = read_former(read_file(path), path) if path else None
    check_options(request)
    live = run.connect()
    factory = run.read_scheduler(live)
    namespace = request.namespace or default_namespace(live)
    # Read the manifests first: they are small, and most mistakes are in them.
    change = read_change(request.files, request.input_limits, may_be_empty=request.prune)
    before = read_change(request.base, request.input_limits)
    request = request.having(rules=gate, change=change, before=before)
    request = request.having(decisions=server_decisions(live, request, gate, namespace))
    both = [*change, *before]
    pruned = only_in_base(before, change, namespace, applier_for(request, gate)) if request.prune else []
    needed = NeededObjects(both, namespace, request.delete, pruned)
    needs = Needs(extra_fields=factory.extra_fields, keep_document=needed.is_needed, compare_kinds=needed.kinds)
    about = [mapping_in(each.document, "metadata").get("namespace") or namespace for each in both]
    loaded = run.load(reading_in(live, about), needs)
    names = [*needed.objects, *needed.for_policies(loaded.documents)]
    loaded = with_objects(loaded, live, names, needed.api_versions)
    context = run.context(loaded, factory, now, live)
    found: Check = answer(context._replace(spread=Spread(run.stopwatch, request.jobs)), request).record
    if former is not None:
        found = msgspec.structs.replace(found, previous_run=since(former, found))
    return write_gated(run, gate, found)


def read_change(
    paths: Sequence[str], input_limits: InputLimits, *, may_be_empty: bool = False
) -> list[ManifestDocument]:
    """Read all objects from files, directories and (for ``-``) standard input, in order; lists are split up.

    Raises ``InputError`` for unreadable input, and for a path without objects unless ``may_be_empty``.
    """
    found = (manifest_objects(path, input_limits, may_be_empty=may_be_empty) for path in paths)
    return as_change(each for objects in found for each in objects)


def drain(request: DrainRequest) -> int:
    """Answer the request and return the exit code."""
    # Most mistakes are in the options, so they are reported before a cluster is read.
    drain_options(request)
    request.check_contradictions()
    run = CommandRun(request)
    now = run.now()
    request = request.having(rules=gate_settings(request.gate, now, command="drain"))
    live = run.connect()
    factory = run.read_scheduler()
    needs = Needs(
        extra_fields=factory.extra_fields,
        keep_document=lambda kind, _: kind in KINDS_FOR_REMEDIES,
        compare_kinds=[KIND],
    )
    context = run.context(run.load(live, needs), factory, now, live)
    found = answer(context._replace(spread=Spread(run.stopwatch, request.jobs)), request).record
    return write_gated(run, request.rules, found)
