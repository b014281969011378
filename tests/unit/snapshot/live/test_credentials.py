from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kpreempt.errors import InputError
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import Connection, connect, service_account
from kpreempt.snapshot.live.flags import ConnectionFlags
from tests.fake_api import TLS, FakeApi, good


def connected(folder: Path, user: dict[str, Any], server: str = "https://localhost", **flags: Any) -> Connection:
    """The connection of a kubeconfig with one cluster, one user and one context."""
    authority = base64.b64encode((TLS / "ca.crt").read_bytes()).decode()
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path = folder / "config"
    path.write_text(json.dumps(config), encoding="utf-8")
    return connect(ConnectionFlags(kubeconfig=str(path), **flags), {})


@pytest.mark.parametrize(
    ("user", "flags", "headers"),
    [
        pytest.param({"token": "t"}, {}, [("Authorization", "Bearer t")], id="a token"),
        pytest.param({"token": "t"}, {"token": "o"}, [("Authorization", "Bearer o")], id="--token goes first"),
        pytest.param(
            {"exec": {"command": "/nothing"}},
            {"token": "o"},
            [("Authorization", "Bearer o")],
            id="also before a plugin",
        ),
        pytest.param({"username": "me", "password": "pw"}, {}, [("Authorization", "Basic bWU6cHc=")], id="a password"),
        pytest.param(
            {"auth-provider": {"name": "oidc", "config": {"id-token": "t"}}},
            {},
            [("Authorization", "Bearer t")],
            id="the token of an OpenID provider",
        ),
        pytest.param(
            {"as": "bob", "as-groups": ["g"], "as-user-extra": {"a/b": ["1", "2"]}},
            {},
            [
                ("Impersonate-User", "bob"),
                ("Impersonate-Group", "g"),
                ("Impersonate-Extra-a%2Fb", "1"),
                ("Impersonate-Extra-a%2Fb", "2"),
            ],
            id="the kubeconfig impersonates",
        ),
        pytest.param(
            {"as": "bob", "as-groups": ["g"]},
            {"as_user": "eve", "as_uid": "7", "as_groups": ("a", "b")},
            [
                ("Impersonate-User", "eve"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Group", "a"),
                ("Impersonate-Group", "b"),
            ],
            id="flags impersonate",
        ),
    ],
)
def test_headers_say_who_asks(
    tmp_path: Path, user: dict[str, Any], flags: dict[str, Any], headers: list[tuple[str, str]]
) -> None:
    assert connected(tmp_path, user, **flags).headers == headers


def test_every_impersonated_group_reaches_the_server(tmp_path: Path) -> None:
    with FakeApi(lambda _: good(1), certificate="server.pem") as fake:
        api = Api(connected(tmp_path, {"token": "t"}, fake.url, as_user="bob", as_groups=("a", "b")))
        api.get("/version")
        api.close()
    assert fake.requested[0].headers["impersonate-group"] == ["a", "b"]
    assert fake.requested[0].headers["authorization"] == ["Bearer t"]


def test_no_credentials_go_over_an_open_wire(tmp_path: Path) -> None:
    user = {"token": "t", "exec": {"command": "/nothing"}, "as": "bob"}
    assert connected(tmp_path, user, "http://localhost").headers == [("Impersonate-User", "bob")]


@pytest.mark.parametrize(
    ("user", "message"),
    [
        pytest.param({"token": "a\nb"}, "the token contains an invalid character", id="a token of two lines"),
        pytest.param(
            {"client-certificate-data": "%%%"}, "kubeconfig: client-certificate-data: is not base64", id="data"
        ),
        pytest.param(
            {"client-certificate": str(TLS / "client.pem")},
            "user u: client-key is missing, although its counterpart is set",
            id="a certificate without its key",
        ),
        pytest.param(
            {"client-certificate": str(TLS / "client.pem"), "client-key": str(TLS / "server.pem")},
            "server.pem: the client certificate or key cannot be used",
            id="a key of another certificate",
        ),
        pytest.param(
            {"client-certificate": str(TLS / "encrypted.pem"), "client-key": str(TLS / "encrypted.pem")},
            "encrypted.pem: the client key is encrypted",
            id="an encrypted key does not ask for its password",
        ),
        pytest.param(
            {"client-certificate": str(TLS / "ca.crt"), "client-key": str(TLS / "ca.crt")},
            "ca.crt: the client certificate or key cannot be used",
            id="a key that is none",
        ),
        pytest.param(
            {"client-certificate-data": "é", "client-key-data": "é"},
            "kubeconfig: client-certificate-data: is not base64",
            id="a certificate that is not ASCII",
        ),
        pytest.param({"tokenFile": "/a\0b"}, "cannot read: embedded null byte", id="a path that is none"),
        pytest.param({"tokenFile": "/nothing"}, "/nothing: cannot read: no such file", id="a token that is not there"),
        pytest.param(
            {"auth-provider": {"name": "gcp"}},
            'user u: the auth provider "gcp" is no longer supported, by kubectl either',
            id="a provider of old",
        ),
        pytest.param(
            {"exec": {"command": "/nothing/there", "apiVersion": "v1", "installHint": "\n  get it\n"}},
            "user u: the credential plugin /nothing/there: cannot run: no such file",
            id="a plugin that is not installed",
        ),
    ],
)
def test_credentials_that_cannot_be_used_are_named(tmp_path: Path, user: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        connected(tmp_path, user)
    assert message in caught.value.message


@pytest.mark.parametrize("has_data", [True, False], ids=["as data", "as files"])
def test_a_client_certificate_is_shown_to_the_server(tmp_path: Path, has_data: bool) -> None:
    pem = TLS / "client.pem"
    data = base64.b64encode(pem.read_bytes()).decode()
    files = {"client-certificate": str(pem), "client-key": str(pem)}
    user = {"client-certificate-data": data, "client-key-data": data} if has_data else files
    with FakeApi(lambda _: good(1), certificate="server.pem", wants_client=True) as fake:
        api = Api(connected(tmp_path, user, fake.url))
        assert api.get("/version") == b"1"
        api.close()


def plugin(folder: Path, script: str, **fields: Any) -> dict[str, Any]:
    """A user whose credentials come from a program."""
    path = folder / "plugin"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{script}", encoding="utf-8")
    path.chmod(0o755)
    return {"exec": {"command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1", **fields}}


ANSWER = (
    "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential', 'status': %s}))\n"
)


def test_a_plugin_gets_arguments_environment_and_cluster_and_gives_a_token(tmp_path: Path) -> None:
    script = (
        "spec = json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec']\n"
        "token = f\"{sys.argv[1]}-{os.environ['WHO']}-{spec['cluster']['server'].rpartition('/')[2]}\"\n"
        + ANSWER
        % "{'token': token}"
    )
    environment = [{"name": "WHO", "value": "me"}]
    user = plugin(tmp_path, script, args=["for"], env=environment, provideClusterInfo=True)
    assert connected(tmp_path, user).headers == [("Authorization", "Bearer for-me-localhost")]


def test_a_plugin_gives_a_client_certificate(tmp_path: Path) -> None:
    script = f"pem = open({str(TLS / 'client.pem')!r}).read()\n" + ANSWER % (
        "{'clientCertificateData': pem, 'clientKeyData': pem}"
    )
    with FakeApi(lambda _: good(1), certificate="server.pem", wants_client=True) as fake:
        api = Api(connected(tmp_path, plugin(tmp_path, script), fake.url))
        assert api.get("/version") == b"1"
        api.close()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param("sys.exit('log in first')", "fails: process returned 1. log in first", id="it fails"),
        pytest.param("print('hello')", "fails: failed to decode process output", id="it prints something else"),
        pytest.param(ANSWER % "{}", "returned neither a token nor a certificate with its key", id="it has nothing"),
        pytest.param(
            ANSWER % "{'token': 5}", "returned something other than an ExecCredential", id="its token is no text"
        ),
    ],
)
def test_a_plugin_that_fails_is_named(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        connected(tmp_path, plugin(tmp_path, script))
    assert caught.value.message.startswith("user u: the credential plugin ")
    assert message in caught.value.message


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("sys.stdin.read(); import signal; signal.pause()", id="it waits"),
        pytest.param("print('{', flush=True)\nimport signal; signal.pause()", id="it stops half-way"),
        pytest.param("sys.stdout.close(); import signal; signal.pause()", id="it says nothing and stays"),
        pytest.param(
            "import subprocess; subprocess.run([sys.executable, '-c', 'import signal; signal.pause()'])",
            id="it waits for another program",
        ),
    ],
)
def test_a_plugin_that_never_answers_is_given_up_in_time(tmp_path: Path, script: str) -> None:
    with pytest.raises(InputError) as caught:
        connected(tmp_path, plugin(tmp_path, script), request_timeout="300ms")
    assert caught.value.message.endswith("plugin: timed out after 0.3s")
    assert caught.value.hint == "--request-timeout 5m"


