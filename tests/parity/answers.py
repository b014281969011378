"""kpreempt's results for scenarios, with the code of ``kpreempt batch``."""

from __future__ import annotations

import json
from typing import Any

from kpreempt.cli.batch import Answerer
from kpreempt.phases import NO_PHASES
from tests.conformance.cases import NOW


def kpreempt_answer(scenario: dict[str, Any]) -> dict[str, Any]:
    """The result for one scenario: its verdict or its error."""
    line = Answerer(None, NOW, "scenario", NO_PHASES).answer((1, json.dumps(scenario).encode())).line
    answer: dict[str, Any] = json.loads(line)
    return answer
