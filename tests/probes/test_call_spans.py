"""The records of calls of a target, read to their end and told once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from chaos.inventory import Target
from chaos.ports import HttpReply
from chaos.probes.call_spans import CallSpans
from chaos.testing.conformance import check_probe
from chaos.testing.host import InMemoryHost

GATEWAY = Target("gateway", "gateway", None, (), "h:1", spans="http://h:1/debug/spans")
COLUMNS = [
    *("seq", "trace_id", "span_id", "parent_id", "kind", "name", "peer", "start", "end", "outcome", "attempt"),
    *("prompt_tokens", "output_tokens"),
]


class Part:
    """A ring of spans behind HTTP, and the clock of the host that reads it."""

    def __init__(self):
        self.rows, self.last, self.most = [], 0, 400

    def add(self, end, trace_id="t"):
        self.last += 1
        self.rows.append([self.last, trace_id, f"s{self.last}", "", "caller", "engine", "engine-a", end - 1, end, "ok"])
        self.rows[-1] += [1, None, 7]

    def now(self):
        return 100.0

    async def call(self, method, url, json_body=None, **_):
        after = int(parse_qs(urlsplit(url).query)["after"][0])
        rows = [row for row in self.rows if row[0] > after][: self.most]
        return HttpReply(200, json.dumps({"columns": COLUMNS, "spans": rows, "last": self.last}), {})


def look(probe, part):
    return asyncio.run(probe.read(GATEWAY, replace(InMemoryHost().host, clock=part, http=part)))


def told(reading):
    return [(span["service"], span["span_id"], span["end"]) for span in reading.spans]


def test_every_span_is_told_once_under_the_name_of_who_wrote_it():
    part, probe = Part(), CallSpans()
    part.add(101.0)
    reading = look(probe, part)
    assert told(reading) == [("gateway", "s1", 101.0)]
    assert (reading.spans[0]["prompt_tokens"], reading.spans[0]["output_tokens"]) == (None, 7)
    assert reading.values == {"spans_last": 1.0, "spans_unread": 0.0}
    assert told(look(probe, part)) == []


def test_all_pages_are_read_in_one_look():
    part, probe = Part(), CallSpans()
    part.most = 2
    for end in (101.0, 102.0, 103.0, 104.0, 105.0):
        part.add(end)
    reading = look(probe, part)
    assert (len(reading.spans), reading.values["spans_unread"]) == (5, 0.0)


def test_spans_of_an_earlier_run_are_left_out():
    part, probe = Part(), CallSpans()
    part.add(99.0)
    part.add(101.0)
    assert told(look(probe, part)) == [("gateway", "s2", 101.0)]


def test_what_the_ring_forgot_before_it_was_read_is_counted():
    part, probe = Part(), CallSpans()
    part.add(101.0)
    look(probe, part)
    for end in (102.0, 103.0, 104.0):
        part.add(end)
    del part.rows[:3]
    assert look(probe, part).values == {"spans_missed": 2.0, "spans_last": 4.0, "spans_unread": 0.0}


def test_a_part_that_was_restarted_is_read_from_its_start():
    part, probe = Part(), CallSpans()
    for end in (101.0, 102.0):
        part.add(end)
    look(probe, part)
    part.rows, part.last = [], 0
    part.add(103.0, "u")
    reading = look(probe, part)
    assert told(reading) == [("gateway", "s1", 103.0)]
    assert "spans_missed" not in reading.values


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"columns": [], "spans": [[1]], "last": 1}', "[" * 5000])
def test_spans_in_another_shape_are_an_error_and_no_exception(body):
    class Nonsense(Part):
        async def call(self, method, url, json_body=None, **_):
            return HttpReply(200, body, {})

    reading = look(CallSpans(), Nonsense())
    assert (reading.spans, reading.values) == ((), {})
    assert reading.error


def test_it_keeps_what_probes_promise():
    part = Part()
    asyncio.run(check_probe(CallSpans(), GATEWAY, replace(InMemoryHost().host, clock=part, http=part)))
