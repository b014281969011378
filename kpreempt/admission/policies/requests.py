"""Requests that create or update an object, as admission policies and webhooks see them."""

from __future__ import annotations

from typing import Final, NamedTuple

from kpreempt.admission.validation.problems import Document
from kpreempt.model.documents import group_of, mapping_in

ADMISSION_GROUP: Final = "admissionregistration.k8s.io"
# Of a kind with more objects, only some are kept, because none is a parameter of a policy.
MAX_PARAMS: Final = 1000


class Unknown:
    """Takes the place of a value in a document that only the API server or a controller knows."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = Unknown()


class Request(NamedTuple):
    """A request: the complete object after it, and before it unless it is new.

    Objects have the API's defaults. ``resource`` is the plural of the kind, as in paths of the API.
    """

    document: Document
    resource: str
    old: Document | None = None

    @property
    def operation(self) -> str:
        return "CREATE" if self.old is None else "UPDATE"

    @property
    def group(self) -> str:
        return group_of(self.document)

    @property
    def version(self) -> str:
        return str(self.document.get("apiVersion")).rpartition("/")[2]

    @property
    def kind(self) -> str:
        return str(self.document.get("kind"))

    @property
    def name(self) -> str | Unknown:
        found = mapping_in(self.document, "metadata").get("name")
        return UNKNOWN if found is UNKNOWN else str(found)

    @property
    def namespace(self) -> str:
        """The namespace of the request: for a namespace its own name, empty for other cluster-scoped objects."""
        if self.is_namespace:
            return str(self.name)
        return str(mapping_in(self.document, "metadata").get("namespace") or "")

    @property
    def is_namespace(self) -> bool:
        return (self.group, self.kind) == ("", "Namespace")


def name_of(document: Document) -> str:
    """Return the name of an object."""
    return str(mapping_in(document, "metadata").get("name"))
