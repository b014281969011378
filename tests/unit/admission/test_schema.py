# ruff: noqa: E501 - tables of manifests read better in rows
"""How the API server of a version decodes an object, and what it rejects then."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpreempt.admission.api_values import SCALARS
from kpreempt.admission.schema import api_types, decoded, fields_of
from kpreempt.snapshot.documents import parse_document

POD = "{containers: [{name: a, %s}]}"
TEMPLATE = "{metadata: {labels: {app: a}}, spec: {containers: [{name: a}]%s}}"


def found(text: str, minor: int | None = None) -> list[str]:
    return [str(each) for each in decoded(parse_document(text, "test"), minor)[1]]


UNKNOWN_FIELDS = {
    "Pod": ("v1", "spec: {containers: [{name: a, resuorces: {}}]}", "spec.containers[0].resuorces (did you mean resources?)"),
    "Deployment": ("apps/v1", f"spec: {{replica: 1, template: {TEMPLATE % ''}}}", "spec.replica (did you mean replicas?)"),
    "StatefulSet": ("apps/v1", "spec: {volumeClaimTemplates: [{spec: {storageClass: fast}}]}", "spec.volumeClaimTemplates[0].spec.storageClass (did you mean storageClassName?)"),
    "DaemonSet": ("apps/v1", "spec: {updateStrategy: {rollingUpdates: {}}}", "spec.updateStrategy.rollingUpdates (did you mean rollingUpdate?)"),
    "ReplicaSet": ("apps/v1", f"spec: {{template: {TEMPLATE % ', toleration: []'}}}", "spec.template.spec.toleration (did you mean tolerations?)"),
    "ReplicationController": ("v1", "spec: {Selector: {app: a}}", "spec.Selector (did you mean selector?)"),
    "Job": ("batch/v1", "spec: {backOffLimit: 1}", "spec.backOffLimit (did you mean backoffLimit?)"),
    "CronJob": ("batch/v1", "spec: {jobTemplate: {spec: {template: {spec: {restartPolcy: Never}}}}}", "spec.jobTemplate.spec.template.spec.restartPolcy (did you mean restartPolicy?)"),
    "PodDisruptionBudget": ("policy/v1", "spec: {minAvailable: 1, selector: {matchLabel: {app: a}}}", "spec.selector.matchLabel (did you mean matchLabels?)"),
    "HorizontalPodAutoscaler": ("autoscaling/v2", "spec: {scaleTargetReference: {}}", "spec.scaleTargetReference (did you mean scaleTargetRef?)"),
    "Service": ("v1", "spec: {ports: [{port: 80, targetport: 80}]}", "spec.ports[0].targetport (did you mean targetPort?)"),
    "PersistentVolumeClaim": ("v1", "spec: {accessMode: [ReadWriteOnce]}", "spec.accessMode (did you mean accessModes?)"),
    "PersistentVolume": ("v1", "spec: {nfs: {server: a, paths: /}}", "spec.nfs.paths (did you mean path?)"),
    "StorageClass": ("storage.k8s.io/v1", "parameter: {type: ssd}", "parameter (did you mean parameters?)"),
    "ConfigMap": ("v1", "Data: {a: b}", "Data (did you mean data?)"),
    "Secret": ("v1", "stringdata: {a: b}", "stringdata (did you mean stringData?)"),
    "Ingress": ("networking.k8s.io/v1", "spec: {rules: [{http: {paths: [{backend: {service: {name: a, prot: {number: 1}}}}]}}]}", "spec.rules[0].http.paths[0].backend.service.prot (did you mean port?)"),
    "NetworkPolicy": ("networking.k8s.io/v1", "spec: {ingress: [{form: []}]}", "spec.ingress[0].form (did you mean from?)"),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "spec: {versions: [{schema: {openAPIV3Schema: {properties: {a: {requried: [b]}}}}}]}", "spec.versions[0].schema.openAPIV3Schema.properties.a.requried (did you mean required?)"),
    "PriorityClass": ("scheduling.k8s.io/v1", "value: 1\nglobaldefault: true", "globaldefault (did you mean globalDefault?)"),
    "Namespace": ("v1", "spec: {}\nlabels: {a: b}", "labels"),
    "Node": ("v1", "spec: {taint: []}", "spec.taint (did you mean taints?)"),
    "LimitRange": ("v1", "spec: {limit: []}", "spec.limit (did you mean limits?)"),
    "ResourceQuota": ("v1", "spec: {scopeSelector: {matchExpression: []}}", "spec.scopeSelector.matchExpression (did you mean matchExpressions?)"),
    "ServiceAccount": ("v1", "imagePullSecret: []", "imagePullSecret (did you mean imagePullSecrets?)"),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "rules: [{apiGroup: ['']}]", "rules[0].apiGroup (did you mean apiGroups?)"),
    "RuntimeClass": ("node.k8s.io/v1", "handler: a\noverheads: {}", "overheads (did you mean overhead?)"),
    "APIService": ("apiregistration.k8s.io/v1", "spec: {caBundles: a}", "spec.caBundles (did you mean caBundle?)"),
    "ResourceClaimTemplate": ("resource.k8s.io/v1", "spec: {spec: {device: {}}}", "spec.spec.device (did you mean devices?)"),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNKNOWN_FIELDS)
def test_a_field_that_the_type_does_not_have_is_unknown(kind: str) -> None:
    version, rest, expected = UNKNOWN_FIELDS[kind]
    assert found(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n{rest}\n") == [
        f"unknown field {expected}"
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("apiVersion: v1\nkind: Pod\nmetadata: {labels: {resuorces: a}, annotations: {x/y: z}}\nspec: {nodeSelector: {containers: a}}", id="maps with free keys"),
        pytest.param("apiVersion: v1\nkind: ConfigMap\ndata: {spec: a}\nbinaryData: {kind: YQ==}", id="the data of a ConfigMap"),
        pytest.param("apiVersion: apps/v1\nkind: ControllerRevision\nrevision: 1\ndata: {spec: {x: 1}}", id="a RawExtension"),
        pytest.param("apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nspec: {devices: {config: [{opaque: {driver: a, parameters: {x: {y: 1}}}}]}}", id="opaque parameters of a device"),
        pytest.param("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {versions: [{schema: {openAPIV3Schema: {default: {x: 1}, enum: [{y: 2}], items: {z: 3}, properties: {resuorces: {type: string}}}}}]}", id="JSON in the schema of a CRD, and what decodes itself"),
        pytest.param("apiVersion: v1\nkind: Pod\nmetadata: {managedFields: [{fieldsV1: {'f:spec': {}}}]}", id="managed fields"),
        pytest.param("apiVersion: example.com/v1\nkind: Deployment\nspec: {resuorces: 1}", id="a custom resource of a name that is built in elsewhere"),
        pytest.param("apiVersion: apps/v1\nkind: Deploiment\nspec: {resuorces: 1}", id="an unknown kind"),
        pytest.param("apiVersion: [v1]\nkind: {a: b}\nspec: 1", id="a kind that is not a text"),
        pytest.param("apiVersion: v1\nkind: Secret\ndata: {a: 'ENC[x]'}\nsops: {version: 3.8.1}", id="a Secret that SOPS has encrypted"),
        pytest.param("apiVersion: v1\nkind: Pod\nspec: null", id="null for an object"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("minor", [None, 33])
def test_what_strict_decoding_does_not_look_into_is_not_unknown(text: str, minor: int | None) -> None:
    assert found(text, minor) == []


def test_an_encrypted_object_is_let_through_only_if_sops_encrypts_such_objects() -> None:
    assert found("apiVersion: v1\nkind: Pod\nsops: {version: 3.8.1}") == ["unknown field sops"]
    assert found("apiVersion: v1\nkind: Secret\nsops: 1") == ["unknown field sops"]


@pytest.mark.parametrize(
    ("field", "minor", "hint"),
    [
        pytest.param("{lifecycle: {stopSignal: SIGTERM}}", 32, "lifecycle.stopSignal (known from 1.33 on)", id="one that came later"),
        pytest.param("{lifecycle: {stopSignal: SIGTERM}}", 33, "", id="its first version"),
        pytest.param("{lifecycle: {stopSignal: SIGTERM}}", None, "", id="a version that is not known"),
        pytest.param("{lifecycle: {stopSignal: SIGTERM}}", 28, "", id="a version before the table"),
        pytest.param("{lifecycle: {stopSignal: SIGTERM}}", 39, "", id="a version after the table"),
        pytest.param("{lifecycle: {stopsignal: SIGTERM}}", 28, "lifecycle.stopsignal (did you mean stopSignal?)", id="unknown to all versions"),
    ],
)  # fmt: skip
def test_a_field_of_another_version_is_unknown_and_said_to_be(field: str, minor: int | None, hint: str) -> None:
    text = f"apiVersion: v1\nkind: Pod\nspec: {{containers: [{field}]}}"
    assert found(text, minor) == ([f"unknown field spec.containers[0].{hint}"] if hint else [])


def test_a_field_that_went_is_unknown_from_then_on() -> None:
    text = "apiVersion: v1\nkind: Pod\nspec: {resourceClaims: [{name: a, source: {}}], workloadRef: {}}"
    assert found(text, 30) == ["unknown field spec.workloadRef (known from 1.35 on up to 1.35)"]
    assert found(text, 35) == ["unknown field spec.resourceClaims[0].source (known up to 1.30)"]


def test_a_kind_that_a_version_does_not_serve_is_read_as_in_the_others() -> None:
    text = "apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\nkind: FlowSchema\nspec: {%s: 1}"
    assert found(text % "matchingPrecedence", 36) == []
    assert found(text % "precedence", 36) == ["unknown field spec.precedence (did you mean matchingPrecedence?)"]


def test_all_unknown_fields_are_found_in_order_and_long_ones_cut() -> None:
    long = "x" * 10_000
    spec = {"b": 1, "containers": [{"c": 1}, {long: 1}]}
    _, problems = decoded({"apiVersion": "v1", "kind": "Pod", "spec": spec, "a": None})
    fields = ["spec.b", "spec.containers[0].c", f"spec.containers[1].{'x' * 79}…", "a"]
    assert [str(each) for each in problems] == [f"unknown field {each}" for each in fields]


RESOURCES = {
    "a container's request": ("v1", "Pod", "spec: {containers: [{resources: {requests: {cpu: 1, memroy: 1Gi}}}]}", "spec.containers[0].resources.requests.memroy (did you mean memory?)"),
    "a limit of an init container": ("v1", "Pod", "spec: {initContainers: [{resources: {limits: {CPU: 1}}}]}", "spec.initContainers[0].resources.limits.CPU (did you mean cpu?)"),
    "an extended resource without a domain": ("v1", "Pod", "spec: {containers: [{resources: {limits: {gpu: 1}}}]}", "spec.containers[0].resources.limits.gpu"),
    "a resource of quotas": ("v1", "Pod", "spec: {containers: [{resources: {limits: {requests.example.com/gpu: 1}}}]}", "spec.containers[0].resources.limits[requests.example.com/gpu]"),
    "a name that is not qualified": ("v1", "Pod", "spec: {containers: [{resources: {limits: {a/b/c: 1}}}]}", "spec.containers[0].resources.limits[a/b/c]"),
    "storage for a container": ("v1", "Pod", "spec: {containers: [{resources: {requests: {storage: 1Gi}}}]}", "spec.containers[0].resources.requests.storage"),
    "a container of a template": ("apps/v1", "Deployment", "spec: {template: {spec: {containers: [{resources: {requests: {mem: 1Gi}}}]}}}", "spec.template.spec.containers[0].resources.requests.mem (did you mean memory?)"),
    "the pod as a whole": ("v1", "Pod", "spec: {resources: {requests: {ephemeral-storage: 1Gi}}}", "spec.resources.requests.ephemeral-storage"),
    "overhead": ("v1", "Pod", "spec: {overhead: {memroy: 1Gi}}", "spec.overhead.memroy (did you mean memory?)"),
    "the overhead of a RuntimeClass": ("node.k8s.io/v1", "RuntimeClass", "overhead: {podFixed: {cpus: 1}}", "overhead.podFixed.cpus (did you mean cpu?)"),
    "a quota": ("v1", "ResourceQuota", "spec: {hard: {request.cpu: 1, pods: 1}}", "spec.hard[request.cpu] (did you mean requests.cpu?)"),
    "a limit range": ("v1", "LimitRange", "spec: {limits: [{type: Container, default: {memroy: 1Gi}}]}", "spec.limits[0].default.memroy (did you mean memory?)"),
    "a limit range of claims": ("v1", "LimitRange", "spec: {limits: [{type: PersistentVolumeClaim, max: {storag: 1Gi}}]}", "spec.limits[0].max.storag (did you mean storage?)"),
    "a claim": ("v1", "PersistentVolumeClaim", "spec: {resources: {requests: {storge: 1Gi}}}", "spec.resources.requests.storge (did you mean storage?)"),
    "a claim made with its pod": ("v1", "Pod", "spec: {volumes: [{ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storge: 1Gi}}}}}}]}", "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storge (did you mean storage?)"),
    "a volume": ("v1", "PersistentVolume", "spec: {capacity: {storage: 1Gi, memory: 1Gi}}", "spec.capacity.memory"),
}  # fmt: skip


@pytest.mark.parametrize("name", RESOURCES)
def test_a_resource_that_the_validation_does_not_take_is_unknown(name: str) -> None:
    version, kind, rest, expected = RESOURCES[name]
    text = f"apiVersion: {version}\nkind: {kind}\n{rest}"
    assert found(text) == found(text, 36) == [f"unknown resource {expected}"]


@pytest.mark.parametrize(
    ("version", "kind", "rest"),
    [
        pytest.param("v1", "Pod", "spec: {containers: [{resources: {requests: {cpu: 1, memory: 1, ephemeral-storage: 1, hugepages-2Mi: 1, example.com/gpu: 1, kubernetes.io/batch-cpu: 1}, limits: null}}]}", id="resources of containers"),
        pytest.param("v1", "Pod", "spec: {resources: {requests: {cpu: 1, hugepages-1Gi: 1}}}", id="resources of a pod"),
        pytest.param("v1", "ResourceQuota", "spec: {hard: {cpu: 1, limits.memory: 1, requests.storage: 1, requests.hugepages-2Mi: 1, count/deployments.apps: 1, requests.example.com/gpu: 1, services.nodeports: 1, gold.storageclass.storage.k8s.io/requests.storage: 1}}", id="a quota"),
        pytest.param("v1", "LimitRange", "spec: {limits: [{type: Container, max: {cpu: 1, example.com/gpu: 1}}, {type: PersistentVolumeClaim, min: {storage: 1}}, {type: example.com/Thing, max: {pods: 1}}, {max: {storage: 1}}]}", id="a limit range"),
        pytest.param("v1", "PersistentVolumeClaim", "spec: {resources: {requests: {storage: 1, iops: 1}, limits: {storge: 1}}}", id="a claim with storage may have more"),
        pytest.param("apps/v1", "StatefulSet", "spec: {volumeClaimTemplates: [{spec: {resources: {requests: {storge: 1}}}}]}", id="templates of claims, which not every version looks into"),
    ],
)  # fmt: skip
def test_resources_that_the_validation_takes_are_known(version: str, kind: str, rest: str) -> None:
    assert found(f"apiVersion: {version}\nkind: {kind}\n{rest}") == []


def test_resources_of_a_pod_are_not_looked_at_where_the_api_server_drops_them() -> None:
    text = "apiVersion: v1\nkind: Pod\nspec: {resources: {limits: {memroy: 1Gi}}}"
    assert found(text, 33) == []
    assert found(text, 34) == ["unknown resource spec.resources.limits.memroy (did you mean memory?)"]


def test_a_limit_range_has_types_of_its_own() -> None:
    text = "apiVersion: v1\nkind: LimitRange\nspec: {limits: [{type: container}]}"
    assert found(text) == ['unknown limit type spec.limits[0].type "container" (did you mean Container?)']


TYPES = {
    "a text for a number": ("apps/v1", "Deployment", "spec: {replicas: '3'}", "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"),
    "a fraction": ("apps/v1", "Deployment", "spec: {replicas: 1.5}", "cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
    "too large a number": ("apps/v1", "Deployment", "spec: {replicas: 2147483648}", "cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32"),
    "too large a long number": ("v1", "Pod", "spec: {terminationGracePeriodSeconds: 1e30}", "cannot unmarshal number 1e+30 into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64"),
    "a number for a boolean": ("v1", "Pod", "spec: {hostNetwork: 1}", "cannot unmarshal number into Go struct field PodSpec.spec.hostNetwork of type bool"),
    "a boolean for a number": ("apps/v1", "Deployment", "spec: {replicas: true}", "cannot unmarshal bool into Go struct field DeploymentSpec.spec.replicas of type int32"),
    "a text for a float": ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "spec: {versions: [{schema: {openAPIV3Schema: {maximum: '1'}}}]}", "cannot unmarshal string into Go struct field JSONSchemaProps.spec.versions[0].schema.openAPIV3Schema.maximum of type float64"),
    "a boolean as an annotation": ("v1", "Pod", "metadata: {annotations: {a.b/c: true}}", "cannot unmarshal bool into Go struct field ObjectMeta.metadata.annotations[a.b/c] of type string"),
    "a number as a variable": ("v1", "Pod", "spec: {containers: [{env: [{name: A, value: 1}]}]}", "cannot unmarshal number into Go struct field EnvVar.spec.containers[0].env[0].value of type string"),
    "a number as an argument": ("v1", "Pod", "spec: {containers: [{args: [a, 1]}]}", "cannot unmarshal number into Go struct field Container.spec.containers[0].args[1] of type string"),
    "a map for a list": ("v1", "Pod", "spec: {containers: {name: a}}", "cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"),
    "a list for a map": ("v1", "Pod", "spec: {nodeSelector: [a]}", "cannot unmarshal array into Go struct field PodSpec.spec.nodeSelector of type map[string]string"),
    "a text for a struct": ("v1", "Pod", "metadata: a", "cannot unmarshal string into Go struct field Pod.metadata of type v1.ObjectMeta"),
    "an amount": ("v1", "Pod", "spec: {overhead: {cpu: 1 core}}", "spec.overhead.cpu: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
    "an empty amount": ("v1", "Pod", "spec: {overhead: {cpu: ''}}", "spec.overhead.cpu: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
    "a boolean as an amount": ("v1", "Pod", "spec: {overhead: {cpu: true}}", "spec.overhead.cpu: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
    "a boolean for an int or a string": ("v1", "Service", "spec: {ports: [{targetPort: true}]}", "cannot unmarshal bool into Go struct field ServicePort.spec.ports[0].targetPort of type int32"),
    "a fraction for an int or a string": ("policy/v1", "PodDisruptionBudget", "spec: {minAvailable: 0.5}", "cannot unmarshal number 0.5 into Go struct field PodDisruptionBudgetSpec.spec.minAvailable of type int32"),
    "a date": ("v1", "Pod", "metadata: {creationTimestamp: 2020-01-01}", 'metadata.creationTimestamp: parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00"'),
    "a day that isn't": ("v1", "Pod", "metadata: {creationTimestamp: '2021-02-29T00:00:00Z'}", 'metadata.creationTimestamp: parsing time "2021-02-29T00:00:00Z" as "2006-01-02T15:04:05Z07:00"'),
    "a number as a time": ("v1", "Pod", "metadata: {creationTimestamp: 1}", "cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string"),
    "a time without microseconds": ("coordination.k8s.io/v1", "Lease", "spec: {renewTime: '2020-01-01T00:00:00Z'}", 'spec.renewTime: parsing time "2020-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00"'),
    "plain text as data": ("v1", "Secret", "data: {a: plain}", "data.a: illegal base64 data"),
    "a number as data": ("v1", "Secret", "data: {a: 1}", "cannot unmarshal number into Go struct field Secret.data.a of type []uint8"),
    "a status": ("v1", "Pod", "status: [1]", "cannot unmarshal array into Go struct field Pod.status of type v1.PodStatus"),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_a_value_of_another_type_is_rejected(name: str) -> None:
    version, kind, rest, expected = TYPES[name]
    assert found(f"apiVersion: {version}\nkind: {kind}\n{rest}", 33) == [expected]


CONTAINER = "apiVersion: v1\nkind: Pod\nspec: {containers: [{%s}]}"


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param("command: null, name: a", {"name": "a"}, id="null for a field"),
        pytest.param("args: [a, null]", {"args": ["a", ""]}, id="null in a list of texts"),
        pytest.param("env: [null, {value: null}]", {"env": [{}, {}]}, id="null in a list of structs"),
        pytest.param("resources: {limits: {cpu: null}}", {"resources": {"limits": {"cpu": "0"}}}, id="null as an amount"),
        pytest.param("resources: {limits: {cpu: 1, memory: 1.5, pods: ' 2Gi '}}", {"resources": {"limits": {"cpu": 1, "memory": 1.5, "pods": "2Gi"}}}, id="amounts"),
        pytest.param("resources: {limits: {cpu: m, memory: '-'}}", {"resources": {"limits": {"cpu": "0", "memory": "0"}}}, id="amounts without digits"),
        pytest.param("livenessProbe: {periodSeconds: 1.0, timeoutSeconds: 1e1}", {"livenessProbe": {"periodSeconds": 1, "timeoutSeconds": 10}}, id="whole numbers"),
        pytest.param("livenessProbe: {httpGet: {port: '80'}}", {"livenessProbe": {"httpGet": {"port": "80"}}}, id="a text for an int or a string"),
        pytest.param("livenessProbe: {httpGet: {port: 80.0}}", {"livenessProbe": {"httpGet": {"port": 80}}}, id="a number for an int or a string"),
        pytest.param("image: 2020-01-01", {"image": "2020-01-01"}, id="a date is a text"),
    ],
)  # fmt: skip
def test_what_the_decoder_takes_has_the_types_of_the_api(field: str, expected: dict[str, Any]) -> None:
    document, problems = decoded(parse_document(CONTAINER % field, "test"))
    container = document["spec"]["containers"][0]
    assert [each for each in problems if "unknown resource" not in each.message] == []
    # 1.0 and 1 differ here.
    assert json.dumps(container) == json.dumps(expected)


@pytest.mark.parametrize(
    "time",
    [
        "2020-02-29T23:59:59Z",
        "2020-01-01T1:00:00+24:60",
        "2020-01-01T01:00:00.123456789-01:00",
        "2020-01-01T01:00:00,5Z",
        "0000-02-29T00:00:00Z",
    ],
)
def test_times_are_read_as_by_go(time: str) -> None:
    assert found(f"apiVersion: v1\nkind: Pod\nmetadata: {{creationTimestamp: '{time}'}}") == []


def test_times_may_have_microseconds() -> None:
    text = "apiVersion: coordination.k8s.io/v1\nkind: Lease\nspec: {renewTime: '2020-01-01T00:00:00.%sZ'}"
    assert found(text % "123456") == []
    assert len(found(text % "1234567")) == 1


def test_data_may_be_base64_with_line_breaks_or_a_list_of_bytes() -> None:
    document, problems = decoded(
        parse_document('apiVersion: v1\nkind: Secret\ndata: {a: "YW\\nJj", b: [97], c: null}', "test")
    )
    assert problems == []
    assert document["data"] == {"a": "YWJj", "b": "YQ==", "c": ""}


def test_values_with_problems_are_left_out() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: 1\nspec: {nodeName: 1, x: 1, containers: [1, {name: a}], nodeSelector: {a: 1}}"
    document, problems = decoded(parse_document(text, "test"))
    assert document == {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [{}, {"name": "a"}], "nodeSelector": {"a": ""}},
    }
    assert [each.path for each in problems] == [
        ("metadata",),
        ("spec", "nodeName"),
        ("spec", "x"),
        ("spec", "containers", 0),
        ("spec", "nodeSelector", "a"),
    ]


def test_custom_resources_are_returned_as_they_are() -> None:
    given = {"apiVersion": "example.com/v1", "kind": "Thing", "spec": None}
    assert decoded(given) == (given, [])


def test_a_schema_that_is_nested_too_deeply_is_let_through() -> None:
    schema: dict[str, Any] = {}
    for _ in range(2_000):
        schema = {"not": schema}
    versions = [{"schema": {"openAPIV3Schema": schema}}]
    given = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"versions": versions},
    }
    assert decoded(given)[1] == []


def test_the_table_is_whole() -> None:
    api = api_types()
    assert api.minors == (29, 38)
    assert {f"{version} {kind}" for kind, (version, *_) in UNKNOWN_FIELDS.items()} <= set(api.kinds)
    fields = {name: fields_of(api, name) for name in api.types}
    named = [each.partition(" ")[0] for each in api.kinds.values()]
    named += [each.type_name for own in fields.values() for each in own.values()]
    names = {each.replace("[]", "").replace("{}", "") for each in named}
    assert names - set(SCALARS) <= set(api.types)
