from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kpreempt.errors import InputError
from kpreempt.fleet.sources import Target, shown, staged, targets_of, unpacked_size


def test_a_glob_has_a_cluster_for_each_match_by_the_least_name_that_tells_them_apart(tmp_path: Path) -> None:
    for name in ("eu/prod.json.gz", "us/prod.json.gz", "us/dev.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"{}")
    found = targets_of([f"{tmp_path}/*/*", f"{tmp_path}/us/dev.yaml"], [], "")
    assert [each.name for each in found] == ["dev", "eu/prod", "us/prod"]


def test_files_that_differ_in_their_endings_only_have_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"")
    (tmp_path / "a.yaml").write_bytes(b"")
    names = [each.name for each in targets_of([f"{tmp_path}/*"], [], "")]
    assert len(set(names)) == 2
    assert all("a-" in each for each in names)


def test_a_folder_is_one_cluster_and_contexts_are_others(tmp_path: Path) -> None:
    found = targets_of([str(tmp_path)], ["prod", "prod"], "config")
    assert [(each.context, each.kubeconfig) for each in found if each.context] == [("prod", "config")]
    assert len(found) == 2


def test_another_content_is_another_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"{}")
    (before,) = targets_of([str(path)], [], "")
    path.write_bytes(b"{ }")
    (after,) = targets_of([str(path)], [], "")
    assert before.fingerprint != after.fingerprint


@pytest.mark.parametrize("place", ["/nowhere/a.json", "/nowhere/*.json", "memory://none/*.json"])
def test_what_is_not_there_is_reported(place: str) -> None:
    with pytest.raises(InputError, match=r"no such|no match"):
        targets_of([place], [], "")


def test_urls_are_listed_brought_here_and_gone_afterwards() -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    system.pipe("/fleet/a.json", b'{"a": 1}')
    system.pipe("/fleet/b.json", b"{}")
    first, second = targets_of(["memory://fleet/*.json"], [], "")
    assert (first.name, second.name) == ("a", "b")
    assert first.fingerprint != second.fingerprint
    with staged(first, 100) as path:
        assert Path(path).read_bytes() == b'{"a": 1}'
    assert not Path(path).exists()
    with pytest.raises(InputError, match="larger than"), staged(first, 3):
        pass


def test_a_folder_behind_a_url_comes_whole_within_the_bound() -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    system.pipe({"/folder/x/a.json": b"12345", "/folder/b.json": b"678"})
    with staged(Target("folder", "memory://folder"), 8) as path:
        assert sorted(each.name for each in Path(path).rglob("*.json")) == ["a.json", "b.json"]
        assert unpacked_size(path, 100) == (8, 0)
    with pytest.raises(InputError, match="larger than"), staged(Target("folder", "memory://folder"), 7):
        pass


def test_objects_are_counted_wherever_a_piece_of_the_file_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"kind":"List","metadata":{},"items":[{"metadata":{}},{"metadata":{}}]}')
    for chunk in range(1, 40):
        monkeypatch.setattr("kpreempt.fleet.sources._CHUNK", chunk)
        assert unpacked_size(str(path), 1_000).num_objects == 3, chunk


def test_an_unknown_protocol_is_one_message() -> None:
    with pytest.raises(Exception, match="nosuch"):
        targets_of(["nosuch://a/*.json"], [], "")


def test_sources_are_reported_without_secrets() -> None:
    assert shown("https://user:password@host/a.json?token=secret") == "https://host/a.json"
    assert shown("/a/b?c") == "/a/b?c"


def test_a_packed_snapshot_counts_as_what_it_unpacks_to_and_reading_stops_at_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b" " * 50_000))
    assert unpacked_size(str(path), 10**6) == (50_000, 0)
    with pytest.raises(InputError, match="unpacks to more"):
        unpacked_size(str(path), 1_000)
