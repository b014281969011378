"""Manifests for the examples of the gate's rules, which run against ``fixtures/check/rules/cluster.yaml``."""

from __future__ import annotations


def workload(cpu: str, *, namespace: str = "shop", replicas: int = 1, more: str = "") -> str:
    """The Deployment ``shop/api``, with ``more`` lines in its pod template."""
    text = f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: api
  namespace: {namespace}
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app: api}}
  template:
    metadata:
      labels: {{app: api}}
    spec:
      containers:
      - name: api
        image: registry.example/api:2
        resources:
          requests: {{cpu: {cpu}}}
"""
    return text + "".join(f"      {line}\n" for line in more.splitlines())


def web(
    *,
    label: str = "app: web",
    strategy: str = "{rollingUpdate: {maxSurge: 0}}",
    paused: str = "false",
    size: str = "  replicas: 2\n",
    more: str = "",
) -> str:
    """A modified Deployment ``shop/web``, which the cluster has."""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
{size}  paused: {paused}
  strategy: {strategy}
  selector:
    matchLabels: {{{label}}}
  template:
    metadata:
      labels: {{app: web, tier: web}}
    spec:
      containers:
      - name: web
        image: registry.example/web:2
        resources:
          requests: {{cpu: 1500m}}
      nodeSelector: {{zone: a}}
{more}"""


EMPTY_NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: n4
status:
  allocatable: {cpu: "2", memory: 4Gi, pods: "110"}
"""


# A second pod of the Service batch/report.
SECOND_REPORT = """\
apiVersion: v1
kind: Pod
metadata: {name: report-too, namespace: batch, labels: {app: report}}
spec:
  nodeName: n1
  containers: [{name: report, image: registry.example/report:1}]
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
"""


def budget(minimum: str, *, api: str = "policy/v1", name: str = "web-pods") -> str:
    """A PodDisruptionBudget for the pods of ``shop/web``."""
    return f"""\
apiVersion: {api}
kind: PodDisruptionBudget
metadata:
  name: {name}
  namespace: shop
spec:
  minAvailable: {minimum}
  selector:
    matchLabels: {{app: web}}
"""


def report_budget(amount: str, *, api: str = "policy/v1", selector: str = "{matchLabels: {app: report}}") -> str:
    """A PodDisruptionBudget for the pod of ``batch/report``."""
    return f"""\
apiVersion: {api}
kind: PodDisruptionBudget
metadata:
  name: report
  namespace: batch
spec:
  {amount}
  selector: {selector}
"""


def default_class(is_default: str) -> str:
    """A PriorityClass that is the default or not."""
    return f"""\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: standard
value: 500
globalDefault: {is_default}
"""


def quota(pods: str) -> str:
    """The ResourceQuota of the namespace ``tight``."""
    return f"""\
apiVersion: v1
kind: ResourceQuota
metadata:
  name: one
  namespace: tight
spec:
  hard: {{pods: "{pods}"}}
"""


def restricted_namespace(level: str) -> str:
    """The namespace ``tight`` with a level of Pod Security Admission."""
    return f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: tight
  labels: {{pod-security.kubernetes.io/enforce: {level}}}
"""


def web_pod(owner: str) -> str:
    """A pod of ``shop/web``, with or without its owner."""
    return f"""\
apiVersion: v1
kind: Pod
metadata:
  name: web-1-a
  namespace: shop
  labels: {{app: web, pod-template-hash: '1'}}
{owner}spec:
  nodeName: n1
  containers:
  - name: web
    image: registry.example/web:1
    resources:
      requests: {{cpu: 1500m}}
"""


def scaled_with_budget(amount: str) -> str:
    """The Deployment ``shop/api``, its autoscaler and its PodDisruptionBudget."""
    return (
        workload("100m", replicas=2)
        + f"""\
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: api, namespace: shop}}
spec:
  minReplicas: 1
  maxReplicas: 2
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: api}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: api, namespace: shop}}
spec:
  {amount}
  selector: {{matchLabels: {{app: api}}}}
"""
    )


def autoscaler(maximum: int) -> str:
    """A HorizontalPodAutoscaler for ``shop/web``."""
    return f"""\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: web
  namespace: shop
spec:
  maxReplicas: {maximum}
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
"""


def bare_pod(spec: str) -> str:
    """The pod ``shop/notes``, which no controller owns."""
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: notes, namespace: shop}}\nspec: {{{spec}}}\n"


def replica_set(labels: str) -> str:
    """A ReplicaSet with a selector and without replicas."""
    return f"""\
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: notebooks
  namespace: batch
spec:
  replicas: 0
  selector:
    matchLabels: {{{labels}}}
  template:
    metadata:
      labels: {{{labels}}}
    spec:
      containers:
      - name: notebook
        image: registry.example/notebook:2
"""


def dump(annotation: str, *items: str) -> str:
    """A List as ``kpreempt snapshot`` writes it, with annotations about the snapshot."""
    kinds = ("PodDisruptionBudget", "PriorityClass", "ResourceQuota", "Pod")
    listed = ", ".join(f'"{kind}"' for kind in kinds if kind not in annotation)
    annotations = "".join(f"    {each}\n" for each in (f"kpreempt.io/listed: '[{listed}]'", annotation) if each)
    objects = "".join(f"- {item}\n" for item in items)
    return f"apiVersion: v1\nkind: List\nmetadata:\n  annotations:\n{annotations}items:\n{objects}"


NODE = (
    "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '2', memory: 4Gi, pods: '110'},"
    " nodeInfo: {kubeletVersion: v1.36.2}}}"
)
RUNNING = (
    "{apiVersion: v1, kind: Pod, metadata: {name: db-0, namespace: shop}, spec: {nodeName: n1, priority: 0,"
    " containers: [{name: db, image: registry.example/db:1, resources: {requests: {cpu: 1500m}}}]}}"
)
HIGH = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}"
PREEMPTS = workload("1500m", more="priorityClassName: high\nnodeSelector: {zone: a}")
FITS = workload("100m", more="priorityClassName: high\nnodeSelector: {zone: a}")
FULL = "The nodes of zone a are full of pods of `Deployment shop/web`, which have a lower priority"
NEWEST_FIRST = '''\
from kpreempt.plugins import PreemptionPlugin


class NewestFirst(PreemptionPlugin):
    """On nodes of zone b, the newest pod may evict any other."""

    def may_evict(self, state, pod, victim, node_info):
        return node_info.node.metadata.labels.get("zone") == "b"
'''
WITH_CLAIM = "volumes: [{name: notes, persistentVolumeClaim: {claimName: notes}}]"
WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: blue, namespace: shop}\n"
CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: archive}
spec: {accessModes: [ReadWriteOnce], storageClassName: disk, resources: {requests: {storage: 10Gi}}}
"""


def namespace(name: str) -> str:
    """A namespace."""
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"


def service(selector: str) -> str:
    """The Service ``shop/web`` with a selector."""
    head = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n"
    return f"{head}spec:\n  selector: {{{selector}}}\n  ports: [{{port: 80}}]\n"


NAMESPACES = namespace("shop") + "---\n" + namespace("batch")
