"""What HTTP to others may do: addresses, redirects, sizes, times."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler

import httpx2
import pytest

from admission.sources.addresses import literal_address, may_ask
from admission.sources.guard import GuardedTransport, Hosts, guarded_client
from admission.sources.network import Limits, Refused, limited
from tests.admission.sources.servers import Answer, body, endless, held, redirect, serving

HERE = frozenset({"127.0.0.1"})
LIMITS = Limits(max_bytes=1000, seconds=2.0)


def get(answers: dict[str, Answer], path: str = "/x", *, limits: Limits = LIMITS) -> str:
    """Return the text at *path* of a server that the settings name."""
    with serving(answers) as (base, _):
        hosts = Hosts(named=HERE, plain=HERE)
        client = httpx2.Client(
            transport=GuardedTransport(hosts), follow_redirects=True, trust_env=False
        )
        with limited(limits), client:
            return client.get(base + path).text


@pytest.mark.parametrize(
    ("address", "is_named", "expected"),
    [
        ("93.184.216.34", False, True),
        ("2606:2800:220:1::1", False, True),
        ("10.0.0.1", False, False),
        ("10.0.0.1", True, True),
        ("192.168.1.1", False, False),
        ("172.16.0.1", False, False),
        ("100.64.0.1", False, False),
        ("127.0.0.1", False, False),
        ("127.0.0.1", True, True),
        ("::1", False, False),
        ("fd00::1", False, False),
        ("169.254.169.254", False, False),
        ("169.254.169.254", True, False),
        ("::ffff:169.254.169.254", True, False),
        ("::ffff:10.0.0.1", False, False),
        ("fe80::1%eth0", True, False),
        ("0.0.0.0", True, False),
        ("224.0.0.1", True, False),
        ("64:ff9b::a9fe:a9fe", True, False),
        ("64:ff9b::a00:1", False, False),
        ("64:ff9b::5db8:d822", False, True),
        ("64:ff9b:1::1", False, False),
        ("2002:a9fe:a9fe::1", True, False),
        ("2002:a00:1::1", False, False),
        ("::169.254.169.254", True, False),
        ("::ffff:0:169.254.169.254", True, False),
        ("fec0::1", False, False),
        ("168.63.129.16", True, False),
        ("100.100.100.200", True, False),
        ("192.0.0.192", True, False),
        ("192.0.0.9", False, False),
        ("fd00:ec2::254", True, False),
    ],
)
def test_addresses_that_may_be_asked(address: str, is_named: bool, expected: bool) -> None:
    """Public ones, and private ones of a host the operator named; link-local ones never."""
    assert may_ask(address, is_named=is_named) is expected


@pytest.mark.parametrize(
    "host", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "169.254.169.254"]
)
def test_addresses_in_disguise_are_known(host: str) -> None:
    """Resolvers take decimal, hexadecimal, octal and short forms for the same address."""
    assert literal_address(host) == "169.254.169.254"
    assert literal_address("example.org") is None


def test_named_host_is_asked() -> None:
    """The operator's own mirror may be at a private address."""
    assert get({"/x": body("hello")}) == "hello"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("http://169.254.169.254/latest/meta-data/", "not https"),
        ("https://169.254.169.254/latest/meta-data/", "does not allow|do not allow"),
        ("https://[::ffff:169.254.169.254]/", "do not allow"),
        ("https://localhost/secret", "do not allow"),
        ("ftp://127.0.0.1/x", "ftp|scheme|protocol"),
    ],
)
def test_redirect_elsewhere_is_refused(target: str, reason: str) -> None:
    """Each hop is checked as the first one was."""
    with pytest.raises(httpx2.HTTPError, match=reason):
        get({"/x": redirect(target)})


@pytest.mark.parametrize("target", ["https://169.254.169.254/", "https://localhost:1/"])
def test_redirect_to_others_never_leads_inside(target: str) -> None:
    """Where redirects may lead to any public host, they lead to no private address."""
    with serving({"/x": redirect(target)}) as (base, _):
        hosts = Hosts(named=HERE, others_allowed=True, plain=HERE)
        client = httpx2.Client(
            transport=GuardedTransport(hosts), follow_redirects=True, trust_env=False
        )
        with limited(LIMITS), client, pytest.raises(Refused, match="never asked"):
            client.get(base + "/x")


