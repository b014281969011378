from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpreempt.scheduler_table import QUEUE_ALGORITHMS

ROOT = Path(__file__).parents[3]
CLUSTER = str(ROOT / "fixtures/demo/cluster.yaml")
API = str(ROOT / "fixtures/demo/api.yaml")
NOW = ["--now", "2026-11-21T03:12:00Z"]
ASK = ["explain", "-f", API, "--snapshot", CLUSTER, *NOW]


Kpreempt = Callable[..., Any]


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "COLUMNS": "80", **more}


@pytest.fixture
def names(kpreempt: Kpreempt) -> Callable[..., str]:
    """The nodes that an answer names, of a run that ends well and says nothing else."""

    def ask(*arguments: str, stdin: str = "") -> str:
        code, stdout, stderr = kpreempt(*arguments, "-o", "name", stdin=stdin)
        assert (code, stderr) == (0, "")
        return str(stdout)

    return ask


@pytest.mark.parametrize("algorithm", ["kube-1.8", "kube-1.13", "kube-1.18", "kube-1.36"])
def test_what_follows_is_simulated_with_the_own_queue_of_the_scheduler_or_not_at_all(
    kpreempt: Kpreempt, algorithm: str
) -> None:
    run = kpreempt(*ASK, "--algorithm", algorithm, "--aftermath")
    if algorithm == "kube-1.18":
        assert (run.returncode, run.stdout) == (2, "")
        assert run.complaint == (
            "--aftermath needs a scheduler whose queue is modeled; kube-1.18's is not\n"
            f"hint: {', '.join(QUEUE_ALGORITHMS)}\n"
        )
    else:
        assert (run.returncode, "AFTERMATH" in run.stdout or "THEN" in run.stdout) == (0, True)


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        pytest.param("StatefulSetSemanticRevisionComparison=false", 13, id="one that is not modeled"),
        pytest.param("StatefulSetSemanticRevisionComparison=true", 10, id="not modelled, as by default"),
        pytest.param("MemoryQoS=true", 10, id="one of kubelets"),
        pytest.param("MaxUnavailableStatefulSet=true", 10, id="one that is modelled"),
    ],
)
def test_no_exit_code_is_certain_under_a_gate_that_is_not_modeled(kpreempt: Kpreempt, gate: str, code: int) -> None:
    run = kpreempt(*ASK, "--exit-code", "--feature-gates", gate)
    assert run.returncode == code
    assert ("--exit-code: the answer is uncertain: scheduler: feature gate" in run.complaint) == (code == 13)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], "node/node-b\n", id="as it is"),
        pytest.param(
            ["--set", "spec.containers[0].resources.requests.cpu=900m"], "node/node-d\n", id="with a smaller request"
        ),
        pytest.param(["--without", "node/node-b"], "node/node-e\n", id="without a node"),
        pytest.param(["--cordon", "node-b"], "node/node-e\n", id="with a node cordoned"),
        pytest.param(["--priority-class", "batch"], "", id="with a class that may not preempt"),
        pytest.param(["--preemption-policy", "Never"], "", id="told not to preempt"),
        pytest.param(["--priority", "5"], "", id="with a priority below all others"),
        pytest.param(["--cordon", "node-b", "--cordon", "node-e"], "node/node-d\n", id="with two nodes cordoned"),
        pytest.param(
            ["--cordon", "node-b", "--cordon", "node-e", "--budget", "shop/search=0", "--budget", "shop/web=1"],
            "node/node-a\n",
            id="with other budgets",
        ),
    ],
)
def test_what_if(names: Callable[..., str], arguments: list[str], expected: str) -> None:
    assert names(*ASK, *arguments) == expected


def test_a_pod_that_is_pending_in_the_cluster(kpreempt: Kpreempt) -> None:
    run = kpreempt("explain", "pod/report-29385-qqlrd", "-n", "batch", "--snapshot", CLUSTER, *NOW, "-o", "json")
    verdict = json.loads(run.stdout)
    assert (verdict["outcome"], verdict["pod"]["namespace"]) == ("Unschedulable", "batch")
    assert verdict["message"].endswith("preemption: not eligible due to preemptionPolicy=Never.")


