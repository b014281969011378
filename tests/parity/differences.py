"""Differences between kpreempt and the real scheduler on a scenario."""

from __future__ import annotations

from typing import Any

from tests.conformance.comparison import disagreements

# The keys that both write in the same format.
KEYS = (
    "preFilter",
    "filter",
    "feasibleNodes",
    "scores",
    "pluginScores",
    "chosenNodes",
    "eligibility",
    "potentialNodes",
    "dryRun",
    "candidates",
    "nominatedNodes",
    "message",
)
STATUS_KEYS = ("code", "plugin", "reasons")
CANDIDATE_KEYS = ("node", "victims", "numPDBViolations")


def differences(real: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """The differences between two results, one line each; nothing if they agree."""
    if "verdict" not in ours:
        return [f"kpreempt fails: {ours['error']['message']}"]
    verdict = ours["verdict"]
    if "error" in real:
        return _error_differences(real["error"]["message"], verdict)
    expected = real["verdict"]
    if "preEnqueue" in expected:
        return _waiting_differences(expected["preEnqueue"], verdict)
    wanted, got = _decided(expected), _decided(verdict)
    # In both directions: neither may have a key, or a node, that the other lacks.
    lines = disagreements(wanted, got) or [f"the other way round: {line}" for line in disagreements(got, wanted)]
    nominated = [verdict["pod"].get("nominatedNodeName")]
    lands_on = nominated if expected.get("nominatedNodeFits") else expected.get("chosenNodes", [])
    if sorted(lands_on) != sorted(verdict.get("landsOn", [])):
        lines.append(f".landsOn: want {lands_on}, got {verdict.get('landsOn')}")
    return lines


def _error_differences(message: str, verdict: dict[str, Any]) -> list[str]:
    """The cycle ends with an error, or no cycle is run for such a pod."""
    if verdict.get("outcome") == "NotScheduled":
        return []
    is_error = verdict.get("reason", "").startswith("the scheduler fails with an error")
    if verdict.get("message") == message and is_error:
        return []
    return [f"the scheduler fails with an error: {message!r}, got {verdict.get('message')!r}"]


def _waiting_differences(status: dict[str, Any], verdict: dict[str, Any]) -> list[str]:
    """The pod is not admitted to the queue. If a claim is missing, ours is admitted, and rejected for the same reason
    then.
    """
    rejection = verdict.get("preFilter", {})
    if status.get("plugin") == "DynamicResources" and verdict.get("outcome") == "NeverLands" and rejection:
        is_same = rejection.get("plugin") != "DynamicResources" or rejection["reasons"] == status["reasons"]
        return [] if is_same else [f"the pod is held back: {status['reasons']}, got {rejection['reasons']}"]
    return _reason_differences("; ".join(status["reasons"]), verdict)


def _reason_differences(reason: str, verdict: dict[str, Any]) -> list[str]:
    if verdict.get("outcome") == "NotScheduled" and verdict.get("reason") == reason:
        return []
    return [f"the pod is held back: {reason!r}, got {verdict.get('outcome')!r} {verdict.get('reason')!r}"]


def _decided(verdict: dict[str, Any]) -> dict[str, Any]:
    """The decision, without kpreempt's evidence."""
    return {key: _without_evidence(key, verdict[key]) for key in KEYS if key in verdict}


def _without_evidence(key: str, value: Any) -> Any:
    if key in ("filter", "dryRun"):
        return {node: _only(STATUS_KEYS, status) for node, status in value.items()}
    if key == "preFilter":
        return _only(STATUS_KEYS, value)
    if key == "candidates":
        return [_only(CANDIDATE_KEYS, candidate) for candidate in value]
    return value


def _only(keys: tuple[str, ...], value: dict[str, Any]) -> dict[str, Any]:
    return {key: value[key] for key in keys if key in value}
