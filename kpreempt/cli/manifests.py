"""The pods that the manifests of a command mean, of files or as ``kubectl kustomize DIR`` builds them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kpreempt.analysis.questions import Subjects, in_namespace, pod_from_flags, select, subjects_of
from kpreempt.analysis.workload_pods import PodTemplate, kind_of
from kpreempt.cli.clusters import standard_input
from kpreempt.cli.requests import Kustomization
from kpreempt.cli.terminal import complain
from kpreempt.errors import InputError, UsageError
from kpreempt.library.manifests import raise_if_rejected
from kpreempt.model.quantity import quantity
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.manifest import ManifestObject, manifest_in, read_manifest

if TYPE_CHECKING:
    from kpreempt.cli.requests import ExplainRequest


def read_subjects(files: Sequence[str], namespace: str, input_limits: InputLimits) -> Subjects:
    """The pods of the manifests (``-`` is standard input), and notes on what else is in them; none without ``files``.

    Pods without a namespace are in ``namespace``. Raises ``InputError``.
    """
    if not files:
        return Subjects([])
    objects = [each for file in files for each in accepted_objects(file, input_limits)]
    return subjects_of([(each.document, each.source, each.line) for each in objects], namespace)


def accepted_objects(path: str, input_limits: InputLimits) -> list[ManifestObject]:
    """The objects that ``manifest_objects`` reads. Raises ``InputError`` also for one that the API server rejects."""
    objects = manifest_objects(path, input_limits)
    raise_if_rejected(objects)
    return objects


def manifest_objects(path: str, input_limits: InputLimits, *, may_be_empty: bool = False) -> list[ManifestObject]:
    """The objects of a file, a folder, a URL, a ``Kustomization`` or, for ``-``, of standard input.

    Raises ``InputError``, also if there are no objects, unless it ``may_be_empty``.
    """
    if isinstance(path, Kustomization):
        return manifest_in(built(path), path.source, input_limits, may_be_empty=may_be_empty)
    stdin = standard_input() if path == "-" else None
    return read_manifest(path, stdin=stdin, input_limits=input_limits, may_be_empty=may_be_empty)


def check_pod(request: ExplainRequest) -> None:
    """Raise ``UsageError`` where the options contradict each other or leave out what is needed."""
    amounts = {"--cpu": request.cpu, "--memory": request.memory, "--resource": request.resources}
    ways = {
        "-f": request.files,
        "by name": request.pod,
        next((name for name, value in amounts.items() if value), "--cpu"): any(amounts.values()),
    }
    given = [way if way.startswith("by") else f"by {way}" for way, value in ways.items() if value]
    if not given:
        raise UsageError("no pod is given", hint="-f FILE, or pod/NAME -n NAMESPACE, or --cpu 2 --memory 4Gi")
    if len(given) > 1:
        raise UsageError(f"the pod is given twice: {given[0]} and {given[1]}")
    if request.name and not kind_of(request.pod or ""):
        raise UsageError(
            f'"{request.pod}" is not a kind of workload', hint=f"pod {request.name}, deploy {request.name}"
        )
    if request.select and not request.files:
        raise UsageError("--select picks from a manifest, and none is given", hint="-f FILE")
    if request.brief and request.verbose:
        raise UsageError("--brief and -v contradict each other")


def pod_of_amounts(request: ExplainRequest) -> PodTemplate:
    """The pod that requests these amounts. Raises ``UsageError``."""
    resources = {}
    for text in request.resources:
        name, _, amount = text.partition("=")
        if not name or not amount:
            raise UsageError(f"--resource {text}: NAME=QUANTITY is expected", hint="--resource nvidia.com/gpu=1")
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


def picked(templates: list[PodTemplate], extra_fields: Sequence[str], namespace: str | None) -> list[PodTemplate]:
    """Those that ``--select`` names, all without it; in the ``namespace`` of ``-n``, if it is given."""
    if extra_fields:
        templates = [each for name in extra_fields for each in select(templates, name)]
    return [in_namespace(each, namespace) for each in templates] if namespace else templates


def warn_of_ignored(notes: Sequence[str], *, verbose: bool) -> None:
    """Say on standard error what of the manifests is ignored; several are counted, and listed only if ``verbose``."""
    if len(notes) > 1 and not verbose:
        complain(f"{len(notes)} objects of the manifest have no pod template and are ignored (--verbose lists them)")
        return
    for note in notes:
        complain(note)


_SECONDS = 60.0


def built(folder: Kustomization) -> bytes:
    """The manifests, as YAML. Raises ``InputError`` where there is no kubectl, or where it fails."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise InputError(
            "-k needs kubectl, which is not on the PATH", hint=f"kustomize build {folder!s} | kpreempt explain -f -"
        )
    try:
        run = subprocess.run(  # noqa: S603 - kubectl is the user's own, and gets one path
            [kubectl, "kustomize", "--", str(folder)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"takes more than {_SECONDS:.0f}s", source=folder.source) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be run: {error}", source=folder.source) from error
    if run.returncode != 0:
        # Kubectl's message in one line, without what its log puts around it.
        text = " ".join(run.stderr.decode(errors="replace").split())
        logged = re.search(r'err="((?:[^"\\]|\\.)*)"', text)
        raise InputError(
            (logged[1].replace('\\"', '"') if logged else text.removeprefix("error: "))[:500]
            or f"ends with code {run.returncode}",
            source=folder.source,
        )
    return run.stdout