@pytest.mark.parametrize("algorithm", ["kube-1.8", "kube-1.13", "kube-1.18", "kube-1.29", "kube-1.36"])
@pytest.mark.parametrize(
    ("requested", "outcome"),
    [
        pytest.param("2", "WaitsForVictims", id="that will fit"),
        pytest.param("3", "Unschedulable", id="that fits on no empty node"),
    ],
)
def test_a_pod_whose_victims_are_still_terminating(
    kpreempt: Kpreempt, tmp_path: Path, algorithm: str, requested: str, outcome: str
) -> None:
    def pod(name: str, priority: int, cpu: str, **status: Any) -> dict[str, Any]:
        container = {"name": "c", "image": "c:1", "resources": {"requests": {"cpu": cpu}}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "uid": name},
            "spec": {"priority": priority, "schedulerName": "default-scheduler", "containers": [container]},
            "status": status,
        }

    amounts = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    preempted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    victim = pod("victim", 0, "2", phase="Running", conditions=[preempted])
    victim["spec"]["nodeName"] = "node-a"
    victim["metadata"]["deletionTimestamp"] = "2026-11-21T03:12:30Z"
    urgent = pod("urgent", 1000, requested, phase="Pending", nominatedNodeName="node-a")
    # Kubernetes 1.8 has no field for it.
    urgent["metadata"]["annotations"] = {"NominatedNodeName": "node-a"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}, "status": {"allocatable": amounts}}
    items = [node, victim, urgent]
    snapshot = tmp_path / "cluster.json"
    snapshot.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    query = ["explain", "pod/urgent", "-n", "shop", "--snapshot", str(snapshot), *NOW, "--algorithm", algorithm]
    query += ["--assume-none", "pdb"]
    verdict = json.loads(kpreempt(*query, "-o", "json").stdout)
    assert (verdict["outcome"], verdict.get("permanentlyUnschedulable", False)) == (outcome, outcome == "Unschedulable")
    assert kpreempt(*query, "--exit-code").returncode == 12


REJECTED = """
apiVersion: v1
kind: Pod
metadata: {name: fine, namespace: shop}
spec:
  containers: [{name: main, image: "main:1", resources: {requests: {cpu: 100m}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      priorityClassName: CLASS
      containers:
      - name: main
        image: main:1
        resources: {requests: {cpu: "1"}, limits: {cpu: LIMIT}}
"""


@pytest.mark.parametrize(
    ("class_name", "limit", "reason"),
    [
        pytest.param("standard", "500m", "two.yaml:20: spec.template.spec.containers[0].resources.req", id="object"),
        pytest.param("nope", "2", "two.yaml:8: no PriorityClass with name nope was found", id="its pods"),
    ],
)
def test_a_manifest_that_the_api_server_rejects_is_a_verdict_that_fails(
    kpreempt: Kpreempt, tmp_path: Path, class_name: str, limit: str, reason: str
) -> None:
    (tmp_path / "two.yaml").write_text(REJECTED.replace("CLASS", class_name).replace("LIMIT", limit))
    query = ["explain", "-f", str(tmp_path / "two.yaml"), "--snapshot", CLUSTER, *NOW]
    run = kpreempt(*query)
    assert run.returncode == 1
    assert run.stdout.startswith("2 pods: 1 lands, 1 rejected.\n")
    assert "\nREJECTED      Deployment shop/web" in run.stdout
    fine, web = json.loads(kpreempt(*query, "-o", "json").stdout)["items"]
    assert (fine["outcome"], web["outcome"], web["pod"]["origin"]) == ("Lands", "Rejected", "Deployment shop/web")
    assert reason in web["reason"]


POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: owned}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "has(object.metadata.labels) && 'team' in object.metadata.labels", message: no team}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: owned}
spec: {policyName: owned, validationActions: [Deny]}
---
apiVersion: v1
kind: Node
metadata: {name: node-a}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}, nodeInfo: {kubeletVersion: v1.36.2}}
"""


@pytest.mark.parametrize(("labels", "is_rejected"), [("{app: web}", True), ("{app: web, team: shop}", False)])
def test_a_policy_of_the_cluster_rejects_pods(
    kpreempt: Kpreempt, tmp_path: Path, labels: str, *, is_rejected: bool
) -> None:
    (tmp_path / "cluster.yaml").write_text(POLICY)
    web = REJECTED.replace("labels: {app: web}", f"labels: {labels}").replace("priorityClassName: CLASS", "")
    (tmp_path / "two.yaml").write_text(web.replace("LIMIT", "2"))
    query = ["explain", "-f", str(tmp_path / "two.yaml"), "--snapshot", str(tmp_path / "cluster.yaml"), *NOW]
    pod, deployment = json.loads(kpreempt(*query, "-o", "json").stdout)["items"]
    assert pod["reason"].endswith("denied request: no team")
    assert (deployment["outcome"] == "Rejected") is is_rejected


def test_a_pod_made_from_amounts_and_objects_laid_over_the_cluster(names: Callable[..., str], tmp_path: Path) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "fresh"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }
    (tmp_path / "node.json").write_text(json.dumps(node))
    ask = ["explain", "--cpu", "3", "--memory", "4Gi", "--priority-class", "batch", "--snapshot", CLUSTER]
    assert names(*ask) == ""
    assert names(*ask, "--with", str(tmp_path / "node.json")) == "node/fresh\n"


def test_a_manifest_from_standard_input(names: Callable[..., str]) -> None:
    assert names("explain", "-f", "-", "--snapshot", CLUSTER, stdin=Path(API).read_text()) == "node/node-b\n"


def test_a_cluster_from_standard_input(names: Callable[..., str]) -> None:
    assert names("explain", "-f", API, "--snapshot", "-", stdin=Path(CLUSTER).read_text()) == "node/node-b\n"


def test_several_documents_are_a_list_and_select_picks_one(kpreempt: Kpreempt, tmp_path: Path) -> None:
    manifest = tmp_path / "two.yaml"
    manifest.write_text(f"{Path(API).read_text()}---\n{Path(API).read_text().replace('name: api', 'name: other')}")
    ask = ["explain", "-f", str(manifest), "--snapshot", CLUSTER, "-o", "json"]
    both = json.loads(kpreempt(*ask).stdout)
    assert both["kind"] == "VerdictList"
    assert [item["pod"]["origin"] for item in both["items"]] == ["Deployment shop/api", "Deployment shop/other"]
    one = json.loads(kpreempt(*ask, "--select", "deploy/other").stdout)
    assert (one["kind"], one["pod"]["origin"]) == ("Verdict", "Deployment shop/other")


def test_objects_without_a_pod_are_noted_on_standard_error(kpreempt: Kpreempt, tmp_path: Path) -> None:
    manifest = tmp_path / "two.yaml"
    manifest.write_text(
        f"{Path(API).read_text()}---\napiVersion: v1\nkind: Service\nmetadata: {{name: api, namespace: shop}}\n"
    )
    run = kpreempt("explain", "-f", str(manifest), "--snapshot", CLUSTER, "-o", "name")
    assert run.stdout == "node/node-b\n"
    assert run.complaint == "Service shop/api has no pod template and is ignored\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(["--set", "spec.containers[0].resources.requests.cpu=900m"], 0, id="lands"),
        pytest.param([], 10, id="lands by preemption"),
        pytest.param(
            ["--without", "node/node-b", "--without", "node/node-d", "--without", "node/node-e"],
            11,
            id="lands by preemption that violates a budget",
        ),
        pytest.param(["--preemption-policy", "Never"], 12, id="never lands"),
    ],
)
def test_exit_code_tells_the_outcome_on_request(kpreempt: Kpreempt, arguments: list[str], code: int) -> None:
    assert kpreempt(*ASK, *arguments, "-o", "name", "--exit-code").returncode == code
    assert kpreempt(*ASK, *arguments, "-o", "name").returncode == 0


def test_strict_fails_on_an_assumption_and_says_which(kpreempt: Kpreempt, tmp_path: Path) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "mail", "namespace": "batch"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "mail"}}},
    }
    (tmp_path / "budget.json").write_text(json.dumps(budget))
    assert kpreempt(*ASK, "-o", "name", "--strict").returncode == 0
    run = kpreempt(*ASK, "-o", "name", "--strict", "--with", str(tmp_path / "budget.json"))
    assert (run.returncode, run.stdout) == (1, "node/node-b\n")
    assert run.stderr.startswith(
        "--strict: the answer depends on an assumption: PodDisruptionBudget batch/mail: status"
    )


def test_outputs_go_to_files_and_standard_output_at_once(kpreempt: Kpreempt, tmp_path: Path) -> None:
    run = kpreempt(
        *ASK, "-o", "name", "-o", f"json={tmp_path}/v.json", "-o", f"text={tmp_path}/v.txt", "--color=always"
    )
    assert run.stdout == "node/node-b\n"
    assert json.loads((tmp_path / "v.json").read_text())["nominatedNodes"] == ["node-b"]
    assert "\x1b" not in (tmp_path / "v.txt").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.json", "v.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["explain", "-f", API, "--snapshot", "absent.yaml"], "absent.yaml: ", id="a snapshot that is not there"
        ),
        pytest.param(
            ["explain", "-f", "absent.yaml", "--snapshot", CLUSTER], "absent.yaml: ", id="a manifest likewise"
        ),
        pytest.param(
            ["explain", "pod/nobody", "--snapshot", CLUSTER],
            'pod "nobody" not found',
            id="a pod that is not there",
        ),
        pytest.param(
            [*ASK, "--priority-class", "hihg"],
            'Pod shop/api-new: spec.priorityClassName: PriorityClass "hihg" not found',
            id="a priority class that is not there",
        ),
        pytest.param(
            [*ASK, "-o", "json=/absent/v.json"],
            "/absent/v.json: cannot write: No such file or directory",
            id="a file that cannot be written",
        ),
    ],
)
def test_bad_input_is_one_message_and_exit_code_3(kpreempt: Kpreempt, arguments: list[str], message: str) -> None:
    run = kpreempt(*arguments)
    assert (run.returncode, run.stdout) == (3, "")
    first, *hints = run.complaint.splitlines()
    assert first.startswith(message)
    assert all(hint.startswith("hint: ") for hint in hints[:1])
    assert len(hints) <= 1


def in_a_pipe(*arguments: str, **more: str) -> str:
    """What the program writes into a pipe."""
    command = [sys.executable, "-m", "kpreempt", *arguments]
    return subprocess.run(
        command,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(**more),
    ).stdout


def on_a_terminal(*arguments: str, **more: str) -> str:
    """What the program writes to a terminal of 100 columns."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kpreempt", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
        cwd=ROOT,
        env=environment(COLUMNS="100", TERM="xterm-256color", **more),
    )
    os.close(slave)
    written = b""
    try:
        while piece := os.read(master, 65536):
            written += piece
    except OSError:
        # The other end of a terminal is closed with an error, where that of a pipe ends.
        pass
    finally:
        os.close(master)
        process.wait()
    return written.decode().replace("\r\n", "\n")


