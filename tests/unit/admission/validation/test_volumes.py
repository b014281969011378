# ruff: noqa: E501 - tables of manifests read better in rows
"""Which volumes of pods the API server rejects."""

from __future__ import annotations

import pytest
import yaml

from kpreempt.admission.validation.problems import Server
from kpreempt.admission.validation.volumes import check_created_claims, check_volumes

TEMPLATE = ("spec", "template", "spec")


def found(volumes: str, minor: int = 36, path: tuple[str, ...] = ("spec",)) -> list[str]:
    spec = {"volumes": yaml.safe_load(f"[{volumes}]")}
    return [str(each).removeprefix("spec.") for each in check_volumes(spec, Server(minor), path)]


def of(source: str, minor: int = 36) -> list[str]:
    return [text.removeprefix("volumes[0].") for text in found(f"{{name: a, {source}}}", minor)]


VALID = [
    "emptyDir: {medium: Any, sizeLimit: 0}",
    "hostPath: {path: a/..b, type: ''}",
    "gitRepo: {repository: a, directory: .}",
    "gcePersistentDisk: {pdName: a, partition: 255}",
    "awsElasticBlockStore: {volumeID: a}",
    "nfs: {server: a, path: /}",
    "iscsi: {targetPortal: a, iqn: 'iqn.2001-04.com.example:a', initiatorName: eui.0123456789abcdef, lun: 255}",
    "iscsi: {targetPortal: a, iqn: naa.0123456789abcdef0123456789abcdef, chapAuthSession: true, secretRef: {}}",
    "glusterfs: {endpoints: a, path: a}",
    "flocker: {datasetUUID: a/b}",
    "persistentVolumeClaim: {claimName: Any}",
    "rbd: {monitors: [a], image: a}",
    "cinder: {volumeID: a, secretRef: {name: A}}",
    "cephfs: {monitors: [a]}",
    "quobyte: {registry: 'a:1,[::1]:2', volume: a}",
    "fc: {targetWWNs: [a], lun: 0}",
    "fc: {wwids: [a], lun: 300}",
    "flexVolume: {driver: a, options: {mykubernetes.io/a: b}}",
    "azureFile: {secretName: a, shareName: a}",
    "vsphereVolume: {volumePath: a}",
    "photonPersistentDisk: {pdID: a}",
    "portworxVolume: {volumeID: a}",
    "azureDisk: {diskName: a, diskURI: /subscriptions/a, kind: Managed, cachingMode: None}",
    "azureDisk: {diskName: a, diskURI: 'https://a'}",
    "storageos: {volumeName: a, volumeNamespace: b}",
    "scaleIO: {gateway: a, system: a, volumeName: a}",
    "csi: {driver: A.b, nodePublishSecretRef: {name: a.b}}",
    "ephemeral: {volumeClaimTemplate: {metadata: {labels: {a: b}, annotations: {A: B C}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}}",
    "image: {reference: a, pullPolicy: Never}",
]


@pytest.mark.parametrize("source", VALID)
def test_valid_volumes(source: str) -> None:
    assert of(source) == []


VOLUMES = {
    "{emptyDir: {}}": "volumes[0].name: Required value",
    "{name: a.b, emptyDir: {}}": 'volumes[0].name: Invalid value: "a.b": a lowercase RFC 1123 label',
    "{name: a, emptyDir: {}}, {name: b, emptyDir: {}}, {name: a, hostPath: {path: a}}": 'volumes[2].name: Duplicate value: "a"',
    "{name: a}": "volumes[0]: Required value: must specify a volume type",
    "{name: a, nfs: {server: a, path: /}, emptyDir: {}}": "volumes[0].nfs: Forbidden: may not specify more than 1 volume type",
}


@pytest.mark.parametrize(("volumes", "problem"), VOLUMES.items())
def test_names_and_sources(volumes: str, problem: str) -> None:
    [only] = found(volumes)
    assert only.startswith(problem)


