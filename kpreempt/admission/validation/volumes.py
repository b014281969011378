"""Validate the volumes of pods and pod templates.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``ValidateVolumes``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from kpreempt.admission.validation.environment import no_backsteps
from kpreempt.admission.validation.metadata import check_annotations, check_labels
from kpreempt.admission.validation.pod_parts import elements
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from kpreempt.admission.validation.values import MAX_LABEL, amount, dns_label, dns_subdomain
from kpreempt.admission.validation.volume_files import (
    check_config_map,
    check_downward_api,
    check_projected,
    check_secret,
    descending_path,
)
from kpreempt.model.documents import Path, mapping_in

Check = Callable[[Document, Server, Path], Problems]

# The sources of volumes in the order in which the API server reads them, with the fields that they must have.
_SOURCES: Mapping[str, tuple[str, ...]] = {
    "emptyDir": (),
    "hostPath": ("path",),
    "gitRepo": ("repository",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "secret": (),
    "nfs": ("server", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "glusterfs": ("endpoints", "path"),
    "flocker": (),
    "persistentVolumeClaim": ("claimName",),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "quobyte": ("volume",),
    "downwardAPI": (),
    "fc": (),
    "flexVolume": ("driver",),
    "configMap": (),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "storageos": ("volumeName",),
    "projected": (),
    "scaleIO": ("gateway", "system", "volumeName"),
    "csi": (),
    "ephemeral": (),
    "image": (),
}
_HOST_PATH_TYPES = frozenset(
    {"", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"}
)
_MAX_BYTE = 255
_FORMAT = "must be valid format"
# The forms of names by what they begin with. The first form may follow other characters.
_ISCSI_FORMS = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]+:[^,;*&$|\t\n\f\r ]+\Z"),
    "eui": re.compile(r"\Aeui.[A-Za-z0-9]{16}\Z"),
    "naa": re.compile(r"\Anaa.[A-Za-z0-9]{32}\Z"),
}
_MAX_ISCSI_NAME = 64
_HOST_AND_PORT = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*")
_MAX_TENANT = 64
_AZURE_CACHING = frozenset({"None", "ReadOnly", "ReadWrite"})
_AZURE_MANAGED = "Managed"
_AZURE_KINDS = frozenset({"Shared", "Dedicated", _AZURE_MANAGED})
_MANAGED_DISK = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_RESERVED_OPTIONS = (".kubernetes.io", ".k8s.io")
_TEMPLATE_METADATA = frozenset({"annotations", "labels"})
_PULL_POLICIES = frozenset({"Always", "IfNotPresent", "Never"})


def check_volumes(spec: Document, server: Server, path: Path) -> Problems:
    """Validate the volumes of a pod's spec, which has its defaults; ``path`` is that of the spec."""
    names: set[str] = set()
    for volume, at in elements(spec, "volumes", path):
        name = volume.get("name")
        if not name:
            yield required((*at, "name"))
        elif problem := dns_label(name):
            yield invalid((*at, "name"), name, problem)
        elif name in names:
            yield duplicate((*at, "name"), name)
        else:
            names.add(name)
        yield from _source(volume, server, at)


def check_created_claims(spec: Document, pod: str, path: Path) -> Problems:
    """Validate the names of the claims that are created for the volumes of a pod named ``pod``.

    No other volume of the pod may use one of them.
    """
    created = {f"{pod}-{volume.get('name')}" for volume, _ in elements(spec, "volumes", path) if "ephemeral" in volume}
    for volume, at in elements(spec, "volumes", path):
        name, used = volume.get("name"), mapping_in(volume, "persistentVolumeClaim").get("claimName")
        claim = f"{pod}-{name}"
        if name and "ephemeral" in volume and (problem := dns_subdomain(claim)):
            yield invalid((*at, "name"), name, f'PVC name "{claim}": {problem}')
        if used in created:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            yield invalid((*at, "persistentVolumeClaim", "claimName"), used, detail)


