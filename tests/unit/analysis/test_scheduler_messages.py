from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.analysis.messages.scheduling import explain_message, reason_of
from kpreempt.report.blocks import Report, text_of
from kpreempt.report.messages import PodInMessage, lead_of_message, message_sections, versions_of
from kpreempt.report.options import RenderOptions
from kpreempt.report.terminal import render_text
from kpreempt.verdict.waiting import MessageForm, ReasonTopic

T, F = ReasonTopic, MessageForm
HELPLESS = " preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."


@pytest.mark.parametrize(
    ("text", "topic", "subject", "since", "until"),
    [
        ("Insufficient cpu", T.RESOURCE, "cpu", "", ""),
        ("Insufficient nvidia.com/gpu", T.RESOURCE, "nvidia.com/gpu", "", ""),
        ("Too many pods", T.TOO_MANY_PODS, "", "", ""),
        ("node(s) had taint {node-role.kubernetes.io/master: }, that the pod didn't tolerate", T.TAINT,
         "node-role.kubernetes.io/master", "", "1.23"),
        ("node(s) had untolerated taint {dedicated: db}", T.TAINT, "dedicated=db", "1.24", "1.33"),
        ("node(s) had untolerated taint(s)", T.TAINT, "", "1.34", ""),
        ("node(s) were unschedulable", T.CORDONED, "", "", ""),
        ("node(s) didn't match node selector", T.NODE_AFFINITY, "", "", "1.19"),
        ("node(s) didn't match Pod's node affinity", T.NODE_AFFINITY, "", "1.20", "1.20"),
        ("node(s) didn't match Pod's node affinity/selector", T.NODE_AFFINITY, "", "1.21", ""),
        ("node(s) didn't match the requested hostname", T.NODE_NAME, "", "", "1.20"),
        ("node(s) didn't satisfy plugin(s) [NodeAffinity VolumeBinding]", T.NOT_CONSIDERED,
         "NodeAffinity VolumeBinding", "1.32", ""),
        ("node(s) didn't satisfy plugin(s) [NodeAffinity VolumeBinding] simultaneously", T.NOT_CONSIDERED,
         "NodeAffinity VolumeBinding", "1.24", ""),
        ("node(s) didn't satisfy plugin NodeAffinity", T.NOT_CONSIDERED, "NodeAffinity", "1.24", ""),
        ("node(s) had volume node affinity conflict", T.VOLUME_AFFINITY, "", "", "1.32"),
        ("node(s) didn't match PersistentVolume's node affinity", T.VOLUME_AFFINITY, "", "1.33", ""),
        ("pod has unbound immediate PersistentVolumeClaims (repeated 3 times)", T.CLAIM_UNBOUND, "", "", ""),
        ('persistentvolumeclaim "data" not found', T.CLAIM_MISSING, "data", "", ""),
        ('persistentvolumeclaim "d" bound to non-existent persistentvolume "pv-1"', T.CLAIM_LOST, "d", "1.23", ""),
        ("waiting for scheduling gates: [a.io/x b.io/y]", T.GATES, "a.io/x b.io/y", "1.26", ""),
        ("request gpu: device class gpu.example.com does not exist", T.DEVICE_CLASS, "gpu.example.com", "1.31", ""),
        ("ebs.csi.aws.com CSI driver is not installed on the node", T.DRIVER_MISSING, "ebs.csi.aws.com", "1.35", ""),
        ("waiting for pods's pod group \"g\" to appear in scheduling queue", T.GANG, "g", "1.35", ""),
        ('PersistentVolumeClaim was not found: "data"', T.CLAIM_MISSING, "data", "", "1.21"),
        ("not a reason of the scheduler", T.OTHER, "", "", ""),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)  # fmt: skip
def test_reasons_are_recognized_in_the_wordings_of_each_version(
    text: str, topic: ReasonTopic, subject: str, since: str, until: str
) -> None:
    found = reason_of(text, 2)
    assert (found.topic, found.subject, found.since, found.until) == (topic, subject, since, until)
    assert (found.text, found.nodes) == (text, 2)


@pytest.mark.parametrize(
    ("message", "form", "topics"),
    [
        pytest.param("0/3 nodes are available: 3 Insufficient cpu.", F.NO_FIT, [T.RESOURCE], id="counts"),
        pytest.param(
            'running "VolumeBinding" filter plugin for pod "x": binding: no', F.PLUGIN_ERROR, [], id="a plugin's error"
        ),
        pytest.param(
            'running PreBind plugin "VolumeBinding": binding volumes: timed out waiting for the condition',
            F.BINDING,
            [],
            id="a volume that is not provisioned",
        ),
        pytest.param("no nodes available to schedule pods", F.NO_NODES, [], id="no nodes"),
        pytest.param("skip schedule deleting pod: shop/web", F.BEING_DELETED, [], id="a pod that is being deleted"),
        pytest.param(
            f'0/3 nodes are available: persistentvolumeclaim "x" not found.{HELPLESS}',
            F.NOT_TRIED,
            [T.CLAIM_MISSING],
            id="PreFilter since 1.27",
        ),
        pytest.param(
            f'0/3 nodes are available: 3 persistentvolumeclaim "x" not found.{HELPLESS}',
            F.NOT_TRIED,
            [T.CLAIM_MISSING],
            id="PreFilter up to 1.26",
        ),
        pytest.param('persistentvolumeclaim "x" not found', F.NOT_TRIED, [T.CLAIM_MISSING], id="PreFilter up to 1.22"),
        pytest.param(
            "Scheduling is blocked due to non-empty scheduling gates", F.WAITS, [T.GATES], id="the condition of gates"
        ),
        pytest.param("rejected due to timeout after waiting 10m0s at plugin Coscheduling", F.PERMIT, [], id="Permit"),
        pytest.param(
            "2/3 tasks in gang unschedulable: pod group is not ready, 2 Pending, 3 minAvailable.",
            F.OTHER_SCHEDULER,
            [],
            id="Volcano",
        ),
        pytest.param(
            "0/4 nodes are available: 1 Insufficient cpu, 1 Too many pods, 2 my own, odd reason.",
            F.NO_FIT,
            [T.OTHER, T.RESOURCE, T.TOO_MANY_PODS],
            id="a reason with a comma",
        ),
    ],
)
def test_the_form_of_a_message_says_what_failed(message: str, form: MessageForm, topics: list[ReasonTopic]) -> None:
    found = explain_message(message)
    assert found is not None
    assert (found.form, [each.topic for each in found.reasons]) == (form, topics)


@pytest.mark.parametrize(
    "message", ["", "pulling image", "0/x nodes are available", f"0/{'9' * 10_000} nodes are available: ", "x" * 10**6]
)
def test_other_texts_are_not_messages(message: str) -> None:
    assert explain_message(message) is None


def test_the_parts_about_nodes_and_preemption_are_counted_apart() -> None:
    found = explain_message(
        "0/8 nodes are available: 1 node(s) had untolerated taint(s), 7 Insufficient cpu, 2 Insufficient memory."
        " no new claims to deallocate, preemption: 0/8 nodes are available: 2 Preemption is not helpful for scheduling,"
        " 5 No preemption victims found for incoming pod, 1 Insufficient cpu."
    )
    assert found is not None
    assert (found.nodes, found.counted) == (8, 10)
    assert [(each.nodes, each.topic) for each in found.preemption] == [
        (5, T.NO_VICTIMS),
        (2, T.NOT_HELPFUL),
        (1, T.RESOURCE),
    ]
    assert versions_of(found) == "1.34 and later"
    said = _text("", found.message)
    assert "add up to 10 of 8 nodes" in said
    assert "on 1 node, even without all pods of lower priority: Insufficient cpu" in said


@pytest.mark.parametrize(
    ("head", "topic"),
    [("pod has unbound immediate PersistentVolumeClaims", T.CLAIM_UNBOUND), ("11 Insufficient cpu", T.RESOURCE)],
)
def test_another_plugin_may_end_the_attempt_before_preemption(head: str, topic: ReasonTopic) -> None:
    found = explain_message(f"0/11 nodes are available: {head}. not found")
    assert found is not None
    assert ([each.topic for each in found.reasons], found.post_filter) == ([topic], "not found")
    assert "another plugin ended the attempt: not found" in _text("", found.message)


def test_the_last_reason_of_a_cut_message_is_not_guessed() -> None:
    found = explain_message("0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient me ...")
    assert found is not None
    assert found.is_cut
    assert [each.subject for each in found.reasons] == ["cpu"]


@pytest.mark.parametrize(
    ("message", "lead"),
    [
        (
            "0/8 nodes are available: 2 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 6 Insufficient"
            " cpu.",
            "shop/web fits on none of 8 nodes: 6 lack free cpu, 2 are not ready.",
        ),
        (
            "0/1 nodes are available: 1 pod has unbound immediate PersistentVolumeClaims.",
            "shop/web waits for the pod's claim to be bound; this does not depend on nodes.",
        ),
        ("no nodes available to schedule pods", "shop/web has no nodes to choose from."),
        (
            "all nodes are unavailable: 3 Insufficient cpu.",
            "shop/web was not scheduled by Volcano: this is not a message of kube-scheduler.",
        ),
    ],
)  # fmt: skip
def test_the_first_sentence_says_what_the_message_says(message: str, lead: str) -> None:
    found = explain_message(message)
    assert found is not None
    assert text_of(lead_of_message(found, PodInMessage("shop", "web"))) == lead


@given(
    st.text(st.sampled_from('0/3 nodes are available: Insufficient cpu,.(){}"[]preemption\n\x00é')), st.integers(0, 9)
)
def test_any_text_is_explained_or_not_a_message(text: str, nodes: int) -> None:
    for message in (
        text,
        f"0/{nodes} nodes are available: {text}",
        f"0/3 nodes are available: 1 x. preemption: {text}",
    ):
        found = explain_message(message)
        if found is not None:
            assert found.counted == sum(each.nodes or 0 for each in found.reasons)
            assert text_of(lead_of_message(found, PodInMessage()))
            assert message_sections(found, PodInMessage())


def _text(pod: str, message: str) -> str:
    found = explain_message(message)
    assert found is not None
    where = PodInMessage("", pod)
    report = Report(lead=lead_of_message(found, where), sections=message_sections(found, where))
    return " ".join(render_text(report, RenderOptions()).split())