REJECTED = {
    "emptyDir: {sizeLimit: -1Mi}": "emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity",
    "hostPath: {}": "hostPath.path: Required value",
    "hostPath: {path: /a/../b}": "hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
    "hostPath: {path: /a, type: Folder}": 'hostPath.type: Unsupported value: "Folder": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
    "gitRepo: {}": "gitRepo.repository: Required value",
    "gitRepo: {repository: a, directory: /b}": 'gitRepo.directory: Invalid value: "/b": must be a relative path',
    "gitRepo: {repository: a, directory: b/..}": "gitRepo.directory: Invalid value: \"b/..\": must not contain '..'",
    "gcePersistentDisk: {pdName: a, partition: 256}": "gcePersistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive",
    "awsElasticBlockStore: {volumeID: a, partition: -1}": "awsElasticBlockStore.partition: Invalid value: -1",
    "nfs: {path: /a}": "nfs.server: Required value",
    "nfs: {server: a, path: a}": 'nfs.path: Invalid value: "a": must be an absolute path',
    "iscsi: {iqn: eui.0123456789abcdef}": "iscsi.targetPortal: Required value",
    "iscsi: {targetPortal: a, iqn: a}": 'iscsi.iqn: Invalid value: "a": must be valid format starting with iqn, eui, or naa',
    "iscsi: {targetPortal: a, iqn: iqn.2001-04.com.example}": 'iscsi.iqn: Invalid value: "iqn.2001-04.com.example": must be valid format',
    "iscsi: {targetPortal: a, iqn: eui.0123456789abcdef, initiatorName: naa.0}": 'iscsi.initiatorName: Invalid value: "naa.0": must be valid format',
    "iscsi: {targetPortal: a, iqn: eui.0123456789abcdef, lun: 256}": "iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive",
    "iscsi: {targetPortal: a, iqn: eui.0123456789abcdef, chapAuthDiscovery: true}": "iscsi.secretRef: Required value",
    f"iscsi: {{targetPortal: {'a' * 63}, iqn: eui.0123456789abcdef, initiatorName: eui.0123456789abcdef}}": 'name: Invalid value: "a": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters',
    "glusterfs: {path: a}": "glusterfs.endpoints: Required value",
    "flocker: {}": "flocker: Required value: one of datasetName and datasetUUID is required",
    "flocker: {datasetName: a, datasetUUID: b}": 'flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified simultaneously',
    "flocker: {datasetName: a/b}": "flocker.datasetName: Invalid value: \"a/b\": must not contain '/'",
    "persistentVolumeClaim: {claimName: ''}": "persistentVolumeClaim.claimName: Required value",
    "rbd: {monitors: [], image: a}": "rbd.monitors: Required value",
    "cinder: {volumeID: a, secretRef: {}}": "cinder.secretRef.name: Required value",
    "cephfs: {}": "cephfs.monitors: Required value",
    "quobyte: {volume: a}": "quobyte.registry: Required value: must be a host:port pair",
    "quobyte: {registry: 'a:1,b', volume: a}": 'quobyte.registry: Invalid value: "a:1,b": must be a host:port pair',
    f"quobyte: {{registry: 'a:1', volume: a, tenant: {'a' * 65}}}": "quobyte.tenant: Required value: must be a UUID",
    "fc: {}": "fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both",
    "fc: {targetWWNs: [a], wwids: [a], lun: 1}": 'fc.targetWWNs: Invalid value: ["a"]: targetWWNs and wwids can not be specified simultaneously',
    "fc: {targetWWNs: [a]}": "fc.lun: Required value: lun is required if targetWWNs is specified",
    "fc: {targetWWNs: [a], lun: -1}": "fc.lun: Invalid value: -1: must be between 0 and 255, inclusive",
    "flexVolume: {}": "flexVolume.driver: Required value",
    "flexVolume: {driver: a, options: {A.K8S.io/b: c}}": 'flexVolume.options[A.K8S.io/b]: Invalid value: "A.K8S.io/b": kubernetes.io and k8s.io namespaces are reserved',
    "azureFile: {secretName: a}": "azureFile.shareName: Required value",
    "azureDisk: {diskURI: 'https://a'}": "azureDisk.diskName: Required value",
    "azureDisk: {diskName: a, diskURI: 'https://a', cachingMode: Some}": 'azureDisk.cachingMode: Unsupported value: "Some"',
    "azureDisk: {diskName: a, diskURI: 'https://a', kind: Other}": 'azureDisk.kind: Unsupported value: "Other"',
    "azureDisk: {diskName: a, diskURI: 'https://a', kind: Managed}": 'azureDisk.diskURI: Unsupported value: "https://a": supported values: "/subscriptions/{sub-id}',
    "azureDisk: {diskName: a, diskURI: /subscriptions/a}": 'azureDisk.diskURI: Unsupported value: "/subscriptions/a": supported values: "https://',
    "storageos: {volumeName: A}": 'storageos.volumeName: Invalid value: "A"',
    "storageos: {volumeName: a, volumeNamespace: B}": 'storageos.volumeNamespace: Invalid value: "B"',
    "storageos: {volumeName: a, secretRef: {}}": "storageos.secretRef.name: Required value",
    "scaleIO: {gateway: a, volumeName: a}": "scaleIO.system: Required value",
    "csi: {}": "csi.driver: Required value",
    "csi: {driver: a_b}": 'csi.driver: Invalid value: "a_b": a lowercase RFC 1123 subdomain',
    f"csi: {{driver: {'a' * 64}}}": "csi.driver: Too long: may not be more than 63 bytes",
    "csi: {driver: a, nodePublishSecretRef: {}}": "csi.nodePublishSecretRef.name: Required value",
    "csi: {driver: a, nodePublishSecretRef: {name: A}}": 'csi.nodePublishSecretRef.name: Invalid value: "A"',
    "ephemeral: {}": "ephemeral.volumeClaimTemplate: Required value",
    "ephemeral: {volumeClaimTemplate: {metadata: {labels: {a: b c}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}}": 'ephemeral.volumeClaimTemplate.metadata.labels.a: Invalid value: "b c"',
    "ephemeral: {volumeClaimTemplate: {metadata: {annotations: {a b: c}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}}": 'ephemeral.volumeClaimTemplate.metadata.annotations: Invalid value: "a b"',
    "ephemeral: {volumeClaimTemplate: {metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}}": "ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set",
    "ephemeral: {volumeClaimTemplate: {metadata: {finalizers: []}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}}": "ephemeral.volumeClaimTemplate.metadata.finalizers: Forbidden: cannot be set",
    "ephemeral: {volumeClaimTemplate: {spec: {accessModes: [], resources: {requests: {storage: 1}}}}}": "ephemeral.volumeClaimTemplate.spec.accessModes: Required value",
    "image: {reference: a, pullPolicy: Sometimes}": 'image.pullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"',
}  # fmt: skip


