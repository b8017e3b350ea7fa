"""What can be laid on a part's further lives, until whoever laid it takes it away: a later start, an early death, other
settings.

    start_delay_s   each start waits so long after the death before it
    life_s          each life ends by SIGKILL so long after its start, `deaths` times (None: again and again)
    settings        each life is configured with these instead of its own
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_LONGEST_S = 3600.0


@dataclass(frozen=True)
class Burden:
    """`by` names who laid it."""

    by: str
    start_delay_s: float = 0.0
    life_s: float | None = None
    deaths: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def strikes(self) -> bool:
        """Whether it ends lives still."""
        return self.life_s is not None and self.deaths != 0

    def struck(self) -> Burden:
        """After it has ended one more."""
        return self if self.deaths is None or not self.strikes else dataclasses.replace(self, deaths=self.deaths - 1)


def burden_of(record: Mapping[str, Any]) -> Burden:
    """From the body of a call. Raises ValueError that says what is wrong."""
    known = {each.name for each in dataclasses.fields(Burden)}
    if unknown := sorted(set(record) - known):
        raise ValueError(f"{unknown[0]!r} is nothing that can be laid on a target; use {', '.join(sorted(known))}")
    for name in ("start_delay_s", "life_s", "deaths"):
        value = record.get(name)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (number and 0 <= value <= _LONGEST_S):
            raise ValueError(f"{name} must be a number from 0 to {_LONGEST_S:.0f}, not {value!r}")
    if not isinstance(record.get("settings", {}), Mapping):
        raise ValueError("settings must be a mapping")  # noqa: TRY004  a caller's mistake, as all others here
    return Burden(**record)


def start_delay_s(burdens: Iterable[Burden]) -> float:
    """The longest of all."""
    return max((each.start_delay_s for each in burdens), default=0.0)


def life_s(burdens: Iterable[Burden]) -> float | None:
    """The shortest life that is granted; None when nobody ends it."""
    return min((each.life_s for each in burdens if each.strikes and each.life_s is not None), default=None)


def settings(burdens: Iterable[Burden]) -> Mapping[str, Any]:
    """Of all together; the later one wins."""
    return {key: value for each in burdens for key, value in each.settings.items()}
