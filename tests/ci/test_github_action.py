"""``action.yml``: its scripts, run as GitHub does, with the real kpreempt in the place of the installed one."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import xmlschema

from tests.ci import actions
from tests.ci.installing import essence, makefile_installs
from tests.ci.places import OUTAGE, ROOT, noted, program

ACTION = actions.load(ROOT / "action.yml")
STEPS = ACTION["runs"]["steps"]
SCHEMAS = ROOT / "tests" / "schemas"

Check = Callable[..., actions.Ended]


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """The runner's folder, of which the path has a space."""
    folder = tmp_path / "runner temp"
    folder.mkdir()
    return folder


@pytest.fixture
def check(checkout: Path, programs: Path, temporary: Path, job: dict[str, str]) -> Check:
    """Run the step ``check`` with inputs; those that are not given have their defaults."""

    def run(**inputs: str) -> actions.Ended:
        assert set(inputs) <= set(ACTION["inputs"])
        given = {name: inputs.get(name, each.get("default", "")) for name, each in ACTION["inputs"].items()}
        installed = {"install": {"outputs": {"kpreempt": str(programs / "kpreempt")}}}
        contexts = {"inputs": given, "steps": installed}
        return actions.run_step(actions.step(STEPS, "check"), contexts, checkout, temporary, job)

    return run


def test_a_change_that_breaks_rules_fails_the_step_and_leaves_all_its_files(check: Check, temporary: Path) -> None:
    ended = check(files="manifests", snapshot="cluster.json")
    assert ended.code == 1
    assert set(ended.outputs) == set(ACTION["outputs"])
    assert ended.outputs["exit-code"] == "1"
    jsonschema.Draft4Validator(json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))).validate(
        sarif := json.loads(Path(ended.outputs["sarif"]).read_text(encoding="utf-8"))
    )
    assert [each["ruleId"] for each in sarif["runs"][0]["results"]] == ["max-cascade-depth", "max-stranded"]
    xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd").validate(ended.outputs["junit"])
    markdown = Path(ended.outputs["markdown"]).read_text(encoding="utf-8")
    assert markdown.startswith("### kpreempt check: failed\n")
    assert (temporary / "summary.md").read_text(encoding="utf-8") == markdown
    left = {each.name for each in Path(ended.outputs["directory"]).iterdir()}
    assert left == {"kpreempt.md", "kpreempt.sarif", "kpreempt.xml"}


def test_the_log_has_the_answer_and_annotations_on_the_files_of_the_change(check: Check) -> None:
    log = check(files="manifests", snapshot="cluster.json").log
    assert "  2 rules not kept: max-cascade-depth, max-stranded." in log
    assert [kind for kind, _ in actions.commands(log)] == ["stop-commands", "error", "error"]
    assert "::error file=manifests/rollout.yaml,line=2,title=kpreempt check%3A max-cascade-depth::" in log


def test_what_the_base_does_anyway_leaves_the_gate_open(check: Check, checkout: Path) -> None:
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
    assert "max-stranded" in json.dumps(accepted)
    assert "max-cascade-depth" not in json.dumps(accepted)
    assert ended.code == 0


def test_several_lines_are_several_paths(check: Check, checkout: Path) -> None:
    (checkout / "nodes.json").write_text('{"apiVersion": "v1", "kind": "List", "items": []}', encoding="utf-8")
    missing = check(files="manifests\nno such\n", snapshot="cluster.json")
    assert "no such: cannot be read" in missing.log
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
    # Of an object that is there twice the last counts.
    assert f"file={names[-1].replace(':', '%3A')}," in ended.log
    assert {kind for kind, _ in actions.commands(ended.log)} == {"stop-commands", "error"}
    assert {each.name for each in checkout.iterdir()} == {"manifests", "cluster.json", *names}


def test_the_folder_that_is_checked_cannot_bring_its_own_modules(check: Check, checkout: Path) -> None:
    for module in ("kpreempt", "yaml", "sitecustomize"):
        (checkout / f"{module}.py").write_text("open('x', 'w')\nraise SystemExit(0)\n", encoding="utf-8")
    assert check(files="manifests", snapshot="cluster.json").code == 1
    assert not (checkout / "x").exists()


def test_it_is_installed_by_the_commands_of_the_makefile(
    tmp_path: Path, checkout: Path, temporary: Path, job: dict[str, str]
) -> None:
    log = tmp_path / "calls"
    # Stands for the Python that was set up, and copies itself to where a virtual environment's is.
    python = program(
        tmp_path / "python 3",
        "python",
        f'printf "%s\\n" "$@" "" >> "{log}"\nif [ "$3" = venv ]; then mkdir "$4/bin"; cp "$0" "$4/bin/python"; fi\n',
    )
    contexts = {"steps": {"python": {"outputs": {"python-path": str(python)}}}}
    environment = {**job, "GITHUB_ACTION_PATH": "/the action"}
    ended = actions.run_step(actions.step(STEPS, "install"), contexts, checkout, temporary, environment)
    assert (ended.code, ended.log) == (0, "")
    made, *installs = noted(log)
    assert made[:3] == ["-I", "-m", "venv"]
    assert ended.outputs == {"kpreempt": f"{made[3]}/bin/kpreempt"}
    # -I comes first: pip itself is not taken from the folder that is checked, either.
    assert all(each[:3] == ["-I", "-m", "pip"] for each in installs)
    here = [[word.removeprefix("/the action/").replace("/the action", ".") for word in each[3:]] for each in installs]
    assert [essence(each) for each in here] == makefile_installs()


def test_every_input_is_handed_to_a_step_and_every_output_comes_from_one() -> None:
    text = json.dumps(STEPS)
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == set(ACTION["inputs"])
    assert {each["value"] for each in ACTION["outputs"].values()} == {
        f"${{{{ steps.check.outputs.{name} }}}}" for name in ACTION["outputs"]
    }
