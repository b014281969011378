"""Validate volumes with files from ConfigMaps, Secrets, the pod itself, tokens and certificates.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``validateProjectedVolumeSource`` and
what it calls) and ``names.go``. What an API server drops because its feature gate is off is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpreempt.admission.validation.environment import check_field_reference, check_resource_reference, no_backsteps
from kpreempt.admission.validation.metadata import check_label_selector
from kpreempt.admission.validation.pod_parts import elements
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from kpreempt.admission.validation.values import MAX_INT32, MAX_SUBDOMAIN, dns_label, dns_subdomain, qualified_name
from kpreempt.model.documents import Path

_FIELDS = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"},
)
_MAX_MODE = 0o777
# The first version that projects trust bundles and pod certificates by default, and that sets the owners of files.
_CERTIFICATES, _OWNERS = 37, 38
_PROJECTED = ("secret", "configMap", "downwardAPI", "serviceAccountToken")
_PROJECTED_CERTIFICATES = ("clusterTrustBundle", "podCertificate")
_DEFAULT_EXPIRATION = 3600
_MIN_EXPIRATION = 10 * 60
_MAX_EXPIRATION = 1 << 32
_MIN_CERTIFICATE_SECONDS = 3600
_DAY = 24 * 60 * 60
_MAX_CERTIFICATE_DAYS = 91
_KEY_TYPES = frozenset({"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"})
_NEW_KEY_TYPES = frozenset({"MLDSA44", "MLDSA65", "MLDSA87"})
_CERTIFICATE_PATHS = ("credentialBundlePath", "keyPath", "certificateChainPath")
_PATHS = {"clusterTrustBundle": ("path",), "podCertificate": _CERTIFICATE_PATHS}
_MAX_SIGNER = 571
_MAX_ANNOTATIONS = 256 * 1024


def local_path(value: str) -> str:
    """Check a path of a file in a volume."""
    problem = descending_path(value)
    if not problem and value.startswith(".."):
        return "must not start with '..'"
    return problem


def descending_path(value: str) -> str:
    """Check a relative path that does not leave its directory."""
    return "must be a relative path" if value.startswith("/") else no_backsteps(value)


def check_secret(source: Document, server: Server, path: Path) -> Problems:
    """Validate a volume with the files of a Secret."""
    if not source.get("secretName"):
        yield required((*path, "secretName"))
    yield from _defaults(source, server, path)
    yield from _items(source, server, path)


def check_config_map(source: Document, server: Server, path: Path) -> Problems:
    """Validate a volume with the files of a ConfigMap."""
    yield from _defaults(source, server, path)
    yield from _object_files(source, server, path)


def check_downward_api(source: Document, server: Server, path: Path) -> Problems:
    """Validate a volume with fields of the pod."""
    yield from _defaults(source, server, path)
    yield from _pod_files(source, server, path)


def check_projected(source: Document, server: Server, path: Path) -> Problems:
    """Validate a volume with files of several sources; their paths must differ."""
    yield from _defaults(source, server, path)
    names = _PROJECTED + (_PROJECTED_CERTIFICATES if server.minor >= _CERTIFICATES else ())
    paths: set[str] = set()
    for each, at in elements(source, "sources", path):
        given = [name for name in names if each.get(name) is not None]
        for name in given:
            yield from _SOURCES[name](each[name], server, (*at, name))
            for file, where in _paths(each[name], name, (*at, name)):
                if file in paths:
                    yield invalid(where, file, "conflicting duplicate paths")
                paths.add(file)
        if len(given) > 1:
            yield forbidden(at, "may not specify more than 1 volume type per source")


def _paths(source: Document, name: str, path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the paths of a source's files. Those of tokens may also be the paths of other files."""
    for field in _PATHS.get(name, ()):
        if source.get(field):
            yield source[field], (*path, field)
    for item, at in elements(source, "items", path):
        if item.get("path"):
            yield item["path"], (*at, "path")


def _defaults(source: Document, server: Server, path: Path) -> Problems:
    yield from _mode(source, "defaultMode", path)
    yield from _owner(source, "defaultUser", server, path)


def _mode(part: Document, field: str, path: Path) -> Problems:
    if not 0 <= part.get(field, 0) <= _MAX_MODE:
        yield invalid((*path, field), part[field], "must be a number between 0 and 0777 (octal), both inclusive")


def _owner(part: Document, field: str, server: Server, path: Path) -> Problems:
    if server.minor >= _OWNERS and not 0 <= part.get(field, 0) <= MAX_INT32:
        yield invalid((*path, field), part[field], f"must be between 0 and {MAX_INT32}, inclusive")


def _items(source: Document, server: Server, path: Path) -> Problems:
    for item, at in elements(source, "items", path):
        if not item.get("key"):
            yield required((*at, "key"))
        yield from _file(item, server, at)


def _file(item: Document, server: Server, path: Path) -> Problems:
    yield from _file_path(item, path)
    yield from _mode(item, "mode", path)
    yield from _owner(item, "user", server, path)


def _file_path(part: Document, path: Path) -> Problems:
    value = part.get("path")
    if not value:
        yield required((*path, "path"))
    elif problem := local_path(value):
        yield invalid((*path, "path"), value, problem)


def _object_files(source: Document, server: Server, path: Path) -> Problems:
    if not source.get("name"):
        yield required((*path, "name"))
    yield from _items(source, server, path)


