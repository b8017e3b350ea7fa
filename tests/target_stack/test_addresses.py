"""Who listens where."""

from __future__ import annotations

import random
import socket

import pytest

from target_stack.addresses import AddressBook
from target_stack.edges import Edge
from target_stack.port_numbers import FIRST_PORT, LAST_PORT, NoFreePort, draw_port, is_free


def book(proxy="proxy", free=lambda _: True):
    edges = [Edge("a", "users", "a"), Edge("b", "gateway", "b"), Edge("agent->b", "agent", "b")]
    return AddressBook(["a", "b"], edges, proxy, random.Random(1), free)


def test_every_port_is_different_and_in_range():
    made = book()
    ports = [made.port(name) for name in ("a", "b", "proxy")]
    ports += [int(route["listen"].split(":")[1]) for route in made.routes()]
    assert len(set(ports)) == 6
    assert all(FIRST_PORT <= port <= LAST_PORT for port in ports)


def test_clients_go_through_the_proxy_where_there_is_one():
    assert book().for_clients("gateway")["a"] == book().via("a")
    assert book(proxy=None).for_clients("gateway")["a"] == book(proxy=None).direct("a")
    assert book(proxy=None).routes() == []


def test_a_route_leads_from_the_edge_to_the_target():
    made = book()
    assert made.routes()[0] == {"name": "a", "listen": made.via("a"), "upstream": made.direct("a"), "enabled": True}


def test_callers_of_another_role_have_a_way_of_their_own_to_the_same_target():
    made = book()
    assert made.for_clients("agent")["b"] == made.via("agent->b") != made.for_clients("gateway")["b"]
    assert [(edge.caller, via) for edge, via in made.edges("b")] == [
        ("gateway", made.via("b")),
        ("agent", made.via("agent->b")),
    ]
    assert made.routes()[2]["upstream"] == made.routes()[1]["upstream"] == made.direct("b")
    assert book(proxy=None).edges("b") == ()


def test_moving_a_target_keeps_its_edge_and_moving_an_edge_keeps_the_target():
    made = book()
    direct, via = made.direct("a"), made.via("a")
    made.move("a")
    assert made.direct("a") != direct
    assert made.via("a") == via
    direct = made.direct("a")
    made.move_edge("a")
    assert made.via("a") != via
    assert made.direct("a") == direct


def test_a_taken_port_is_drawn_again():
    asked = []

    def only_third(port):
        asked.append(port)
        return len(asked) == 3

    assert draw_port(random.Random(1), set(), only_third) == asked[2]


def test_a_machine_without_free_ports_is_told_so():
    with pytest.raises(NoFreePort, match="no free port found between 20000 and 32000"):
        draw_port(random.Random(1), set(), lambda _: False)


@pytest.mark.system
def test_a_port_with_a_listener_is_not_free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
    assert is_free(port)
