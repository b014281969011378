"""The published counts."""

from __future__ import annotations

from tests.parity.fidelity import with_scores

DOCUMENT = "Before.\n<!-- scores -->\nold\n<!-- /scores -->\nAfter.\n"


def test_the_table_has_a_row_for_each_version() -> None:
    scores = {
        "versions": {
            "1.29": {
                "release": "v1.29.6",
                "recorded": {"scenarios": 5, "equal": 4},
                "random": {"seed": 3, "scenarios": 10, "equal": 10},
            }
        },
    }
    text = with_scores(DOCUMENT, scores)
    assert "| 1.29.6 | 4 of 5 | none | 10 of 10 | 3 |\n" in text
    assert text.startswith("Before.\n")
    assert text.endswith("<!-- /scores -->\nAfter.\n")
    assert "old" not in text
    assert with_scores(text, scores) == text
