"""Quantities as the API server writes them."""

from __future__ import annotations

import pytest

from kpreempt.model.quantity import canonical_text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        *(("1000m", "1"), ("0.5", "500m"), ("1024Mi", "1Gi"), ("1000Mi", "1000Mi"), ("100000", "100k")),
        *(
            ("1500M", "1500M"),
            ("1E", "1E"),
            ("1e3", "1e3"),
            ("0", "0"),
            ("512", "512"),
            ("2000000n", "2m"),
            ("1Ei", "1Ei"),
        ),
    ],
)
def test_quantities_are_canonical(text: str, canonical: str) -> None:
    assert canonical_text(text) == canonical
