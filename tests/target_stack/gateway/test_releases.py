"""Releases as users and operators meet them: whole triples, truthful marks, changes that outlive the process."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from target_stack.gateway.call import Call
from target_stack.gateway.events import EventRing
from target_stack.gateway.metrics import GatewayMetrics
from target_stack.gateway.policies.canary import CanarySettings, Seen
from target_stack.gateway.policies.deadline import Deadline
from target_stack.gateway.policies.release import AnswerConfig, Release, Releases, ReleaseSettings
from target_stack.gateway.releases import FILE, ReleaseBook, Rules, keep_in, read_releases
from target_stack.gateway.requests import ChatRequest, chat_request
from target_stack.gateway.telemetry import Telemetry
from target_stack.gateway.trace import Trace

STABLE = Release("r1", "1", "brownout-chat")
NEXT = Release("r2", "2", "brownout-chat-v2", AnswerConfig(system_prompt="Be kind.", temperature=0.5, max_tokens=77))
RULES = Rules(CanarySettings(), ReleaseSettings(), "brownout-chat")


class Desk:
    """A book with a clock in the test's hand."""

    def __init__(self, releases: Releases = Releases.of(STABLE), rules: Rules = RULES, keep: Any = None) -> None:  # noqa: B008  # frozen
        self.now = 100.0
        self.telemetry = Telemetry(lambda: self.now, random.Random(1), EventRing(lambda: self.now), GatewayMetrics())
        self.book = ReleaseBook(releases, rules, self.telemetry, keep or (lambda releases: None))

    def ask(self, user: str, *, tokens: int = 30, whole: bool = True) -> Release:
        """One request of `user` from its first to its last moment."""
        call = Call(Trace("0" * 32, "0" * 16), self.now, Deadline(self.now + 5), "interactive")
        with self.book.turn(request(user=user), call) as turn:
            turn.first_token(self.now + 0.05, own=True)
            if whole:
                turn.whole()
        return turn.release

    def events(self) -> list[dict[str, Any]]:
        return [
            {k: v for k, v in e.items() if k not in ("seq", "mono")} for e in self.telemetry.events.after(0)["events"]
        ]


def request(**fields: Any) -> ChatRequest:
    body = {"model": "brownout-chat", "messages": [{"role": "user", "content": "Hi?"}], **fields}
    return chat_request(json.dumps(body).encode(), "brownout-chat")


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({}, {"temperature": 0.5, "max_tokens": 77}),
        ({"temperature": 0, "max_tokens": 5}, {"temperature": 0, "max_tokens": 5}),
        ({"max_completion_tokens": 9}, {"temperature": 0.5, "max_completion_tokens": 9}),
    ],
)
def test_a_release_speaks_only_where_the_client_said_nothing(asked: dict[str, Any], wanted: dict[str, Any]) -> None:
    body = request(**asked).under(NEXT, "brownout-chat-v2").upstream("own")
    assert {key: body[key] for key in body if key.endswith("tokens") or key == "temperature"} == wanted
    assert body["model"] == "brownout-chat-v2"
    assert body["messages"][0] == {"role": "system", "content": "Be kind."}


def test_a_clients_own_system_message_stays_the_only_one() -> None:
    own = [{"role": "system", "content": "Mine."}, {"role": "user", "content": "Hi?"}]
    assert request(messages=own).under(NEXT, None).upstream("own")["messages"] == own


def test_a_least_length_never_contradicts_the_clients_own_limit() -> None:
    long = Release("r2", "1", "m", AnswerConfig(min_tokens=120))
    assert request(max_tokens=8).under(long, None).upstream("own")["min_tokens"] == 8
    assert request().under(long, None).upstream("own")["min_tokens"] == 120


def test_the_code_of_the_release_words_the_question() -> None:
    told = [
        request().under(release, None).with_context([("doc-1", "Water is wet.")]).upstream("own")["messages"][0]
        for release in (STABLE, NEXT)
    ]
    assert told[0] != told[1]


