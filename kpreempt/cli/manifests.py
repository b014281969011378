"""The pods that the manifests of a command mean."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.analysis.subject import Subjects, in_namespace, select, subjects_of
from kpreempt.analysis.workload_pods import PodTemplate
from kpreempt.cli.clusters import standard_input
from kpreempt.cli.terminal import complain
from kpreempt.library.rejections import refuse_rejected
from kpreempt.snapshot import ManifestObject, manifest_in, read_manifest
from kpreempt.snapshot.archives import Intake


class Kustomization(str):
    """A folder with a kustomization, among the paths of manifests."""

    __slots__ = ()

    @property
    def source(self) -> str:
        """What messages call it."""
        return f"kubectl kustomize {self!s}"


def read_subjects(files: Sequence[str], namespace: str, intake: Intake) -> Subjects:
    """The pods of the manifests (``-`` is standard input), and notes on what else is in them; none without ``files``.

    Pods without a namespace are in ``namespace``. Raises ``InputError``.
    """
    if not files:
        return Subjects([])
    objects = [each for file in files for each in accepted_objects(file, intake)]
    return subjects_of([(each.document, each.source, each.line) for each in objects], namespace)


def accepted_objects(path: str, intake: Intake) -> list[ManifestObject]:
    """The objects that ``manifest_objects`` reads. Raises ``InputError`` also for one that the API server rejects."""
    objects = manifest_objects(path, intake)
    refuse_rejected(objects)
    return objects


def manifest_objects(path: str, intake: Intake, *, may_be_empty: bool = False) -> list[ManifestObject]:
    """The objects of a file, a folder, a URL, a ``Kustomization`` or, for ``-``, of standard input.

    Raises ``InputError``, also if there are no objects, unless it ``may_be_empty``.
    """
    if isinstance(path, Kustomization):
        from kpreempt.cli.kustomize import built

        return manifest_in(built(path), path.source, intake, may_be_empty=may_be_empty)
    stdin = standard_input() if path == "-" else None
    return read_manifest(path, stdin=stdin, intake=intake, may_be_empty=may_be_empty)


def picked(templates: list[PodTemplate], wanted: Sequence[str], namespace: str | None) -> list[PodTemplate]:
    """Those that ``--select`` names, all without it; in the ``namespace`` of ``-n``, if it is given."""
    if wanted:
        templates = [each for name in wanted for each in select(templates, name)]
    return [in_namespace(each, namespace) for each in templates] if namespace else templates


def tell_ignored(notes: Sequence[str], *, verbose: bool) -> None:
    """Say on standard error what of the manifests is ignored; several are counted, and listed only if ``verbose``."""
    if len(notes) > 1 and not verbose:
        complain(f"{len(notes)} objects of the manifest have no pod template and are ignored (--verbose lists them)")
        return
    for note in notes:
        complain(note)
