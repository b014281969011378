from __future__ import annotations

import pytest

from kpreempt.analysis.pending.states import cause_of, compare_messages
from kpreempt.verdict.pending import Agreement

CPU = "0/8 nodes are available: 1 node(s) had untolerated taint(s), 7 Insufficient cpu."
HELPLESS = " preemption: 0/8 nodes are available: 8 Preemption is not helpful for scheduling."
PLACED = f"{CPU} preemption: found a potential placement for pod on node n1, preempting 2 victims"


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        pytest.param(CPU, "Insufficient cpu, node(s) had untolerated taint(s)", id="counts are left out"),
        pytest.param(CPU + HELPLESS, "Insufficient cpu, node(s) had untolerated taint(s)", id="so is preemption"),
        pytest.param(
            f"{CPU} no new claims to deallocate,{HELPLESS}",
            "Insufficient cpu, node(s) had untolerated taint(s)",
            id="and what plugins say that had nothing to do",
        ),
        pytest.param(
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", "Insufficient nvidia.com/gpu", id="dots"
        ),
        pytest.param("no nodes available to schedule pods", "no nodes available to schedule pods", id="other words"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_a_cause_is_the_message_without_numbers(message: str, cause: str) -> None:
    assert cause_of(message) == cause


@pytest.mark.parametrize(
    ("theirs", "ours", "agreement"),
    [
        pytest.param(CPU, CPU, Agreement.SAME, id="the same words"),
        pytest.param(
            CPU,
            CPU.replace("0/8", "0/9").replace("7 In", "8 In"),
            Agreement.SAME_REASONS_DIFFERENT_COUNTS,
            id="other numbers",
        ),
        pytest.param(CPU, CPU + HELPLESS, Agreement.DIFFERENT, id="something about preemption"),
        pytest.param(CPU, CPU.replace("cpu", "memory"), Agreement.DIFFERENT, id="another reason"),
        pytest.param(
            PLACED,
            PLACED.replace("n1", "n2"),
            Agreement.SAME_REASONS_DIFFERENT_COUNTS,
            id="another of the nodes that tie",
        ),
        pytest.param(PLACED, CPU + HELPLESS, Agreement.DIFFERENT, id="no preemption now"),
        pytest.param("", CPU, Agreement.NONE, id="the scheduler has said nothing"),
        pytest.param(CPU, "", Agreement.NONE, id="nothing is expected to be said"),
    ],
)
def test_messages_are_compared(theirs: str, ours: str, agreement: Agreement) -> None:
    assert compare_messages(theirs, ours) is agreement
