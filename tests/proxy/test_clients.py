"""A stranger's client, unchanged, drives the server: toxiproxy-python from PyPI."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from toxiproxy import Toxiproxy
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from tests.proxy.peers import Admin, Edge, Upstream

pytestmark = pytest.mark.system


@pytest.fixture
def toxiproxy(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toxiproxy]:
    """The client keeps its server in class attributes, so they are put back."""
    monkeypatch.setattr(APIConsumer, "host", admin.host)
    monkeypatch.setattr(APIConsumer, "port", admin.port)
    client = Toxiproxy()
    yield client
    client.destroy_all()


def test_a_proxys_whole_life(toxiproxy: Toxiproxy, admin: Admin, upstream: Upstream) -> None:
    assert toxiproxy.running()
    assert b"2.12" in toxiproxy.version()
    proxy = toxiproxy.create(upstream=upstream.address, name="life")
    with pytest.raises(ProxyExists):
        toxiproxy.create(upstream=upstream.address, name="life")
    edge = Edge(admin, "life", int(proxy.listen.rpartition(":")[2]))
    with edge.connect() as client:
        client.ask()
        with proxy.down():
            assert client.ending() == ("eof", 0)
            with pytest.raises(ConnectionRefusedError):
                edge.connect()
    with edge.connect() as client:
        client.ask()
    toxiproxy.destroy(proxy)
    assert toxiproxy.get_proxy("life") is None


def test_toxics_come_bite_and_go(toxiproxy: Toxiproxy, admin: Admin, upstream: Upstream) -> None:
    proxy = toxiproxy.create(upstream=upstream.address, name="toxic")
    edge = Edge(admin, "toxic", int(proxy.listen.rpartition(":")[2]))
    proxy.add_toxic(type="latency", attributes={"latency": 100})
    assert list(proxy.toxics()) == ["latency_downstream"]
    assert proxy.get_toxic("latency_downstream").attributes == {"latency": 100, "jitter": 0}
    with edge.connect() as client:
        assert client.ask() >= 0.1
        proxy.destroy_toxic("latency_downstream")
        assert client.ask() < 0.1
    with pytest.raises(InvalidToxic):
        proxy.add_toxic(type="nonsense")
    with pytest.raises(NotFound):
        proxy.destroy_toxic("latency_downstream")


def test_reset_enables_everything_and_takes_all_toxics_away(toxiproxy: Toxiproxy, upstream: Upstream) -> None:
    proxy = toxiproxy.create(upstream=upstream.address, name="reset")
    proxy.add_toxic(type="timeout", attributes={"timeout": 0})
    proxy.disable()
    assert toxiproxy.reset()
    again = toxiproxy.get_proxy("reset")
    assert again.enabled
    assert again.toxics() == {}


def test_populate_makes_all(toxiproxy: Toxiproxy, upstream: Upstream) -> None:
    wanted = [{"name": name, "upstream": upstream.address, "listen": "127.0.0.1:0"} for name in ("one", "two")]
    toxiproxy.populate(wanted)
    assert {"one", "two"} <= set(toxiproxy.proxies())
