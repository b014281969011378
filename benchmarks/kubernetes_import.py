"""Cost of using the kubeconfig loader of the ``kubernetes`` package: ``python -m benchmarks.kubernetes_import``.

``explain`` reads a live cluster of 110 nodes as usual, and again after the package loaded a kubeconfig. The server is
in this process, whose own time does not count. ``docs/live.md`` has the figures.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tabulate import tabulate

from benchmarks.bounds import LIVE, PODS_PER_NODE
from benchmarks.lifelike import preemptor, write_lifelike
from tests.fake_api import FakeApi, FakeCluster, objects_by_kind

_RUNS = 10
_LOAD = (
    "from kubernetes.client import Configuration; from kubernetes.config import load_kube_config; "
    "load_kube_config(client_configuration=Configuration()); "
)
_EXPLAIN = "import sys; sys.argv[0] = 'kpreempt'; from kpreempt.cli import main; main()"
_VARIANTS = {
    "as it is": _EXPLAIN,
    "kubernetes.config.kube_config imported": "import kubernetes.config.kube_config; " + _EXPLAIN,
    "a kubeconfig loaded by the package": _LOAD + _EXPLAIN,
}


def main() -> None:
    """Run the variants alternately, and print the CPU time of each."""
    with tempfile.TemporaryDirectory() as folder:
        cluster, pod, config = (Path(folder, name) for name in ("cluster.json", "pod.json", "config"))
        write_lifelike(cluster, nodes=LIVE, pods_per_node=PODS_PER_NODE, features=())
        pod.write_text(json.dumps(preemptor()), encoding="utf-8")
        items = json.loads(cluster.read_text(encoding="utf-8"))["items"]
        with FakeApi(FakeCluster(objects_by_kind(items))) as server:
            named = {
                "cluster": {"server": server.url},
                "context": {"cluster": "c", "user": "u"},
                "user": {"token": "t"},
            }
            lists = {f"{kind}s": [{"name": kind[0], kind: fields}] for kind, fields in named.items()}
            config.write_text(json.dumps({**lists, "current-context": "c"}), encoding="utf-8")
            environment = {
                **os.environ,
                "KUBECONFIG": str(config),
                "PYTHONPYCACHEPREFIX": str(Path(folder, "compiled")),
            }
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            seconds: dict[str, list[float]] = {name: [] for name in _VARIANTS}
            # The first run compiles everything.
            for run in range(_RUNS + 1):
                for name, code in _VARIANTS.items():
                    taken = _seconds(code, pod, environment)
                    seconds[name] += [taken] if run else []
    rows = [(name, f"{min(each):.3f}", f"{statistics.median(each):.3f}") for name, each in seconds.items()]
    print(tabulate(rows, ("explain of a live cluster", "least s of CPU", "median s"), disable_numparse=True))


def _seconds(code: str, pod: Path, environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code, "explain", "-f", str(pod)]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
