"""The table of scheduler families: which requests each family answers, and the functions that answer them.

Each option declares the families that accept it. A plain pod's request loads nothing of other families.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from kpreempt import scheduler_table
from kpreempt.errors import UsageError
from kpreempt.library.options import KUBE, KUEUE, VOLCANO, Request, options_of


class Family(NamedTuple):
    """Schedulers that decide on the same kind of thing. ``algorithm`` names the family; kube-scheduler's has none.

    ``answers`` maps the commands that the family answers itself to functions in its module. For the commands
    ``decides_single_pods``, it is queried for one pod at a time, like a kube-scheduler. ``decides_on`` explains why an
    option does not apply. If it ``answers_scenarios`` of ``batch``, its module has their format, ``SCENARIO``, and
    ``answer_scenario``.
    """

    name: str
    algorithm: str = ""
    answers: Mapping[str, str] = {}
    decides_single_pods: tuple[str, ...] = ()
    decides_on: str = ""
    answers_scenarios: bool = False

    def module(self) -> Any:
        """The module of this package that implements the family's commands."""
        return import_module(f"kpreempt.cli.{self.name}")


_KUBE = Family(KUBE)
FAMILIES = (
    _KUBE,
    Family(
        VOLCANO,
        scheduler_table.VOLCANO,
        {"explain": "explain_jobs", "volcano": "volcano"},
        decides_single_pods=("check", "compare"),
        decides_on="jobs",
        answers_scenarios=True,
    ),
    Family(
        KUEUE,
        scheduler_table.KUEUE,
        {
            "explain": "explain_workloads",
            "pending": "pending_workloads",
            "at-risk": "workloads_at_risk",
            "who-evicted": "who_evicted_workload",
            "compare": "compare_configurations",
        },
        decides_on="Workloads",
        answers_scenarios=True,
    ),
)
_BY_ALGORITHM = {each.algorithm: each for each in FAMILIES}


def family_of(algorithm: str | None) -> Family:
    """Return the family of the named scheduler; kube-scheduler's if none is named or the name is unknown."""
    return _BY_ALGORITHM.get(algorithm or "", _KUBE)


def family_for(request: Request) -> Family:
    """Return the family that answers a command. Raises ``UsageError`` for an option that the family does not accept."""
    family = family_of(request.algorithm_named)
    if request.command_name not in (*family.answers, *family.decides_single_pods):
        family = _KUBE
    for name, option in options_of(type(request)).items():
        if name in request.set_options and option.families and family.name not in option.families:
            if family is _KUBE:
                others = " or ".join(each.algorithm for each in FAMILIES if each.name in option.families)
                raise UsageError(f"{option.long_name} needs --algorithm {others}")
            raise UsageError(
                f"{option.long_name} does not apply to {family.algorithm}, which schedules {family.decides_on}"
            )
    return family
