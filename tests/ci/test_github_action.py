"""``action.yml``: its scripts, run like GitHub does, with the real kpreempt instead of the installed one."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import xmlschema

from kpreempt.report.escape import printable
from tests.ci import actions
from tests.ci.places import OUTAGE, ROOT, noted, program

ACTION = actions.load(ROOT / "action.yml")
STEPS = ACTION["runs"]["steps"]
SCHEMAS = ROOT / "tests" / "schemas"

Check = Callable[..., actions.Ended]


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """The runner's folder, with a space in its path."""
    folder = tmp_path / "runner temp"
    folder.mkdir()
    return folder


@pytest.fixture
def check(checkout: Path, programs: Path, temporary: Path, job: dict[str, str]) -> Check:
    """Run the step ``check`` with inputs; missing ones have their defaults."""

    def run(github: dict[str, str] | None = None, **inputs: str) -> actions.Ended:
        assert set(inputs) <= set(ACTION["inputs"])
        given = {name: inputs.get(name, each.get("default", "")) for name, each in ACTION["inputs"].items()}
        installed = {"install": {"outputs": {"kpreempt": str(programs / "kpreempt")}}}
        own = github or {"action_repository": "", "action_ref": ""}
        contexts = {"inputs": given, "steps": installed, "github": own}
        environment = {**job, "GITHUB_SERVER_URL": "https://github.example"}
        return actions.run_step(actions.step(STEPS, "check"), contexts, checkout, temporary, environment)

    return run


def test_a_change_that_breaks_rules_fails_the_step_and_leaves_all_its_files(check: Check, temporary: Path) -> None:
    ended = check(files="manifests", snapshot="cluster.json")
    assert ended.code == 1
    assert set(ended.outputs) == set(ACTION["outputs"])
    assert ended.outputs["exit-code"] == "1"
    jsonschema.Draft4Validator(json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))).validate(
        sarif := json.loads(Path(ended.outputs["sarif"]).read_text(encoding="utf-8"))
    )
    assert [each["ruleId"] for each in sarif["runs"][0]["results"]] == ["max-cascade-depth", "max-broken-dependencies"]
    xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd").validate(ended.outputs["junit"])
    markdown = Path(ended.outputs["markdown"]).read_text(encoding="utf-8")
    assert markdown.startswith("### kpreempt check: failed\n")
    assert (temporary / "summary.md").read_text(encoding="utf-8") == markdown
    left = {each.name for each in Path(ended.outputs["directory"]).iterdir()}
    assert left == {"kpreempt.md", "kpreempt.sarif", "kpreempt.xml"}


def test_the_log_has_the_answer_and_annotations_on_the_files_of_the_change(check: Check) -> None:
    log = check(files="manifests", snapshot="cluster.json").log
    assert "  2 rules violated: max-cascade-depth, max-broken-dependencies." in log
    assert [kind for kind, _ in actions.commands(log)] == ["stop-commands", "error", "error"]
    assert "::error file=manifests/rollout.yaml,line=2,title=kpreempt check%3A max-cascade-depth::" in log


def test_existing_violations_in_the_base_pass(check: Check, checkout: Path) -> None:
    shutil.copytree(checkout / "manifests", checkout / "before")
    ended = check(files="manifests", snapshot="cluster.json", base="before")
    assert (ended.code, ended.outputs["exit-code"]) == (0, "0")
    assert [kind for kind, _ in actions.commands(ended.log)] == ["stop-commands", "notice"]


def test_rules_and_a_baseline_and_further_options_reach_the_check(check: Check, checkout: Path) -> None:
    (checkout / "rules.toml").write_text('[check]\nmax-cascade-depth = "off"\n', encoding="utf-8")
    baseline = "--write-baseline=accepted.json\n\n--expires=2999-12-31\n--max-cascade-depth=4"
    check(files="manifests", snapshot="cluster.json", arguments=baseline)
    accepted = json.loads((checkout / "accepted.json").read_text(encoding="utf-8"))
    ended = check(files="manifests", snapshot="cluster.json", config="rules.toml", baseline="accepted.json")
    assert "max-broken-dependencies" in json.dumps(accepted)
    assert "max-cascade-depth" not in json.dumps(accepted)
    assert ended.code == 0


def test_several_lines_are_several_paths(check: Check, checkout: Path) -> None:
    (checkout / "nodes.json").write_text('{"apiVersion": "v1", "kind": "List", "items": []}', encoding="utf-8")
    missing = check(files="manifests\nno such\n", snapshot="cluster.json")
    assert "no such: cannot read" in missing.log
    assert check(files="manifests\n", snapshot="cluster.json\nnodes.json\n").code == 1


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({"files": "missing", "snapshot": "cluster.json"}, 3),
        ({"files": "\n", "snapshot": "cluster.json"}, 2),
        ({"files": "manifests", "snapshot": "cluster.json", "arguments": "--no-such"}, 2),
        ({"files": "manifests", "kubeconfig": "missing"}, 3),
    ],
    ids=["a file that is missing", "no files", "an option that is none", "a kubeconfig that is missing"],
)
def test_no_answer_is_a_failure_without_files(inputs: dict[str, str], code: int, check: Check, temporary: Path) -> None:
    ended = check(**inputs)
    assert ended.code == code
    assert set(ended.outputs) == {"exit-code", "directory"}
    assert ended.outputs["exit-code"] == str(code)
    assert list(Path(ended.outputs["directory"]).iterdir()) == []
    assert not (temporary / "summary.md").exists()
    assert [kind for kind, _ in actions.commands(ended.log)] == ["stop-commands", "error"]