def test_body_that_is_too_long_is_refused() -> None:
    """Whatever its header claims, reading ends at the limit."""
    with pytest.raises(Refused, match="longer than 1000 bytes"):
        get({"/x": body("y" * 5000)})
    with pytest.raises(Refused, match="longer than 1000 bytes"):
        get({"/x": endless(b"y" * 100)})


def test_packed_body_is_refused() -> None:
    """A thousand bytes of gzip can hold a million: nothing is unpacked."""

    def packed(handler: BaseHTTPRequestHandler) -> None:
        assert handler.headers["Accept-Encoding"] == "identity"
        data = gzip.compress(b" " * 1_000_000)
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    with pytest.raises(Refused, match="packed"):
        get({"/x": packed}, limits=Limits(max_bytes=1 << 20, seconds=10.0))


@pytest.mark.parametrize("beginning", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_trickle_ends_with_the_time_of_all(beginning: bytes) -> None:
    """No single read is late, be it of headers or of the body; all of them together are."""
    stopped = threading.Event()

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.wfile.write(beginning)
        try:
            while not stopped.wait(0.01):
                handler.wfile.write(b"x")
        except OSError:
            return

    try:
        with pytest.raises(httpx2.HTTPError):
            get({"/x": trickle}, limits=Limits(max_bytes=1 << 20, seconds=0.2))
    finally:
        stopped.set()


@pytest.mark.parametrize(
    "target", ["https:", "https:x", "http://[", "//a:b:c/", "https://a:99999/"]
)
def test_redirect_to_what_is_no_url_is_one_error(target: str) -> None:
    """Whoever fetches need not know what the library stumbles over."""
    with serving({"/x": redirect(target)}) as (base, _):
        client = guarded_client(Hosts(named=HERE, plain=HERE, others_allowed=True))
        with limited(LIMITS), client, pytest.raises(httpx2.HTTPError):
            client.get(base + "/x")


def test_announcements_without_end_are_refused() -> None:
    """Each one is small and none is late; nobody reads on until the time is over."""

    def announcing(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        try:
            while True:
                handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        except OSError:
            return

    with pytest.raises(Refused, match="around it"):
        get({"/x": announcing}, limits=Limits(max_bytes=1 << 20, seconds=60.0))


def test_relative_redirect_stays_with_its_host() -> None:
    """The Hub leads to renamed models that way; the name is asked again, not its address."""
    with serving({"/x": redirect("/y"), "/y": body("there")}) as (base, asked):
        here = frozenset({"localhost"})
        client = guarded_client(Hosts(named=here, plain=here))
        with limited(LIMITS), client:
            answer = client.get(base.replace("127.0.0.1", "localhost") + "/x")
        assert (answer.text, answer.url.host) == ("there", "localhost")
    assert asked == ["/x", "/y"]


def test_redirect_to_another_port_of_others_is_refused() -> None:
    """Other public hosts are asked where the web is, not wherever a redirect says."""
    with serving({"/x": redirect("https://example.org:22/")}) as (base, _):
        client = guarded_client(Hosts(named=HERE, plain=HERE, others_allowed=True))
        with limited(LIMITS), client, pytest.raises(Refused, match="port 22"):
            client.get(base + "/x")


def test_no_cookies_are_kept() -> None:
    """One client asks for everybody."""

    def with_cookie(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Set-Cookie", "a=b")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with serving({"/x": with_cookie}) as (base, _):
        client = guarded_client(Hosts(named=HERE, plain=HERE))
        with limited(LIMITS), client:
            client.get(base + "/x")
            assert not list(client.cookies.jar)


def test_answer_that_does_not_come_is_given_up() -> None:
    """The time is of everything together."""
    released = threading.Event()
    try:
        with pytest.raises(httpx2.HTTPError):
            get({"/x": held(released)}, limits=Limits(max_bytes=1000, seconds=0.2))
    finally:
        released.set()


def test_endless_redirects_are_given_up() -> None:
    """A server cannot keep us walking."""
    with pytest.raises(httpx2.HTTPError):
        get({"/x": redirect("/x")})


def test_nothing_is_asked_without_limits() -> None:
    """A request outside of `limited` is a mistake of ours, and is not sent."""
    with serving({"/x": body("hello")}) as (base, asked):
        client = httpx2.Client(transport=GuardedTransport(Hosts(named=HERE, plain=HERE)))
        with client, pytest.raises(Refused):
            client.get(base + "/x")
    assert asked == []
