"""The golden files of the example plugins: a folder of ``fixtures/plugins`` each.

A folder holds ``cluster.yaml``, ``pod.yaml``, ``scheduler.yaml``, which enables the plugin, and ``report.txt``.
"""

from __future__ import annotations

from pathlib import Path

from tests.golden.answers import written_by
from tests.golden.cases import NOW

ROOT = Path(__file__).parents[2] / "fixtures" / "plugins"
_EXAMPLES = "kpreempt.plugins.examples"

# The plugin of each golden file.
ANSWERS = {
    "capacity-scheduling/report.txt": f"{_EXAMPLES}.capacity_scheduling:CapacityScheduling",
    "preemption-toleration/report.txt": f"{_EXAMPLES}.preemption_toleration:PreemptionToleration",
    "rack-colocation/report.txt": f"{_EXAMPLES}.rack_colocation:RackColocation",
}


def arguments(name: str) -> list[str]:
    """The arguments of kpreempt."""
    case = (ROOT / name).parent
    files = ["-f", str(case / "pod.yaml"), "--snapshot", str(case / "cluster.yaml"), "--now", NOW]
    return ["explain", *files, "--scheduler-config", str(case / "scheduler.yaml"), "--plugin", ANSWERS[name], "-v"]


def answer(name: str, folder: Path) -> str:
    """The current output of kpreempt at 80 columns, through a file in ``folder``."""
    return written_by(arguments(name), folder / Path(name).name)