def _pod_files(source: Document, server: Server, path: Path) -> Problems:
    for item, at in elements(source, "items", path):
        yield from _file(item, server, at)
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        if field is not None:
            yield from check_field_reference(field, _FIELDS, (*at, "fieldRef"))
            if resource is not None:
                yield invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
        elif resource is None:
            yield required(at, "one of fieldRef and resourceFieldRef is required")
        elif not resource.get("containerName"):
            yield required((*at, "resourceFieldRef", "containerName"))
        else:
            yield from check_resource_reference(resource, (*at, "resourceFieldRef"))


def _token(source: Document, server: Server, path: Path) -> Problems:
    seconds, at = source.get("expirationSeconds", _DEFAULT_EXPIRATION), (*path, "expirationSeconds")
    if seconds < _MIN_EXPIRATION:
        yield invalid(at, seconds, "may not specify a duration less than 10 minutes")
    if seconds > _MAX_EXPIRATION:
        yield invalid(at, seconds, "may not specify a duration larger than 2^32 seconds")
    if server.minor >= 30 or not source.get("path"):
        yield from _file_path(source, path)
    yield from _owner(source, "user", server, path)


def _trust_bundle(source: Document, server: Server, path: Path) -> Problems:
    name, signer = source.get("name"), source.get("signerName")
    selector = source.get("labelSelector")
    if name is not None and signer is not None:
        yield invalid(path, source, "only one of name and signerName may be used")
    elif name is not None:
        if problem := _bundle_name(name):
            yield invalid((*path, "name"), name, f"not a valid clustertrustbundlename: {problem}")
        if selector is not None:
            yield invalid((*path, "labelSelector"), selector, "labelSelector must be unset if name is specified")
    elif signer is not None:
        yield from _signer_name(signer, (*path, "signerName"))
        yield from check_label_selector(selector, (*path, "labelSelector"))
    else:
        yield required(path, "either name or signerName must be specified")
    yield from _file_path(source, path)
    yield from _owner(source, "user", server, path)


def _bundle_name(name: str) -> str:
    """Check the name of a ClusterTrustBundle, which begins with that of its signer if it has one."""
    signer, colon, last = name.rpartition(":")
    if colon and not signer:
        return 'ClusterTrustBundle without signer name must not have ":" in its name'
    return dns_subdomain(last)


def _signer_name(name: str, path: Path) -> Problems:
    """Validate the name of a signer of certificates, such as ``example.com/signer``."""
    if not name:
        yield required(path)
        return
    domain, *paths = name.split("/")
    if len(paths) != 1:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid(path, name, detail)
        return
    if len(domain) > MAX_SUBDOMAIN:
        yield too_long(path, MAX_SUBDOMAIN)
    if "." not in domain:
        yield invalid(path, domain, "should be a domain with at least two segments separated by dots")
    for text, form in ((domain, dns_label), (paths[0], dns_subdomain)):
        for label in text.split("."):
            if problem := form(label):
                yield invalid(path, text, f'validating label "{label}": {problem}')
                break
    if len(name) > _MAX_SIGNER:
        yield too_long(path, _MAX_SIGNER)


def _certificate(source: Document, server: Server, path: Path) -> Problems:
    signer = source.get("signerName", "")
    yield from _signer_name(signer, (*path, "signerName"))
    yield from _user_annotations(source.get("userAnnotations") or {}, (*path, "userAnnotations"))
    known = _KEY_TYPES | (_NEW_KEY_TYPES if server.minor >= 38 else frozenset())
    if (kind := source.get("keyType", "")) not in known:
        yield unsupported((*path, "keyType"), kind, known)
    yield from _certificate_seconds(source, signer, (*path, "maxExpirationSeconds"))
    given = [field for field in _CERTIFICATE_PATHS if source.get(field)]
    if not given:
        yield required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
    for field in given:
        if problem := local_path(source[field]):
            yield invalid((*path, field), source[field], problem)
    yield from _owner(source, "user", server, path)


def _certificate_seconds(source: Document, signer: str, path: Path) -> Problems:
    seconds = source.get("maxExpirationSeconds", _MIN_CERTIFICATE_SECONDS)
    longest = _DAY if _is_of_kubernetes(signer) else _MAX_CERTIFICATE_DAYS * _DAY
    if seconds < _MIN_CERTIFICATE_SECONDS:
        yield invalid(path, seconds, f"if provided, maxExpirationSeconds must be >= {_MIN_CERTIFICATE_SECONDS}")
    if seconds > longest:
        yield invalid(path, seconds, f"if provided, maxExpirationSeconds must be <= {longest}")


def _is_of_kubernetes(signer: str) -> bool:
    return f".{signer.partition('/')[0]}".endswith(".kubernetes.io")


def _user_annotations(annotations: Document, path: Path) -> Problems:
    for key in annotations:
        if problem := qualified_name(key.lower()):
            yield invalid(path, key, problem)
        elif "/" not in key:
            yield invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")')
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
        yield too_long(path, _MAX_ANNOTATIONS)


_SOURCES = {
    "secret": _object_files,
    "configMap": _object_files,
    "downwardAPI": _pod_files,
    "serviceAccountToken": _token,
    "clusterTrustBundle": _trust_bundle,
    "podCertificate": _certificate,
}
