"""`--set` options: checked like the file, shown where they stand, and kept in the stored text."""

from __future__ import annotations

import pytest

from chaos.spec.parse import locate, parse


@pytest.mark.parametrize(
    ("option", "look"),
    [
        ("faults.1.for=10s", lambda e: e.faults[1].for_ == 10),
        ("faults.slow.for=10s", lambda e: e.faults[1].for_ == 10),
        ("hypotheses.no pile-on.at_most=2.5", lambda e: e.hypotheses[4].at_most == 2.5),
        ("load.talk.client.retries=3", lambda e: e.loads[1].client.retries == 3),
        ("tags=[a, b]", lambda e: e.tags == ("a", "b")),
        ("title='It is: gone'", lambda e: e.title == "It is: gone"),
        ("why=a=b", lambda e: e.why == "a=b"),
        ("windows={settled: 20s}", lambda e: (e.windows.settled, e.windows.recovery) == (20, 10)),
    ],
)
def test_an_option_replaces_or_adds_a_value(read, option, look):
    assert look(read(overrides=[option]))


def test_a_single_load_is_named_with_or_without_its_index(toy):
    start, end = toy.GOOD.index("load:"), toy.GOOD.index("windows:")
    text = toy.GOOD[:start] + "load: {name: chat, route: rag, rate: 20/s}\n" + toy.GOOD[end:]
    for option in ("load.rate=30/s", "load.0.rate=30/s", "load.chat.rate=30/s"):
        assert parse(text, "x", toy.CATALOG, overrides=[option]).loads[0].rate == 30


@pytest.mark.parametrize(
    ("code", "column", "option"),
    [
        ("not-a-duration", 17, "faults.slow.for=10"),
        ("not-text", 7, "title=it is: gone"),
        ("unknown-override", 8, "faults.fro=1"),
        ("unknown-key", 13, "faults.slow.fro=1s"),
        ("unknown-override", 8, "faults.slwo.for=1s"),
        ("unknown-override", 8, "faults.2.for=1s"),
        ("unknown-override", 7, "title.x=1"),
        ("bad-override", 1, "faults.slow.for"),
        ("bad-override", 1, "=1"),
        ("bad-override", 1, "why="),
        ("bad-override", 1, ""),
        ("bad-syntax", 5, "why='"),
        ("anchor-used", 5, "why=&a b"),
        ("fault-exceeds-blast-radius", 17, "faults.slow.for=40s"),
    ],
)
def test_a_wrong_option_is_shown_in_the_option(read, code, column, option):
    (problem,) = read(overrides=[option])
    assert (code, "--set", column) == (problem.code, problem.span.source.label, problem.span.column)


def test_later_options_win_and_every_wrong_one_is_told(read):
    assert read(overrides=["faults.0.for=1s", "faults.0.for=16s"]).faults[0].for_ == 16
    found = read(overrides=["a", "b"])
    assert [d.span.source.text for d in found] == ["a", "b"]


def test_the_stored_text_means_the_same_without_the_options(read, toy):
    changed = read(overrides=["faults.slow.for=10s", "windows.settled=20s", 'title="Ä: \\"quoted\\" #1"', "tags=[]"])
    again = parse(changed.text, changed.path, toy.CATALOG)
    for field in ("name", "title", "tags", "loads", "windows", "faults", "guards", "hypotheses", "blast_radius", "why"):
        assert getattr(changed, field) == getattr(again, field)
    assert "# --set faults.slow.for=10s\n" in changed.text


def test_without_options_the_stored_text_is_the_authors(read, toy):
    assert read().text == toy.GOOD


def test_lines_are_those_of_the_authors_file(read):
    plain, changed = read(), read(overrides=["faults.slow.for=10s"])
    assert plain.lines["hypotheses.3"] == changed.lines["hypotheses.3"]
    assert plain.lines["faults.1"] == changed.lines["faults.1.for"]


def test_a_place_is_found_again_for_problems_of_later_stages(read):
    target = locate(read(), "faults.0.target")
    assert target.source.lines[target.line - 1][target.column - 1 : target.end_column - 1] == "{role: vector-store}"
    assert locate(read(), "faults.0.target.count") == target
    changed = read(overrides=["faults.slow.for=10s"])
    assert locate(changed, "faults.0").source.label == "experiments/retrieval/outage.yaml with --set"
