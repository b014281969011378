"""Extender calls over real connections: what is sent, and how each failure is reported."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from kpreempt.errors import ConfigurationError, InputError, KpreemptError
from kpreempt.extenders import connect
from kpreempt.schedulers.extender_protocol import (
    CURRENT,
    ExtenderError,
    ExtenderSettings,
    ExtenderStatusError,
    HttpExtender,
    TlsSettings,
)
from tests.factories import make_node, make_pod
from tests.fake_extender import TLS, Dripping, FakeExtender, ReceivedRequest, Reply, Reset, Silent, good, head, raw

SHORT = 0.2
ANSWER = {"NodeNames": ["n1"]}


def call(url: str, body: bytes = b"{}", *, environment: dict[str, str] | None = None, **settings: Any) -> bytes:
    made = ExtenderSettings(url_prefix=url, **{"http_timeout": 10.0, **settings})
    return connect(made, environment=environment or {})(made.url("filter"), body)


def failure(url: str, **settings: Any) -> str:
    with pytest.raises(ExtenderError) as failed:
        call(url, **settings)
    return str(failed.value)


def test_a_post_of_json() -> None:
    with FakeExtender(good(ANSWER)) as server:
        assert call(f"{server.url}/v1/", b'{"Pod":1}') == b'{"NodeNames": ["n1"]}'
    [requested] = server.requested
    assert (requested.method, requested.path, requested.body) == ("POST", "/v1/filter", {"Pod": 1})
    assert requested.headers["content-type"] == "application/json"
    assert "authorization" not in requested.headers


def test_a_name_and_a_password_are_sent_as_go_sends_them_and_never_shown() -> None:
    with FakeExtender(good(ANSWER)) as server:
        call(server.url.replace("//", "//me:p%40ss@"))
    assert server.requested[0].headers["authorization"] == "Basic bWU6cEBzcw=="
    with FakeExtender(Reset()) as server:
        words = failure(server.url.replace("//", "//me:s3cret@") + "/?token=hidden")
    assert words.startswith(f'Post "{server.url}/": ')
    assert "s3cret" not in words
    assert "hidden" not in words


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        pytest.param(b"", 'Post "URL": EOF', id="it hangs up"),
        pytest.param(Reset(), 'Post "URL": read: connection reset by peer', id="it resets the connection"),
        pytest.param(
            b"SSH-2.0-x\r\n",
            'Post "URL": net/http: HTTP/1.x transport connection broken: malformed HTTP response',
            id="it speaks something else",
        ),
        pytest.param(
            head() + b"x" * 70_000,
            "",
            id="no length and no end but that of the connection",
        ),
        pytest.param(
            head("200 OK", "Content-Length: 900") + b"{",
            "",
            id="half an answer is for the decoder to refuse",
        ),
        pytest.param(head("200 OK", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n", "", id="chunks without the last"),
        pytest.param(Reset(head("200 OK", "Content-Length: 900") + b"{"), "reset", id="reset in the body"),
        pytest.param(
            raw(b"", "307 Temporary Redirect", "Location: http://127.0.0.1:1/"),
            'Post "URL": redirected (code 307), which is not followed',
            id="a redirect",
        ),
    ],
)
def test_broken_answers(reply: Reply, words: str) -> None:
    with FakeExtender(reply) as server:
        if not words:
            assert call(server.url)
            return
        said = failure(server.url)
    if words == "reset":
        # The reset may overtake what was sent before it.
        assert said.endswith("connection reset by peer")
    else:
        assert said == words.replace("URL", f"{server.url}/filter")


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified", "404 Not Found", "500 Oops"])
def test_another_status_than_200(status: str) -> None:
    with FakeExtender(good({"Error": "no"}, status)) as server, pytest.raises(ExtenderStatusError) as refused:
        call(server.url)
    assert refused.value.status == int(status[:3])


HEADERS = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        pytest.param(Silent(), f'Post "URL": {HEADERS}', id="no answer"),
        pytest.param(Dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x"), f'Post "URL": {HEADERS}', id="a header that drips"),
        pytest.param(Dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), f'Post "URL": {HEADERS}', id="go on, go on"),
        pytest.param(Silent(head("200 OK", "Content-Length: 9") + b"{"), BODY, id="no end of the body"),
        pytest.param(Dripping(head(), b" "), BODY, id="a body that drips"),
        pytest.param(
            Dripping(head("200 OK", "Transfer-Encoding: chunked"), b"1\r\n \r\n"), BODY, id="chunks that drip"
        ),
    ],
)
def test_slow_answers_end_in_time(reply: Reply, words: str) -> None:
    with FakeExtender(reply) as server:
        start = monotonic()
        said = failure(server.url, http_timeout=SHORT)
        took = monotonic() - start
        # The connection is ended, too: the server would drip on.
        assert server.closed.wait(10)
    assert said == words.replace("URL", f"{server.url}/filter")
    assert SHORT <= took < 10


def test_a_handshake_that_takes_too_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        assert failure(url, http_timeout=SHORT) == f'Post "{url}/filter": {HEADERS}'


def test_an_answer_without_end_is_cut() -> None:
    with FakeExtender(Dripping(head(), b" " * 4096)) as server:
        made = ExtenderSettings(url_prefix=server.url)
        with pytest.raises(ExtenderError) as failed:
            connect(made, environment={}, max_bytes=10_000)(made.url("f"), b"")
    assert str(failed.value) == f'Post "{server.url}/f": response is larger than 10,000 bytes'


def test_no_server_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    host = f"127.0.0.1:{port}"
    assert failure(f"http://{host}") == f'Post "http://{host}/filter": dial tcp {host}: connect: connection refused'


def test_a_host_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    words = 'Post "http://nowhere.example/filter": dial tcp: lookup nowhere.example: no such host'
    assert failure("http://nowhere.example") == words


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("extender.example:80", 'unsupported protocol scheme "extender.example"', id="no scheme"),
        pytest.param("ftp://extender.example", 'unsupported protocol scheme "ftp"', id="another scheme"),
        pytest.param("", 'unsupported protocol scheme ""', id="nothing"),
        pytest.param("http://", "http: no Host in request URL", id="no host"),
        pytest.param("http://x:99999999", 'unsupported protocol scheme ""', id="a port that there is not"),
        pytest.param("http://[::1", 'unsupported protocol scheme ""', id="half an address"),
    ],
)
def test_addresses_that_are_none(url: str, words: str) -> None:
    assert failure(url).endswith(words)


def test_a_proxy_of_the_environment() -> None:
    with FakeExtender(good(ANSWER)) as proxy:
        environment = {"HTTP_PROXY": proxy.url.replace("//", "//me:pw@")}
        assert call("http://extender.example/v1", environment=environment)
        assert call("http://extender.example/v1", environment=environment)
    assert [each.path for each in proxy.requested] == ["http://extender.example/v1/filter"] * 2
    assert proxy.requested[0].headers["proxy-authorization"] == "Basic bWU6cHc="


def test_a_proxy_is_not_used_for_addresses_of_this_machine() -> None:
    with FakeExtender(good(ANSWER)) as server:
        assert call(server.url, environment={"HTTP_PROXY": "http://127.0.0.1:1"})


def test_a_proxy_that_refuses() -> None:
    with FakeExtender(raw(b"", "403 Forbidden")) as proxy:
        words = failure("https://extender.example", environment={"HTTPS_PROXY": proxy.url})
    assert words.startswith('Post "https://extender.example/filter": proxyconnect: ')


CA = (TLS / "ca.crt").read_bytes()
CLIENT = (TLS / "client.pem").read_bytes()
CLIENT_FILE = str(TLS / "client.pem")


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        pytest.param({"tls": TlsSettings(ca_data=CA)}, "", id="an authority as data"),
        pytest.param({"tls": TlsSettings(ca_file=str(TLS / "ca.crt"))}, "", id="an authority in a file"),
        pytest.param({"tls": TlsSettings(ca_data=CA, ca_file="/nowhere")}, "", id="data goes before the file"),
        pytest.param({"tls": TlsSettings(ca_data=CA), "enable_https": True}, "", id="enableHTTPS with an authority"),
        pytest.param({"enable_https": True}, "", id="enableHTTPS without one believes anybody"),
        pytest.param({"tls": TlsSettings(insecure=True)}, "", id="so does insecure"),
        pytest.param(
            {"tls": TlsSettings(ca_data=CA, server_name="kubernetes.default.svc")}, "", id="another name is expected"
        ),
        pytest.param({"tls": TlsSettings(ca_data=CA, cert_file="/nowhere")}, "", id="a certificate without a key"),
    ],
)
def test_tls_that_is_believed(settings: dict[str, Any], url: str) -> None:
    with FakeExtender(good(ANSWER), certificate="server.pem") as server:
        assert call(server.url, **settings)


FAILED = "tls: failed to verify certificate: x509: "


@pytest.mark.parametrize(
    ("certificate", "settings", "words"),
    [
        pytest.param("server.pem", {}, f"{FAILED}certificate signed by unknown authority", id="an unknown authority"),
        pytest.param(
            "expired.pem",
            {"tls": TlsSettings(ca_data=CA)},
            f"{FAILED}certificate has expired or is not yet valid",
            id="an old one",
        ),
        pytest.param(
            "server.pem",
            {"tls": TlsSettings(ca_data=CA, server_name="other.example")},
            f"{FAILED}certificate is valid for other names: ",
            id="another name",
        ),
    ],
)
def test_tls_that_is_not_believed(certificate: str, settings: dict[str, Any], words: str) -> None:
    with FakeExtender(good(ANSWER), certificate=certificate) as server:
        said = failure(server.url, **settings)
    assert said.startswith(f'Post "{server.url}/filter": {words}')


def test_an_extender_that_speaks_no_tls() -> None:
    with FakeExtender(b"HTTP/1.1 400 Bad Request\r\n\r\n", listens=False) as server:
        url = server.url.replace("http:", "https:")
        said = failure(url)
    assert said == f'Post "{url}/filter": http: server gave HTTP response to HTTPS client'


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize(
    "tls",
    [
        pytest.param(TlsSettings(ca_data=CA, cert_data=CLIENT, key_data=CLIENT), id="as data"),
        pytest.param(TlsSettings(ca_data=CA, cert_file=CLIENT_FILE, key_file=CLIENT_FILE), id="in files"),
        pytest.param(TlsSettings(ca_data=CA, cert_data=CLIENT, key_file=CLIENT_FILE), id="one of each"),
    ],
)
def test_a_client_certificate(tls: TlsSettings, version: str) -> None:
    with FakeExtender(good(ANSWER), certificate="server.pem", wants_client=True, tls=version) as server:
        assert call(server.url, tls=tls)
        said = failure(server.url, tls=TlsSettings(ca_data=CA))
    assert said.startswith(f'Post "{server.url}/filter": ')


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        pytest.param(
            {"tls": TlsSettings(insecure=True, ca_data=CA)},
            ConfigurationError,
            "specifying a root certificates file with the insecure flag is not allowed",
            id="an authority that is not to be looked at",
        ),
        pytest.param({"tls": TlsSettings(ca_file="/no/ca")}, InputError, "/no/ca: cannot read", id="no such file"),
        pytest.param({"tls": TlsSettings(ca_data=b"x")}, InputError, "extenders[0].tlsConfig.caData: ", id="no PEM"),
        pytest.param(
            {"tls": TlsSettings(cert_data=CLIENT, key_data=b"s3cret")},
            InputError,
            "extenders[0].tlsConfig",
            id="no key",
        ),
        pytest.param(
            {"tls": TlsSettings(cert_data=CLIENT, key_file=str(TLS / "encrypted.pem"))},
            InputError,
            "extenders[0].tlsConfig",
            id="a key that is encrypted",
        ),
    ],
)
def test_settings_of_which_nothing_can_be_made(settings: dict[str, Any], kind: type[KpreemptError], words: str) -> None:
    with pytest.raises(kind) as refused:
        connect(ExtenderSettings(url_prefix="https://extender.example", **settings), environment={})
    assert refused.value.message.startswith(words)
    assert "s3cret" not in refused.value.message


def test_a_private_key_never_touches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    tls = TlsSettings(cert_data=CLIENT, key_data=CLIENT)
    connect(ExtenderSettings(url_prefix="https://extender.example", tls=tls), environment={})
    assert not list(tmp_path.iterdir())


def liar(answer: Any, **settings: Any) -> HttpExtender:
    made = ExtenderSettings(filter_verb="f", preempt_verb="p", prioritize_verb="s", **settings)
    return HttpExtender(made, CURRENT, connect(made, environment={}))


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        pytest.param(raw(b'{"NodeNames": ["n1"'), "unexpected EOF", id="half an answer"),
        pytest.param(head("200 OK", "Content-Length: 900") + b'{"Node', "unexpected EOF", id="less than it promised"),
        pytest.param(raw(b""), "EOF", id="nothing"),
        pytest.param(head("200 OK", "Transfer-Encoding: chunked") + b"zz\r\n", "EOF", id="chunks that are none"),
        pytest.param(
            raw(b"<html>login</html>"), "invalid character '<' looking for beginning of value", id="a login page"
        ),
        pytest.param(good({"NodeNames": 7}), "json: cannot unmarshal number", id="a number for a list"),
        pytest.param(good({"Error": "no disks"}), "no disks", id="an error of its own"),
        pytest.param(
            good({"NodeNames": ["n9"]}), 'claims a filtered node "n9"', id="a node that it was not asked about"
        ),
        pytest.param(good({}, "500 Oops"), "failed f with extender at URL http://", id="another status"),
    ],
)
def test_an_extender_that_errs_is_an_error_and_nothing_else(reply: Reply, words: str) -> None:
    with FakeExtender(reply) as server:
        extender = liar(reply, url_prefix=server.url, node_cache_capable=True)
        with pytest.raises(ExtenderError) as failed:
            extender.filter(make_pod("p"), [make_node("n1")])
    assert words in str(failed.value)


WHOLE = head("200 OK", "Content-Length: 900") + b'{"NodeNames": ["n1"]}'


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(WHOLE, id="of less than it promised"),
        pytest.param(Silent(WHOLE), id="and then falls silent"),
        pytest.param(Dripping(WHOLE, b" "), id="and then drips"),
        pytest.param(
            head("200 OK", "Transfer-Encoding: chunked") + b'99\r\n{"NodeNames": ["n1"]}', id="in half a chunk"
        ),
    ],
)
def test_an_answer_that_is_whole_counts_whatever_comes_behind(reply: Reply) -> None:
    with FakeExtender(reply) as server:
        extender = liar(None, url_prefix=server.url, node_cache_capable=True, http_timeout=SHORT)
        answer = extender.filter(make_pod("p"), [make_node("n1")])
    assert [each.name for each in answer.passing] == ["n1"]


def test_many_calls_at_once_keep_apart() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def echo(requested: ReceivedRequest) -> Reply:
        return good(requested.body)

    with FakeExtender(echo) as server, ThreadPoolExecutor(8) as pool:
        bodies = [f'{{"number": {number}}}'.encode() for number in range(40)]
        assert list(pool.map(lambda body: call(server.url, body), bodies)) == bodies


FORKED = """
import os, sys
from kpreempt.extenders import connect
from kpreempt.schedulers.extender_protocol import ExtenderSettings

settings = ExtenderSettings(url_prefix=sys.argv[1])
call = connect(settings, environment={})
first = call(settings.url("f"), b"1")
child = os.fork()
answer = call(settings.url("f"), b"2" if child else b"3")
if not child:
    os._exit(0 if answer == b"3" else 1)
assert os.waitpid(child, 0)[1] == 0
print(first + answer)
"""


def test_processes_that_were_forked_keep_apart() -> None:
    with FakeExtender(lambda requested: good(requested.body)) as server:
        run = subprocess.run([sys.executable, "-c", FORKED, server.url], capture_output=True, check=False, text=True)
    assert (run.stdout, run.stderr) == ("b'12'\n", "")