def test_a_plugin_that_says_too_much_is_not_heard_to_the_end(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="returned more than 1 MiB"):
        connected(tmp_path, plugin(tmp_path, "while True: print('x' * 1000)"))


def test_a_plugin_of_another_version_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"does not match client\.authentication\.k8s\.io/v1beta1"):
        connected(
            tmp_path, plugin(tmp_path, ANSWER % "{'token': 'x'}", apiVersion="client.authentication.k8s.io/v1beta1")
        )


def test_a_plugin_gets_none_of_what_is_piped_in(tmp_path: Path) -> None:
    script = ANSWER % "{'token': 'nothing' if not sys.stdin.read() else 'something'}"
    assert connected(tmp_path, plugin(tmp_path, script)).headers == [("Authorization", "Bearer nothing")]


def test_within_a_pod_its_service_account_is_used(tmp_path: Path) -> None:
    for name, text in (("token", "secret\n"), ("namespace", "shop"), ("ca.crt", (TLS / "ca.crt").read_text())):
        (tmp_path / name).write_text(text, encoding="utf-8")
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    account = service_account(environment, tmp_path)
    assert account is not None
    assert (account.cluster.server, account.namespace) == ("https://[fd00::1]:443", "shop")
    assert (account.user.token, account.cluster.certificate_authority) == ("secret", str(tmp_path / "ca.crt"))
    assert service_account({}, tmp_path) is None
    (tmp_path / "ca.crt").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="the pod's service account cannot be used"):
        service_account(environment, tmp_path)


