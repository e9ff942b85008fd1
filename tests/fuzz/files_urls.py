"""Whom a URL leads to, and what comes back: names, addresses, redirects, answers of servers.

    bytes -> URL, what names resolve to, what servers send -> Document

No network: a stand-in for the resolver changes its mind at every question, one for connections
notes where they go and sends whatever the input says.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any
from unittest import mock

import httpcore2

from admission.sources.guard import Hosts
from admission.sources.hub import Hub, HubAccess
from admission.sources.network import MAX_AROUND, Limits
from admission.sources.references import ReferenceProblem, parse_reference
from admission.sources.urls import MAX_MODEL_FILE, AllowedUrls
from admission.values import Document
from tests.fuzz.choices import Choices
from tests.fuzz.target import Broken, Target

NAMED, PLAIN, HUB = "files.example.com", "mirror.example.com", "huggingface.co"
TOKEN = b"hf_secret_of_ours"
LIMITS = Limits(max_bytes=4096, seconds=5.0)
MAX_READ = MAX_MODEL_FILE + MAX_AROUND + (1 << 17)
"""Bytes of one connection that may be read before an answer is refused, and one piece more."""

INSIDE = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3"),
        *("168.63.129.16/32", "100.100.100.200/32"),
        *("::/96", "::ffff:0:0/96", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
    )
)
"""Written once more from the registries of IANA, not from the product."""
METADATA = tuple(
    ipaddress.ip_network(network)
    for network in ("169.254.0.0/16", "fe80::/10", "168.63.129.16/32", "100.100.100.200/32")
)
ADDRESSES = (
    *("93.184.216.34", "10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1", "0.0.0.0"),
    *("::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "fe80::1%lo"),
    *("fd00:ec2::254", "2606:2800:220:1::1", "::ffff:0:a9fe:a9fe", "100.100.100.200", "::"),
    *("168.63.129.16", "255.255.255.255", "192.0.0.192", "198.18.0.1", "fd20:ce::254"),
)
HOSTS = (
    *(NAMED, PLAIN, HUB, "FILES.example.com", "files.example.com.", "cdn.example.org"),
    *("127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]", "[::ffff:7f00:1]"),
    *("[::ffff:169.254.169.254]", "169.254.169.254", "2852039166", "0xa9.0xfe.43518", "localhost"),
    *("metadata.google.internal", "①②⑦.⓪.⓪.①", "１２７.0.0.1", "ｌocalhost", "[fe80::1%25lo]"),
    *("files.example.com@127.0.0.1", "127.0.0.1#files.example.com", "xn--a", "a" * 64 + ".com"),
    *("files.example.com\\@127.0.0.1", "files.example.com:80:443", "", ".", "[", "%31%32%37.1"),
)
PATHS = ("", "/x", "/m.keras", "/m.h5", "/m.onnx", "//127.0.0.1/", "/?a#b", "/%00", "/../..", "?")
PORTS = ("", ":443", ":80", ":22", ":0", ":99999", ":", ":-1", ":a")
ENDLESS = (b"", b"", b"", b"x" * 65_536, b"a: b\r\n" * 4096, b"HTTP/1.1 100 C\r\n\r\n" * 2048)
"""What goes on and on, in pieces as large as they are read: slow ones end with the time of all,
which `test_guard.py` waits for."""
SCHEMES = (
    "https://",
    "http://",
    "//",
    "HTTPS://",
    "file:///",
    "ftp://",
    "https:",
    "gopher://",
    "/",
)


class _Stream(httpcore2.NetworkStream):
    """Sends what it was given, in pieces, then ends or goes on without end."""

    def __init__(self, answers: Servers) -> None:
        self._answers = answers
        self._left = b""
        self.sent = 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if timeout is None or timeout > LIMITS.seconds:
            raise Broken(f"a read that may take {timeout} s")
        if self.sent > MAX_READ:
            raise Broken(f"{self.sent} bytes were read of an answer")
        part, self._left = self._left[:max_bytes], self._left[max_bytes:]
        if not part and self._answers.endless:
            part = self._answers.endless[: max(1, max_bytes)]
        self.sent += len(part)
        return part

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._answers.asked(buffer)
        self._left = self._answers.next()

    def close(self) -> None:
        return

    def start_tls(self, *_: Any, **__: Any) -> Any:
        self._answers.is_tls = True
        return self

    def get_extra_info(self, info: str) -> Any:  # noqa: ARG002
        return None


class Servers(httpcore2.NetworkBackend):
    """All hosts there are: what they send is decided by the input."""

    def __init__(self, choices: Choices, *, token: bytes) -> None:
        self._choices = choices
        self._token = token
        self.endless = b""
        self.host = ""
        self.is_tls = False

    def resolve(self, host: Any, port: Any, **_: Any) -> list[Any]:
        """Return addresses of *host*, others at every question."""
        name = host.decode() if isinstance(host, bytes) else str(host)
        name.encode("ascii")  # as the resolver of the C library, after Python's own IDNA
        self.host = name
        if self._choices.chance(8):
            raise socket.gaierror(-2, "not known")
        found = [self._choices.pick(ADDRESSES) for _ in range(1 + self._choices.below(2))]
        with suppress(ValueError):
            found = [str(ipaddress.ip_address(name.strip("[]").partition("%")[0]))]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in found]

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore2.NetworkStream:
        """Note where a connection goes.

        Raises: Broken, where it must not.
        """
        address: Any = ipaddress.ip_address(host.partition("%")[0])
        leads_to = [address, *_embedded(address)]
        where = METADATA if self.host in (NAMED, PLAIN) else INSIDE
        if any(each in net for each in leads_to for net in where if each.version == net.version):
            raise Broken(f"a connection to {host}, for {self.host:.60}")
        if self.host not in (NAMED, PLAIN) and port != 443:
            raise Broken(f"a connection to port {port} of {self.host:.60}")
        self.is_tls = False
        return _Stream(self)

    def asked(self, request: bytes) -> None:
        """Look at what is sent to a server.

        Raises: Broken.
        """
        if not self.is_tls and self.host != PLAIN:
            raise Broken(f"{self.host:.60} is asked without TLS")
        if self._token in request and self.host not in (HUB, PLAIN):
            raise Broken(f"the token is sent to {self.host:.60}")
        if request.count(b"\r\n\r\n") > 1 or b"\n" in request.replace(b"\r\n", b""):
            raise Broken("a request with another in it")

    def next(self) -> bytes:
        """Return the next answer."""
        choices = self._choices
        self.endless = choices.pick(ENDLESS)
        match choices.below(6):
            case 0:
                return choices.rest(2000)
            case 1 | 2:
                place = url_of(choices).encode("utf-8", "replace")
                return b"HTTP/1.1 302 F\r\nContent-Length: 0\r\nLocation: " + place + b"\r\n\r\n"
            case 3:
                how = choices.pick((b"gzip", b"br", b"zstd", b"deflate", b"identity, gzip", b"x"))
                name = choices.pick((b"Content-Encoding", b"Transfer-Encoding"))
                return b"HTTP/1.1 200 O\r\n" + name + b": " + how + b"\r\n\r\n" + choices.rest()
            case 4:
                body = choices.rest()
                length = choices.pick((len(body), 1 << 62, -1, 0))
                head = f"HTTP/1.1 200 O\r\nContent-Length: {length}\r\n\r\n"
                return head.encode() + body
        status = choices.pick((b"200", b"206", b"404", b"401", b"999", b"101", b"204", b"304"))
        body = choices.pick(
            (b"{}", b'{"torch_dtype":"bfloat16"}', b"[" * 900, b"\xff\xfe", b"x" * 9000)
        )
        more = choices.pick((b"", b"Set-Cookie: a=b\r\n", b"X: " + b"y" * 70000 + b"\r\n"))
        return b"HTTP/1.1 " + status + b" O\r\n" + more + b"\r\n" + body


def _embedded(address: Any) -> Iterator[Any]:
    """Yield the IPv4 addresses in one of IPv6, wherever a gateway may look for them."""
    if address.version == 6:
        number = int(address)
        if number >> 32 in (0, 0xFFFF, 0xFFFF0000, 0x64FF9B << 64):
            yield ipaddress.IPv4Address(number & 0xFFFFFFFF)
        if number >> 112 == 0x2002:
            yield ipaddress.IPv4Address(number >> 80 & 0xFFFFFFFF)


def url_of(choices: Choices) -> str:
    """Return a URL that may lead anywhere."""
    host = choices.pick(HOSTS) if choices.chance(2) else choices.text()
    return choices.pick(SCHEMES) + host + choices.pick(PORTS) + choices.pick(PATHS)


@contextmanager
def _instead(servers: Servers, client: Any) -> Iterator[None]:
    """Let *client* meet *servers* alone."""
    pool = client._transport._pool
    with (
        mock.patch.object(socket, "getaddrinfo", servers.resolve),
        mock.patch.object(pool._network_backend, "_inner", servers),
    ):
        try:
            yield
        finally:
            pool.close()  # every connection: the next input has servers of its own


def _checked(document: Document) -> None:
    size = sum(map(len, (*document.files.values(), *document.blobs.values())))
    if size > MAX_MODEL_FILE:
        raise Broken(f"{size} bytes of a document")
    if not (document.files or document.blobs or document.problem):
        raise Broken("neither a document nor a problem")


@cache
def _urls() -> AllowedUrls:
    return AllowedUrls(Hosts(named=frozenset({NAMED})), LIMITS)


@cache
def _hub(is_mirror: bool) -> Hub:
    mirrors = frozenset({PLAIN}) if is_mirror else frozenset[str]()
    endpoint = f"http://{PLAIN}" if is_mirror else f"https://{HUB}"
    hosts = Hosts(named=mirrors, others_allowed=True, plain=mirrors)
    return Hub(HubAccess(endpoint=endpoint, hosts=hosts, limits=LIMITS, token=TOKEN.decode()))


def _run_urls(data: bytes) -> None:
    """Fetch a URL from hosts of a list."""
    choices = Choices(data)
    text = url_of(choices) if choices.byte() % 2 else data[1:].decode("utf-8", "replace")
    try:
        reference = parse_reference(text)
    except ReferenceProblem:
        return
    if reference.origin != "https":
        return
    urls = _urls()
    with _instead(Servers(choices, token=b"no token"), urls._client):
        _checked(urls.fetch(reference, namespace="team"))


def _run_hub(data: bytes) -> None:
    """Ask the Hub, or a mirror without TLS, for a model."""
    choices = Choices(data)
    hub = _hub(bool(choices.byte() % 2))
    with _instead(Servers(choices, token=TOKEN), hub._client):
        document = hub.fetch(parse_reference("hf://org/model"), namespace="team")
    if TOKEN.decode() in str(document):
        raise Broken("the token is told")
    _checked(document)


def _url_seeds() -> Iterable[bytes]:
    for number in range(64):
        yield bytes((1, 1, number, 0, number % 9, number % 10, *range(number, number + 20)))
    for host in HOSTS:
        yield b"\x00https://" + host.encode() + b"/x"
    yield b"\x00https://files.example.com/x"


def _hub_seeds() -> Iterable[bytes]:
    for number in range(64):
        yield bytes((number % 2, 2, number, number % 6, number % 6, *range(number, number + 30)))


TARGETS = (
    Target(
        name="urls",
        run=_run_urls,
        seeds=_url_seeds,
        seconds=2.0,
        max_bytes=600,
        begins=(b"\x00", b"\x00https://"),
    ),
    Target(name="hub-answers", run=_run_hub, seeds=_hub_seeds, seconds=2.0, max_bytes=600),
)
