"""The shelf of a vector store, listed whole: what came and what is gone, each told once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from chaos.inventory import Target
from chaos.ports import PostgresRefused, Rows
from chaos.probes.probe import Reading
from chaos.probes.stored_documents import StoredDocuments
from chaos.testing.host import InMemoryHost

STORE = Target("vector-store", "vector-store", None, (), "h:5", wire="postgres")


class Shelf:
    """A store whose clock runs 500 seconds ahead of the host's, and the host's clock."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[str, float]] = {}
        self.refusal: Exception | None = None
        self.mono = 100.0

    def add(self, key: str, body: str, mono: float) -> None:
        self.rows[key] = (body, mono + 500)

    def now(self) -> float:
        return self.mono

    async def ask(self, address: str, statements: Sequence[str], *, timeout_s: float = 1.0) -> tuple[Rows, ...]:
        if self.refusal:
            raise self.refusal
        clock: Rows = ((str(self.mono + 500),),)
        since = float(statements[-1].rpartition(" ")[2]) if len(statements) > 1 else 0.0
        listed = tuple((key, body, str(at)) for key, (body, at) in self.rows.items() if at >= since)
        return (clock, listed)[: len(statements)]


def look(probe: StoredDocuments, shelf: Shelf) -> Reading:
    host = replace(InMemoryHost().host, clock=shelf, postgres=shelf)
    return asyncio.run(probe.read(STORE, host))


def told(reading: Reading) -> list[tuple[str, str, str | None, float]]:
    return [(e["name"], e["document"], e["marker"], round(e["mono"], 3)) for e in reading.events]


def test_what_came_is_told_once_with_its_marker_and_its_time() -> None:
    shelf, probe = Shelf(), StoredDocuments()
    assert ({"uploads_listed": 0.0}, ()) == (look(probe, shelf).values, look(probe, shelf).events)
    shelf.add("k-1", "Reference: m-4bf92f3577b3\nA note.", 100.5)
    shelf.mono = 101.0
    found = look(probe, shelf)
    assert {"uploads_listed": 1.0} == found.values
    assert [("document_stored", "k-1", "m-4bf92f3577b3", 100.5)] == told(found)
    assert [] == told(look(probe, shelf))


def test_what_is_gone_is_told_when_it_is_missed() -> None:
    shelf, probe = Shelf(), StoredDocuments()
    shelf.add("k-1", "A note without a marker.", 99.0)
    assert [("document_stored", "k-1", None, 99.0)] == told(look(probe, shelf))
    shelf.rows.clear()
    shelf.mono = 107.0
    assert [("document_gone", "k-1", None, 107.0)] == told(look(probe, shelf))


def test_what_was_there_long_before_the_run_is_left_out() -> None:
    shelf, probe = Shelf(), StoredDocuments()
    shelf.add("old", "Reference: m-000000000001", 20.0)
    assert ({"uploads_listed": 0.0}, []) == (look(probe, shelf).values, told(look(probe, shelf)))


def test_a_store_that_is_away_is_a_failed_look_and_forgets_nothing() -> None:
    shelf, probe = Shelf(), StoredDocuments()
    shelf.add("k-1", "Reference: m-4bf92f3577b3", 99.0)
    look(probe, shelf)
    shelf.refusal = ConnectionRefusedError("nobody")
    found = look(probe, shelf)
    assert ({}, ()) == (found.values, found.events)
    assert "could not be listed" in (found.error or "")
    shelf.refusal = None
    assert [] == told(look(probe, shelf))


def test_a_store_without_such_a_table_takes_no_documents_and_is_no_failure() -> None:
    shelf, probe = Shelf(), StoredDocuments()
    shelf.refusal = PostgresRefused("42P01", "relation does not exist")
    assert (None, {}) == (look(probe, shelf).error, look(probe, shelf).values)
    shelf.refusal = PostgresRefused("53300", "too many connections")
    assert "too many connections" in (look(probe, shelf).error or "")


def test_only_vector_stores_of_this_wire_are_asked() -> None:
    assert StoredDocuments().applies_to(STORE)
    assert not StoredDocuments().applies_to(replace(STORE, wire="http"))
    assert not StoredDocuments().applies_to(replace(STORE, role="cache"))