@pytest.mark.parametrize("name", ["token", "ca.crt", "namespace"])
def test_a_file_of_a_service_account_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("kpreempt.files.LARGEST_FILE", 1 << 20)
    for each in ("token", "ca.crt", "namespace"):
        (tmp_path / each).write_text("x", encoding="utf-8")
    (tmp_path / name).write_bytes(b"x" * ((1 << 20) + 1))
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(InputError, match=f"{name}: larger than 1 MiB"):
        service_account(environment, tmp_path)


LONG = "c2VjcmV0LXRva2VuLW9mLWEtdXNlcg"


@pytest.mark.parametrize(
    ("user", "flags", "secret"),
    [
        pytest.param({"token": LONG}, {}, LONG, id="a token"),
        pytest.param({}, {"token": LONG}, LONG, id="--token"),
        pytest.param({"username": "me", "password": "correct horse"}, {}, "correct horse", id="a password"),
        pytest.param({"username": "me", "password": "correct horse"}, {}, "bWU6Y29ycmVjdCBob3JzZQ==", id="a pair"),
        pytest.param({"auth-provider": {"name": "oidc", "config": {"id-token": LONG}}}, {}, LONG, id="OpenID"),
        pytest.param(
            {
                "client-certificate": str(TLS / "client.pem"),
                "client-key": str(TLS / "client.pem"),
            },
            {},
            (TLS / "client.pem").read_text().splitlines()[3],
            id="a line of a key",
        ),
    ],
)
def test_what_the_server_is_sent_is_known_as_secret(
    tmp_path: Path, user: dict[str, Any], flags: dict[str, Any], secret: str
) -> None:
    connection = connected(tmp_path, user, **flags)
    assert secret in connection.secrets
    assert secret not in repr(connection)


def test_the_token_of_a_plugin_is_known_as_secret(tmp_path: Path) -> None:
    assert LONG in connected(tmp_path, plugin(tmp_path, ANSWER % f"{{'token': '{LONG}'}}")).secrets


@pytest.mark.parametrize(
    ("script", "fields"),
    [
        pytest.param(f"print('{{\"token\": \"{LONG}\"}}'); sys.exit('not valid: {LONG}')", {}, id="its output"),
        pytest.param(
            "sys.exit('refused: ' + os.environ['CLIENT_SECRET'])",
            {"env": [{"name": "CLIENT_SECRET", "value": LONG}]},
            id="a variable",
        ),
        pytest.param("sys.exit(str(sys.argv))", {"args": [f"--client-secret={LONG}"]}, id="a flag"),
        pytest.param("sys.exit(str(sys.argv))", {"args": ["--password", LONG]}, id="a flag and its value"),
    ],
)
def test_a_plugin_that_fails_shows_no_secret(tmp_path: Path, script: str, fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="process returned 1") as caught:
        connected(tmp_path, plugin(tmp_path, script, **fields))
    assert LONG[:8] not in caught.value.message
    assert "[redacted]" in caught.value.message
