"""The loop: timers, submitted work, and descriptors that change while events are handed out."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from chaos.proxy.reactor import READ, Reactor


@pytest.fixture
def reactor() -> Iterator[Reactor]:
    reactor = Reactor()
    yield reactor
    reactor.close()


def test_timers_fire_in_order_never_early_and_not_when_cancelled(reactor: Reactor) -> None:
    fired: list[str] = []
    start = reactor.now()
    reactor.call_at(start + 0.004, lambda: fired.append("late"))
    reactor.call_at(start + 0.002, lambda: fired.append("cancelled")).cancel()
    reactor.call_at(start + 0.001, lambda: fired.append("early"))
    while len(fired) < 2:
        reactor.run_once(1)
    assert fired == ["early", "late"]
    assert reactor.now() >= start + 0.004


def test_another_thread_wakes_the_loop(reactor: Reactor) -> None:
    done: list[str] = []
    thread = threading.Thread(target=lambda: reactor.submit(lambda: done.append(threading.current_thread().name)))
    thread.start()
    thread.join()
    reactor.run_once(5)
    assert done == [threading.current_thread().name]


def test_a_broken_callback_stops_nothing_else(reactor: Reactor, caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    reactor.submit(lambda: 1 // 0)
    reactor.submit(lambda: done.append(1))
    reactor.run_once(5)
    assert done == [1]
    assert "ZeroDivisionError" in caplog.text


def test_an_event_of_a_closed_socket_is_not_given_to_a_new_one_with_its_number(reactor: Reactor) -> None:
    """Two sockets are ready; whichever handler comes first replaces the other socket by one with the same number."""
    pairs = [socket.socketpair() for _ in range(2)]
    new: list[socket.socket] = []
    strays: list[int] = []

    def replace(index: int) -> None:
        if new:
            return
        victim = pairs[1 - index][0]
        number = victim.fileno()
        reactor.unregister(number, READ)
        victim.close()
        new.extend(socket.socketpair())
        assert number in [each.fileno() for each in new]
        reactor.register(number, READ, strays.append)

    for index, (here, there) in enumerate(pairs):
        reactor.register(here.fileno(), READ, lambda _events, index=index: replace(index))
        there.send(b"x")
    reactor.run_once(1)
    assert new
    assert strays == []
    for each in (*pairs[0], *pairs[1], *new):
        each.close()
