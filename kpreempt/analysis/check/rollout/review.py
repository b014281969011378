"""What the API server rejects of a change, object by object.

Each object is decoded, merged with the cluster's object as ``kubectl apply`` merges it, given the API's defaults,
validated by the rules of its kind for creation or for an update, and checked by admission plugins and policies, in the
order of ``k8s.io/apiserver`` v0.36.3 ``pkg/endpoints/handlers``. Plugins see the objects that were accepted before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from kpreempt.admission.custom_resources import definition_of, is_custom, problems_of_custom
from kpreempt.admission.defaults import with_defaults
from kpreempt.admission.plugin_state import PluginState, is_read_by_plugins
from kpreempt.admission.plugins import plugin_problems
from kpreempt.admission.pod_plugins import insecurity
from kpreempt.admission.published_types import GROUP, KIND, of_document
from kpreempt.admission.schema import decoded
from kpreempt.admission.validation import Problem, Server, problems_of
from kpreempt.admission.validation.problems import Problems
from kpreempt.analysis.check.rollout.apply import applied, last_applied
from kpreempt.analysis.check.rollout.cluster_documents import (
    ClusterObjects,
    LiveDocuments,
    accounts_of,
    record_document,
)
from kpreempt.analysis.check.rollout.hooks import Applier, is_recreated
from kpreempt.analysis.check.rollout.kept_documents import is_digest, kept, salt_of
from kpreempt.analysis.check.rollout.kinds import cluster_kind_of, is_known
from kpreempt.analysis.check.rollout.policies import ChangePolicies
from kpreempt.analysis.check.rollout.records import ApplyOptions, is_nested_too_deeply
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.workload_pods import pods_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import mapping_in

_DEFINITION = "CustomResourceDefinition"
_DEFINITIONS = ("apiextensions.k8s.io", _DEFINITION)


class Review:
    """Reviews the objects of a change against a cluster, for the API server of the ``options``.

    Custom resources have the schemas of CustomResourceDefinitions in the ``change``, in the cluster, or published by
    its API server.
    """

    def __init__(
        self, cluster: ClusterSnapshot, live: LiveDocuments, options: ApplyOptions, change: Iterable[Document] = ()
    ) -> None:
        self._objects = ClusterObjects(cluster)
        self._live = live
        self._applier = options.applier
        self._minor = options.minor
        published = [each for each in map(of_document, live.other_kinds(GROUP, KIND)) if each is not None]
        self._types = published[-1].types if published else None
        self._definitions = [
            *(each for each in change if each.get("kind") == _DEFINITION),
            *live.other_kinds(*_DEFINITIONS),
            *(definition for each in published for definition in each.definitions),
        ]
        self._server = Server(options.assumed_minor if options.minor is None else options.minor)
        self._plugins = PluginState(cluster, accounts_of(live, cluster))
        self.policies = ChangePolicies(cluster, live, self._definitions, self._decoded)
        self._unread = cluster.unread

    def expecting(self, documents: Iterable[Document]) -> Review:
        """Apply the objects that tools other than kubectl apply first, and return this review.

        These are namespaces, accounts, quotas and classes other than the default one.
        """
        for each in documents:
            if self._applier is not Applier.KUBECTL and not each.get("globalDefault"):
                self.accept(each)
        return self

    def accept(self, document: Document) -> None:
        """Apply an accepted document, so that plugins and policies compare later ones with it."""
        if is_nested_too_deeply(document):
            return
        self.policies.accept(document)
        if is_read_by_plugins(document):
            self._plugins.accept(self._requested(document, self._decoded(document))[0])

    def _decoded(self, document: Document) -> Mapping[str, Any]:
        return decoded(document, self._minor, self._types)[0]

    def problems(self, document: Document) -> list[Problem]:
        """Why the API server rejects a document, which has a name and a namespace; empty if it is accepted."""
        if is_nested_too_deeply(document):
            return []
        if is_custom(document):
            return self._problems_of_custom(document)
        manifest, found = decoded(document, self._minor, self._types)
        if found:
            return found
        new, old = self._requested(document, manifest)
        found = list(problems_of(new, old, self._server))
        if found and old is not None:
            found = self._certain(found, document, old)
        found = found or list(self._by_plugins(document, new, old)) or list(self.policies.problems(new, old))
        if not found:
            self._warn(document, new)
        return found

    def _warn(self, document: Document, new: Document) -> None:
        """Note the API server's warnings about Pod Security Standards that the pods of an object would violate."""
        for template in pods_of(dict(new)):
            found = insecurity(template.document, self._plugins, self._server.minor)
            # Pods that violate the enforced standard are rejected, which is a finding.
            if found.warn and not found.enforce:
                self.policies.warnings[f"{describe(document)}: {found.warn}"] = None

    def _requested(self, document: Document, manifest: Mapping[str, Any]) -> tuple[Document, Document | None]:
        """The complete object after the request, and before it unless it is new, both with the API's defaults.

        ``manifest`` is the decoded document. A cluster's object that cannot be read is taken to be the same.
        """
        live, new = self._before(document), with_defaults(manifest)
        if live is None:
            return new, None
        if is_nested_too_deeply(live):
            return new, new
        old = self._complete(live)
        return self._complete(applied(document, old, last_applied(live) or {})), old

    def _complete(self, document: Document) -> Document:
        return with_defaults(self._decoded(document))

    def _certain(self, found: Sequence[Problem], document: Document, old: Document) -> list[Problem]:
        """The problems of an update from ``old`` that do not depend on what is unknown of the cluster's object."""
        # Not all dumps have the fields that the API server sets: then the cluster's object itself is invalid.
        incomplete = [each.path for each in problems_of(old, old, self._server)]
        certain = [each for each in found if not any(path[: len(each.path)] == each.path for path in incomplete)]
        live = self._before(document)
        if certain and live is not None and last_applied(live) is None:
            # Other tools than kubectl apply also remove fields that only the cluster has.
            replaced = self._complete(applied(document, old, old))
            anyway = {part for each in problems_of(replaced, old, self._server) for part in each}
            certain = [each for each in certain if not anyway.isdisjoint(each)]
        return certain

    def _by_plugins(self, document: Document, new: Document, old: Document | None) -> Problems:
        """What plugins reject; an object of a kind that was not read may not be new."""
        if old is None and (not is_known(document) or document["kind"] in self._unread):
            old = new
        return plugin_problems(new, old, self._plugins, self._server)

    def is_without_schema(self, document: Document) -> bool:
        """Whether a document is a custom resource whose definition is not known, so that only the cluster checks it."""
        return is_custom(document) and definition_of(document, self._definitions) is None

    def _problems_of_custom(self, document: Document) -> list[Problem]:
        live = self._before(document)
        new = document if live is None else merged_custom(document, live, last_applied(live) or {})
        definition = definition_of(document, self._definitions)
        found = [] if definition is None else problems_of_custom(new, definition, live, self._minor)
        return found or list(self.policies.problems(new, live))

    def _before(self, document: Document) -> Document | None:
        """The object that an apply updates, or ``None`` if the apply creates it."""
        return None if is_recreated(document, self._applier) else self._in_cluster(document)

    def _in_cluster(self, document: Document) -> Document | None:
        """The cluster's object; what is unknown of it is as in ``document``."""
        if not is_known(document):
            return self._live.find_other(document)
        kind, metadata = str(document["kind"]), document["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        live = self._live.find(kind, namespace, name)
        if live is not None:
            return restored(live, document)
        record = self._objects.find(kind, namespace, name) if cluster_kind_of(document) is not None else None
        return None if record is None else _laid_over(record_document(kind, record), document)


def merged_custom(document: Document, live: Document, last: Document) -> Document:
    """The custom resource after an update: unlike built-in kinds, its lists are replaced (JSON merge patch)."""
    result = {key: each for key, each in live.items() if key in document or key not in last}
    for key, each in document.items():
        if each is None:
            result.pop(key, None)
        elif isinstance(each, dict):
            result[key] = merged_custom(each, mapping_in(live, key), mapping_in(last, key))
        else:
            result[key] = each
    return result


def restored(live: Document, document: Document) -> Document:
    """A document of a dump without digests.

    A value with the same digest as in ``document`` is the value there. Other values with digests are missing.
    """
    salt = salt_of(live)
    if not salt:
        return live
    same = kept(document, salt)
    result: Document = _restored(live, same, document)
    return result


def _restored(live: Any, same: Any, plain: Any) -> Any:
    if is_digest(live):
        return deepcopy(plain) if live == same else None
    if isinstance(live, dict):
        same, plain = (each if isinstance(each, dict) else {} for each in (same, plain))
        found = {key: _restored(each, same.get(key), plain.get(key)) for key, each in live.items()}
        return {key: each for key, each in found.items() if each is not None}
    if isinstance(live, list):
        return [_restored(each, *pair) for each, pair in zip(live, _paired(live, same, plain), strict=True)]
    return live


def _paired(live: list[Any], same: Any, plain: Any) -> Iterator[tuple[Any, Any]]:
    """The elements of two equal lists that belong to those of ``live``, by name or position."""
    pairs = list(zip(same, plain, strict=False)) if isinstance(same, list) and isinstance(plain, list) else []
    by_name = {each["name"]: (each, other) for each, other in pairs if isinstance(each, dict) and "name" in each}
    for index, each in enumerate(live):
        name = each.get("name") if isinstance(each, dict) else None
        yield by_name.get(name, (None, None)) if name else pairs[index] if index < len(pairs) else (None, None)


def _laid_over(record: Document, document: Document) -> Document:
    """A record as plain data, with what a snapshot does not hold as in ``document``."""
    result = {**deepcopy(document), **record}
    for key in ("metadata", "spec"):
        result[key] = {**mapping_in(document, key), **mapping_in(record, key)}
    return result
