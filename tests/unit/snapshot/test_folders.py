"""Folders whose links lead in circles, elsewhere, or to what is read anyway."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpreempt.errors import InputError
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.load import load_snapshot
from kpreempt.snapshot.manifest import read_manifest


def write_pod(path: Path, name: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: shop\n")


def pods_in(folder: Path, *, follows_links: bool = False) -> list[str]:
    found = read_manifest(str(folder), input_limits=InputLimits(follows_links=follows_links))
    return [each.document["metadata"]["name"] for each in found]


def test_folders_that_link_to_each_other_are_each_read_once(tmp_path: Path) -> None:
    folders = [tmp_path / f"team-{number}" for number in range(10)]
    for folder in folders:
        write_pod(folder / "pod.yaml", folder.name)
        for other in folders:
            (folder / f"to-{other.name}").symlink_to(other)
    assert pods_in(tmp_path) == [folder.name for folder in folders]
    assert [each.metadata.name for each in load_snapshot([str(tmp_path)]).cluster.pods] == pods_in(tmp_path)
    # For a directory given as a link, the files of the others are outside.
    with pytest.raises(InputError, match=r"to-team-1: is a link that leads out of "):
        pods_in(folders[0])
    assert pods_in(folders[0], follows_links=True) == [folder.name for folder in folders]


def test_links_to_nowhere_and_to_themselves_are_not_files(tmp_path: Path) -> None:
    write_pod(tmp_path / "pod.yaml", "api")
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    (tmp_path / "outside").symlink_to(tmp_path.parent / "missing")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert pods_in(tmp_path) == ["api"]
    assert pods_in(tmp_path, follows_links=True) == ["api"]


@pytest.mark.parametrize("target", ["missing", "../missing", "api.yaml"])
@pytest.mark.parametrize("follows_links", [True, False])
def test_links_to_nowhere_with_the_name_of_a_manifest_cannot_be_read(
    tmp_path: Path, target: str, follows_links: bool
) -> None:
    write_pod(tmp_path / "pod.yaml", "api")
    (tmp_path / "api.yaml").symlink_to(target)
    with pytest.raises(InputError, match=r"api\.yaml: cannot read"):
        pods_in(tmp_path, follows_links=follows_links)


def test_a_mounted_config_map_is_read_once(tmp_path: Path) -> None:
    write_pod(tmp_path / "..2026_11_21" / "pod.yaml", "api")
    (tmp_path / "..data").symlink_to("..2026_11_21")
    (tmp_path / "pod.yaml").symlink_to("..data/pod.yaml")
    assert pods_in(tmp_path) == ["api"]


def test_a_link_gives_a_file_the_name_by_which_it_is_read(tmp_path: Path) -> None:
    write_pod(tmp_path / "templates" / "pod.txt", "api")
    (tmp_path / "pod.yaml").symlink_to("templates/pod.txt")
    assert pods_in(tmp_path) == ["api"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_leads_out_of_the_folder_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    inside, outside = tmp_path / "deploy", tmp_path / "elsewhere"
    write_pod(inside / "pod.yaml", "api")
    write_pod(outside / "secret.yaml", "secret")
    link = inside / "shared.yaml"
    link.symlink_to(outside if kind == "folder" else outside / "secret.yaml")
    target = link.resolve()
    for read in (pods_in, lambda folder: load_snapshot([str(folder)])):
        with pytest.raises(InputError) as caught:
            read(inside)
        assert caught.value.message == f"{link}: is a link that leads out of {inside}, to {target}"
        assert caught.value.hint == "--follow-links, if this is expected"
    assert sorted(pods_in(inside, follows_links=True)) == ["api", "secret"]


def test_a_link_out_of_the_folder_that_would_not_be_read_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "NOTES.txt").write_text("hello")
    write_pod(tmp_path / "deploy" / "pod.yaml", "api")
    (tmp_path / "deploy" / "NOTES.txt").symlink_to(tmp_path / "NOTES.txt")
    assert pods_in(tmp_path / "deploy") == ["api"]


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    write_pod(tmp_path / "v2" / "pod.yaml", "api")
    (tmp_path / "current").symlink_to("v2")
    assert pods_in(tmp_path / "current") == ["api"]
    assert pods_in(Path(f"{tmp_path}/current/")) == ["api"]


def test_a_folder_elsewhere_may_lead_back(tmp_path: Path) -> None:
    write_pod(tmp_path / "deploy" / "pod.yaml", "api")
    write_pod(tmp_path / "shared" / "pod.yaml", "shared")
    (tmp_path / "deploy" / "shared").symlink_to("../shared")
    (tmp_path / "shared" / "back").symlink_to("../deploy")
    assert pods_in(tmp_path / "deploy", follows_links=True) == ["api", "shared"]