def test_a_terminal_gets_colour_that_only_adds_to_the_words(kpreempt: Kpreempt) -> None:
    coloured = on_a_terminal(*ASK)
    plain = on_a_terminal(*ASK, NO_COLOR="1")
    assert "\x1b[" in coloured
    assert "\x1b" not in plain
    assert on_a_terminal(*ASK, "--color", "never") == plain
    assert in_a_pipe(*ASK, COLUMNS="100") == plain


def test_a_locale_without_the_characters_gets_their_codes(kpreempt: Kpreempt) -> None:
    plain = in_a_pipe(*ASK)
    assert in_a_pipe(*ASK, PYTHONIOENCODING="ascii") == plain.encode("ascii", "backslashreplace").decode()


def test_a_reader_that_goes_away_is_no_failure() -> None:
    command = [sys.executable, "-m", "kpreempt", *ASK, "--exit-code"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, cwd=ROOT, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaint = process.stderr.read()
    assert (process.returncode, complaint) == (10, b"")


def test_one_node_can_be_explained(kpreempt: Kpreempt) -> None:
    code, stdout, stderr = kpreempt(*ASK, "--node", "node-d", "-o", "json")
    assert (code, stderr) == (0, "")
    story = json.loads(stdout)["nodeReport"]
    assert story["node"] == "node-d"
    assert story["evaluation"]["filters"]
    assert not story["isChosen"]


def test_a_node_that_is_not_there_is_answered_with_those_that_come_near(kpreempt: Kpreempt) -> None:
    code, stdout, stderr = kpreempt(*ASK, "--node", "nodeb")
    assert (code, stdout) == (3, "")
    assert 'node "nodeb" not found' in stderr
    assert "node-b" in stderr


def test_the_remedies_for_a_node_work_if_their_options_are_given(kpreempt: Kpreempt) -> None:
    _, stdout, _ = kpreempt(*ASK, "--node", "node-d", "-o", "json")
    remedies = json.loads(stdout)["nodeReport"]["remedies"]
    assert remedies
    for remedy in remedies:
        _, answer, _ = kpreempt(*ASK, *remedy["options"], "-o", "json")
        verdict = json.loads(answer)
        assert verdict["outcome"] == ("Preempts" if "evicted" in remedy else "Lands")
        assert (verdict.get("nominatedNodes") or verdict["landsOn"]) == remedy["nodes"]


def test_a_cordoned_node_can_be_opened(names: Callable[..., str]) -> None:
    assert names(*ASK, "--uncordon", "node-f") == "node/node-f\n"


def test_a_page_has_the_nodes_drawn_and_leaves_the_json_as_it_is(kpreempt: Kpreempt, tmp_path: Path) -> None:
    page, alone, other = tmp_path / "page.html", tmp_path / "alone.json", tmp_path / "beside.json"
    assert kpreempt(*ASK, "-o", f"json={alone}").returncode == 0
    assert kpreempt(*ASK, "-o", f"html={page}", "-o", f"json={other}").returncode == 0
    assert other.read_text() == alone.read_text()
    markup = page.read_text()
    assert markup.startswith("<!DOCTYPE html>")
    assert "1.25 freed" in markup
    assert "\x1b" not in kpreempt(*ASK, "--color", "always", "-o", "html").stdout


def test_a_job_for_volcano_has_no_page(kpreempt: Kpreempt) -> None:
    run = kpreempt(*ASK, "--algorithm", "volcano-1.8", "-o", "html")
    assert (run.returncode, run.complaint.splitlines()[0]) == (2, "-o html: unknown format 'html'")


@pytest.mark.parametrize(
    ("options", "reported", "untold"),
    [
        pytest.param(
            [], ["VICTIMS ", "WHY THIS NODE", "More: -v"], ["1 FILTER", "DEFAULTED"], id="one screen by default"
        ),
        pytest.param(["-v"], ["1 FILTER", "DEFAULTED", "3 other candidates"], ["More:"], id="every section"),
        pytest.param(["-vv"], ["1 FILTER", "DEFAULTED"], ["3 other candidates", "More:"], id="every node and step"),
        pytest.param(
            ["--verbose", "--verbose"],
            ["1 FILTER", "DEFAULTED"],
            ["3 other candidates", "More:"],
            id="by its long name",
        ),
    ],
)
def test_the_answer_is_as_long_as_requested(
    kpreempt: Kpreempt, options: list[str], reported: list[str], untold: list[str]
) -> None:
    said = kpreempt(*ASK, *options).stdout
    assert [text for text in reported if text not in said] == []
    assert [text for text in untold if text in said] == []


def test_in_brief_the_answer_is_a_line_that_names_the_victims(kpreempt: Kpreempt) -> None:
    assert kpreempt(*ASK, "--brief").stdout == (
        "shop/api-new preempts 2 pods on node-b and lands there; no budget is violated. "
        "Victims: batch/report-29384-cmxwp and batch/thumbnails-29384-46jz8. [kube-1.36, 8 nodes, 31 pods]\n"
    )


def test_in_brief_and_at_length_contradict_each_other(kpreempt: Kpreempt) -> None:
    assert kpreempt(*ASK, "--brief", "-v") == (2, "", "error: --brief and -v cannot be used together\n")


@pytest.mark.parametrize(
    ("algorithm", "is_reported"),
    [pytest.param("kube-1.36", False, id="no node is named"), pytest.param("kube-1.37", True, id="one of both is")],
)
def test_an_event_that_names_one_of_equal_nodes_says_so(
    kpreempt: Kpreempt, tmp_path: Path, algorithm: str, is_reported: bool
) -> None:
    path = tmp_path / "cluster.json"
    full = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}
    nodes = [
        {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "2", "pods": "9"}}}
        for name in ("n0", "n1")
    ]
    pods = [
        {"kind": "Pod", "metadata": {"name": f"on-{name}"}, "spec": {**full, "nodeName": name}} for name in ("n0", "n1")
    ]
    for each in pods:
        each["status"] = {"phase": "Running", "startTime": "2026-11-01T00:00:00Z"}
    path.write_text(json.dumps({"kind": "List", "items": [*nodes, *pods]}))
    ask = ["explain", "--cpu", "1", "--priority", "100", "--snapshot", str(path), "--algorithm", algorithm]
    for more in ([], ["-v"], ["-o", "markdown"], ["-o", "html"]):
        assert ("The event names one of 2 tied nodes" in kpreempt(*ask, *more).stdout) == is_reported
