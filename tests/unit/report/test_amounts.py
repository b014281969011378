from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kpreempt.report.amounts import ago, count, format_amount, so_long

KI, MI, GI, TI = 1024, 1024**2, 1024**3, 1024**4


@pytest.mark.parametrize(
    ("resource", "amount", "expected"),
    [
        pytest.param("cpu", 0, "0", id="no cpu"),
        pytest.param("cpu", 500, "500m", id="less than a core is in milli-cpu"),
        pytest.param("cpu", 2000, "2", id="whole cores have no unit"),
        pytest.param("cpu", 3500, "3.5", id="half a core more"),
        pytest.param("cpu", 1001, "1.001", id="a thousandth of a core is not lost"),
        pytest.param("cpu", -1250, "-1.25", id="an overcommitted node"),
        pytest.param("cpu", 1_024_000, "1,024", id="thousands of cores are grouped"),
        pytest.param("memory", 512 * MI, "512Mi", id="whole mebibytes"),
        pytest.param("memory", GI, "1Gi", id="the largest unit that divides"),
        pytest.param("memory", 1536 * MI, "1.5Gi", id="two decimals where they are exact"),
        pytest.param("memory", 16000 * MI, "16000Mi", id="as people write it where decimals would not be exact"),
        pytest.param("memory", 1500 * KI, "1500Ki", id="kibibytes"),
        pytest.param("memory", 16 * 10**9, "16G", id="a decimal unit where it is the short one"),
        pytest.param("memory", 500, "500", id="some bytes"),
        pytest.param("memory", 16_393_308 * KI, "~15.6Gi", id="rounded and marked where no unit says it shortly"),
        pytest.param("memory", 123 * GI + 1, "~123Gi", id="one byte more than 123Gi is not 123Gi"),
        pytest.param("ephemeral-storage", 2 * TI, "2Ti", id="storage is in bytes"),
        pytest.param("hugepages-2Mi", 64 * MI, "64Mi", id="huge pages are in bytes"),
        pytest.param("nvidia.com/gpu", 8, "8", id="devices are counted"),
        pytest.param("pods", 1110, "1,110", id="pods are counted"),
    ],
)
def test_an_amount_is_exact_or_marked(resource: str, amount: int, expected: str) -> None:
    assert format_amount(resource, amount) == expected


def test_on_request_an_amount_is_exact_however_long() -> None:
    assert format_amount("memory", 123 * GI + 1, exact=True) == str(123 * GI + 1)
    assert format_amount("memory", 16_393_308 * KI, exact=True) == "16393308Ki"


@pytest.mark.parametrize(
    ("number", "noun", "expected"),
    [
        pytest.param(1, "node", "1 node", id="one"),
        pytest.param(0, "pod", "0 pods", id="none is many"),
        pytest.param(1189, "candidate", "1,189 candidates", id="thousands are grouped"),
        pytest.param(2, "StorageClass", "2 StorageClasses", id="a word that ends in s"),
        pytest.param(3, "policy", "3 policies", id="a word that ends in y"),
    ],
)
def test_a_number_agrees_with_its_noun(number: int, noun: str, expected: str) -> None:
    assert count(number, noun) == expected


@pytest.mark.parametrize(
    ("time", "since", "long"),
    [
        pytest.param(None, "", "", id="unknown"),
        pytest.param(datetime(2026, 1, 1, 11, 56, tzinfo=UTC), " 4m ago", " for 4m", id="earlier"),
        pytest.param(
            datetime(2026, 1, 1, 12, 4, tzinfo=UTC),
            " at 2026-01-01T12:04:00Z",
            " since 2026-01-01T12:04:00Z",
            id="after the time of the answer",
        ),
    ],
)
def test_ages_of_a_time_after_the_answer_are_the_time_itself(time: datetime | None, since: str, long: str) -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert (ago(time, now), so_long(time, now)) == (since, long)
