"""The records of a tool service, read to their end and told once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from chaos.inventory import Target
from chaos.ports import HttpReply
from chaos.probes.tool_records import ToolRecords
from chaos.testing.host import InMemoryHost

TOOLS = Target("tools", "tool", None, (), "h:3")


class Service:
    """A ledger and an audit, and the clock of the host that reads them."""

    def __init__(self):
        self.pages = {"ledger": [], "audit": []}
        self.most = 1000
        self.broken = None

    def add(self, page, mono, **fields):
        self.pages[page].append({"seq": len(self.pages[page]) + 1, "mono": mono, "trace_id": f"t{mono}", **fields})

    def now(self):
        return 100.0

    async def call(self, method, url, json_body=None, *, timeout_s=2.0):
        parts = urlsplit(url)
        page = parts.path.strip("/")
        if page == self.broken:
            return HttpReply(0, "", {}, error="refused: nobody")
        after = int(parse_qs(parts.query)["after"][0])
        entries = [entry for entry in self.pages[page] if entry["seq"] > after][: self.most]
        return HttpReply(200, json.dumps({"entries": entries, "last": len(self.pages[page])}), {})


def look(probe, service):
    host = replace(InMemoryHost().host, clock=service, http=service)
    return asyncio.run(probe.read(TOOLS, host))


def told(reading):
    return [(event["name"], event["mono"]) for event in reading.events]


def test_every_record_is_told_once_and_says_when_all_was_read():
    service, probe = Service(), ToolRecords()
    assert look(probe, service).values == {"ledger_unread": 0.0, "audit_unread": 0.0}
    service.add("ledger", 101.0, tool="open_ticket", key="k", agent="gateway")
    service.add("audit", 101.0, tool="open_ticket", outcome="ok", permitted=True)
    assert told(look(probe, service)) == [("side_effect", 101.0), ("tool_call", 101.0)]
    assert told(look(probe, service)) == []


def test_arguments_and_results_stay_where_they_are():
    service, probe = Service(), ToolRecords()
    look(probe, service)
    service.add("audit", 101.0, arguments={"secret": 1}, result={"x": 1}, hash="h", permitted=False)
    assert look(probe, service).events == (
        {"name": "tool_call", "mono": 101.0, "trace_id": "t101.0", "permitted": False},
    )


def test_only_a_little_of_what_was_before_the_first_look_is_told():
    service, probe = Service(), ToolRecords()
    service.add("ledger", 50.0)
    service.add("ledger", 99.0)
    assert told(look(probe, service)) == [("side_effect", 99.0)]


def test_what_did_not_fit_into_one_answer_is_unread_until_it_is_read():
    service, probe = Service(), ToolRecords()
    look(probe, service)
    service.most = 2
    for mono in (101.0, 102.0, 103.0):
        service.add("ledger", mono)
    first, second = look(probe, service), look(probe, service)
    assert [reading.values["ledger_unread"] for reading in (first, second)] == [1.0, 0.0]
    assert told(second) == [("side_effect", 103.0)]


def test_a_service_that_counts_anew_is_read_from_its_start():
    service, probe = Service(), ToolRecords()
    for mono in (1.0, 2.0, 3.0):
        service.add("ledger", mono)
    look(probe, service)
    service.pages["ledger"].clear()
    service.add("ledger", 110.0)
    assert told(look(probe, service)) == [("side_effect", 110.0)]


def test_what_was_read_before_the_trouble_is_told_all_the_same():
    service, probe = Service(), ToolRecords()
    look(probe, service)
    service.add("ledger", 101.0)
    service.broken = "audit"
    reading = look(probe, service)
    assert told(reading) == [("side_effect", 101.0)]
    assert (reading.values, reading.error) == ({"ledger_unread": 0.0}, "refused: nobody")


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", '{"entries": 3, "last": 1}', '{"entries": [{}], "last": 1}', "[" * 5000]
)
def test_records_in_another_shape_are_an_error_and_no_exception(body):
    class Nonsense(Service):
        async def call(self, method, url, json_body=None, *, timeout_s=2.0):
            return HttpReply(200, body, {})

    reading = look(ToolRecords(), Nonsense())
    assert (reading.events, reading.values) == ((), {})
    assert reading.error
