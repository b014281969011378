"""Each failure between here and an API server ends in one clear message, or in a bounded number of tries."""

from __future__ import annotations

import gzip
import random
import socket
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from kpreempt.errors import InputError
from kpreempt.network.secrets import scrubbed
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import Connection, connect
from kpreempt.snapshot.live.failures import ClusterError
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.snapshot.live.lists import read_version
from tests.fake_api import TLS, Answer, FakeApi, ReceivedRequest, good, refused
from tests.fake_extender import Dripping, FakeExtender, head

HTML = {"Content-Type": "text/html"}


class Naps(list[float]):
    """A sleep that does not wait, and remembers."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def api_of(server: str, sleep: Naps | None = None, environment: dict[str, str] | None = None, **flags: Any) -> Api:
    return Api(
        connect(ConnectionFlags(server=server, **flags), environment or {}), sleep=Naps() if sleep is None else sleep
    )


def failure_of(api: Api, path: str = "/api/v1/pods") -> ClusterError:
    with pytest.raises(ClusterError) as caught:
        api.get(path)
    api.close()
    assert caught.value.exit_code == 3
    return caught.value


def always(answer: Answer) -> Callable[[ReceivedRequest], Answer]:
    return lambda _: answer


def test_a_path_of_the_server_goes_before_that_of_the_request() -> None:
    with FakeApi(lambda requested: good([requested.path, requested.query])) as fake:
        api = api_of(f"{fake.url}/k8s/clusters/c-1/")
        assert api.get("/version", {"a": "b c&d"}) == b'["/k8s/clusters/c-1/version", {"a": "b c&d"}]'
        api.close()


@pytest.mark.parametrize(
    ("answer", "problem", "status"),
    [
        pytest.param(
            refused(401, "Unauthorized"), "authentication failed for the user (401): Unauthorized", 401, id="401"
        ),
        pytest.param(
            refused(403, 'pods is forbidden: User "bob" cannot list'),
            'not allowed (403): pods is forbidden: User "bob" cannot list',
            403,
            id="403",
        ),
        pytest.param(
            Answer(404, b"404 page not found\n", {"Content-Type": "text/plain"}),
            "API not found (404): 404 page not found",
            404,
            id="404 of another server",
        ),
        pytest.param(
            refused(500, "etcd:\n\tleader   changed"),
            "API server error (500): etcd: leader changed",
            500,
            id="an error of several lines is told on one",
        ),
        pytest.param(
            Answer(302, b"", {"Location": "https://login.example/?token=secret"}),
            "returned a redirect to https://login.example/, not a Kubernetes API response",
            302,
            id="a redirect is not followed, and what it asks is not shown",
        ),
        pytest.param(
            Answer(200, b"<html>log in</html>", HTML),
            "returned text/html, not JSON like the Kubernetes API",
            200,
            id="a page to log in",
        ),
        pytest.param(
            Answer(502, b"<html><h1>Bad Gateway</h1></html>", HTML),
            "API server error (502)",
            502,
            id="a page of a load balancer is not shown",
        ),
        pytest.param(
            Answer(200, b"\x1f\x8bnot packed", {"Content-Type": "application/json", "Content-Encoding": "gzip"}),
            "the answer has an unsupported encoding",
            0,
            id="packed wrongly",
        ),
    ],
)
def test_answers_that_are_no_use_are_reported_at_once(answer: Answer, problem: str, status: int) -> None:
    naps = Naps()
    with FakeApi(always(answer)) as fake:
        error = failure_of(api_of(fake.url, naps))
    assert (error.problem, error.status, naps) == (problem, status, [])
    assert error.source.startswith(fake.url)
    assert error.hint


def test_a_packed_answer_is_requested_and_unpacked() -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    with FakeApi(always(Answer(body=gzip.compress(b"[1]"), headers=headers))) as fake:
        api = api_of(fake.url)
        assert api.get("/version") == b"[1]"
        api.close()
    assert fake.requested[0].headers["accept-encoding"] == ["gzip"]


def test_a_message_without_end_is_cut() -> None:
    with FakeApi(always(refused(500, "x" * 5000))) as fake:
        assert len(failure_of(api_of(fake.url)).message) < 500


def answers_in_turn(*answers: Answer) -> Callable[[ReceivedRequest], Answer]:
    rest = list(answers)
    return lambda _: rest.pop(0)


@pytest.mark.parametrize(
    ("first", "waits"),
    [
        pytest.param([refused(429, "busy", **{"Retry-After": "7"})], [7], id="429 with seconds to wait"),
        pytest.param([refused(503, "soon", **{"Retry-After": "1"})] * 2, [1, 1], id="503 with seconds to wait"),
        pytest.param([refused(429, "busy")] * 3, [0.5, 1, 2], id="429 without any: longer each time"),
        pytest.param([refused(503, "x", **{"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"})], [0], id="a date gone by"),
        pytest.param([refused(429, "x", **{"Retry-After": "soon"})], [0.5], id="a time that is none"),
        pytest.param([Answer(body=b'{"items": []}', cut=5)] * 2, [0.5, 1], id="dropped in the middle of the answer"),
    ],
)
def test_requests_to_busy_servers_and_on_dropped_connections_are_retried(
    first: list[Answer], waits: list[float]
) -> None:
    naps = Naps()
    with FakeApi(answers_in_turn(*first, good("at last"))) as fake:
        api = api_of(fake.url, naps)
        assert api.get("/api/v1/pods") == b'"at last"'
        api.close()
    assert naps == waits


@pytest.mark.parametrize(
    ("answer", "problem", "tries"),
    [
        pytest.param(refused(429, "busy"), "the API server is too busy (429): busy", 5, id="too busy"),
        pytest.param(refused(503, "down"), "the API server is not available (503): down", 5, id="down"),
        pytest.param(Answer(cut=1), "the connection keeps breaking", 5, id="dropped each time"),
        pytest.param(
            refused(429, "busy", **{"Retry-After": "3600"}),
            "the API server is too busy (429): busy",
            1,
            id="an hour is not waited for",
        ),
    ],
)
def test_tries_have_an_end(answer: Answer, problem: str, tries: int) -> None:
    naps = Naps()
    with FakeApi(always(answer)) as fake:
        error = failure_of(api_of(fake.url, naps))
        assert (error.problem, len(fake.requested)) == (problem, tries)
    assert sum(naps) < 60


def test_a_refused_connection_is_reported_with_the_server() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        error = failure_of(api_of(url))
    assert error.message == f"{url}: connection refused"


def test_an_unknown_host_is_reported() -> None:
    assert failure_of(api_of("http://nowhere.invalid:1")).problem == "unknown host"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_never_answers_is_not_waited_for_without_end(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        api = api_of(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}", request_timeout="100ms")
        error = failure_of(api)
    assert error.problem == "no answer within 0.1s"
    assert "--request-timeout" in error.hint


CHUNKED = head("200 OK", "Transfer-Encoding: chunked")


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x"), id="a header"),
        pytest.param(Dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="go on, go on"),
        pytest.param(Dripping(head("200 OK", "Content-Length: 999999"), b" "), id="a body"),
        pytest.param(Dripping(head(), b" "), id="a body without a length"),
        pytest.param(Dripping(CHUNKED, b"1\r\n \r\n"), id="chunks"),
        pytest.param(Dripping(CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: y\r\n"), id="trailers"),
        pytest.param(Dripping(head("500 no", "Content-Length: 999999"), b" "), id="the body of an error"),
    ],
)
def test_an_answer_that_drips_is_given_up_in_time(reply: Dripping) -> None:
    with FakeExtender(reply) as dripping:
        assert failure_of(api_of(dripping.url, request_timeout="100ms")).problem == "no answer within 0.1s"
        # The connection is ended, too: the server would drip on.
        assert dripping.closed.wait(10)


def test_a_version_that_is_nested_without_end_is_reported() -> None:
    nested = Answer(body=b'{"gitVersion":' + b"[" * 10**5 + b"]" * 10**5 + b"}")
    with FakeApi(always(nested)) as fake, pytest.raises(ClusterError, match="something other than a version"):
        read_version(connect(ConnectionFlags(server=fake.url), {}))


def test_a_request_that_is_given_up_leaves_the_others_alone() -> None:
    def answer(requested: ReceivedRequest) -> Answer:
        if requested.path == "/slow":
            ended.wait(10)
        return good(requested.path)

    ended = Event()
    with FakeApi(answer) as fake:
        api = api_of(fake.url, request_timeout="500ms")
        assert api.get("/before") == b'"/before"'
        with pytest.raises(ClusterError):
            api.get("/slow")
        assert api.get("/after") == b'"/after"'
        ended.set()


def test_something_else_than_http_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        from threading import Thread

        def answer() -> None:
            for _ in range(5):
                connection, _ = server.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(b"SSH-2.0-OpenSSH\r\n")

        thread = Thread(target=answer)
        thread.start()
        error = failure_of(api_of(f"http://127.0.0.1:{server.getsockname()[1]}"))
        thread.join()
    assert error.problem == "the connection keeps breaking"


AUTHORITY = str(TLS / "ca.crt")


@pytest.mark.parametrize(
    ("certificate", "flags", "problem"),
    [
        pytest.param(
            "expired.pem", {"certificate_authority": AUTHORITY}, "the server's certificate has expired", id="expired"
        ),
        pytest.param(
            "server.pem",
            {},
            "the server's certificate is not trusted: unable to get local issuer certificate",
            id="of an authority that nobody knows",
        ),
        pytest.param(
            "server.pem",
            {"certificate_authority": AUTHORITY, "tls_server_name": "api.example"},
            "the server's certificate is for another name: Hostname mismatch, "
            "certificate is not valid for 'api.example'",
            id="of another name",
        ),
    ],
)
def test_certificates_are_checked(certificate: str, flags: dict[str, Any], problem: str) -> None:
    with FakeApi(always(good(1)), certificate=certificate) as fake:
        error = failure_of(api_of(fake.url, **flags))
    assert error.problem == problem
    assert error.hint


@pytest.mark.parametrize(
    ("certificate", "flags"),
    [
        pytest.param("server.pem", {"certificate_authority": AUTHORITY}, id="one of the authority that is named"),
        pytest.param(
            "server.pem",
            {"certificate_authority": AUTHORITY, "tls_server_name": "kubernetes.default.svc"},
            id="one for --tls-server-name",
        ),
        pytest.param("expired.pem", {"insecure_skip_tls_verify": True}, id="any one, if somebody wants it so"),
    ],
)
def test_good_certificates_are_taken(certificate: str, flags: dict[str, Any]) -> None:
    with FakeApi(always(good(1)), certificate=certificate) as fake:
        api = api_of(fake.url, **flags)
        assert api.get("/version") == b"1"
        api.close()


def test_a_server_without_tls_is_reported() -> None:
    with FakeApi(always(good(1))) as fake:
        error = failure_of(api_of(fake.url.replace("http:", "https:")))
    assert error.problem == "the server does not speak TLS"


def test_a_server_that_wants_a_client_certificate_is_reported() -> None:
    with FakeApi(always(good(1)), certificate="server.pem", wants_client=True) as fake:
        error = failure_of(api_of(fake.url, certificate_authority=AUTHORITY))
    assert error.problem == "the server rejected the TLS connection: handshake failure"


def test_an_authority_that_is_no_certificate_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("nothing", encoding="utf-8")
    with pytest.raises(InputError, match="ca: the certificate authority contains no PEM certificate"):
        api_of("https://localhost", certificate_authority=str(tmp_path / "ca"))


def test_proxies_are_gone_through_and_their_refusals_reported() -> None:
    with FakeApi(always(good("by proxy"))) as fake:
        api = api_of("http://api.example", environment={"HTTP_PROXY": f"http://me:secret@127.0.0.1:{fake.port}"})
        assert api.get("/version") == b'"by proxy"'
        api.close()
        assert fake.requested[0].headers["host"] == ["api.example"]
        assert fake.requested[0].headers["proxy-authorization"] == ["Basic bWU6c2VjcmV0"]
    with FakeApi(always(Answer(407, b""))) as fake:
        environment = {"HTTPS_PROXY": f"http://me:secret@127.0.0.1:{fake.port}"}
        error = failure_of(api_of("https://api.example", environment=environment))
        assert fake.requested[0].path == "api.example:443"
    assert error.problem.startswith("cannot connect through the proxy")
    assert "secret" not in error.message + error.hint


def test_no_secret_is_shown_of_a_connection() -> None:
    flags = ConnectionFlags(server="https://localhost", token="secret", insecure_skip_tls_verify=True)
    connection = connect(flags, {})
    assert ("Authorization", "Bearer secret") in connection.headers
    assert "secret" not in f"{flags!r}{connection!r}"
    assert isinstance(connection, Connection)


TOKEN = "eyJhbGciOiJSUzI1NiIsImtpZCI6.eyJpc3MiOiJrdWJlcm5ldGVz.c2lnbmF0dXJl"
ECHOES = {
    "401 with the token": refused(401, f"invalid bearer token, {TOKEN}"),
    "403 with the token": refused(403, f'User "x" with {TOKEN} cannot list'),
    "500 with the token": refused(500, TOKEN),
    "410 with the token": refused(410, TOKEN),
    "503 with half of the token": refused(503, f"authentication of {TOKEN[:40]}... timed out"),
    "400 with the header": refused(400, f"Authorization: Bearer {TOKEN}"),
    "401 with the token in lines": refused(401, "\n".join(TOKEN[at : at + 20] for at in range(0, len(TOKEN), 20))),
    "401 with the password": refused(401, "bob:correct horse battery is not known"),
    "401 with the pair": refused(401, "Basic Ym9iOmNvcnJlY3QgaG9yc2UgYmF0dGVyeQ== is not known"),
    "401 with the key": refused(401, "the key a2V5IG9mIGEgY2xpZW50 is not known"),
    "a text that is cut within the token": Answer(401, b"x" * 285 + TOKEN.encode(), {"Content-Type": "text/plain"}),
    "a redirect to the token": Answer(302, b"", {"Location": f"https://login.example/{TOKEN}"}),
    "a type of the token": Answer(200, b"<html>", {"Content-Type": TOKEN}),
}


@pytest.mark.parametrize("answer", ECHOES.values(), ids=ECHOES)
def test_nothing_that_a_server_repeats_shows_a_credential(answer: Answer) -> None:
    secrets = [TOKEN, "correct horse battery", "Ym9iOmNvcnJlY3QgaG9yc2UgYmF0dGVyeQ==", "a2V5IG9mIGEgY2xpZW50"]
    with FakeApi(always(answer)) as fake:
        api = Api(Connection(server=fake.url, secrets=secrets), retries=0)
        with pytest.raises(ClusterError) as caught:
            api.get("/api/v1/pods")
        with pytest.raises(ClusterError) as watched:
            assert answer.status != 200 or api.get("/api/v1/pods")
            list(api.lines("/api/v1/pods", {}, seconds=5))
        api.close()
    for message in (caught.value.message, watched.value.message):
        pieces = (secret[at : at + 8].lower() for secret in secrets for at in range(len(secret) - 7))
        assert not any(piece in message.lower() for piece in pieces)
        assert "[redacted]" in message


@pytest.mark.parametrize(
    ("text", "secrets", "shown"),
    [
        ("token t is bad", ["t"], "token [redacted] is bad"),
        ("hunter2, and hunter22", ["hunter2"], "[redacted], and hunter22"),
        ("xhunter2hunter2x", ["hunter2hunter2"], "x[redacted]x"),
        ("nothing of it", ["secret", ""], "nothing of it"),
        ("", ["secret"], ""),
    ],
)
def test_what_is_kept_out_of_a_text(text: str, secrets: list[str], shown: str) -> None:
    assert scrubbed(text, secrets) == shown


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(b" " * 2**23, "unpacks to more than 1,000 times its size", id="a bomb"),
        pytest.param(
            b'{"items":[' + random.Random(1).randbytes(20_000).hex().encode() + b"{}," * 3_000_000,
            "has more than one value per 10 bytes, which no cluster has",
            id="tiny values",
        ),
    ],
)
def test_an_answer_that_takes_much_memory_is_not_read(body: bytes, problem: str) -> None:
    packed = Answer(200, gzip.compress(body), {"Content-Type": "application/json", "Content-Encoding": "gzip"})
    with FakeApi(always(packed)) as fake:
        api = Api(Connection(server=fake.url), retries=0)
        with pytest.raises(InputError) as caught:
            api.get("/api/v1/pods")
        api.close()
    assert caught.value.problem == problem
