"""Answering ``kpreempt compare`` where all algorithms are Kueue's: configurations and quotas, side by side."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from kpreempt.analysis.kueue.explaining import compare_configurations, with_workloads
from kpreempt.analysis.kueue.objects import assumed_of_default, assumed_of_made, decode_queueing, with_objects
from kpreempt.cli.answering import Run, is_unfounded
from kpreempt.cli.explain_kueue import workloads_in
from kpreempt.cli.kueue_configuration import is_configuration, kueue_configuration_in
from kpreempt.cli.kueue_ground import KueueGround, read_ground, refuse_options, refuse_options_of_pods
from kpreempt.cli.manifests import accepted_objects
from kpreempt.cli.terminal import EXIT_GATE
from kpreempt.errors import InputError, UsageError
from kpreempt.model.kueue import Workload
from kpreempt.scheduler_table import KUEUE
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects
from kpreempt.snapshot import decode_document
from kpreempt.verdict import Assumption

if TYPE_CHECKING:
    from kpreempt.cli.compare import CompareRequest

Made = tuple[KueueObjects, KueueConfiguration]


def is_of_kueue(text: str) -> bool:
    """Whether any of the algorithms is Kueue's. Raises ``UsageError`` where others are among them."""
    named = [part.strip().partition("@")[0].partition(":")[0] for part in text.split(",") if part.strip()]
    if KUEUE not in named:
        return False
    if set(named) != {KUEUE}:
        hint = f"{KUEUE},{KUEUE}@FILE"
        raise UsageError(f"{KUEUE} decides on whole Workloads, and is compared with itself alone", hint=hint)
    return True


def run_compare_configurations(request: CompareRequest) -> int:
    """Answer the request, and return the exit code."""
    refuse_options_of_pods(request)
    refuse_options({"--batch": request.batch, "--select": request.select})
    paths = _paths(request.algorithms or "")
    run = Run(request)
    ground = read_ground(run, reads_configuration=False)
    asked = _asked(request, ground)
    if asked:
        new = [each for each, _ in asked]
        ground = ground._replace(objects=with_workloads(new, ground.objects, ground.now))
    compared: dict[str, Made] = {}
    assumptions = [*ground.assumptions, *(said for each in asked for said in assumed_of_made(*each))]
    for path in paths:
        made, said = _made(path, ground, request)
        compared[f"{KUEUE}@{PurePath(path).name}" if path else KUEUE] = made
        assumptions += said
    if len(compared) < len(paths):
        raise UsageError(f"--algorithms {request.algorithms}: two files have the same name")
    keys = {each.key for each, _ in asked}

    def is_asked(workload: Workload) -> bool:
        if keys:
            return workload.key in keys
        return not request.namespace or workload.metadata.namespace == request.namespace

    with run.stopwatch.phase("session"):
        answer = compare_configurations(compared, now=ground.now, is_asked=is_asked, assumptions=assumptions)
    run.write_once(answer, ground.now)
    if request.fail_on_difference and (answer.differing or is_unfounded(answer.assumptions, "--fail-on-difference")):
        return EXIT_GATE
    return run.exit_code(answer.assumptions)


def _paths(text: str) -> list[str]:
    """The file of each, which may be empty."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    hint = f"{KUEUE},{KUEUE}@FILE"
    if len(parts) < 2:
        raise UsageError("two configurations or more are compared", hint=hint)
    if len(set(parts)) < len(parts):
        raise UsageError(f"--algorithms {text}: one is there twice, and decides the same", hint=hint)
    paths = []
    for part in parts:
        name, at, path = part.partition("@")
        if name != KUEUE or (at and not path):
            raise UsageError(f"--algorithms {text}: {part} is not {KUEUE}@FILE", hint=hint)
        paths.append(path)
    return paths


def _asked(request: CompareRequest, ground: KueueGround) -> list[tuple[Workload, str]]:
    if not request.files and not request.pod:
        return []
    return workloads_in(request.files, request.pod or "", request.intake, ground)


def _made(path: str, ground: KueueGround, request: CompareRequest) -> tuple[Made, list[Assumption]]:
    """The objects and the configuration with what a file has of either."""
    if not path:
        return (ground.objects, KueueConfiguration()), [assumed_of_default(f"{KUEUE} names no file")]
    config: KueueConfiguration | None = None
    said: list[Assumption] = []
    changed: list[tuple[str, Any]] = []
    for each in accepted_objects(path, request.intake):
        if is_configuration(each.document):
            if config is not None:
                raise InputError("has two configurations", source=path)
            config, said = kueue_configuration_in(each.document, path)
        elif found := decode_queueing(each.document, decode_document, source=each.source):
            changed.append(found)
        else:
            kind = each.document.get("kind")
            raise InputError(f"a {kind} is neither a Configuration nor a queue of Kueue's", source=each.source)
    if config is None:
        config, said = KueueConfiguration(), [assumed_of_default(f"{PurePath(path).name} has no Configuration")]
    return (with_objects(ground.objects, changed), config), said
