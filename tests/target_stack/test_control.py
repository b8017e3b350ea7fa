"""The control API, over a real Unix socket with a supervisor that only remembers."""

from __future__ import annotations

import asyncio
import stat

import aiohttp
import pytest

from target_stack.burdens import Burden
from target_stack.control import SocketPathTooLong, open_control

pytestmark = pytest.mark.system


class Remembering:
    """Knows one target and keeps its holds."""

    def __init__(self):
        self.holds, self.burdens, self.stopped = [], [], False

    def status(self):
        return {"version": 1}

    def hold(self, name, by):
        if name != "tools":
            raise KeyError(name)
        self.holds.append(by)
        return tuple(self.holds)

    def burden(self, name, burden):
        self.burdens.append(burden)
        return (burden.by,)

    def release(self, name, by):
        if name != "tools":
            raise KeyError(name)
        self.holds = [other for other in self.holds if other != by]
        return tuple(self.holds)

    def ask_to_stop(self):
        self.stopped = True


def calls(path, stack, *requests):
    """Status and body of each request."""

    async def all_of_them():
        runner = await open_control(stack, path)
        answers = []
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as session:
            for method, url, body in requests:
                async with session.request(method, f"http://stack{url}", data=body) as reply:
                    answers.append((reply.status, await reply.json()))
        mode = stat.S_IMODE(path.stat().st_mode)
        await runner.cleanup()
        return answers, mode

    return asyncio.run(all_of_them())


def test_status_is_the_inventory_and_only_the_owner_may_ask(tmp_path):
    answers, mode = calls(tmp_path / "c.sock", Remembering(), ("GET", "/status", None))
    assert answers == [(200, {"version": 1})]
    assert mode == 0o600


def test_hold_and_release_answer_with_the_holds(tmp_path):
    answers, _ = calls(
        tmp_path / "c.sock",
        Remembering(),
        ("POST", "/targets/tools/hold", b'{"by": "lease-1"}'),
        ("POST", "/targets/tools/release", b'{"by": "lease-1"}'),
    )
    assert answers == [(200, {"holds": ["lease-1"]}), (200, {"holds": []})]


def test_a_burden_is_read_to_the_last_key(tmp_path):
    stack = Remembering()
    body = b'{"by": "lease-1", "start_delay_s": 2, "life_s": 0.5, "deaths": 3, "settings": {"seed": 2}}'
    answers, _ = calls(tmp_path / "c.sock", stack, ("POST", "/targets/tools/burden", body))
    assert answers == [(200, {"burdens": ["lease-1"]})]
    assert stack.burdens == [Burden("lease-1", 2, 0.5, 3, {"seed": 2})]


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("lives_s", "1", "'lives_s' is nothing that can be laid on a target"),
        ("life_s", "-1", "life_s must be a number from 0 to 3600, not -1"),
        ("deaths", "true", "deaths must be a number"),
        ("settings", "[]", "settings must be a mapping"),
    ],
)
def test_a_burden_that_makes_no_sense_is_400(tmp_path, key, value, why):
    body = f'{{"by": "x", "{key}": {value}}}'.encode()
    (answer,), _ = calls(tmp_path / "c.sock", Remembering(), ("POST", "/targets/tools/burden", body))
    assert answer[0] == 400
    assert why in answer[1]["error"]


def test_an_unknown_target_is_404(tmp_path):
    answers, _ = calls(tmp_path / "c.sock", Remembering(), ("POST", "/targets/tols/hold", b'{"by": "x"}'))
    assert answers == [(404, {"error": "there is no target 'tols'"})]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"by": ""}', b'{"by": 1}'])
def test_a_hold_without_a_holder_is_400(tmp_path, body):
    answers, _ = calls(tmp_path / "c.sock", Remembering(), ("POST", "/targets/tools/hold", body))
    assert answers[0][0] == 400


def test_shutdown_is_accepted_and_begins(tmp_path):
    stack = Remembering()
    assert calls(tmp_path / "c.sock", stack, ("POST", "/shutdown", None))[0] == [(202, {"stopping": True})]
    assert stack.stopped


def test_the_socket_of_a_killed_supervisor_is_replaced(tmp_path):
    (tmp_path / "c.sock").touch()
    assert calls(tmp_path / "c.sock", Remembering(), ("GET", "/status", None))[0][0][0] == 200


def test_a_path_too_long_for_a_socket_is_explained(tmp_path):
    with pytest.raises(SocketPathTooLong, match="shorter path"):
        asyncio.run(open_control(Remembering(), tmp_path / ("x" * 120)))
