"""kpreempt's answers to scenarios of Volcano sessions."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from kpreempt.admission import apply_cluster_defaults
from kpreempt.cli.scenarios import cluster_of, decode_scenario
from kpreempt.errors import KpreemptError
from kpreempt.schedulers.volcano import configuration_of, run_session
from kpreempt.snapshot import parse_document
from tests.conformance.cases import NOW


def volcano_answer(scenario: dict[str, Any]) -> dict[str, Any]:
    """The answer to one scenario: its verdict or its error."""
    source = "scenario"
    without_conf = {key: value for key, value in scenario.items() if key in ("name", "objects")} | {"pod": {}}
    try:
        decoded = decode_scenario(json.dumps(without_conf).encode(), source, 1)
        document = parse_document(scenario["conf"], "conf") if scenario.get("conf") else None
        cluster = apply_cluster_defaults(cluster_of(decoded, source, None))
        verdict = run_session(cluster, configuration_of(document), now=NOW)
    except KpreemptError as error:
        return {"name": scenario["name"], "error": {"message": error.message}}
    return {"name": scenario["name"], "verdict": json.loads(msgspec.json.encode(verdict))}
