"""`check` says what it could not check, and is otherwise silent about what is right."""

from __future__ import annotations

from chaos.commands.check import unread
from tests.verdict.story import EXPERIMENT, experiment

QUERY = "  - {name: no bare errors, sql: select count(*) from requests where status = 500, at_most: 0}\n"


def test_a_query_that_nobody_here_can_read_is_said_to_be_unread() -> None:
    checked = [experiment(EXPERIMENT + QUERY), experiment()]
    assert () == unread(checked, lambda _need: True)
    (note,) = unread(checked, lambda need: need.name != "duckdb")
    assert "note: 1 hypothesis not checked: module duckdb is not here; pip install 'brownout[sql]'" == note
