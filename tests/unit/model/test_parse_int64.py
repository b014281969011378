"""Numbers in labels are read as Go reads them."""

from __future__ import annotations

import pytest

from kpreempt.model.labels import parse_int64


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("7", 7, id="a number"),
        pytest.param("-7", -7, id="a negative number"),
        pytest.param("+7", 7, id="a number with a plus"),
        pytest.param("-0", 0, id="zero with a minus"),
        pytest.param("000", 0, id="nothing but zeros"),
        pytest.param("0" * 5000 + "7", 7, id="thousands of leading zeros"),
        pytest.param("9" * 5000, None, id="thousands of digits"),
        pytest.param("9223372036854775807", 2**63 - 1, id="the highest"),
        pytest.param("9223372036854775808", None, id="one more"),
        pytest.param("-9223372036854775808", -(2**63), id="the lowest"),
        pytest.param("-9223372036854775809", None, id="one less"),
        pytest.param("", None, id="nothing"),
        pytest.param("+-7", None, id="two signs"),
        pytest.param("1_000", None, id="an underscore"),
        pytest.param("\u0667", None, id="a digit of another script"),
    ],
)
def test_integers_are_read_as_go_reads_them(text: str, number: int | None) -> None:
    assert parse_int64(text) == number
