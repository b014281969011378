"""Run cases, each in a separate process with limits, and report problems."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import NamedTuple

import kpreempt
from kpreempt.cli import process
from tests.fake_api import Answer, FakeApi, FakeCluster, ReceivedRequest, objects_by_kind
from tests.fuzz.cases import Case, case_of
from tests.harmless import obeyed

# Processor time, so that a busy machine causes no timeout.
SECONDS = 30
_PATIENCE = 300
_ADDRESS_SPACE = 4 << 30
MAX_MEMORY = 1 << 30
_LONGEST_LINE = 2_500
_EXPECTED = (0, 1, 2, 3)


class Outcome(NamedTuple):
    """How a case ended; ``problems`` is empty if it ended as it should."""

    code: int
    seconds: float
    memory: int
    problems: list[str]
    stderr: str


def run_cases(seed: int, numbers: range) -> tuple[Counter[int], dict[int, Outcome]]:
    """Run the cases; return the count of each exit code, and cases with problems by number."""
    # Once, before forking the processes that use them.
    for module in walk_packages(kpreempt.__path__, "kpreempt."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    codes: Counter[int] = Counter()
    wrong: dict[int, Outcome] = {}
    for number in numbers:
        outcome = run_case(case_of(seed, number))
        codes[outcome.code] += 1
        if outcome.problems:
            wrong[number] = outcome
            print(f"case {number}: {'; '.join(outcome.problems)}", file=sys.stderr, flush=True)
    return codes, wrong


def run_case(case: Case) -> Outcome:
    """Run a case in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="kpreempt-fuzz-"))
    try:
        for name, content in {**case.files, "stdin": case.stdin, "stdout": b"", "stderr": b""}.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        child = os.fork()
        if not child:
            _become(case, folder)
        status, usage = _wait(child)
        stdout, stderr = ((folder / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
    finally:
        shutil.rmtree(folder)
    code = os.waitstatus_to_exitcode(status)
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    problems = [] if code in _EXPECTED else [f"ends with {code}"]
    is_annotated = "github" in case.words
    # A protocol returns the ids and method names that it was sent.
    shown = "" if case.replies is not None else stdout
    found = obeyed(shown.replace("\n::", "\n").removeprefix("::") if is_annotated else shown) + obeyed(stderr)
    problems += [f"writes {', '.join(sorted(set(found)))}"] if found else []
    problems += [f"takes {memory >> 20} MiB"] if memory > MAX_MEMORY else []
    longest = max(map(len, stderr.splitlines()), default=0)
    problems += [f"writes {longest:,} characters in a line of standard error"] if longest > _LONGEST_LINE else []
    if case.replies is not None and (replies := len(stdout.splitlines())) < case.replies:
        problems += [f"answers {replies} of {case.replies} lines"]
    return Outcome(code, usage.ru_utime + usage.ru_stime, memory, problems, stderr[-1500:])


def _wait(child: int) -> tuple[int, resource.struct_rusage]:
    end = time.monotonic() + _PATIENCE
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            return status, usage
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)


def _become(case: Case, folder: Path) -> None:
    """Run the program in this process, and exit with its code."""
    code = 99
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        os.environ.update(COLUMNS="80", HOME="/nonexistent", NO_COLOR="1")
        for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
            os.environ.pop(name, None)
        for name, descriptor in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
            os.dup2(os.open(name, os.O_RDONLY if not descriptor else os.O_WRONLY), descriptor)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - the process ends
            for number, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        with ExitStack() as stack:
            if case.objects is not None:
                api = stack.enter_context(FakeApi(_cluster(case.objects, case.answers)))
                kubeconfig = Path("kubeconfig")
                kubeconfig.write_bytes(kubeconfig.read_bytes().replace(b"SERVER", api.url.encode()))
            code = process.run(case.words)
        sys.stdout.flush()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 98
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(code)


def _cluster(objects: list[dict[str, object]], answers: dict[str, bytes]) -> FakeCluster:
    def instead(request: ReceivedRequest) -> Answer | None:
        return next((Answer(body=body) for path, body in answers.items() if request.path.endswith(path)), None)

    return FakeCluster(_by_kind(objects), special=instead)


def _by_kind(objects: list[dict[str, object]]) -> dict[str, list[dict[str, object]]]:
    """The server's objects by kind; non-objects are skipped."""
    whole = [
        each
        for each in objects
        if isinstance(each, dict)
        and isinstance(each.get("kind"), str)
        and isinstance(meta := each.get("metadata"), dict)
        and isinstance(meta.get("name"), str)
        and isinstance(meta.get("namespace", ""), str)
    ]
    return objects_by_kind(whole)
