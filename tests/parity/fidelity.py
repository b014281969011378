"""How often kpreempt and the real scheduler agree: ``python -m tests.parity.fidelity --examples N --seed S``.

For each version, the recorded verdicts are compared with kpreempt's, and both are run on random scenarios. The counts
are written to ``fixtures/fidelity.json``, from which ``docs/fidelity.md`` is generated (``make generated``). Exit code
2 if the reference of a version cannot be built: its random scenarios are missing then.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings

from kpreempt.scheduler_table import DEFAULT_ALGORITHM, PREFIX, RELEASES
from tests.conformance.cases import FIXTURES, read_lines
from tests.conformance.comparison import batch_answers, disagreeing
from tests.parity.answers import kpreempt_answer
from tests.parity.differences import differences
from tests.parity.kept import keep
from tests.parity.reference import CHECKOUT, Answer, Genuine, Scenario, UnavailableError, program, version_of
from tests.parity.searches import option_parser, seeds_of
from tests.strategies_whole import whole_scenarios

SCORES = CHECKOUT / "fixtures" / "fidelity.json"
DOCUMENT = CHECKOUT / "docs" / "fidelity.md"
VERSIONS = FIXTURES.parent / "versions"
# The text between these lines of the document is generated from the counts.
_HEAD, _TAIL = "<!-- scores -->\n", "<!-- /scores -->\n"


class Score(NamedTuple):
    """The number of scenarios, and of equal verdicts; with a random scenario that differed."""

    scenarios: int
    equal: int
    apart: tuple[Scenario, Answer] | None = None

    def __add__(self, other: object) -> Score:
        """The sum of both."""
        assert isinstance(other, Score)
        return Score(self.scenarios + other.scenarios, self.equal + other.equal, self.apart or other.apart)

    def counts(self) -> dict[str, int]:
        """The written counts."""
        return {"scenarios": self.scenarios, "equal": self.equal}


def recorded_scores(minor: str) -> dict[str, Score]:
    """The score of each suite of verdicts recorded from the version."""
    return {name: _recorded(scenarios) for name, scenarios in _suites(minor) if scenarios}


def random_score(path: Path, minor: str, examples: int, start: int) -> Score:
    """The score of random scenarios for the version of the program at ``path``."""
    total = Score(0, 0)

    with Genuine(path) as real:

        @seed(start)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(whole_scenarios(version=minor))
        def put(scenario: Scenario) -> None:
            nonlocal total
            answer = real.answer(scenario)
            lines = differences(answer, kpreempt_answer(scenario))
            total += Score(1, int(not lines), (scenario, answer) if lines else None)

        put()
    return total


def with_scores(text: str, scores: dict[str, Any]) -> str:
    """The document with the table of the counts."""
    before, head, rest = text.partition(_HEAD)
    _, tail, after = rest.partition(_TAIL)
    rows = [
        "| Kubernetes | recorded verdicts | version differences | random scenarios | from seed |",
        "|---|---|---|---|---|",
        *(_row(each) for each in scores["versions"].values()),
    ]
    return "".join([before, head, "\n".join([*rows, ""]), tail, after])


def main() -> int:
    """Count for every version, or for the named ones, and write the counts."""
    parser = option_parser("tests.parity.fidelity", __doc__)
    parser.add_argument("--version", action="append", choices=list(RELEASES), help="count only this one anew")
    options = parser.parse_args()
    written = json.loads(SCORES.read_text(encoding="utf-8")) if SCORES.exists() else {"versions": {}}
    rows = written["versions"] if options.version else {}
    code = 0
    for minor in options.version or RELEASES:
        recorded = recorded_scores(minor)
        rows[minor] = {"release": f"v{RELEASES[minor]}", **{name: each.counts() for name, each in recorded.items()}}
        try:
            rows[minor]["random"] = {"seed": options.seed, **_drawn(options, minor).counts()}
        except UnavailableError as reason:
            sys.stderr.write(f"fidelity: no random scenarios for {minor}: {reason}\n")
            code = 2
        sys.stdout.write(f"{minor}: {json.dumps(rows[minor])}\n")
    scores = {"versions": {each: rows[each] for each in RELEASES if each in rows}}
    SCORES.write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
    return code


def _drawn(options: argparse.Namespace, minor: str) -> Score:
    """The score of random scenarios; one that differs is kept."""
    path = program("reference", minor)
    sizes, seeds = seeds_of(options.examples, options.seed)
    with ProcessPoolExecutor(options.jobs) as pool:
        drawn = sum(pool.map(partial(random_score, path, minor), sizes, seeds), Score(0, 0))
    if drawn.apart:
        sys.stdout.write(f"{minor} differs: kept as {keep(*drawn.apart, version=version_of(path))}\n")
    return drawn


def _suites(minor: str) -> Iterator[tuple[str, list[Scenario]]]:
    algorithm = f"{PREFIX}{minor}"
    paths = [VERSIONS / f"{algorithm}.jsonl.gz"]
    if algorithm == DEFAULT_ALGORITHM:
        paths += sorted(FIXTURES.glob("*.jsonl.gz"))
    yield "recorded", [line for path in paths for line in read_lines(path)]
    yield "made", [line for line in read_lines(VERSIONS / "extra.jsonl.gz") if line["algorithm"] == algorithm]


def _recorded(scenarios: list[Scenario]) -> Score:
    # Several scenarios of a suite may have the same name. Those recorded with an error are not compared.
    compared = [each for each in scenarios if "error" not in each["expect"]]
    named = [{**each, "name": str(number)} for number, each in enumerate(compared)]
    with tempfile.TemporaryDirectory() as folder:
        apart = disagreeing(named, batch_answers(named, Path(folder)))
    return Score(len(named), len(named) - len(apart))


def _row(of_version: dict[str, Any]) -> str:
    cells = [
        f"{each['equal']} of {each['scenarios']}" if each else "none"
        for each in (of_version.get(suite) for suite in ("recorded", "made", "random"))
    ]
    cells = [of_version["release"].removeprefix("v"), *cells, str(of_version.get("random", {}).get("seed", ""))]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
