"""``--plugin`` and entry points: what is found, and one clear message for each mistake."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from kpreempt.cli import extensions

DEMO = Path(__file__).parents[3] / "fixtures/demo"
EXPLAIN = ["explain", "-f", str(DEMO / "api.yaml"), "--snapshot", str(DEMO / "cluster.yaml"), "-o", "name"]
Kpreempt = Callable[..., Any]

PLUGINS = """
    from typing import Annotated

    import msgspec

    from kpreempt.plugins import SUCCESS, FilterPlugin, Plugin, unschedulable

    class Passing(FilterPlugin):
        def filter(self, state, pod, node_info):
            return SUCCESS

    class NotOnB(Passing):
        def filter(self, state, pod, node_info):
            return unschedulable("node(s) were B") if node_info.node.name == "node-b" else SUCCESS

    class Twin(NotOnB):
        name = "NotOnB"

    class Misspelt(FilterPlugin):
        def fliter(self, state, pod, node_info):
            return SUCCESS

    class OfNoPoint(Plugin):
        pass

    class Known(Passing):
        name = "NodeName"

    class Nameless(Passing):
        name = ""

    class All(Passing):
        name = "*"

    class Numbered(Passing):
        name = 3

    class Wanting(Passing):
        extra_fields = ["Namespace"]

    class Dictionary(Passing):
        args_type = dict

    class FewArguments(Passing):
        def __init__(self, args):
            pass

    class Arguments(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
        max_pods: Annotated[int, msgspec.Meta(ge=1)] = 5

    class Typed(Passing):
        args_type = Arguments

    class Hostile(msgspec.Struct):
        max_pods: int = 5

        def __post_init__(self):
            raise KeyError("no such thing")

    class HostileArguments(Passing):
        args_type = Hostile

    class NotAPlugin:
        pass

    passing = Passing
"""
FORMS = "MODULE:CLASS, FILE.py:CLASS, or the NAME of an installed plugin"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with plugins, in an environment where nothing is installed."""
    (tmp_path / "rack.py").write_text(textwrap.dedent(PLUGINS), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    announce(monkeypatch)
    return tmp_path


def announce(monkeypatch: pytest.MonkeyPatch, *announced: tuple[str, str, str]) -> None:
    """Have packages announce plugins: name, ``module:Class``, and the package with its version."""
    found: dict[str, list[extensions.InstalledPlugin]] = {}
    for name, value, package in announced:
        entry_point = metadata.EntryPoint(name, value, extensions.ENTRY_POINTS)
        found.setdefault(name, []).append(extensions.InstalledPlugin(entry_point, package))
    monkeypatch.setattr(extensions, "installed_plugins", lambda: found)


def configuration(folder: Path, enabled: str, args: str = "{}") -> list[str]:
    path = folder / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        f"- plugins: {{multiPoint: {{enabled: [{{name: {enabled}}}]}}}}\n"
        f"  pluginConfig: [{{name: {enabled}, args: {args}}}]\n",
        encoding="utf-8",
    )
    return ["--scheduler-config", str(path)]


@pytest.mark.parametrize(
    "named",
    [
        pytest.param("rack.py:NotOnB", id="a file here"),
        pytest.param("./rack.py:NotOnB", id="a file by its path"),
        pytest.param("rack:NotOnB", id="a module that is here"),
    ],
)
def test_a_plugin_that_is_named_decides(kpreempt: Kpreempt, named: str) -> None:
    assert kpreempt(*EXPLAIN).stdout == "node/node-b\n"
    run = kpreempt(*EXPLAIN, "--plugin", named)
    assert (run.returncode, run.stdout, run.complaint) == (0, "node/node-e\n", "")


def test_a_plugin_that_is_named_twice_is_one(kpreempt: Kpreempt) -> None:
    run = kpreempt(*EXPLAIN, "--plugin", "rack.py:NotOnB", "--plugin", "rack.py:NotOnB")
    assert (run.returncode, run.stdout) == (0, "node/node-e\n")


@pytest.mark.parametrize(
    ("named", "message", "hint"),
    [
        pytest.param(
            "rack.py:Misspelt", "Misspelt has no filter", "def filter(self, state, pod, node_info)", id="no method"
        ),
        pytest.param(
            "rack.py:NotAPlugin", "rack.py:NotAPlugin is not a plugin class", "class MyPlugin(", id="no plugin"
        ),
        pytest.param("rack.py:SUCCESS", "rack.py:SUCCESS is not a plugin class", "class MyPlugin(", id="no class"),
        pytest.param("rack.py:Nope", "rack.py has no Nope", "its plugins: Passing, NotOnB, ", id="no such class"),
        pytest.param(
            "rack.py:Nameless", "the attribute name of Nameless is not a valid name", 'name = "Nameless"', id="no name"
        ),
        pytest.param(
            "rack.py:All", "the attribute name of All is not a valid name", 'name = "All"', id="the name of all"
        ),
        pytest.param(
            "rack.py:Numbered", "the attribute name of Numbered is not a valid name", 'name = "Numbered"', id="a number"
        ),
        pytest.param(
            "rack.py:Wanting",
            "extra_fields of Wanting is not an ExtraFields",
            "extra_fields = ExtraFields(",
            id="extra_fields is a list",
        ),
        pytest.param(
            "rack.py:Dictionary", "args_type of Dictionary is not a msgspec.Struct", "class Args", id="dict args"
        ),
        pytest.param("rack.py", "--plugin rack.py: class missing", "rack.py:MyPlugin", id="no class is named"),
        pytest.param("rack.py:", f"expected {FORMS}", "rack.py:RackColocation", id="an empty class"),
        pytest.param(":Passing", f"expected {FORMS}", "rack.py:RackColocation", id="an empty module"),
        pytest.param(".:Passing", f"expected {FORMS}", "rack.py:RackColocation", id="a folder"),
        pytest.param("nope.py:Passing", "file nope.py not found", "", id="no such file"),
        pytest.param("nope:Passing", "module nope is neither in the current", FORMS, id="no such module"),
        pytest.param("nope.deep:Passing", "module nope is neither", FORMS, id="no such package"),
        pytest.param(
            "Passing", "plugin 'Passing' is not installed (no plugins are installed)", FORMS, id="not installed"
        ),
    ],
)
def test_what_is_no_plugin_is_wrong_usage(kpreempt: Kpreempt, named: str, message: str, hint: str) -> None:
    run = kpreempt(*EXPLAIN, "--plugin", named)
    assert (run.returncode, run.stdout) == (2, "")
    said, *rest = run.complaint.splitlines()
    assert said.startswith(f"--plugin {named}")
    assert message in said
    assert [line.startswith("hint: ") and hint in line for line in rest] == ([True] if hint else [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("\nraise RuntimeError('no\\nway')", "RuntimeError: no way (bad.py, line 2)", id="raises"),
        pytest.param("import sys; sys.exit(3)", "SystemExit: 3 (bad.py, line 1)", id="ends the process"),
        pytest.param("def x(:", "SyntaxError: invalid syntax (bad.py, line 1)", id="cannot be parsed"),
        pytest.param("\nimport nothere", "No module named 'nothere' (bad.py, line 2)", id="imports what is missing"),
        pytest.param(
            "from kpreempt.plugins import Nope", "cannot import name 'Nope'", id="imports a name that is missing"
        ),
        pytest.param(
            "class E(Exception):\n    def __str__(self): raise KeyError\nraise E",
            "E (bad.py, line 3)",
            id="cannot tell",
        ),
        pytest.param("raise RuntimeError('x' * 10**6)", "xxx (bad.py, line 1)", id="tells too much"),
    ],
)
@pytest.mark.parametrize("named", ["bad.py:Passing", "bad:Passing"])
def test_what_goes_wrong_while_a_module_is_imported_is_reported_with_its_line(
    kpreempt: Kpreempt, here: Path, monkeypatch: pytest.MonkeyPatch, named: str, text: str, message: str
) -> None:
    (here / "bad.py").write_text(text, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "bad", raising=False)
    run = kpreempt(*EXPLAIN, "--plugin", named)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.complaint.startswith(f"--plugin {named} cannot be imported: ")
    assert message in run.stderr
    assert len(run.complaint.splitlines()) == 1
    assert len(run.stderr) < 500


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        pytest.param(
            ["rack.py:Known"],
            "named NodeName is already registered: by kube-scheduler itself, and now by --plugin rack.py:Known",
            id="one of kube-scheduler's own",
        ),
        pytest.param(
            ["rack.py:NotOnB", "rack.py:Twin"],
            "named NotOnB is already registered: by --plugin rack.py:NotOnB, and now by --plugin rack.py:Twin",
            id="another out-of-tree one",
        ),
        pytest.param(["rack.py:OfNoPoint"], "--plugin rack.py:OfNoPoint implements no extension point", id="no point"),
        pytest.param(
            ["rack.py:FewArguments"], 'initializing plugin "FewArguments": FewArguments raised', id="cannot be made"
        ),
    ],
)
def test_what_the_scheduler_cannot_start_with_is_a_bad_configuration(
    kpreempt: Kpreempt, plugins: list[str], message: str
) -> None:
    run = kpreempt(*EXPLAIN, *[word for named in plugins for word in ("--plugin", named)])
    assert (run.returncode, run.stdout) == (3, "")
    assert message in run.complaint.splitlines()[0]
    assert "foreign.py" not in run.stderr