def test_a_user_stays_with_a_release_and_without_a_name_the_trace_decides() -> None:
    desk = Desk()
    desk.book.start(NEXT)
    given = {user: desk.ask(user).name for user in map(str, range(200))}
    assert {desk.ask(user).name for user in given if given[user] == "r2"} == {"r2"}
    assert 0 < sum(name == "r2" for name in given.values()) < 30


def test_the_public_model_stands_for_each_engines_own() -> None:
    desk = Desk()
    call = Call(Trace("0" * 32, "0" * 16), desk.now, Deadline(desk.now + 5), "interactive")
    assert desk.book.turn(request(), call).ask.upstream("engines-own")["model"] == "engines-own"


def test_a_bad_canary_is_taken_back_and_a_good_one_goes_all_the_way() -> None:
    def rollout(tokens: int) -> Desk:
        desk = Desk()
        desk.book.start(NEXT)
        for number in range(3000):
            desk.now += 0.05
            user, canary = f"user-{number}", desk.book.state.canary
            if canary is None:
                break
            call = Call(Trace("0" * 32, "0" * 16), desk.now, Deadline(desk.now + 5), "interactive")
            turn = desk.book.turn(request(user=user), call)
            desk.book.ended(turn, Seen(True, 0.05, tokens if turn.is_canary else 30))
        return desk

    good, bad = rollout(31), rollout(90)
    shares = [(event["name"], event.get("share")) for event in good.events()]
    assert shares == [
        ("release_started", 0.05),
        ("canary_step", 0.25),
        ("canary_step", 0.5),
        ("canary_step", 1.0),
        ("release_finished", None),
    ]
    assert good.book.state.stable == NEXT
    assert bad.book.state.stable == STABLE
    fell = {"fingerprint": NEXT.fingerprint, "reason": "output_length", "value": pytest.approx(2.935, abs=0.001)}
    assert bad.events()[-1] == {"name": "canary_rolled_back", "release": "r2", **fell}


def test_requests_of_an_earlier_canary_say_nothing_about_a_later_one() -> None:
    desk = Desk()
    desk.book.start(NEXT)
    call = Call(Trace("0" * 32, "0" * 16), desk.now, Deadline(desk.now + 5), "interactive")
    late = desk.book.turn(request(user="u"), call)
    desk.book.roll_back()
    desk.book.start(Release("r3", "1", "brownout-chat-v2"))
    desk.book.ended(late, Seen(True, 0.05, 30))
    assert desk.book.report()["seen"] == {arm: {"requests": 0, "broken": 0} for arm in ("canary", "stable")}


def test_what_is_in_force_outlives_the_gateway(tmp_path: Path) -> None:
    path = tmp_path / FILE
    first = Desk(read_releases(path, STABLE), keep=keep_in(path))
    first.book.start(NEXT)
    second = Desk(read_releases(path, STABLE), keep=keep_in(path))
    assert (second.book.state.stable, second.book.state.canary, second.book.share) == (STABLE, NEXT, 0.05)
    second.book.roll_back()
    assert read_releases(path, Release("other", "1", "m")) == Releases(STABLE, declared=second.book.state.declared)
    assert [entry.name for entry in tmp_path.iterdir()] == [FILE]


