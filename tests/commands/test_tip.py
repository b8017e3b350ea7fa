"""`brownout tip`: the page compared whole (BROWNOUT_REWRITE=1 writes it anew), the document, and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from chaos import cli

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "tip"
REWRITE = os.environ.get("BROWNOUT_REWRITE") == "1"

WEAK = ["--keeps-work", "--queue", "none"]
RESENDING = ["--set", "load.chat.client.retries=3", "--set", "load.chat.client.timeout=2s"]
PAGES = {
    "storm": ["load/retry_storm.yaml"],
    "loss": ["load/capacity_loss.yaml", *WEAK, *RESENDING],
}


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = cli.main(["tip", *arguments])
    except SystemExit as end:
        code = int(end.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


def experiment(file: str, *more: str) -> list[str]:
    return [str(ROOT / "experiments" / file), *more]


@pytest.mark.parametrize("name", PAGES)
def test_the_page_says_exactly_this(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, err = call(capsys, *experiment(*PAGES[name]))
    path = GOLDEN / f"{name}.txt"
    if REWRITE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(out, encoding="utf-8")
    assert (0, "") == (code, err)
    assert path.read_text(encoding="utf-8") == out


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, err = call(capsys, *experiment(*arguments), "--json")
    assert (0, "") == (code, err)
    found: dict[str, Any] = json.loads(out)
    return found


def test_programs_get_the_bracket_the_loop_and_what_was_assumed(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "load/capacity_loss.yaml", *WEAK, *RESENDING)
    safe, tips = found["bracket"]
    assert safe < found["tips_at"] < tips < 1.03 * safe
    assert (1, "length", "s", 14.0) == (found["version"], found["of"], found["unit"], found["written"])
    assert pytest.approx(found["predicted"], rel=0.1) == found["tips_at"]
    assert {"cut": "retries", "state": "recovered"}.items() <= found["arms"][0].items()
    assert "50%" in found["assumed"]["trigger"]


def test_the_load_that_tips_is_found_where_a_cache_is_emptied(capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--set", "load.popular.client.timeout=1s", "--capacity", "30/s", "--slots", "1"]
    found = document(capsys, "cache/flush.yaml", *WEAK, "--of", "load", "--cached", "80%", *quick)
    assert ("/s", None, "cache") == (found["unit"], found["predicted"], found["arms"][0]["cut"])
    assert 30 < found["tips_at"] < 150


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["retrieval/slow.yaml"], "does not know what `vector_store_slow` does"),
        (["retrieval/vector_store_outage.yaml"], "neither an engine nor the front door"),
        (["control/no_fault.yaml"], "nothing in the file is a trigger"),
        (["cache/flush.yaml"], "--cached SHARE"),
        (["cache/flush.yaml", "--cached", "50%"], "--of load"),
        (["load/retry_storm.yaml", "--capacity", "40"], "write for example 40/s"),
        (["load/retry_storm.yaml", "--queue", "0"], "from 1 up"),
        (["load"], "one file at a time"),
    ],
)
def test_what_cannot_be_modelled_is_refused_with_the_reason(
    capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    code, out, err = call(capsys, *experiment(*arguments))
    assert (64, "", True) == (code, out, why in err)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("gpu/throttle.yaml", "1 of 2 engines work at 20% of their speed, so 60% of capacity is left"),
        ("engine/stall.yaml", "1 of 2 engines do nothing until the revert, so 50% of capacity is left"),
    ],
)
def test_the_model_says_what_it_takes_for_granted(capsys: pytest.CaptureFixture[str], file: str, words: str) -> None:
    """Neither tips the stack: work of clients that have left is ended there."""
    found = document(capsys, file)
    assert (None, True) == (found["tips_at"], words in found["assumed"]["trigger"])
