"""An example for each rule of the gate: a change that breaks it, and the same change mended.

``tests/unit/cli/test_rule_examples.py`` puts both to ``fixtures/check/rules/cluster.yaml``, which the commands call
``cluster.yaml``; the pages in ``docs/rules/`` show what is printed then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kpreempt.gate_rules import RuleId

_YAML = "yaml"
_SHELL = "sh"


class Example(NamedTuple):
    """``story`` is the situation, in a sentence; ``fails`` breaks the rule, and ``fix`` does not.

    Both are manifests, or commands where the ``language`` is that of a shell; ``files`` are those that the commands
    name, besides ``cluster.yaml``. ``options`` are those of ``check`` that the rule needs.
    """

    story: str
    fails: str
    fix: str
    options: tuple[str, ...] = ()
    language: str = _YAML
    files: Mapping[str, str] = {}

    @property
    def is_of_commands(self) -> bool:
        """Whether it is commands, and no manifests."""
        return self.language == _SHELL


def _workload(cpu: str, *, namespace: str = "shop", replicas: int = 1, more: str = "") -> str:
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


def _web(
    *,
    label: str = "app: web",
    strategy: str = "{rollingUpdate: {maxSurge: 0}}",
    paused: str = "false",
    size: str = "  replicas: 2\n",
    more: str = "",
) -> str:
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


_ROOM_FOR_IT = """\
apiVersion: v1
kind: Node
metadata:
  name: n4
status:
  allocatable: {cpu: "2", memory: 4Gi, pods: "110"}
"""


def _budget(least: str, *, api: str = "policy/v1", name: str = "web-pods") -> str:
    return f"""\
apiVersion: {api}
kind: PodDisruptionBudget
metadata:
  name: {name}
  namespace: shop
spec:
  minAvailable: {least}
  selector:
    matchLabels: {{app: web}}
"""


def _report_budget(amount: str, *, api: str = "policy/v1", selector: str = "{matchLabels: {app: report}}") -> str:
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


def _default_class(is_default: str) -> str:
    return f"""\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: standard
value: 500
globalDefault: {is_default}
"""


def _quota(pods: str) -> str:
    return f"""\
apiVersion: v1
kind: ResourceQuota
metadata:
  name: one
  namespace: tight
spec:
  hard: {{pods: "{pods}"}}
"""


def _restricted_namespace(level: str) -> str:
    return f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: tight
  labels: {{pod-security.kubernetes.io/enforce: {level}}}
"""


def _web_pod(owner: str) -> str:
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


def _scaled_with_budget(amount: str) -> str:
    return (
        _workload("100m", replicas=2)
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


def _autoscaler(most: int) -> str:
    return f"""\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: web
  namespace: shop
spec:
  maxReplicas: {most}
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
"""


def _bare_pod(placed: str) -> str:
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: notes, namespace: shop}}\nspec: {{{placed}}}\n"


def _replica_set(labels: str) -> str:
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


def _dump(annotation: str, *items: str) -> str:
    """A list as ``kpreempt snapshot`` writes it, with what it says of itself."""
    kinds = ("PodDisruptionBudget", "PriorityClass", "ResourceQuota", "Pod")
    listed = ", ".join(f'"{kind}"' for kind in kinds if kind not in annotation)
    said = "".join(f"    {each}\n" for each in (f"kpreempt.io/listed: '[{listed}]'", annotation) if each)
    objects = "".join(f"- {item}\n" for item in items)
    return f"apiVersion: v1\nkind: List\nmetadata:\n  annotations:\n{said}items:\n{objects}"