HOSTILE = {
    "a space": "two words",
    "quotes": 'it\'s "so"',
    "a substitution": "$(touch x)",
    "backticks": "`touch x`",
    "the end of a command": "; touch x #",
    "a closed quote": '" && touch x && "',
    "a variable": "${IFS}$PATH",
    "a pattern": "*",
    "an option": "--write-baseline=x",
    "a short option": "-h",
    "standard input": "-",
    "an expression": "${{ secrets.TOKEN }}",
    "a command of the runner": "::add-mask::manifests",
    "a command in brackets": "##[add-mask]manifests",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_path_is_a_path_whatever_it_looks_like(name: str, check: Check, checkout: Path) -> None:
    missing = check(files=f"manifests\n{name}", snapshot=name, base=name, config=name, baseline=name, kubeconfig=name)
    assert missing.code in (2, 3)
    assert {kind for kind, _ in actions.commands(missing.log)} == {"stop-commands", "error"}
    assert "add-mask" not in "".join(text for _, text in actions.commands(missing.log))
    assert {each.name for each in checkout.iterdir()} == {"manifests", "cluster.json"}


def test_files_of_such_names_are_read(check: Check, checkout: Path) -> None:
    names = [f"{name}.yaml" for name in HOSTILE.values()]
    for name in names:
        shutil.copy(OUTAGE / "rollout.yaml", checkout / name)
    ended = check(files="\n".join(names), snapshot="cluster.json")
    assert ended.code == 1
    # Of a duplicate object, the last counts.
    assert f"file={printable(names[-1]).replace(':', '%3A')}," in ended.log
    assert {kind for kind, _ in actions.commands(ended.log)} == {"stop-commands", "error"}
    assert {each.name for each in checkout.iterdir()} == {"manifests", "cluster.json", *names}


def test_the_folder_that_is_checked_cannot_bring_its_own_modules(check: Check, checkout: Path) -> None:
    for module in ("kpreempt", "yaml", "sitecustomize"):
        (checkout / f"{module}.py").write_text("open('x', 'w')\nraise SystemExit(0)\n", encoding="utf-8")
    assert check(files="manifests", snapshot="cluster.json").code == 1
    assert not (checkout / "x").exists()


def of_file(action: Path, temporary: Path, job: dict[str, str]) -> actions.Ended:
    """The step that determines the file, for the action in a folder."""
    contexts = {"steps": {"python": {"outputs": {"python-path": sys.executable}}}}
    environment = {**job, "GITHUB_ACTION_PATH": str(action)}
    return actions.run_step(actions.step(STEPS, "file"), contexts, action, temporary, environment)


def test_any_difference_changes_the_file(tmp_path: Path, temporary: Path, job: dict[str, str]) -> None:
    action = tmp_path / "the action"
    (action / "kpreempt" / "inner").mkdir(parents=True)
    (action / "tools").mkdir()
    files = ("pyproject.toml", "requirements.lock", "requirements-dev.lock", "tools/single_file.py", "kpreempt/inner/a")
    for name in files:
        (action / name).write_text("one", encoding="utf-8")
    keys = [of_file(action, temporary, job).outputs["key"]]
    (action / "kpreempt" / "a.pyc").write_text("compiled", encoding="utf-8")
    (action / "docs.md").write_text("of no concern", encoding="utf-8")
    assert of_file(action, temporary, job).outputs["key"] == keys[0]
    for name in files:
        (action / name).write_text("two", encoding="utf-8")
        keys.append(of_file(action, temporary, job).outputs["key"])
    assert len(set(keys)) == len(files) + 1
    assert all(re.fullmatch(r"kpreempt-[a-z0-9]+-[A-Za-z0-9_]+-cpython-3\d+-[0-9a-f]{32}", key) for key in keys)


def test_the_file_is_built_from_what_the_lock_files_pin(tmp_path: Path, temporary: Path, job: dict[str, str]) -> None:
    log = tmp_path / "calls"
    # A stand-in for the Python that was set up: it copies itself to the virtual environment, and creates what is
    # requested.
    python = program(
        tmp_path / "python 3",
        "python",
        f'printf "%s\\n" "$@" "" >> "{log}"\n'
        'case "$3" in\n'
        '  venv) mkdir -p "$4/bin"; cp "$0" "$4/bin/python";;\n'
        '  hatchling) mkdir "$8"; touch "$8/kpreempt.whl";;\n'
        "esac\n"
        'case "$2" in\n'
        "  -c) echo 3.13;;\n"
        '  tools/*) test -e "$3"; touch "$4/kpreempt-0-linux.pex";;\n'
        "esac\n",
    )
    target = temporary / "kept"
    contexts = {
        "steps": {
            "python": {"outputs": {"python-path": str(python)}},
            "file": {"outputs": {"path": str(target)}},
        }
    }
    environment = {**job, "GITHUB_ACTION_PATH": str(ROOT)}
    ended = actions.run_step(actions.step(STEPS, "build"), contexts, tmp_path, temporary, environment)
    assert (ended.code, ended.log) == (0, "")
    assert [each.name for each in target.iterdir()] == ["kpreempt.pex"]
    _, locked, pex, _, _, own, packs = noted(log)
    # -I comes first: nothing is imported from the folder that is checked.
    assert all(each[0] == "-I" for each in noted(log))
    pip = ["-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    assert locked == [*pip, "--require-hashes", "--requirement", str(ROOT / "requirements.lock")]
    assert pex[:-1] == [*pip, "--require-hashes", "--requirement"]
    assert (own[:-1], Path(own[-1]).suffix) == ([*pip, "--no-deps"], ".whl")
    assert packs[-1] == "3.13"
    assert list(temporary.glob("kpreempt-build-*")) == []


def test_only_pex_is_taken_from_the_lock_file_of_the_development() -> None:
    (line,) = (each for each in actions.step(STEPS, "build")["run"].splitlines() if each.startswith("awk "))
    command = shlex.split(line.partition(" > ")[0])
    command[-1] = str(ROOT / "requirements-dev.lock")
    taken = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    names = [each.partition("==")[0] for each in taken.splitlines() if each[:1].isalnum()]
    assert names == ["pex"]
    assert taken.count("--hash=sha256:") >= 1


def test_it_is_cached_before_the_change_is_read_or_built_again() -> None:
    order = [each.get("id") or each.get("uses", "").partition("@")[0] for each in STEPS]
    assert order == ["python", "file", "cache", "build", "actions/cache/save", "install", "check"]
    restored, saved = (each["with"] for each in STEPS if "cache" in each.get("uses", ""))
    assert restored == saved
    unless_kept = "${{ steps.cache.outputs.cache-hit != 'true' }}"
    assert [each.get("if") for each in STEPS] == [None, None, None, unless_kept, unless_kept, None, None]


def test_the_program_runs_the_file_by_the_python_that_was_set_up(
    tmp_path: Path, temporary: Path, job: dict[str, str]
) -> None:
    folder = tmp_path / "the $(file)"
    folder.mkdir()
    (folder / "kpreempt.pex").write_text(
        "import os, sys\nprint(sys.flags.isolated, os.environ['PEX_ROOT'], sys.argv[1:])\n", encoding="utf-8"
    )
    contexts = {
        "steps": {
            "python": {"outputs": {"python-path": sys.executable}},
            "file": {"outputs": {"path": str(folder)}},
        }
    }
    ended = actions.run_step(actions.step(STEPS, "install"), contexts, tmp_path, temporary, job)
    assert (ended.code, ended.log) == (0, "")
    request = [ended.outputs["kpreempt"], "a b", "$(c)", ""]
    stated = subprocess.run(request, capture_output=True, check=True, text=True, cwd=tmp_path, env=job).stdout
    root = Path(ended.outputs["kpreempt"]).parent / "root"
    assert stated == f"1 {root} {request[1:]}\n"


def test_findings_link_to_the_pages_of_this_very_action(check: Check) -> None:
    ended = check(files="manifests", snapshot="cluster.json", github={"action_repository": "o/k", "action_ref": "v1"})
    page = "https://github.example/o/k/blob/v1/docs/rules/max-broken-dependencies.md"
    assert page in Path(ended.outputs["markdown"]).read_text(encoding="utf-8")
    (log,) = json.loads(Path(ended.outputs["sarif"]).read_text(encoding="utf-8"))["runs"]
    assert page in [rule["helpUri"] for rule in log["tool"]["driver"]["rules"]]


@pytest.mark.parametrize("step", [each for each in STEPS if "run" in each], ids=lambda each: each["id"])
def test_scripts_are_as_shellcheck_wants_them(step: dict[str, Any], tmp_path: Path) -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("there is no shellcheck here")
    script = tmp_path / "script.sh"
    # As the runner starts it.
    script.write_text(f"#!/usr/bin/env bash\nset -e -o pipefail\n{step['run']}", encoding="utf-8")
    found = subprocess.run([shellcheck, "--severity=style", str(script)], capture_output=True, check=False, text=True)
    assert (found.returncode, found.stdout) == (0, "")


def test_every_input_is_handed_to_a_step_and_every_output_comes_from_one() -> None:
    text = json.dumps(STEPS)
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == set(ACTION["inputs"])
    assert {each["value"] for each in ACTION["outputs"].values()} == {
        f"${{{{ steps.check.outputs.{name} }}}}" for name in ACTION["outputs"]
    }
