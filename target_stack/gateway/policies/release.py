"""A release is code, model and configuration as one frozen triple, and which releases are in force is one frozen value.

    start      stable A              ─►  stable A, canary B
    finish     stable A, canary B    ─►  stable B, previous A
    switch     stable A              ─►  stable B, previous A      without a canary
    roll back  stable A, canary B    ─►  stable A
               stable B, previous A  ─►  stable A

Every change gives a new value, so a request that took the old one keeps the old one whole.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, Self

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_NUMBERS: Mapping[str, tuple[float, float]] = {"temperature": (0, 2), "top_p": (0, 1)}
_COUNTS: Mapping[str, tuple[int, int]] = {"max_tokens": (1, 1 << 20), "min_tokens": (0, 1 << 20)}
_REMEMBERED = 16


class BadRelease(ValueError):
    """A release that makes no sense; `param` is the key at fault."""

    def __init__(self, message: str, param: str) -> None:
        """Keep what and where."""
        super().__init__(message)
        self.param = param


class CannotChange(Exception):
    """The change does not fit what is in force; the message says what is."""


@dataclass(frozen=True)
class ReleaseSettings:
    """`rollback: model` takes only the model back: code and configuration stay those of the release that failed."""

    rollback: Literal["triple", "model"] = "triple"


@dataclass(frozen=True)
class AnswerConfig:
    """What a release says where the client says nothing. None leaves it to the engine."""

    system_prompt: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    min_tokens: int | None = None

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Read an object. Raises BadRelease."""
        if not isinstance(record, Mapping):
            raise BadRelease("config must be an object", "config")
        known = [each.name for each in dataclasses.fields(cls)]
        for key, value in record.items():
            if key not in known:
                raise BadRelease(f"unknown key; known are {', '.join(known)}", f"config.{key}")
            if value is not None:
                _check_value(key, value)
        config = cls(**record)
        if config.max_tokens is not None and (config.min_tokens or 0) > config.max_tokens:
            raise BadRelease("min_tokens is larger than max_tokens", "config.min_tokens")
        return config

    @cached_property
    def said(self) -> Mapping[str, Any]:
        """The keys that are set."""
        return MappingProxyType({key: value for key, value in dataclasses.asdict(self).items() if value is not None})


def _check_value(key: str, value: Any) -> None:
    where = f"config.{key}"
    if key == "system_prompt":
        if not isinstance(value, str) or not value.strip():
            raise BadRelease("system_prompt must be a text", where)
        return
    whole = key in _COUNTS
    least, most = _COUNTS[key] if whole else _NUMBERS[key]
    number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        raise BadRelease(f"{key} must be a {'whole ' if whole else ''}number from {least} to {most}", where)


@dataclass(frozen=True)
class Release:
    """One triple under a name. `code` is the version of the prompt template, `model` the name that engines serve."""

    name: str
    code: str
    model: str
    config: AnswerConfig = AnswerConfig()

    @classmethod
    def from_json(cls, record: Any, *, like: Release | None = None) -> Self:
        """Read an object; a part that is left out is that of `like`. Raises BadRelease."""
        if not isinstance(record, Mapping):
            raise BadRelease("a release must be an object", "release")
        known = [each.name for each in dataclasses.fields(cls)]
        for key in record:
            if key not in (*known, "fingerprint"):
                raise BadRelease(f"unknown key; known are {', '.join(known)}", str(key))
        if not isinstance(record.get("name"), str) or not _NAME.fullmatch(record["name"]):
            raise BadRelease("name must be 1 to 64 of a-z, 0-9, '.', '_' and '-', a letter or digit first", "name")
        return cls(
            record["name"],
            _word(record, "code", like.code if like else None),
            _word(record, "model", like.model if like else None),
            AnswerConfig.from_json(record["config"]) if "config" in record else like.config if like else AnswerConfig(),
        )

    def to_json(self) -> dict[str, Any]:
        """As an object; `fingerprint` is for readers."""
        config, fingerprint = dict(self.config.said), self.fingerprint
        return {
            "name": self.name,
            "code": self.code,
            "model": self.model,
            "config": config,
            "fingerprint": fingerprint,
        }

    @cached_property
    def fingerprint(self) -> str:
        """Equal for equal triples, whatever their names: SHA-256 of their canonical JSON."""
        triple = json.dumps([self.code, self.model, dict(self.config.said)], sort_keys=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(triple.encode()).hexdigest()}"


