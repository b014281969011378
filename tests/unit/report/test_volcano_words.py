from __future__ import annotations

import pytest

from kpreempt.report.volcano.attempts import (
    amounts_in_words,
    describe_rejection,
    subtraction_in_words,
    tasks_in_words,
    volcano_amount,
)


@pytest.mark.parametrize(
    ("resource", "amount", "words"),
    [
        pytest.param("cpu", 1500, "1.5", id="CPU is in thousandths of a core"),
        pytest.param("cpu", 3333.4, "~3.333", id="a part of a thousandth is rounded, and marked"),
        pytest.param("memory", 2 * 1024**3, "2Gi", id="memory is in bytes"),
        pytest.param("nvidia.com/gpu", 4000, "4", id="devices are in thousandths"),
        pytest.param("nvidia.com/gpu", 500, "0.5", id="half a device"),
        pytest.param("ephemeral-storage", 1024**3 * 1000, "1Gi", id="so are bytes of storage"),
        pytest.param("cpu", -1, "no limit", id="-1 is no limit"),
        pytest.param("memory", 0, "0", id="nothing"),
    ],
)
def test_an_amount_reads_as_a_quantity(resource: str, amount: float, words: str) -> None:
    assert volcano_amount(resource, amount) == words


def test_amounts_leave_out_what_is_nothing() -> None:
    assert amounts_in_words({"cpu": 2000, "memory": 0, "nvidia.com/gpu": 1000}) == "cpu 2, nvidia.com/gpu 1"
    assert amounts_in_words({"cpu": 0}) == "nothing"


@pytest.mark.parametrize(
    ("tasks", "home", "words"),
    [
        pytest.param([], "", "none", id="none"),
        pytest.param(["ml/a-0"], "", "ml/a-0", id="one"),
        pytest.param(["ml/a-0", "ml/a-1"], "", "ml/a-0 and ml/a-1", id="two are named"),
        pytest.param(["ml/a-2", "ml/a-0", "ml/a-1"], "", "ml/a-0 … a-2 (3)", id="three in a row by their ends"),
        pytest.param(
            [f"ml/a-{number}" for number in (0, 1, 2, 9, 10, 11)],
            "",
            "ml/a-0 … a-2 (3) and ml/a-9 … a-11 (3)",
            id="a gap makes two rows of them",
        ),
        pytest.param(["ml/a-01", "ml/a-02", "ml/a-03"], "", "ml/a-01, ml/a-02 and ml/a-03", id="01 is not a number"),
        pytest.param(["ml/a-0", "shop/b-0"], "ml/job", "a-0 and shop/b-0", id="a job's own namespace is left out"),
        pytest.param(
            ["ml/a", "ml/b", "ml/c", "ml/d", "ml/e-0", "ml/e-1", "ml/e-2"],
            "",
            "ml/a, ml/b, ml/c, ml/d and 3 more",
            id="beyond four they are counted",
        ),
        pytest.param(["ml/a-0", "ml/a-0"], "", "ml/a-0", id="one that is named twice"),
    ],
)
def test_tasks_read_as_runs(tasks: list[str], home: str, words: str) -> None:
    assert tasks_in_words(tasks, home=home) == words


def test_all_tasks_are_named_where_there_is_no_limit() -> None:
    assert tasks_in_words([f"ml/{letter}" for letter in "abcdef"], limit=None).count("ml/") == 6


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        pytest.param("Insufficient cpu", "Insufficient cpu", id="a resource"),
        pytest.param(
            "predicates failed in allocate for task <ml/a> on node <n1>, status is not success",
            "its predicates failed",
            id="a predicate that does not say why",
        ),
        pytest.param(
            "predicates failed in reclaim for task <ml/a> on node <n1>, status is not success or unschedulable",
            "its predicates failed",
            id="the same where others may leave",
        ),
        pytest.param(
            "preempt predicates failed for task <ml/a> on node <n1>: plugin NodePorts predicates failed taken",
            "plugin NodePorts predicates failed taken",
            id="a predicate that ended in an error",
        ),
    ],
)
def test_a_refusal_leaves_out_the_names_next_to_it(reason: str, words: str) -> None:
    assert describe_rejection(reason) == words


@pytest.mark.parametrize(
    ("message", "words"),
    [
        pytest.param(
            "resource is not sufficient to do operation: <cpu 4000.00, memory 8589934592.00> sub "
            "<cpu 6000.00, memory 2147483648.00>",
            "cpu 6 from cpu 4",
            id="more than there is of one resource",
        ),
        pytest.param(
            "resource is not sufficient to do operation: <cpu -2000.00, memory 10.00> sub <cpu 0.00, memory 0.00>",
            "cpu 0 from cpu -2",
            id="less than nothing is left",
        ),
        pytest.param(
            "<cpu 1.00, nvidia.com/gpu 1000.00> sub <cpu 1.00, nvidia.com/gpu 2000.00>",
            "nvidia.com/gpu 2 from nvidia.com/gpu 1",
            id="devices",
        ),
        pytest.param("no node has a score", "", id="it is about something else"),
    ],
)
def test_a_panic_over_a_subtraction_says_what_is_taken_from_what(message: str, words: str) -> None:
    assert subtraction_in_words(message) == words
