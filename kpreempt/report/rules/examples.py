"""An example for each rule of the gate: a change that breaks it, and the same change mended.

``tests/unit/cli/test_rule_examples.py`` puts those that are manifests to a cluster.
"""

from __future__ import annotations

from typing import NamedTuple

from kpreempt.gate_rules import RuleId

_YAML = "yaml"
_SHELL = "sh"


class Example(NamedTuple):
    """``story`` is the situation, in a sentence; ``fails`` breaks the rule, and ``fix`` does not.

    Both are manifests, or commands where the ``language`` is that of a shell. ``options`` are those of ``check`` that
    the rule needs.
    """

    story: str
    fails: str
    fix: str
    options: tuple[str, ...] = ()
    language: str = _YAML


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
"""


def _budget(least: str, *, api: str = "policy/v1") -> str:
    return f"""\
apiVersion: {api}
kind: PodDisruptionBudget
metadata:
  name: web-pods
  namespace: shop
spec:
  minAvailable: {least}
  selector:
    matchLabels: {{app: web}}
"""


_PREEMPTS = _workload("1500m", more="priorityClassName: high\nnodeSelector: {zone: a}")
_FITS = _workload("100m", more="priorityClassName: high\nnodeSelector: {zone: a}")
_FULL = "The nodes of zone a are full of `Deployment shop/web`, whose priority is lower"

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
        "`Deployment batch/report` runs in the namespace, and is not named.",
        "kpreempt check --delete namespace/batch\n",
        "kpreempt check --delete namespace/batch --delete deployment/batch/report\n",
        language=_SHELL,
    ),
    RuleId.QUOTA_REFUSALS: Example(
        "The ResourceQuota of the namespace allows one pod.",
        _workload("100m", namespace="tight", replicas=2),
        _workload("100m", namespace="tight"),
    ),
    RuleId.FORBID_LOOPS: Example(
        "Pods of two workloads can run on one node only, and each preempts the other where PriorityClasses change"
        " between them.",
        "kpreempt check -f both-on-one-node.yaml\n",
        "kpreempt check -f each-on-its-own-node.yaml\n",
        language=_SHELL,
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
        _budget("1", api="policy/v1beta1"),
        _budget("1"),
    ),
    RuleId.BLOCKED_DRAINS: Example(
        "`Deployment shop/web` has two pods, and the budget wants both.",
        _budget("2"),
        _budget("1"),
    ),
    RuleId.AUTOSCALED_REPLICAS: Example(
        "A HorizontalPodAutoscaler has set two replicas, and the manifest says one.",
        _web(size="  replicas: 1\n"),
        _web(size=""),
    ),
    RuleId.ROLLOUT_STUCK: Example(
        "A Deployment that is paused keeps its pods; so does a StatefulSet with a partition or OnDelete.",
        _web(paused="true"),
        _web(),
    ),
    RuleId.MAX_SNAPSHOT_AGE: Example(
        "The dump was taken yesterday.",
        "kpreempt check -f change.yaml --snapshot yesterday.json --max-snapshot-age 1h\n",
        "kpreempt snapshot --to now.json\nkpreempt check -f change.yaml --snapshot now.json --max-snapshot-age 1h\n",
        language=_SHELL,
    ),
    RuleId.BUDGETS_UNREADABLE: Example(
        "The account may not list budgets.",
        "kpreempt check -f change.yaml --as system:serviceaccount:ci:without-rights\n",
        "kubectl apply -f deploy/cluster-role.yaml\nkpreempt check -f change.yaml\n",
        language=_SHELL,
    ),
    RuleId.OBJECTS_SET_ASIDE: Example(
        "An object of the dump is damaged, and was set aside.",
        "kpreempt check -f change.yaml --snapshot damaged.yaml --skip-bad-objects\n",
        "kpreempt snapshot --to whole.json\nkpreempt check -f change.yaml --snapshot whole.json\n",
        language=_SHELL,
    ),
    RuleId.FIELDS_NOT_MODELLED: Example(
        "A custom resource is part of the change, and somebody who knows its controller says that it makes no pods.",
        "kpreempt check -f change.yaml\n",
        "kpreempt check -f change.yaml --waive 'fields-not-modelled=Widget shop/*'\n",
        language=_SHELL,
    ),
    RuleId.OUTCOME_UNCERTAIN: Example(
        "Chance leaves more outcomes than were looked at.",
        "kpreempt check -f change.yaml --worst-case --max-plays 10\n",
        "kpreempt check -f change.yaml --worst-case --max-plays 500\n",
        language=_SHELL,
    ),
}