def test_a_plugin_that_is_requested_has_to_be_enabled_by_the_configuration(kpreempt: Kpreempt, here: Path) -> None:
    run = kpreempt(*EXPLAIN, *configuration(here, "NodeName"), "--plugin", "rack.py:NotOnB")
    assert run.returncode == 3
    assert run.complaint == (
        "--plugin rack.py:NotOnB: no profile of the configuration enables NotOnB\n"
        "hint: plugins.multiPoint.enabled: [{name: NotOnB}]\n"
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param("{maxPods: 3}", "", id="what it takes"),
        pytest.param("{apiVersion: example.com/v1, kind: TypedArgs, maxPods: 3}", "", id="with a version and a kind"),
        pytest.param("{maxPods: five}", "Expected `int`, got `str` - at `$.maxPods`", id="of another type"),
        pytest.param("{maxPods: 0}", "Expected `int` >= 1 - at `$.maxPods`", id="out of range"),
        pytest.param("{maxPod: 3}", "Object contains unknown field `maxPod`", id="unknown"),
        pytest.param("[]", "expected an object", id="a list"),
    ],
)
def test_arguments_are_those_that_the_plugin_says_it_takes(
    kpreempt: Kpreempt, here: Path, args: str, message: str
) -> None:
    run = kpreempt(*EXPLAIN, *configuration(here, "Typed", args), "--plugin", "rack.py:Typed")
    expected = f"decoding args for plugin Typed: {message}\n" if message else ""
    assert (run.returncode, run.complaint) == (3 if message else 0, expected)