def _source(volume: Document, server: Server, path: Path) -> Problems:
    given = [each for each in _SOURCES if volume.get(each) is not None]
    if not given:
        yield required(path, "must specify a volume type")
        return
    name = given[0]
    source, at = volume[name], (*path, name)
    for field in _SOURCES[name]:
        if not source.get(field):
            yield required((*at, field))
    if name in _CHECKS:
        yield from _CHECKS[name](source, server, at)
    for each in given[1:]:
        yield forbidden((*path, each), "may not specify more than 1 volume type")
    yield from _initiator(volume, path)


def _initiator(volume: Document, path: Path) -> Problems:
    source = mapping_in(volume, "iscsi")
    name = volume.get("name", "")
    if "initiatorName" in source and len(f"{name}:{source.get('targetPortal', '')}".encode()) > _MAX_ISCSI_NAME:
        detail = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is "
            "specified."
        )
        yield invalid((*path, "name"), name, detail)


def _empty_dir(source: Document, _: Server, path: Path) -> Problems:
    if "sizeLimit" in source and amount(source["sizeLimit"]).nano < 0:
        yield forbidden((*path, "sizeLimit"), "SizeLimit field must be a valid resource quantity")


def _host_path(source: Document, _: Server, path: Path) -> Problems:
    if problem := no_backsteps(source.get("path", "")):
        yield invalid((*path, "path"), source["path"], problem)
    yield from _one_of(source, "type", _HOST_PATH_TYPES, path)


def _one_of(source: Document, field: str, known: frozenset[str], path: Path) -> Problems:
    value = source.get(field)
    if value is not None and value not in known:
        yield unsupported((*path, field), value, known)


def _git_repo(source: Document, _: Server, path: Path) -> Problems:
    if problem := descending_path(source.get("directory", "")):
        yield invalid((*path, "directory"), source["directory"], problem)


def _partition(source: Document, _: Server, path: Path) -> Problems:
    if not 0 <= source.get("partition", 0) <= _MAX_BYTE:
        yield invalid((*path, "partition"), source["partition"], f"must be between 1 and {_MAX_BYTE}, inclusive")


def _nfs(source: Document, _: Server, path: Path) -> Problems:
    folder = source.get("path")
    if folder and not folder.startswith("/"):
        yield invalid((*path, "path"), folder, "must be an absolute path")


def _iscsi(source: Document, _: Server, path: Path) -> Problems:
    if source.get("iqn"):
        yield from _iscsi_name(source["iqn"], (*path, "iqn"))
    if "initiatorName" in source:
        yield from _iscsi_name(source["initiatorName"], (*path, "initiatorName"))
    yield from _unit(source.get("lun", 0), (*path, "lun"))
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        yield required((*path, "secretRef"))


def _iscsi_name(name: str, path: Path) -> Problems:
    form = _ISCSI_FORMS.get(name[:3])
    if form is None:
        yield invalid(path, name, f"{_FORMAT} starting with iqn, eui, or naa")
    elif not form.search(name):
        yield invalid(path, name, _FORMAT)


def _unit(number: int, path: Path) -> Problems:
    if not 0 <= number <= _MAX_BYTE:
        yield invalid(path, number, f"must be between 0 and {_MAX_BYTE}, inclusive")


def _flocker(source: Document, _: Server, path: Path) -> Problems:
    name, uuid = source.get("datasetName"), source.get("datasetUUID")
    if not name and not uuid:
        yield required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        yield invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if name and "/" in name:
        yield invalid((*path, "datasetName"), name, "must not contain '/'")


def _secret_name(source: Document, _: Server, path: Path) -> Problems:
    """Validate the reference to a secret, which needs a name."""
    secret = source.get("secretRef")
    if secret is not None and not secret.get("name"):
        yield required((*path, "secretRef", "name"))


def _quobyte(source: Document, _: Server, path: Path) -> Problems:
    registry, detail = source.get("registry"), "must be a host:port pair or multiple pairs separated by commas"
    if not registry:
        yield required((*path, "registry"), detail)
    elif len(source.get("tenant", "").encode()) > _MAX_TENANT:
        yield required((*path, "tenant"), "must be a UUID and may not exceed a length of 64 characters")
    elif not all(_HOST_AND_PORT.fullmatch(each) for each in registry.split(",")):
        yield invalid((*path, "registry"), registry, detail)


