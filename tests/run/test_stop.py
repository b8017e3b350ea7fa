"""A flag with a reason: the first stays, and what ends the whole ends its parts."""

from __future__ import annotations

from chaos.run.stop import Stop


def test_the_first_reason_stays() -> None:
    stop = Stop()
    assert (True, False) == (stop.request("SIGINT", "ctrl-c"), stop.request("guard"))
    assert ("SIGINT", "ctrl-c") == (stop.by, stop.why)


def test_a_part_that_ends_leaves_the_whole_going() -> None:
    """A guard that trips in one run of several must not end the others."""
    whole = Stop()
    whole.part().request("guard")
    assert (False, False) == (whole.requested(), whole.part().requested())


def test_what_ends_the_whole_ends_every_part_also_those_to_come() -> None:
    whole = Stop()
    begun = whole.part()
    whole.request("SIGTERM")
    assert ("SIGTERM", "SIGTERM") == (begun.by, whole.part().by)
