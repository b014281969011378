"""The pods in a command's manifests, read from files or built by ``kubectl kustomize DIR``."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.pod_inputs import Subjects, in_namespace, pod_from_flags, select, subjects_of
from kpreempt.analysis.workload_pods import PodTemplate
from kpreempt.cli.clusters import standard_input
from kpreempt.cli.requests import Kustomization
from kpreempt.cli.terminal import complain
from kpreempt.errors import InputError, UsageError
from kpreempt.library.manifests import raise_if_rejected
from kpreempt.model.quantity import quantity
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.manifest import ManifestObject, line_of_field, manifest_in, read_manifest

if TYPE_CHECKING:
    from kpreempt.cli.requests import ExplainRequest


def read_subjects(
    files: Sequence[str], namespace: str, input_limits: InputLimits, *, keeps_rejected: bool = False
) -> Subjects:
    """Read the pods of the manifests (``-`` is standard input), with notes on ignored objects; empty without ``files``.

    Pods without a namespace get ``namespace``. Pods of objects that every version of the API server rejects are kept
    with the reason if ``keeps_rejected``. Otherwise they raise ``InputError``, like unreadable input.
    """
    if not files:
        return Subjects([])
    read = manifest_objects if keeps_rejected else accepted_objects
    objects = [each for file in files for each in read(file, input_limits)]
    given = [(each.document, each.source, each.line, each.text) for each in objects]
    subjects = subjects_of(given, namespace, line_of_field if keeps_rejected else None)
    return msgspec.structs.replace(
        subjects, api_versions=sorted({str(each.document.get("apiVersion", "")) for each in objects})
    )


def accepted_objects(path: str, input_limits: InputLimits) -> list[ManifestObject]:
    """Read objects like ``manifest_objects``. Raises ``InputError`` also for an object that the API server rejects."""
    objects = manifest_objects(path, input_limits)
    raise_if_rejected(objects)
    return objects


def manifest_objects(path: str, input_limits: InputLimits, *, may_be_empty: bool = False) -> list[ManifestObject]:
    """Read the objects of a file, a directory, a URL, a ``Kustomization`` or (for ``-``) standard input.

    Raises ``InputError``, also if there are no objects, unless ``may_be_empty``.
    """
    if isinstance(path, Kustomization):
        return manifest_in(built(path), path.source, input_limits, may_be_empty=may_be_empty)
    stdin = standard_input() if path == "-" else None
    return read_manifest(path, stdin=stdin, input_limits=input_limits, may_be_empty=may_be_empty)


def check_pod(request: ExplainRequest) -> None:
    """Raise ``UsageError`` if options contradict each other or a required one is missing."""
    amounts = {"--cpu": request.cpu, "--memory": request.memory, "--resource": request.resources}
    ways = {
        "-f": request.files,
        "by name": request.pod,
        next((name for name, value in amounts.items() if value), "--cpu"): any(amounts.values()),
    }
    given = [way if way.startswith("by") else f"by {way}" for way, value in ways.items() if value]
    if not given:
        raise UsageError("no pod given", hint="-f FILE, or pod/NAME -n NAMESPACE, or --cpu 2 --memory 4Gi")
    if len(given) > 1:
        raise UsageError(f"the pod is selected twice: {given[0]} and {given[1]}")
    if request.select and not request.files:
        raise UsageError("--select needs a manifest", hint="-f FILE")
    if request.brief and request.verbose:
        raise UsageError("--brief and -v cannot be used together")


def pod_of_amounts(request: ExplainRequest) -> PodTemplate:
    """Build the pod that requests these amounts. Raises ``UsageError``."""
    resources = {}
    for text in request.resources:
        name, _, amount = text.partition("=")
        if not name or not amount:
            raise UsageError(f"--resource {text}: expected NAME=QUANTITY", hint="--resource nvidia.com/gpu=1")
        _check_quantity("--resource", amount, f"--resource {name}=1")
        resources[name] = amount
    cpu, memory = request.cpu or "", request.memory or ""
    if cpu:
        _check_quantity("--cpu", cpu, "--cpu 1500m")
    if memory:
        _check_quantity("--memory", memory, "--memory 4Gi")
    return pod_from_flags(cpu=cpu, memory=memory, resources=resources)


def _check_quantity(option: str, text: str, example: str) -> None:
    try:
        quantity(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint=example) from None


def picked(templates: list[PodTemplate], names: Sequence[str], namespace: str | None) -> list[PodTemplate]:
    """Return the templates that ``--select`` names, or all without it, moved to the ``namespace`` of ``-n``."""
    if names:
        templates = [each for name in names for each in select(templates, name)]
    return [in_namespace(each, namespace) for each in templates] if namespace else templates


def warn_of_ignored(notes: Sequence[str], *, verbose: bool) -> None:
    """Report on standard error which objects are ignored; several are counted, and listed only if ``verbose``."""
    if len(notes) > 1 and not verbose:
        complain(f"ignored {len(notes)} objects without a pod template (--verbose lists them)")
        return
    for note in notes:
        complain(note)


_SECONDS = 60.0


def built(folder: Kustomization) -> bytes:
    """Build the manifests as YAML. Raises ``InputError`` if kubectl is missing or fails."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise InputError(
            "-k needs kubectl, which is not in PATH", hint=f"kustomize build {folder!s} | kpreempt explain -f -"
        )
    try:
        run = subprocess.run(  # noqa: S603 - the user's kubectl, with a path as its only input
            [kubectl, "kustomize", "--", str(folder)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"timed out after {_SECONDS:.0f}s", source=folder.source) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot run: {error}", source=folder.source) from error
    if run.returncode != 0:
        # kubectl's message in one line, without its log prefix.
        text = " ".join(run.stderr.decode(errors="replace").split())
        logged = re.search(r'err="((?:[^"\\]|\\.)*)"', text)
        raise InputError(
            (logged[1].replace('\\"', '"') if logged else text.removeprefix("error: "))[:500]
            or f"exited with code {run.returncode}",
            source=folder.source,
        )
    return run.stdout
