"""The path of a request: which modules receive it before the library's answer is there, and what a start loads.

``python tools/request_path.py [--max-path N] [--max-loaded N] [-v]`` runs ``kpreempt explain``, ``check`` and ``drain``
on the example clusters, each in a separate process, and prints for each how many modules receive the request, and for
``explain`` how many modules of ``kpreempt`` are loaded at its end. It fails where a figure is above its bound.

A module receives the request if one of its functions is called, from the start of the command until ``answer`` of
``kpreempt.library.handlers`` returns, with one of these as an argument: a request (a record of options), the context
that it is put to, what a field of either holds (a record, a list that is not empty, or a text that was given), or a
record of ``cli``, ``library`` or ``analysis`` that holds one of these. Of a context the cluster and the scheduler do
not count, since all that decides gets them; nor do methods of what is handed on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMANDS = {
    "explain": "explain -f fixtures/demo/api.yaml --snapshot fixtures/demo/cluster.yaml",
    "check": "check -f fixtures/check/outage/rollout.yaml --snapshot fixtures/check/outage/cluster.yaml",
    "drain": "drain n1 --ignore-daemonsets --snapshot fixtures/drain/cluster.yaml",
}
# Runs in the process of a command, and prints the modules on standard error.
_TRACED = """
import sys
from types import FunctionType, ModuleType
from kpreempt.cli.process import run

CARRIERS = {"kpreempt.library.options.Request", "kpreempt.library.schedulers.Context"}
MAKERS = ("kpreempt.cli.", "kpreempt.library.", "kpreempt.analysis.")
NOT_OF_IT = {"loaded", "configured", "phases", "spread", "warn", "now", "ages", "given", "command_name", "stopwatch"}
kinds = {}
parts = {}
received = {}
done = []

def is_carrier(kind):
    if kind not in kinds:
        kinds[kind] = any(f"{each.__module__}.{each.__name__}" in CARRIERS for each in kind.__mro__)
    return kinds[kind]

def fields_of(value):
    kind = type(value)
    if hasattr(kind, "__getattr__"):
        return []
    names = getattr(kind, "_fields", ()) or getattr(kind, "__struct_fields__", ()) or getattr(value, "__dict__", ())
    return [(name, getattr(value, name, None)) for name in list(names) if name not in NOT_OF_IT]

def remember(value):
    for name, part in fields_of(value):
        is_default = part is getattr(type(value), name, None)
        if part and not is_default and not isinstance(part, (int, float, type, FunctionType, ModuleType)):
            # Kept, so that no other object gets its place.
            parts[id(part)] = part

def holds_part(value):
    kind = type(value)
    if not kind.__module__.startswith(MAKERS) or isinstance(value, type):
        return False
    return any(id(part) in parts for _, part in fields_of(value))

def trace(frame, event, argument):
    module = frame.f_globals.get("__name__", "")
    if not module.startswith("kpreempt.") or done:
        return
    code = frame.f_code
    if event == "return":
        if (module, code.co_name) == ("kpreempt.library.handlers", "answer"):
            done.append(True)
        return
    if event != "call" or code.co_name.startswith("<"):
        return
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        value = frame.f_locals.get(name)
        if is_carrier(type(value)) or (id(value) not in parts and holds_part(value)):
            remember(value)
            parts.setdefault(id(value), value)
        if id(value) in parts and name != "self":
            received.setdefault(module, code.co_name)

sys.setprofile(trace)
code = run(sys.argv[1:])
sys.setprofile(None)
loaded = [name for name in sys.modules if name.partition(".")[0] == "kpreempt"]
print(len(loaded), *(f"{module}:{name}" for module, name in received.items()), file=sys.stderr)
"""


def measure(command: str) -> tuple[int, list[str]]:
    """The number of modules a command loads, and the modules that receive its request, each with the first function."""
    words = [sys.executable, "-c", _TRACED, *command.split()]
    run = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    loaded, *received = run.stderr.splitlines()[-1].split()
    return int(loaded), received


def main() -> int:
    """Print the figures; return 1 if one is above its limit."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--max-path", type=int, metavar="N", help="maximum number of modules that receive a request")
    parser.add_argument("--max-loaded", type=int, metavar="N", help="maximum number of modules that explain loads")
    parser.add_argument("-v", "--verbose", action="store_true", help="name the modules")
    options = parser.parse_args()
    fails = False
    for name, command in COMMANDS.items():
        loaded, received = measure(command)
        print(f"{name}: {len(received)} modules receive the request")
        if options.verbose:
            print(*(f"  {each}" for each in received), sep="\n")
        fails |= options.max_path is not None and len(received) > options.max_path
        if name == "explain":
            print(f"{name}: {loaded} modules are loaded")
            fails |= options.max_loaded is not None and loaded > options.max_loaded
    return int(fails)


if __name__ == "__main__":
    raise SystemExit(main())