def test_a_damaged_file_is_told_and_not_guessed_at(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text('{"version": 1, "stable"')
    with pytest.raises(ValueError, match=r"releases\.json is damaged.*remove it to begin with 'r1'"):
        read_releases(path, STABLE)


def test_after_a_restart_a_canary_for_everybody_goes_back_to_a_share_that_can_be_compared() -> None:
    state = Releases.of(STABLE).started(NEXT).stepped().stepped().stepped()
    assert Desk(state).book.share == 0.5


def test_a_change_that_cannot_be_kept_is_refused_but_a_bad_canary_goes_all_the_same() -> None:
    def keep(releases: Releases) -> None:
        raise OSError("no space left")

    desk = Desk(keep=keep)
    with pytest.raises(OSError, match="no space"):
        desk.book.start(NEXT)
    assert desk.book.state == Releases.of(STABLE)
    desk = Desk(Releases.of(STABLE).started(NEXT), keep=keep)
    desk.now += RULES.canary.longest_step_s
    desk.book.tick()
    assert desk.book.state.canary is None
    assert [event["name"] for event in desk.events()] == ["release_not_kept", "canary_rolled_back"]


@pytest.mark.system
async def test_every_answer_is_of_one_triple_while_releases_change_and_says_which(serve: Any) -> None:
    """Thirty users ask while releases are started, switched and rolled back between any two steps of theirs."""
    third = Release("r3", "1", "brownout-chat-v3", AnswerConfig(max_tokens=33))
    triples = {
        release.name: (release.model, release.config.max_tokens, release.config.system_prompt)
        for release in (STABLE, NEXT, third)
    }
    marks: dict[str, str] = {}

    async def user(stack: Any, number: int) -> None:
        for turn in range(8):
            trace = f"{number + 1:016x}{turn + 1:016x}"
            reply = await stack.chat(user=f"u{number}", headers={"traceparent": f"00-{trace}-{'1' * 16}-01"})
            marks[trace] = reply.headers["x-release"]

    async def operator(book: ReleaseBook) -> None:
        dice = random.Random(7)
        while True:
            dice.choice((book.switch, book.start))(dice.choice((NEXT, third)))
            await _some_steps(dice)
            while book.state.canary or book.state.previous:
                book.roll_back()
            await _some_steps(dice)

    async with serve(gateway={"release": {"name": "r1"}}) as stack:
        operating = asyncio.create_task(operator(stack.gateway.releases))
        await asyncio.gather(*(user(stack, number) for number in range(30)))
        operating.cancel()
        seen = {
            headers["x-request-id"]: body
            for engine in (stack.a, stack.b)
            for headers, body in zip(engine.headers, engine.bodies, strict=True)
            if "x-request-id" in headers
        }
    assert len(marks) == 240
    assert set(marks.values()) == {"r1", "r2", "r3"}
    for trace, name in marks.items():
        body = seen[trace]
        first = body["messages"][0]
        system = first["content"] if first["role"] == "system" else None
        assert (body["model"], body.get("max_tokens"), system) == triples[name]


async def _some_steps(dice: random.Random) -> None:
    for _ in range(dice.randint(1, 30)):
        await asyncio.sleep(0)


@pytest.mark.system
async def test_an_answer_of_the_fallback_model_bears_no_releases_mark_and_counts_against_it(serve: Any) -> None:
    async with serve(gateway={"release": {"name": "r1", "model": "brownout-chat-v2"}}) as stack:
        stack.a.script = stack.b.script = (500,)
        reply = await stack.chat()
        assert (reply.headers["x-degraded"], reply.headers.get("x-release")) == ("fallback_model", None)
        assert stack.small.asked[0]["model"] == "brownout-small"
        assert stack.gateway.telemetry.metrics.release_answers.value("r1", "broken") == 1


@pytest.mark.system
async def test_the_page_of_metrics_counts_by_release(serve: Any) -> None:
    async with serve(gateway={"release": {"name": "r1"}}) as stack:
        await stack.chat()
        await stack.chat(stream=False)
        text = (await stack.get("/metrics")).text
    for line in (
        'gateway_release_answers_total{release="r1",result="whole"} 2',
        'gateway_release_tokens_total{release="r1"} 4',
        "gateway_canary_share 0",
        "gateway_release_split 0",
    ):
        assert line in text, line


@pytest.mark.system
async def test_a_request_that_is_itself_at_fault_says_nothing_about_its_release(serve: Any) -> None:
    async with serve() as stack:
        stack.a.script = stack.b.script = (400,)
        assert (await stack.chat()).status == 400
        stack.a.script = stack.b.script = (404,)
        assert (await stack.chat()).status == 404
        counted = stack.gateway.telemetry.metrics.release_answers
        assert (counted.value("first", "broken"), counted.value("first", "whole")) == (1, 0)
