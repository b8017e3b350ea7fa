"""The releases in force, as requests and operators meet them: who gets which, what they showed, and every change.

A change is one value written to disk and then put in place, so a request, a restart and a crash see the releases before
it or after it, and no mixture.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from target_stack.gateway.call import Call
from target_stack.gateway.errors import GatewayError
from target_stack.gateway.policies.canary import CanarySettings, CanaryWatch, Decision, Seen, gets_canary
from target_stack.gateway.policies.release import Release, Releases, ReleaseSettings
from target_stack.gateway.requests import ChatRequest
from target_stack.gateway.sse import Frame
from target_stack.gateway.telemetry import Telemetry

HEADER = "x-release"
FILE = "releases.json"
_AT_FAULT = range(400, 500)
_NO_SUCH_MODEL = 404

Keep = Callable[[Releases], None]


@dataclass(frozen=True)
class Rules:
    """How changes are decided. `model` is the public name, under which each engine serves its own model."""

    canary: CanarySettings
    release: ReleaseSettings
    model: str


class Turn:
    """One request under one release, from its assignment to its end; a context manager.

    `ask` is the request in the release's words. An answer that another model gave says nothing about the release but
    that it failed.
    """

    def __init__(self, book: ReleaseBook, releases: Releases, ask: ChatRequest, call: Call) -> None:
        user = ask.fields.get("user")
        canary, share = releases.canary, book.share
        key = user if isinstance(user, str) and user else call.trace_id
        self.is_canary = canary is not None and gets_canary(key, canary.name, share)
        self.release = canary if canary is not None and self.is_canary else releases.stable
        self.beside = canary.name if canary else None
        model = self.release.model
        self.ask = ask.under(self.release, None if model == book.rules.model else model)
        self._book = book
        self._arrived = call.arrived
        self._ttft_s: float | None = None
        self._tokens = 0
        self._own = True
        self._whole = False

    def first_token(self, now: float, *, own: bool) -> None:
        """The answer begins; `own` when the release's model gives it."""
        self._own = own
        self._ttft_s = now - self._arrived if own else None

    def passed(self, frames: list[Frame]) -> None:
        """Frames went to the client."""
        self._tokens += sum(map(_has_text, frames))

    def whole(self) -> None:
        """The answer was sent to its end."""
        self._whole = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Whoever left early got no whole answer; a request that is itself at fault says nothing."""
        if isinstance(error, GatewayError) and error.status in _AT_FAULT and error.status != _NO_SUCH_MODEL:
            return
        self._book.ended(self, Seen(self._whole and self._own, self._ttft_s, self._tokens))


def _has_text(frame: Frame) -> bool:
    choices = (frame.data or {}).get("choices") or ()
    return any((choice.get("delta") or {}).get("content") for choice in choices)


class ReleaseBook:
    """The one place where releases change. `keep` stores a state before it holds."""

    def __init__(self, releases: Releases, rules: Rules, telemetry: Telemetry, keep: Keep) -> None:
        self.rules = rules
        self._telemetry = telemetry
        self._keep = keep
        self.state = _comparable_again(releases, rules.canary)
        self._watch = self._watch_of(self.state, None)

    @property
    def share(self) -> float:
        """Part of the users who get the canary; 0 without one."""
        return self._watch.share if self._watch else 0.0

    def turn(self, ask: ChatRequest, call: Call) -> Turn:
        """A request begins."""
        return Turn(self, self.state, ask, call)

    def ended(self, turn: Turn, seen: Seen) -> None:
        """A request is over."""
        metrics = self._telemetry.metrics
        metrics.release_answers.add(turn.release.name, "whole" if seen.whole else "broken")
        metrics.release_tokens.add(turn.release.name, by=seen.tokens)
        if self._watch and self.state.canary and turn.beside == self.state.canary.name:
            self._watch.saw(seen, canary=turn.is_canary)
            self.tick()

    def tick(self) -> None:
        """Decide about the canary; call now and then too, because time decides as well."""
        if self._watch:
            self._carry_out(self._watch.decide(self._telemetry.clock()))

    def start(self, release: Release) -> None:
        """Give a new release to the first few. Raises CannotChange, OSError."""
        self._put(self.state.started(release))
        self._tell("release_started", release, share=self.share)

    def switch(self, release: Release) -> None:
        """Give a new release to everybody. Raises CannotChange, OSError."""
        self._put(self.state.switched(release))
        self._tell("release_switched", release)

    def roll_back(self) -> None:
        """Take the canary back, or without one the stable release. Raises CannotChange, OSError."""
        canary, wrong = self.state.canary, self.state.canary or self.state.stable
        self._put(self.state.rolled_back(self.rules.release))
        self._tell("canary_rolled_back" if canary else "release_rolled_back", wrong, reason="asked")

    def report(self) -> dict[str, Any]:
        """The document of GET /admin/releases."""
        arms = {"canary": self._watch.canary, "stable": self._watch.stable} if self._watch else {}
        seen = {name: {"requests": arm.requests, "broken": arm.broken} for name, arm in arms.items()}
        record = {key: value for key, value in self.state.to_json().items() if key not in ("version", "declared")}
        return {**record, "share": self.share, "split": self.state.is_split, "seen": seen}

    def _carry_out(self, decision: Decision) -> None:
        """A full disk must not keep a bad canary in place: then the change holds, but not across a restart."""
        canary = self.state.canary
        if decision.verb == "hold" or canary is None:
            return
        if decision.verb == "roll_back":
            self._put(self.state.rolled_back(self.rules.release), even_unkept=True)
            self._tell("canary_rolled_back", canary, reason=decision.reason, value=round(decision.value, 3))
        elif decision.verb == "step":
            self._put(self.state.stepped(), even_unkept=True)
            self._tell("canary_step", canary, share=self.share)
        else:
            self._put(self.state.finished(), even_unkept=True)
            self._tell("release_finished", canary)

    def _put(self, releases: Releases, *, even_unkept: bool = False) -> None:
        try:
            self._keep(releases)
        except OSError as problem:
            if not even_unkept:
                raise
            self._tell("release_not_kept", releases.stable, why=str(problem))
        self.state, self._watch = releases, self._watch_of(releases, self._watch)

    def _watch_of(self, releases: Releases, before: CanaryWatch | None) -> CanaryWatch | None:
        if releases.canary is None:
            return None
        last = releases.step == len(self.rules.canary.steps) - 1
        reference = before.stable if last and before else None
        return CanaryWatch(self.rules.canary, releases.step, self._telemetry.clock(), reference)

    def _tell(self, event: str, release: Release, **more: Any) -> None:
        self._telemetry.events.add(event, release=release.name, fingerprint=release.fingerprint, **more)


def _comparable_again(releases: Releases, settings: CanarySettings) -> Releases:
    """After a restart nothing is known of the stable release, so a canary that everybody had goes one step back."""
    last = len(settings.steps) - 1
    return replace(releases, step=min(releases.step, max(0, last - 1)))


def read_releases(path: Path | None, stable: Release) -> Releases:
    """What was in force when the gateway ended; only `stable` when nothing was kept. Raises ValueError, OSError."""
    if path is None or not path.exists():
        return Releases.of(stable)
    try:
        return Releases.from_json(json.loads(path.read_text("utf-8")))
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"{path} is damaged: {problem!r}; remove it to begin with {stable.name!r}") from problem


def keep_in(path: Path | None) -> Keep:
    """A function that replaces the file as one step, also across a crash; without a path nothing outlives us."""

    def keep(releases: Releases) -> None:
        if path is None:
            return
        fresh = path.with_name(f".{path.name}.new")
        with fresh.open("w", encoding="utf-8") as file:
            file.write(json.dumps(releases.to_json(), indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)

    return keep
