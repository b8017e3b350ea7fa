"""HTTP/1.1 without a socket."""

from __future__ import annotations

import pytest

from chaos.proxy.http import BadRequest, Parser, Response, plain, render

POST = b"POST /proxies?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = (
    b'POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{"\r\n3;x=y\r\na":\r\n0\r\nT: 1\r\n\r\n'
)


@pytest.mark.parametrize("wire", [POST, CHUNKED])
def test_a_request_is_the_same_however_its_bytes_arrive(wire: bytes) -> None:
    whole, drip = Parser(), Parser()
    whole.feed(wire)
    request = whole.next()
    assert request
    for byte in wire[:-1]:
        drip.feed(bytes([byte]))
        assert drip.next() is None
    drip.feed(wire[-1:])
    assert drip.next() == request
    assert drip.idle


def test_pipelined_requests_come_out_one_by_one() -> None:
    parser = Parser()
    parser.feed(POST + POST)
    assert parser.next()
    assert parser.next()
    assert parser.next() is None


def test_the_path_is_decoded_and_without_its_query() -> None:
    parser = Parser()
    parser.feed(b"GET /proxies/a%20b%C3%A9?q HTTP/1.1\r\nHost: h\r\n\r\n")
    request = parser.next()
    assert request
    assert request.path == "/proxies/a bé"


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        ("GET / HTTP/1.1\r\nHost: h", True),
        ("GET / HTTP/1.1\r\nHost: h\r\nConnection: close", False),
        ("GET / HTTP/1.0", False),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive", True),
    ],
)
def test_whether_the_connection_goes_on(head: str, keeps: bool) -> None:
    parser = Parser()
    parser.feed(head.encode() + b"\r\n\r\n")
    request = parser.next()
    assert request
    assert request.keep_alive is keeps


@pytest.mark.parametrize(
    ("wire", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"x" * (2 << 20), 431),
    ],
)
def test_what_is_not_http_is_refused(wire: bytes, status: int) -> None:
    parser = Parser()
    parser.feed(wire)
    with pytest.raises(BadRequest) as caught:
        parser.next()
    assert caught.value.status == status


def test_a_client_may_wait_for_leave_to_send_its_body() -> None:
    parser = Parser()
    parser.feed(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert parser.next() is None
    assert parser.expects_continue


def test_no_content_has_no_length_and_head_has_no_body() -> None:
    assert b"Content-Length" not in render(Response(204))
    assert render(plain(404, "404 page not found"), head_only=True).endswith(b"Content-Length: 19\r\n\r\n")