def _word(record: Mapping[str, Any], key: str, default: str | None) -> str:
    value = record.get(key, default)
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise BadRelease(f"{key} must be a text of 1 to 200 characters", key)
    return value


@dataclass(frozen=True)
class Releases:
    """What is in force. `step` counts the canary's steps from 0; `declared` are the fingerprints of whole triples that
    somebody asked for.
    """

    stable: Release
    canary: Release | None = None
    step: int = 0
    previous: Release | None = None
    declared: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, stable: Release) -> Self:
        """Only this one."""
        return cls(stable, declared=(stable.fingerprint,))

    @property
    def is_split(self) -> bool:
        """Whether users get a triple that nobody ever asked for."""
        return self.stable.fingerprint not in self.declared

    def started(self, release: Release) -> Releases:
        """With a canary at its first step. Raises CannotChange while there is one."""
        self._must_be_new(release)
        return dataclasses.replace(self, canary=release, step=0, declared=self._declaring(release))

    def switched(self, release: Release) -> Releases:
        """For everybody at once. Raises CannotChange while there is a canary."""
        self._must_be_new(release)
        return Releases(release, previous=self.stable, declared=self._declaring(release))

    def stepped(self) -> Releases:
        """With the canary one step further."""
        return dataclasses.replace(self, step=self.step + 1)

    def finished(self) -> Releases:
        """With the canary as the stable release. Raises CannotChange without one."""
        if self.canary is None:
            raise CannotChange("there is no canary")
        return Releases(self.canary, previous=self.stable, declared=self.declared)

    def rolled_back(self, settings: ReleaseSettings) -> Releases:
        """Without the canary; without one, back to the release before. Raises CannotChange when there is neither."""
        wrong, right = (self.canary, self.stable) if self.canary else (self.stable, self.previous)
        if right is None:
            raise CannotChange("there is no canary and no release before this one")
        if settings.rollback == "model":
            right = dataclasses.replace(right, code=wrong.code, config=wrong.config)
        return Releases(right, previous=self.previous if self.canary else None, declared=self.declared)

    def to_json(self) -> dict[str, Any]:
        """As it is kept on disk."""
        return {
            "version": 1,
            "stable": self.stable.to_json(),
            "canary": self.canary.to_json() if self.canary else None,
            "step": self.step,
            "previous": self.previous.to_json() if self.previous else None,
            "declared": list(self.declared),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Back from disk. Raises KeyError, TypeError or ValueError for what was not written by `to_json`."""
        if record["version"] != 1:
            raise ValueError(f"version {record['version']!r}, expected 1")
        canary, previous = (record[key] and Release.from_json(record[key]) for key in ("canary", "previous"))
        stable, declared = Release.from_json(record["stable"]), tuple(map(str, record["declared"]))
        return cls(stable, canary or None, int(record["step"]), previous or None, declared)

    def _must_be_new(self, release: Release) -> None:
        if self.canary is not None:
            raise CannotChange(f"the canary {self.canary.name!r} is under way; roll it back or wait for its end")
        if release.name == self.stable.name and not self.is_split:
            raise CannotChange(f"{release.name!r} is the name of the stable release; give the new one its own")

    def _declaring(self, release: Release) -> tuple[str, ...]:
        others = [known for known in self.declared if known != release.fingerprint]
        return (*others, release.fingerprint)[-_REMEMBERED:]
