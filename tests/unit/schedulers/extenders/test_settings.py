"""Extenders as configurations state them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.errors import ConfigurationError
from kpreempt.model.urls import without_secrets
from kpreempt.schedulers.extender_protocol import (
    CURRENT,
    ExtenderSettings,
    HttpExtender,
    TlsSettings,
    read_settings,
    with_ignorable_last,
)
from kpreempt.schedulers.kube.configuration.decoding import decode_configuration


def test_the_fields_of_todays_configuration() -> None:
    [read] = read_settings(
        [
            {
                "urlPrefix": "https://extender.example/v1",
                "filterVerb": "f",
                "preemptVerb": "p",
                "prioritizeVerb": "s",
                "bindVerb": "b",
                "weight": 3,
                "enableHTTPS": True,
                "tlsConfig": {"serverName": "name", "caData": "Q0E=", "keyData": [1, 2], "certFile": "c.pem"},
                "httpTimeout": 1_500_000_000,
                "nodeCacheCapable": True,
                "managedResources": [{"name": "a/x", "ignoredByScheduler": True}, {"name": "a/y"}],
                "ignorable": True,
            }
        ]
    )
    assert read == ExtenderSettings(
        url_prefix="https://extender.example/v1",
        filter_verb="f",
        preempt_verb="p",
        prioritize_verb="s",
        bind_verb="b",
        weight=3,
        enable_https=True,
        tls=TlsSettings(server_name="name", ca_data=b"CA", key_data=b"\x01\x02", cert_file="c.pem"),
        http_timeout=1.5,
        node_cache_capable=True,
        managed_resources=("a/x", "a/y"),
        ignored_resources=("a/x",),
        ignorable=True,
    )


@pytest.mark.parametrize(
    ("extender", "name", "value"),
    [
        pytest.param({"enableHttps": True}, "enable_https", True, id="as Policy files write it"),
        pytest.param({"BindVerb": "b"}, "bind_verb", "b", id="a name of Go's"),
        pytest.param({"tlsConfig": {"CAFile": "ca"}}, "tls", TlsSettings(ca_file="ca"), id="Go's names within"),
        pytest.param({"httpTimeout": 0}, "http_timeout", 5.0, id="no timeout is the usual one"),
        pytest.param({"httpTimeout": None}, "http_timeout", 5.0, id="nor is null"),
        pytest.param({"tlsConfig": {"caData": "Q0\nE="}}, "tls", TlsSettings(ca_data=b"CA"), id="base64 in lines"),
    ],
)
def test_names_in_any_case_and_defaults(extender: dict[str, Any], name: str, value: object) -> None:
    assert getattr(read_settings([extender])[0], name) == value


@pytest.mark.parametrize(
    ("extender", "message"),
    [
        pytest.param({"weight": "x"}, "extenders[0].weight: expected an integer", id="a weight"),
        pytest.param({"weight": True}, "extenders[0].weight: expected an integer", id="truth is no number"),
        pytest.param({"ignorable": 1}, "extenders[0].ignorable: expected true or false", id="a number is no truth"),
        pytest.param({"httpTimeout": "5s"}, "extenders[0].httpTimeout: expected an integer", id="a duration in words"),
        pytest.param({"tlsConfig": []}, "extenders[0].tlsConfig: expected an object", id="a list for an object"),
        pytest.param({"managedResources": ["x"]}, "extenders[0].managedResources[0]: expected an object", id="a name"),
        pytest.param(
            {"tlsConfig": {"keyData": "s3cret!"}}, "extenders[0].tlsConfig.keyData: expected base64", id="key"
        ),
        pytest.param({"tlsConfig": {"keyData": [300]}}, "extenders[0].tlsConfig.keyData: expected base64", id="bytes"),
    ],
)
def test_what_is_of_another_type_is_refused_and_not_shown(extender: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_settings([extender])
    assert refused.value.message == message


def test_nothing_secret_is_shown() -> None:
    tls = TlsSettings(key_data=b"KEY", cert_data=b"CERT", key_file="key.pem")
    settings = ExtenderSettings(url_prefix="https://me:s3cret@extender.example:1/v1/?token=hidden", tls=tls)
    assert settings.address == "https://extender.example:1/v1/"
    assert settings.shown_url("filter") == "https://extender.example:1/v1/filter"
    assert settings.url("filter") == "https://me:s3cret@extender.example:1/v1/?token=hidden/filter"
    for secret in ("me:", "s3cret", "hidden", "KEY", "CERT"):
        assert secret not in repr(settings)
    assert "key.pem" in repr(settings)


def test_those_that_may_be_ignored_come_last_and_keep_their_order() -> None:
    extenders = read_settings([{"ignorable": number in (0, 2)} for number in range(4)])
    assert [each.index for each in with_ignorable_last(extenders)] == [1, 3, 0, 2]


def test_a_decoded_configuration_of_today_is_read() -> None:
    configuration = decode_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [
                {"urlPrefix": "x", "httpTimeout": "250ms", "enableHTTPS": True, "tlsConfig": {"caData": "Q0E="}}
            ],
        }
    )
    [read] = read_settings(configuration["extenders"])
    assert (read.http_timeout, read.enable_https, read.tls) == (0.25, True, TlsSettings(ca_data=b"CA"))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param("http://me:s3cret@x:80/v1?t=s3cret#s3cret", "http://x:80/v1", id="all that may be secret"),
        pytest.param("http://me:s3@cret@x/v1", "http://x/v1", id="an at sign in the password"),
        pytest.param("http://me:s3/cret@x/v1", "http://x/v1", id="a slash in the password"),
        pytest.param("http://me:s3?cret@x/v1", "http://x/v1", id="a question mark in the password"),
        pytest.param("me:s3cret@x/v1", "x/v1", id="no scheme"),
        pytest.param("http:me:s3cret@x/v1", "x/v1", id="no slashes"),
        pytest.param("http://me:s3cret@[::1/v1", "http://[::1/v1", id="a broken address"),
        pytest.param("http:/me:s3cret@x/v1", "x/v1", id="one slash"),
        pytest.param("http:///me:s3cret@x/v1", "http://x/v1", id="three slashes"),
        pytest.param("http//me:s3cret@x/v1", "x/v1", id="no colon"),
        pytest.param("htp://me/s3cret@x/v1", "htp://x/v1", id="another scheme"),
        pytest.param("me:s3cret@http://x/v1", "http://x/v1", id="the scheme behind the password"),
        pytest.param("http://x/a@b", "http://x/a@b", id="an at sign in the path"),
        pytest.param("http://x:80/a@b", "http://x:80/a@b", id="the same behind a port"),
        pytest.param("http://[::1]:80/a@b", "http://[::1]:80/a@b", id="and an address of version 6"),
        pytest.param("http://me@x", "http://x", id="a name alone"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_a_url_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


# A name with a slash cannot be distinguished from a host and a path.
NAMES = st.text(st.characters(blacklist_characters="/?#["))
NO_AT = st.text(st.characters(blacklist_characters="@"))


@given(NAMES, NO_AT, NO_AT)
def test_nothing_before_the_host_is_ever_shown(user: str, password: str, host: str) -> None:
    for scheme in ("http://", ""):
        shown = without_secrets(f"{scheme}{user}:s3cret{password}@{host}")
        assert "s3cret" not in shown or "s3cret" in host


def test_an_extender_without_an_address_goes_by_its_place() -> None:
    assert HttpExtender(ExtenderSettings(index=2), CURRENT, lambda *_: b"").name == "extenders[2]"
