"""A release is one triple: declared whole, put in place whole, taken back whole."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.policies.release import (
    AnswerConfig,
    BadRelease,
    CannotChange,
    Release,
    Releases,
    ReleaseSettings,
)

WHOLE, MODEL_ONLY = ReleaseSettings(), ReleaseSettings(rollback="model")
CONFIGS = st.builds(
    AnswerConfig,
    system_prompt=st.none() | st.text("abc", min_size=1, max_size=5),
    temperature=st.none() | st.floats(0, 2),
    max_tokens=st.none() | st.integers(10, 100),
    min_tokens=st.none() | st.integers(0, 10),
)
RELEASES = st.builds(
    Release, st.text("abcdef", min_size=1, max_size=4), st.sampled_from("12"), st.sampled_from(["m", "n"]), CONFIGS
)
A, B, C = (Release(name, code, f"model-{name}", AnswerConfig(max_tokens=n)) for name, code, n in
           (("a", "1", 10), ("b", "2", 20), ("c", "1", 30)))  # fmt: skip


@given(RELEASES, st.lists(st.tuples(st.sampled_from(["start", "switch", "step", "finish", "back"]), RELEASES)))
def test_a_rollback_restores_exactly_the_triple_before(first: Release, changes: list[tuple[str, Release]]) -> None:
    """Against a reference that keeps the history of stable releases as a list."""
    now, history, canary = Releases.of(first), [first], None
    for number, (verb, drawn) in enumerate(changes):
        release = dataclasses.replace(drawn, name=f"{drawn.name}-{number}")
        if verb in ("start", "switch"):
            change = now.started if verb == "start" else now.switched
            if canary:
                with pytest.raises(CannotChange):
                    change(release)
                continue
            now = change(release)
            canary, history = (release, history) if verb == "start" else (None, [history[-1], release])
        elif verb == "step" and canary:
            now = now.stepped()
        elif verb == "finish" and canary:
            now, history, canary = now.finished(), [history[-1], canary], None
        elif verb == "back" and (canary or len(history) > 1):
            now = now.rolled_back(WHOLE)
            history, canary = (history, None) if canary else (history[:-1], None)
        assert (now.stable, now.canary) == (history[-1], canary)
        assert not now.is_split
        assert Releases.from_json(json.loads(json.dumps(now.to_json()))) == now


def test_with_nothing_before_there_is_nothing_to_go_back_to() -> None:
    with pytest.raises(CannotChange, match="no release before"):
        Releases.of(A).rolled_back(WHOLE)
    with pytest.raises(CannotChange, match="no canary"):
        Releases.of(A).finished()


def test_a_rollback_of_the_model_alone_leaves_a_triple_that_nobody_declared() -> None:
    split = Releases.of(A).started(B).rolled_back(MODEL_ONLY)
    assert split.stable == Release("a", "2", "model-a", B.config)
    assert split.is_split
    assert Releases.from_json(split.to_json()).is_split
    assert Releases.of(A).switched(B).rolled_back(MODEL_ONLY).is_split
    assert not split.switched(A).is_split


def test_the_first_rollback_is_to_stable_the_second_to_the_release_before() -> None:
    once = Releases.of(A).switched(B).started(C).rolled_back(WHOLE)
    assert (once.stable, once.rolled_back(WHOLE).stable) == (B, A)


def test_a_fingerprint_is_of_the_triple_and_not_of_the_name() -> None:
    assert A.fingerprint == dataclasses.replace(A, name="other").fingerprint
    others = [
        dataclasses.replace(A, code="2"),
        dataclasses.replace(A, model="m"),
        dataclasses.replace(A, config=B.config),
    ]
    assert len({A.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_two_releases_of_one_name_are_refused() -> None:
    with pytest.raises(CannotChange, match="'a' is the name"):
        Releases.of(A).started(dataclasses.replace(B, name="a"))


def test_what_a_release_leaves_out_is_that_of_the_stable_one() -> None:
    assert Release.from_json({"name": "n", "model": "x"}, like=A) == Release("n", A.code, "x", A.config)
    assert Release.from_json({"name": "n", "config": {}}, like=A).config == AnswerConfig()


@pytest.mark.parametrize(
    ("record", "param"),
    [
        ([], "release"),
        ({}, "name"),
        ({"name": "Big"}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"name": 7}, "name"),
        ({"name": "n", "model": ""}, "model"),
        ({"name": "n", "code": 2}, "code"),
        ({"name": "n", "colour": "red"}, "colour"),
        ({"name": "n", "config": 5}, "config"),
        ({"name": "n", "config": {"heat": 1}}, "config.heat"),
        ({"name": "n", "config": {"temperature": 3}}, "config.temperature"),
        ({"name": "n", "config": {"temperature": True}}, "config.temperature"),
        ({"name": "n", "config": {"top_p": "all"}}, "config.top_p"),
        ({"name": "n", "config": {"max_tokens": 0}}, "config.max_tokens"),
        ({"name": "n", "config": {"max_tokens": 1.5}}, "config.max_tokens"),
        ({"name": "n", "config": {"system_prompt": "  "}}, "config.system_prompt"),
        ({"name": "n", "config": {"min_tokens": 9, "max_tokens": 8}}, "config.min_tokens"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(record: object, param: str) -> None:
    with pytest.raises(BadRelease) as caught:
        Release.from_json(record, like=A)
    assert caught.value.param == param


def test_what_was_not_written_by_us_is_not_read() -> None:
    with pytest.raises(ValueError, match="version 2"):
        Releases.from_json({**Releases.of(A).to_json(), "version": 2})
