"""`brownout judge` on evidence that somebody changed, from outside."""

from __future__ import annotations

import json
from pathlib import Path

from drill import Drill

from tests.verdict.story import Story


def test_a_changed_journal_is_inconclusive_says_tampered_and_names_the_line(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    Story().write(run_dir)
    (run_dir / "plan.json").write_text('{"experiment": "retrieval/vector_store_outage"}')
    journal = run_dir / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[5] = lines[5].replace(b'"seen":true', b'"seen":null')
    journal.write_bytes(b"".join(lines))

    done = Drill(tmp_path).call("judge", str(run_dir), "--json")

    verdict = json.loads(done.stdout)
    (intact,) = (each for each in verdict["preconditions"] if each["name"] == "journal intact")
    assert (2, "inconclusive", False) == (done.returncode, verdict["verdict"], intact["held"]), done.stderr
    assert "tampered: journal line 6: its hash is not the hash of its bytes" in intact["why"]
    assert "tampered: journal line 6" in verdict["why"]