_NODE = (
    "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '2', memory: 4Gi, pods: '110'},"
    " nodeInfo: {kubeletVersion: v1.36.2}}}"
)
_RUNNING = (
    "{apiVersion: v1, kind: Pod, metadata: {name: db-0, namespace: shop}, spec: {nodeName: n1, priority: 0,"
    " containers: [{name: db, image: registry.example/db:1, resources: {requests: {cpu: 1500m}}}]}}"
)
_HIGH = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}"
_PREEMPTS = _workload("1500m", more="priorityClassName: high\nnodeSelector: {zone: a}")
_FITS = _workload("100m", more="priorityClassName: high\nnodeSelector: {zone: a}")
_FULL = "The nodes of zone a are full of `Deployment shop/web`, whose priority is lower"
_NEWEST_FIRST = '''\
from kpreempt.plugins import PreemptionPlugin


class NewestFirst(PreemptionPlugin):
    """On nodes of zone b the room is for whoever comes last."""

    def may_evict(self, state, pod, victim, node_info):
        return node_info.node.metadata.labels.get("zone") == "b"
'''
_WITH_CLAIM = "volumes: [{name: notes, persistentVolumeClaim: {claimName: notes}}]"
_WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: blue, namespace: shop}\n"
_CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: archive}
spec: {accessModes: [ReadWriteOnce], storageClassName: disk, resources: {requests: {storage: 10Gi}}}
"""


def _namespace(name: str) -> str:
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"


def _service(selector: str) -> str:
    head = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n"
    return f"{head}spec:\n  selector: {{{selector}}}\n  ports: [{{port: 80}}]\n"


_NAMESPACES = _namespace("shop") + "---\n" + _namespace("batch")


EXAMPLES: dict[RuleId, Example] = {
    RuleId.MAX_PDB_VIOLATIONS: Example(
        f"{_FULL}, and whose budget allows no disruption. The pod preempts one of them; with less to ask for it fits.",
        _PREEMPTS,
        _FITS,
    ),
    RuleId.MAX_VICTIMS: Example(f"{_FULL}, and nobody is to be evicted.", _PREEMPTS, _FITS, ("--max-victims", "0")),
    RuleId.MAX_VICTIMS_PER_WORKLOAD: Example(
        f"{_FULL}, and no workload is to lose a pod.", _PREEMPTS, _FITS, ("--max-victims-per-workload", "0")
    ),
    RuleId.FORBID_VICTIMS: Example(
        f"{_FULL}, and the pods of the namespace are protected.",
        _PREEMPTS,
        _FITS,
        ("--forbid-victims", "namespace=shop"),
    ),
    RuleId.REQUIRE_SCHEDULABLE: Example(
        "No node has three CPUs, so that the pod stays pending.", _workload("3"), _workload("100m")
    ),
    RuleId.MAX_CASCADE_DEPTH: Example(
        f"{_FULL}. The pod that takes the place of the victim preempts another one in zone b.", _PREEMPTS, _FITS
    ),
    RuleId.MAX_PENDING: Example(f"{_FULL}. The last pod that is evicted for it has no place left.", _PREEMPTS, _FITS),
    RuleId.MAX_STRANDED: Example(
        f"{_FULL}. In the end the only pod behind `Service batch/report` is gone.", _PREEMPTS, _FITS
    ),
    RuleId.LOST_PODS: Example(
        "On node n1 runs `Pod batch/notebook`, which no controller owns. It is preempted, and nothing makes it again.",
        _workload("500m", more="priorityClassName: high\nnodeSelector: {kubernetes.io/hostname: n1}"),
        _workload("100m", more="priorityClassName: high\nnodeSelector: {kubernetes.io/hostname: n1}"),
    ),
    RuleId.MAX_DELETIONS: Example(
        "`Deployment batch/report` and `Pod batch/notebook` run in the namespace, and are not named.",
        "kpreempt check --snapshot cluster.yaml --delete namespace/batch\n",
        "kpreempt check --snapshot cluster.yaml --delete namespace/batch \\\n"
        "  --delete deployment/batch/report --delete service/batch/report --delete pod/batch/notebook\n",
        language=_SHELL,
    ),
    RuleId.NAMESPACE_DELETION: Example(
        "The new render lacks `Namespace batch`. `Deployment batch/report` goes with it and was never in a manifest.",
        "kpreempt check -f new.yaml --base old.yaml --prune --snapshot cluster.yaml\n",
        "kpreempt check -f new.yaml --base old.yaml --snapshot cluster.yaml\n",
        language=_SHELL,
        files={"old.yaml": _NAMESPACES, "new.yaml": _namespace("shop")},
    ),
    RuleId.VOLUME_DELETION: Example(
        "The new render lacks the claim `data`, which is bound.",
        "kpreempt check -f new.yaml --base old.yaml --prune --snapshot cluster.yaml\n",
        "kpreempt check -f new.yaml --base old.yaml --prune --snapshot cluster.yaml \\\n  --delete pvc/archive/data\n",
        language=_SHELL,
        files={"old.yaml": _namespace("archive") + "---\n" + _CLAIM, "new.yaml": _namespace("archive")},
    ),
    RuleId.SERVICE_OUTAGE: Example(
        "A mistyped selector: `Service shop/web` no longer selects the pods of `Deployment shop/web`.",
        _service("app: wbe"),
        _service("app: web"),
    ),
    RuleId.SCALED_TO_ZERO: Example(
        "`Deployment shop/web` has two pods.",
        _web(size="  replicas: 0\n"),
        _web(),
    ),
    RuleId.QUOTA_REFUSALS: Example(
        "The ResourceQuota of the namespace allows one pod.",
        _workload("100m", namespace="tight", replicas=2),
        _workload("100m", namespace="tight"),
    ),
    RuleId.FORBID_LOOPS: Example(
        "kube-scheduler's own preemption always settles, for a victim always has the lower priority. This plugin"
        " takes any victim in zone b, where the one node has room for one of these pods.",
        "kpreempt check -f change.yaml --snapshot cluster.yaml --plugin newest.py:NewestFirst\n",
        "kpreempt check -f mended.yaml --snapshot cluster.yaml --plugin newest.py:NewestFirst\n",
        language=_SHELL,
        files={
            "change.yaml": _workload("1500m", more="nodeSelector: {zone: b}"),
            "mended.yaml": _workload("100m", more="nodeSelector: {zone: b}"),
            "newest.py": _NEWEST_FIRST,
        },
    ),
    RuleId.MIN_READY: Example(
        "`Deployment shop/web` has two ready pods. With Recreate both go before the first new one comes.",
        _web(strategy="{type: Recreate}"),
        _web(),
    ),
    RuleId.APPLY_REFUSED: Example(
        "`Deployment shop/web` runs, and the selector of a Deployment cannot be changed.",
        _web(label="tier: web"),
        _web(),
    ),
    RuleId.REMOVED_API: Example(
        "The cluster runs 1.36.",
        _report_budget("maxUnavailable: 1", api="policy/v1beta1"),
        _report_budget("maxUnavailable: 1"),
    ),
    RuleId.BLOCKED_DRAINS: Example(
        "`Deployment batch/report` has one pod, and the PDB does not allow it to be evicted.",
        _report_budget("minAvailable: 1"),
        _report_budget("maxUnavailable: 1"),
    ),
    RuleId.PDB_SELECTOR: Example(
        "The selector is mistyped: the pods have the label `app: report`.",
        _report_budget("maxUnavailable: 1", selector="{matchLabels: {app: reprot}}"),
        _report_budget("maxUnavailable: 1"),
    ),
    RuleId.PDB_BLOCKS_AT_HPA_MINIMUM: Example(
        "A HorizontalPodAutoscaler runs one pod at night, and the PDB does not allow it to be evicted.",
        _scaled_with_budget("minAvailable: 1"),
        _scaled_with_budget("maxUnavailable: 1"),
        ("--autoscaled", "max", "--severity", "pdb-blocks-at-hpa-minimum=error"),
    ),
    RuleId.PDB_WEAKENED: Example(
        "The PDB `shop/web` keeps two pods ready, and the change makes it keep one.",
        _budget("1", name="web"),
        _budget("2", name="web"),
    ),
    RuleId.PRIORITY_LOWERED: Example(
        "The pods of `Deployment shop/web` have priority 0, and the class `low` has -100.",
        _web(more="      priorityClassName: low\n"),
        _web(),
    ),
    RuleId.PRIORITY_CLASS_IN_USE: Example(
        "`Deployment batch/report` names the class `low`; no workload names `high`.",
        "kpreempt check --snapshot cluster.yaml --delete priorityclass/low\n",
        "kpreempt check --snapshot cluster.yaml --delete priorityclass/high\n",
        language=_SHELL,
    ),
    RuleId.DEFAULT_PRIORITY_CHANGED: Example(
        "`Deployment shop/web` names no PriorityClass. With a default class, its next pods have priority 500.",
        _default_class("true"),
        _default_class("false"),
    ),
    RuleId.QUOTA_LOOSENED: Example(
        "The ResourceQuota of the namespace allows one pod.",
        _quota("10"),
        _quota("1"),
    ),
    RuleId.NAMESPACE_RELABELED: Example(
        "Pod Security Admission enforces the level `restricted` in the namespace.",
        _restricted_namespace("privileged"),
        _restricted_namespace("restricted"),
    ),
    RuleId.OWNER_REMOVED: Example(
        "`ReplicaSet shop/web-1` controls the pod, and would replace it.",
        _web_pod(""),
        _web_pod(
            "  ownerReferences:\n"
            "  - {apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: r-web, controller: true}\n"
        ),
    ),
    RuleId.DRAIN_BLOCKED: Example(
        "The budget `shop/web` wants both pods of its Deployment, one of which is on `n2`; there is room on `n4`.",
        "kpreempt drain n2 --snapshot cluster.yaml --with node.yaml\n",
        "kpreempt drain n2 --snapshot cluster.yaml --with node.yaml --with budget.yaml\n",
        language=_SHELL,
        files={"node.yaml": _ROOM_FOR_IT, "budget.yaml": _budget("1", name="web")},
    ),
    RuleId.AUTOSCALED_REPLICAS: Example(
        "A HorizontalPodAutoscaler has set two replicas, and the manifest says one.",
        _web(size="  replicas: 1\n"),
        _web(size=""),
        ("--severity", "autoscaled-replicas=error"),
    ),
    RuleId.DUPLICATE_OBJECTS: Example(
        "A copy of the Deployment with one replica is left in the file: it is scaled to 1, then back to 2.",
        _web(size="  replicas: 1\n") + "---\n" + _web(),
        _web(),
    ),
    RuleId.AUTOSCALED_MAXIMUM: Example(
        "A HorizontalPodAutoscaler may scale `Deployment shop/web` to five pods then, and zone a has room for two.",
        _web() + "---\n" + _autoscaler(5),
        _web() + "---\n" + _autoscaler(2),
        ("--severity", "autoscaled-maximum=error"),
    ),
    RuleId.ROLLOUT_STUCK: Example(
        "A Deployment that is paused keeps its pods; so does a StatefulSet with a partition or OnDelete.",
        _web(paused="true"),
        _web(),
        ("--severity", "rollout-stuck=error"),
    ),
    RuleId.VOLUME_ATTACHED_ELSEWHERE: Example(
        "No node has room for two of these pods, and the volume of `PersistentVolumeClaim shop/notes` can be attached"
        " to one node at a time.",
        _workload("400m", replicas=2, more=_WITH_CLAIM),
        _workload("400m", more=_WITH_CLAIM),
    ),
    RuleId.BYPASSES_SCHEDULER: Example(
        "Half a CPU is free on node `n3`. Its kubelet rejects the pod, and the ReplicaSet creates another one, over"
        " and over.",
        _workload("1500m", more="nodeName: n3"),
        _workload("500m", more="nodeSelector: {zone: b}"),
    ),
    RuleId.ADOPTED_PODS: Example(
        "No controller owns `Pod batch/notebook`. The selector of this ReplicaSet matches it, and it wants no pods.",
        _replica_set("app: notebook"),
        _replica_set("app: notebook, team: data"),
    ),
    RuleId.CREATED_NODES: Example(
        "The pod fits on the nodes of the cluster. The Node is no machine, and nothing runs there.",
        f"{_ROOM_FOR_IT}---\n{_workload('400m')}",
        _workload("400m"),
    ),
    RuleId.MAX_SNAPSHOT_AGE: Example(
        "The dump was taken the day before. A new one is taken by `kpreempt snapshot --to new.yaml`.",
        "kpreempt check -f change.yaml --snapshot old.yaml --max-snapshot-age 1h --now 2026-11-21T00:30:00Z\n",
        "kpreempt check -f change.yaml --snapshot new.yaml --max-snapshot-age 1h --now 2026-11-21T00:30:00Z\n",
        language=_SHELL,
        files={
            "change.yaml": _workload("100m"),
            "old.yaml": _dump('kpreempt.io/taken-at: "2026-11-20T00:00:00Z"', _NODE),
            "new.yaml": _dump('kpreempt.io/taken-at: "2026-11-21T00:00:00Z"', _NODE),
        },
    ),
    RuleId.BUDGETS_UNREADABLE: Example(
        "The account that took the dump might not list budgets. One that has the rights of `deploy/cluster-role.yaml`"
        " may.",
        "kpreempt check -f change.yaml --snapshot without-rights.yaml --max-victims 1 --lost-pods 1\n",
        "kpreempt check -f change.yaml --snapshot with-rights.yaml --max-victims 1 --lost-pods 1\n",
        language=_SHELL,
        files={
            "change.yaml": _workload("1500m", more="priorityClassName: high"),
            "without-rights.yaml": _dump(
                "kpreempt.io/unread: '{\"PodDisruptionBudget\": 403}'", _NODE, _HIGH, _RUNNING
            ),
            "with-rights.yaml": _dump("", _NODE, _HIGH, _RUNNING),
        },
    ),
    RuleId.ABSENT_KINDS: Example(
        "The dump has no PodDisruptionBudget, and the change evicts a pod that one may protect. In the second run the"
        " user says that the cluster has none.",
        "kpreempt check -f change.yaml --snapshot dump.yaml --max-victims 1 --lost-pods 1 --assume-none quota\n",
        "kpreempt check -f change.yaml --snapshot dump.yaml --max-victims 1 --lost-pods 1 --assume-none quota \\\n"
        "  --assume-none pdb\n",
        language=_SHELL,
        files={
            "change.yaml": _workload("1500m", more="priorityClassName: high"),
            "dump.yaml": "\n---\n".join((_NODE, _HIGH, _RUNNING)) + "\n",
        },
    ),
    RuleId.OBJECTS_SET_ASIDE: Example(
        "An object of the dump is damaged, and is set aside.",
        "kpreempt check -f change.yaml --snapshot cluster.yaml --snapshot damaged.yaml --skip-bad-objects\n",
        "kpreempt check -f change.yaml --snapshot cluster.yaml --snapshot mended.yaml --skip-bad-objects\n",
        language=_SHELL,
        files={
            "change.yaml": _workload("100m"),
            "damaged.yaml": _bare_pod("nodeName: 3"),
            "mended.yaml": _bare_pod("nodeName: n3"),
        },
    ),
    RuleId.FIELDS_NOT_MODELLED: Example(
        "A HorizontalPodAutoscaler changes, and the Deployment that it scales is not in the change to be simulated.",
        _autoscaler(2),
        _web() + "---\n" + _autoscaler(2),
    ),
    RuleId.CUSTOM_RESOURCES: Example(
        "The dump has no Widgets, so that nothing says whether this one is new.",
        "kpreempt check -f change.yaml --snapshot cluster.yaml --severity custom-resources=error\n",
        "kpreempt check -f change.yaml --snapshot cluster.yaml --snapshot widgets.yaml"
        " --severity custom-resources=error\n",
        language=_SHELL,
        files={"change.yaml": _WIDGET, "widgets.yaml": _WIDGET},
    ),
    RuleId.OUTCOME_UNCERTAIN: Example(
        "Chance leaves more outcomes than were looked at.",
        "kpreempt check -f change.yaml --snapshot cluster.yaml --worst-case --max-plays 1\n",
        "kpreempt check -f change.yaml --snapshot cluster.yaml --worst-case --max-plays 100\n",
        language=_SHELL,
        files={"change.yaml": _workload("100m", replicas=3)},
    ),
}
