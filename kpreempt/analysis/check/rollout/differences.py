"""Where a manifest of a workload differs from what the cluster has."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec

from kpreempt.admission.defaults import workload_with_defaults
from kpreempt.analysis.check.rollout.apply import Comparison
from kpreempt.analysis.check.rollout.shape import is_nested_too_deeply
from kpreempt.analysis.check.rollout.workload_checks import SIZE_FIELDS
from kpreempt.analysis.document_reader import Document, mapping_in, mappings_in

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_FIELDS_SHOWN = 5
# Annotations of a template that only the cluster has were put there by kubectl rollout restart and the like.
_OF_TEMPLATES = Comparison(ignored=frozenset({"spec.template.metadata.annotations"}))
_OF_THE_REST = Comparison()
# What the API server puts on the template of a Job.
_JOB_LABELS = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
_OF_CLAIM_TEMPLATES = ("apiVersion", "kind", "status")


class Differences(msgspec.Struct, frozen=True):
    """The paths that differ, in the template and in the rest of the object."""

    template: list[str]
    rest: list[str]

    @property
    def fields(self) -> list[str]:
        """The first few."""
        return [*self.template, *self.rest][:_FIELDS_SHOWN]


def last_applied(live: Document) -> Document | None:
    """The manifest that ``kubectl apply`` has noted on an object, or ``None`` where there is none that can be read."""
    text = mapping_in(live, "metadata", "annotations").get(LAST_APPLIED)
    if not isinstance(text, str):
        return None
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return document if isinstance(document, dict) and not is_nested_too_deeply(document) else None


def is_whole(live: Document) -> bool:
    """Whether a document of the cluster has what a snapshot leaves out: its template."""
    spec = mapping_in(live, "spec")
    return isinstance(spec.get("jobTemplate" if live.get("kind") == "CronJob" else "template"), dict)


def find_differences(document: Document, live: Document) -> Differences:
    """Where the manifest ``document`` differs from ``live``; all of the template where ``live`` does not have it."""
    wanted, full = _comparable(document), _comparable(workload_with_defaults(document))
    there, last = _comparable(workload_with_defaults(live)), last_applied(live)
    last = _comparable(last) if last is not None else None
    template = ["spec.template"]
    if document["kind"] == "CronJob":
        template = []
    elif is_whole(live):
        before = None if last is None else mapping_in(last, "spec", "template")
        mine, filled, theirs = (mapping_in(each, "spec", "template") for each in (wanted, full, there))
        found = _OF_TEMPLATES.differences(mine, filled, theirs, before, "spec.template", "template")
        template = list(islice(found, _FIELDS_SHOWN))
    return Differences(template, _in_the_rest(wanted, full, there, last or {}, is_whole=is_whole(live)))


def _in_the_rest(wanted: Document, full: Document, live: Document, last: Document, *, is_whole: bool) -> list[str]:
    """What differs besides the template. Fields that only the cluster has stay, unless they were applied before."""
    # A snapshot that lacks the template lacks all of a spec but these.
    known = None if is_whole else {"selector", SIZE_FIELDS.get(str(wanted["kind"]), "")}

    def of_spec(document: Document) -> Document:
        spec = mapping_in(document, "spec")
        return {key: each for key, each in spec.items() if key != "template" and (known is None or key in known)}

    def of_metadata(document: Document) -> Document:
        metadata = mapping_in(document, "metadata")
        keys = ("labels", "annotations") if is_whole else ("labels",)
        return {key: metadata[key] for key in keys if metadata.get(key)}

    of_metadata_wanted = of_metadata(wanted)
    return [
        *_OF_THE_REST.differences(of_spec(wanted), of_spec(full), of_spec(live), of_spec(last), "spec", "spec"),
        *_OF_THE_REST.differences(
            *(of_metadata_wanted, of_metadata_wanted, of_metadata(live), of_metadata(last), "metadata", "metadata")
        ),
    ]


def _comparable(document: Document) -> Document:
    """A workload without what the API server alone puts into it."""
    spec: Any = document.get("spec")
    if not isinstance(spec, dict):
        return document
    spec = dict(spec)
    if document.get("kind") == "Job" and isinstance(spec.get("template"), dict):
        spec["template"] = _without_job_labels(spec["template"])
    if "volumeClaimTemplates" in spec:
        spec["volumeClaimTemplates"] = [
            {key: value for key, value in each.items() if key not in _OF_CLAIM_TEMPLATES}
            for each in mappings_in(spec, "volumeClaimTemplates")
        ]
    return {**document, "spec": spec}


def _without_job_labels(template: Document) -> Document:
    metadata = mapping_in(template, "metadata")
    labels = {key: value for key, value in mapping_in(metadata, "labels").items() if key not in _JOB_LABELS}
    return {
        **template,
        "metadata": {**{key: each for key, each in metadata.items() if key != "labels"}, "labels": labels},
    }
