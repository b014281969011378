from __future__ import annotations

import pytest

from kpreempt.report.pending.summary import agreement_in_words
from kpreempt.verdict import Outcome
from kpreempt.verdict.pending import Agreement, PendingPod
from kpreempt.verdict.waiting import PendingState

CPU = "0/3 nodes are available: 3 Insufficient cpu."
EVICTED = f"{CPU} preemption: found a potential placement for pod on node n1, preempting 2 victims"
NOT_ELIGIBLE = f"{CPU} preemption: not eligible due to a terminating pod on the nominated node."


@pytest.mark.parametrize(
    ("state", "theirs", "agreement", "words"),
    [
        pytest.param(PendingState.WAITS_FOR_CHANGE, "", Agreement.NONE, "", id="it has said nothing"),
        pytest.param(
            PendingState.WAITS_FOR_CHANGE, CPU, Agreement.SAME, "last scheduler message: the same", id="the same"
        ),
        pytest.param(
            PendingState.WAITS_FOR_CHANGE,
            CPU,
            Agreement.DIFFERENT,
            f"last scheduler message: {CPU}",
            id="something else",
        ),
        pytest.param(
            PendingState.WAITS_FOR_VICTIMS,
            CPU,
            Agreement.DIFFERENT,
            f"scheduler message when it preempted: {CPU}",
            id="what it says of an attempt that evicts, which has nothing on preemption",
        ),
        pytest.param(
            PendingState.WAITS_FOR_VICTIMS,
            EVICTED,
            Agreement.DIFFERENT,
            f"scheduler message when it preempted: {EVICTED}",
            id="what it says of an attempt that evicts since 1.37, which names the node",
        ),
        pytest.param(
            PendingState.WAITS_FOR_VICTIMS,
            NOT_ELIGIBLE,
            Agreement.DIFFERENT,
            f"last scheduler message: {NOT_ELIGIBLE}",
            id="something else, of an attempt after that",
        ),
    ],
)
def test_what_the_scheduler_said_is_reported_next_to_what_is_expected(
    state: PendingState, theirs: str, agreement: Agreement, words: str
) -> None:
    item = PendingPod(
        pod="shop/a", state=state, outcome=Outcome.UNSCHEDULABLE, scheduler_message=theirs, agreement=agreement
    )
    assert agreement_in_words(item) == words