def _fibre_channel(source: Document, _: Server, path: Path) -> Problems:
    targets, identifiers = source.get("targetWWNs"), source.get("wwids")
    if not targets and not identifiers:
        yield required((*path, "targetWWNs"), "must specify either targetWWNs or wwids, but not both")
    if targets and identifiers:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        yield invalid((*path, "targetWWNs"), targets, detail)
    if targets and source.get("lun") is None:
        yield required((*path, "lun"), "lun is required if targetWWNs is specified")
    elif targets:
        yield from _unit(source["lun"], (*path, "lun"))


def _flex_volume(source: Document, _: Server, path: Path) -> Problems:
    for key in source.get("options") or ():
        if f".{key.partition('/')[0].lower()}".endswith(_RESERVED_OPTIONS):
            yield invalid((*path, "options", key), key, "kubernetes.io and k8s.io namespaces are reserved")


def _azure_disk(source: Document, _: Server, path: Path) -> Problems:
    yield from _one_of(source, "cachingMode", _AZURE_CACHING, path)
    yield from _one_of(source, "kind", _AZURE_KINDS, path)
    uri, kind = source.get("diskURI", ""), source.get("kind", "Shared")
    form = _MANAGED_DISK if kind == _AZURE_MANAGED else _BLOB_DISK
    if not uri.startswith(form[: form.index("{")]):
        yield unsupported((*path, "diskURI"), uri, [form])


def _storage_os(source: Document, server: Server, path: Path) -> Problems:
    for field in ("volumeName", "volumeNamespace"):
        name = source.get(field)
        if name and (problem := dns_label(name)):
            yield invalid((*path, field), name, problem)
    yield from _secret_name(source, server, path)


def _csi(source: Document, _: Server, path: Path) -> Problems:
    driver, at = source.get("driver"), (*path, "driver")
    if not driver:
        yield required(at)
    elif len(driver) > MAX_LABEL:
        yield too_long(at, MAX_LABEL)
    elif problem := dns_subdomain(driver.lower()):
        yield invalid(at, driver, problem)
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        name, where = secret.get("name"), (*path, "nodePublishSecretRef", "name")
        if not name:
            yield required(where)
        elif problem := dns_subdomain(name):
            yield invalid(where, name, problem)


def _ephemeral(source: Document, server: Server, path: Path) -> Problems:
    template, at = source.get("volumeClaimTemplate"), (*path, "volumeClaimTemplate")
    if template is None:
        yield required(at)
        return
    metadata, where = mapping_in(template, "metadata"), (*at, "metadata")
    yield from check_annotations(metadata.get("annotations") or {}, (*where, "annotations"))
    yield from check_labels(metadata.get("labels") or {}, (*where, "labels"))
    for field, value in metadata.items():
        # Lists are set even if they are empty.
        if field not in _TEMPLATE_METADATA and value not in ("", 0):
            yield forbidden((*where, field), "cannot be set")
    from kpreempt.admission.validation.claims import check_claim_spec  # noqa: PLC0415 - few pods have such volumes

    yield from check_claim_spec(mapping_in(template, "spec"), server, (*at, "spec"))


def _image(source: Document, server: Server, path: Path) -> Problems:
    # Before 1.37 templates may leave the reference to what completes their pods.
    is_pod = path[:2] == ("spec", "volumes")
    if (is_pod or server.minor >= 37) and not source.get("reference"):
        yield required((*path, "reference"))
    yield from _one_of(source, "pullPolicy", _PULL_POLICIES, path)


_CHECKS: Mapping[str, Check] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _partition,
    "awsElasticBlockStore": _partition,
    "secret": check_secret,
    "nfs": _nfs,
    "iscsi": _iscsi,
    "flocker": _flocker,
    "cinder": _secret_name,
    "quobyte": _quobyte,
    "downwardAPI": check_downward_api,
    "fc": _fibre_channel,
    "flexVolume": _flex_volume,
    "configMap": check_config_map,
    "azureDisk": _azure_disk,
    "storageos": _storage_os,
    "projected": check_projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