def test_a_record_of_arguments_that_raises_is_reported(kpreempt: Kpreempt) -> None:
    run = kpreempt(*EXPLAIN, "--plugin", "rack.py:HostileArguments")
    assert (run.returncode, run.stdout) == (3, "")
    assert run.complaint == "decoding args for plugin HostileArguments: KeyError: 'no such thing'\n"


@pytest.mark.parametrize("way", ["--plugin", "--scheduler-config"])
@pytest.mark.parametrize(
    ("announced", "name", "code", "message"),
    [
        pytest.param([("NotOnB", "rack:NotOnB", "racks 1.0")], "NotOnB", 0, "", id="as it should be"),
        pytest.param(
            [("NotOnB", "rack:NotOnB", "a 1.0"), ("NotOnB", "rack:Twin", "b 2.0")],
            "NotOnB",
            2,
            "the plugin NotOnB is provided by a 1.0 and by b 2.0\nhint: --plugin rack:NotOnB\n",
            id="by two packages",
        ),
        pytest.param(
            [("Rack", "rack:NotOnB", "racks 1.0")],
            "Rack",
            2,
            "entry point Rack of racks 1.0: the plugin's name is NotOnB; both names must match\n"
            'hint: NotOnB = "rack:NotOnB"\n',
            id="under another name",
        ),
        pytest.param(
            [("Gone", "rack:Gone", "racks 1.0")],
            "Gone",
            2,
            "entry point Gone of racks 1.0 cannot be imported: AttributeError: module 'rack' has no attribute 'Gone'\n",
            id="that is not in its module",
        ),
        pytest.param(
            [("Away", "nomodule:Away", "racks 1.0")],
            "Away",
            2,
            "entry point Away of racks 1.0: module nomodule is neither in the current directory nor installed\n"
            f"hint: {FORMS}\n",
            id="whose module is away",
        ),
        pytest.param(
            [("Whole", "rack", "racks 1.0")],
            "Whole",
            2,
            "entry point Whole of racks 1.0 is not a plugin class\n"
            "hint: class MyPlugin(kpreempt.plugins.FilterPlugin)\n",
            id="that is a module",
        ),
    ],
)
def test_a_plugin_that_a_package_announces_is_enabled_by_its_name(
    kpreempt: Kpreempt,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    announced: list[tuple[str, str, str]],
    name: str,
    code: int,
    message: str,
) -> None:
    monkeypatch.syspath_prepend(here)
    monkeypatch.delitem(sys.modules, "rack", raising=False)
    announce(monkeypatch, *announced)
    requested = ["--plugin", name] if way == "--plugin" else configuration(here, name)
    run = kpreempt(*EXPLAIN, *requested)
    assert (run.returncode, run.complaint) == (code, message)
    assert run.stdout == ("" if code else "node/node-e\n")


def test_what_no_configuration_names_is_not_imported(
    kpreempt: Kpreempt, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "loud.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    announce(monkeypatch, ("Loud", "loud:Loud", "louds 1.0"), ("NotOnB", "rack:NotOnB", "racks 1.0"))
    assert kpreempt(*EXPLAIN, *configuration(here, "NodeName")).returncode == 0
    assert kpreempt("plugins").returncode == 0


def test_a_plugin_that_is_not_there_is_known_by_the_names_of_those_that_are(
    kpreempt: Kpreempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(monkeypatch, ("Loud", "loud:Loud", "louds 1.0"), ("NotOnB", "rack:NotOnB", "racks 1.0"))
    assert "plugin 'Rack' is not installed (installed: Loud, NotOnB)\n" in kpreempt(*EXPLAIN, "--plugin", "Rack").stderr
