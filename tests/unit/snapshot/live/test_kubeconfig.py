from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kpreempt.errors import InputError, UsageError
from kpreempt.network.proxies import proxy_for
from kpreempt.snapshot.live.connection import Connection, connect, timeout_seconds
from kpreempt.snapshot.live.flags import ConnectionFlags, NoClusterError


def write(path: Path, **content: Any) -> Path:
    """A kubeconfig; JSON is YAML."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **content}), encoding="utf-8")
    return path


def cluster(name: str, server: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "cluster": {"server": server, **fields}}


def context(name: str, cluster: str, user: str = "", **fields: Any) -> dict[str, Any]:
    return {"name": name, "context": {"cluster": cluster, "user": user, **fields}}


TWO = {
    "clusters": [cluster("blue", "http://blue.example"), cluster("red", "http://red.example:8080/k8s/")],
    "contexts": [context("b", "blue", "bob", namespace="shop"), context("r", "red", "bob")],
    "users": [{"name": "bob", "user": {"as": "robert"}}, {"name": "eve", "user": {}}],
    "current-context": "b",
}


@pytest.fixture
def two(tmp_path: Path) -> str:
    """A kubeconfig with two contexts."""
    return str(write(tmp_path / "config", **TWO))


def reached(flags: dict[str, Any], environment: dict[str, str]) -> Connection:
    return connect(ConnectionFlags(**flags), environment)


@pytest.mark.parametrize(
    ("flags", "server", "namespace"),
    [
        pytest.param({}, "http://blue.example", "shop", id="the current context counts"),
        pytest.param({"context": "r"}, "http://red.example:8080/k8s", "default", id="--context chooses another"),
        pytest.param({"cluster": "red"}, "http://red.example:8080/k8s", "shop", id="--cluster leaves the context"),
        pytest.param({"server": "http://other"}, "http://other", "shop", id="--server leaves the context"),
        pytest.param({"server": "localhost:8001"}, "http://localhost:8001", "shop", id="without a scheme it is http"),
        pytest.param(
            {"server": "localhost:6443", "insecure_skip_tls_verify": True},
            "https://localhost:6443",
            "shop",
            id="without a scheme it is https where TLS is spoken of",
        ),
        pytest.param({"server": "http://user:pw@other/"}, "http://other", "shop", id="a password in a URL is dropped"),
        pytest.param({"server": "http://[::1]:8080"}, "http://[::1]:8080", "shop", id="an IPv6 address"),
    ],
)
def test_flags_override_the_kubeconfig(two: str, flags: dict[str, Any], server: str, namespace: str) -> None:
    connection = reached({"kubeconfig": two, **flags}, {})
    assert (connection.server, connection.namespace) == (server, namespace)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param({"context": "x"}, '--context: the kubeconfig has no context "x"', id="an unknown context"),
        pytest.param({"cluster": "x"}, '--cluster: the kubeconfig has no cluster "x"', id="an unknown cluster"),
        pytest.param({"user": "x"}, '--user: the kubeconfig has no user "x"', id="an unknown user"),
        pytest.param(
            {"user": "eve", "as_groups": ("g",)},
            "impersonating a group, UID or extra requires a user",
            id="a group without a user",
        ),
        pytest.param(
            {"insecure_skip_tls_verify": True, "certificate_authority": "x"},
            "--insecure-skip-tls-verify and --certificate-authority cannot be used together",
            id="trust and no trust",
        ),
        pytest.param({"request_timeout": "1x"}, '--request-timeout: "1x" is not a duration', id="no duration"),
        pytest.param({"server": "ftp://x"}, "--server or the kubeconfig's server is not a URL", id="no URL"),
        pytest.param({"as_user": "a\nb"}, "impersonate-user: a header cannot hold that name", id="a name in two lines"),
    ],
)
def test_flags_that_make_no_sense_are_usage_errors(two: str, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        reached({"kubeconfig": two, **flags}, {})
    assert caught.value.message == message


def test_of_several_files_the_first_that_says_something_counts(tmp_path: Path) -> None:
    first = write(tmp_path / "a", clusters=[cluster("blue", "http://first")], contexts=None)
    second = write(tmp_path / "b", **TWO)
    third = write(tmp_path / "c", **{**TWO, "current-context": "r"})
    (tmp_path / "empty").touch()
    paths = [tmp_path / "missing", "", tmp_path / "empty", first, second, third]
    connection = reached({}, {"KUBECONFIG": ":".join(map(str, paths))})
    assert (connection.context, connection.server) == ("b", "http://first")


def test_the_default_file_is_in_the_home_folder(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", **TWO)
    assert reached({}, {"HOME": str(tmp_path)}).server == "http://blue.example"


def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    fixtures = Path(__file__).parents[4] / "fixtures" / "tls"
    (tmp_path / "ca.crt").write_bytes((fixtures / "ca.crt").read_bytes())
    (tmp_path / "token").write_text("secret\n", encoding="utf-8")
    path = write(
        tmp_path / "config",
        clusters=[cluster("c", "https://c", **{"certificate-authority": "ca.crt"})],
        contexts=[context("c", "c", "u")],
        users=[{"name": "u", "user": {"tokenFile": "token"}}],
        **{"current-context": "c"},
    )
    assert reached({"kubeconfig": str(path)}, {}).headers == [("Authorization", "Bearer secret")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param({"users": [{"name": 5}]}, "users[0].name: expected `str`, got `int`", id="a name that is none"),
        pytest.param({"clusters": {}}, "clusters: expected `array`, got `object`", id="no list"),
        pytest.param(
            {"clusters": [{"cluster": {}}]},
            "clusters[0]: the entry missing required field `name`",
            id="an entry without a name",
        ),
    ],
)
def test_a_kubeconfig_of_another_shape_is_named_with_its_field(
    tmp_path: Path, content: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "config", **content)
    with pytest.raises(InputError) as caught:
        reached({"kubeconfig": str(path)}, {})
    assert caught.value.message == f"{path}: {message}"


def test_a_kubeconfig_that_is_requested_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing: cannot read: no such file"):
        reached({"kubeconfig": str(tmp_path / "nothing")}, {})


def test_a_context_without_its_cluster_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "config", contexts=[context("c", "gone")], **{"current-context": "c"})
    with pytest.raises(UsageError, match='the cluster of context "c" is not in the kubeconfig'):
        reached({"kubeconfig": str(path)}, {})


def test_nothing_at_all_is_no_cluster() -> None:
    with pytest.raises(NoClusterError) as caught:
        reached({}, {})
    assert caught.value.message == "no cluster given: there is neither --snapshot nor a kubeconfig"
    assert "--snapshot" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 60), ("30s", 30), ("1m", 60), ("1h1m1.5s", 3661.5), ("15", 15), ("0", None), ("0s", None), ("100ms", 0.1)],
)
def test_timeouts_are_written_as_for_kubectl(text: str, seconds: float | None) -> None:
    assert timeout_seconds(text) == seconds


@pytest.mark.parametrize("text", ["-1s", "1 m", "s", "1d", "٣", "9" * 30])
def test_other_timeouts_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        timeout_seconds(text)


PROXY = {"HTTPS_PROXY": "http://proxy:3128"}


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        pytest.param("https://a.b", {}, "", id="none is named"),
        pytest.param("https://a.b", PROXY, "http://proxy:3128", id="one for https"),
        pytest.param("http://a.b", PROXY, "", id="that is not one for http"),
        pytest.param("https://a.b", {"https_proxy": "proxy:1"}, "http://proxy:1", id="small letters, no scheme"),
        pytest.param("https://localhost:6443", PROXY, "", id="never for localhost"),
        pytest.param("https://127.0.0.9:6443", PROXY, "", id="never for loopback"),
        pytest.param("https://a.b", {**PROXY, "NO_PROXY": "*"}, "", id="a star keeps all out"),
        pytest.param("https://a.b", {**PROXY, "NO_PROXY": "x, b"}, "", id="a domain keeps its hosts out"),
        pytest.param("https://ab", {**PROXY, "NO_PROXY": "b"}, "http://proxy:3128", id="a domain is not an ending"),
        pytest.param(
            "https://b", {**PROXY, "NO_PROXY": ".b"}, "http://proxy:3128", id="a dot leaves the domain itself"
        ),
        pytest.param("https://10.1.2.3", {**PROXY, "NO_PROXY": "10.0.0.0/8"}, "", id="a range of addresses"),
        pytest.param("https://11.1.2.3", {**PROXY, "NO_PROXY": "10.0.0.0/8"}, "http://proxy:3128", id="another range"),
        pytest.param("https://a.b:6443", {**PROXY, "NO_PROXY": "a.b:6443"}, "", id="a host with its port"),
        pytest.param("https://a.b", {**PROXY, "NO_PROXY": "a.b:6443"}, "http://proxy:3128", id="another port"),
    ],
)
def test_proxies_are_found_as_go_finds_them(server: str, environment: dict[str, str], proxy: str) -> None:
    assert proxy_for(server, "", environment) == proxy


def test_the_clusters_own_proxy_goes_first_and_socks_is_refused() -> None:
    assert proxy_for("https://localhost", "http://own:1", PROXY) == "http://own:1"
    with pytest.raises(InputError, match="SOCKS"):
        proxy_for("https://a", "socks5://own:1", PROXY)
