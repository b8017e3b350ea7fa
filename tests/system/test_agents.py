"""The agents are killed at random instants, as real processes, and nothing is lost or done twice."""

from __future__ import annotations

import random
from pathlib import Path

from agents import agents, call, children, resumed, shake, until


def test_ten_kills_at_random_instants_lose_no_task_and_repeat_no_side_effect(tmp_path):
    with agents(tmp_path) as place:
        shake(place, 10, random.Random(4))
        assert place.wrong() is None
        assert len(place.submitted) == 30
        assert resumed(place) > 0


def test_nothing_of_the_agents_outlives_them(tmp_path):
    with agents(tmp_path) as place:
        until(lambda: call("GET", f"http://{place.agent_at}/ping")[0] == 200, "the agents serve", 30)
        (approver,) = children(place.pid)
        place.die(0)
        until(lambda: children(approver) == [] and not _lives(approver), "the approver is gone", 5)


def _lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