@pytest.mark.parametrize(("source", "problem"), REJECTED.items())
def test_rejected_volumes(source: str, problem: str) -> None:
    [only] = of(source)
    assert only.startswith(problem)


def test_templates_need_references_of_images_since_1_37() -> None:
    image = "{name: a, image: {pullPolicy: Always}}"
    assert found(image) == ["volumes[0].image.reference: Required value"]
    assert found(image, 36, TEMPLATE) == []
    assert found(image, 37, TEMPLATE) == ["template.spec.volumes[0].image.reference: Required value"]


@pytest.mark.parametrize(
    ("volumes", "pod", "problems"),
    [
        ("{name: a, ephemeral: {}}, {name: b, persistentVolumeClaim: {claimName: pod-b}}", "pod", []),
        (
            "{name: a, ephemeral: {}}, {name: b, persistentVolumeClaim: {claimName: pod-a}}",
            "pod",
            ["volumes[1].persistentVolumeClaim.claimName: Invalid value: \"pod-a\": must not reference a PVC that gets created for an ephemeral volume"],
        ),
        ("{name: a, ephemeral: {}}", "b" * 251, []),
        ("{name: a, ephemeral: {}}, {name: b, emptyDir: {}}", "b" * 252, [f'volumes[0].name: Invalid value: "a": PVC name "{"b" * 252}-a": must be no more than 253 characters']),
    ],
)  # fmt: skip
def test_claims_that_are_created_for_volumes(volumes: str, pod: str, problems: list[str]) -> None:
    spec = {"volumes": yaml.safe_load(f"[{volumes}]")}
    assert [str(each) for each in check_created_claims(spec, pod, ())] == problems
