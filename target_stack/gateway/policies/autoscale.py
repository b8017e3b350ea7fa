"""How many replicas are wanted: a decision, not an action; whoever can start machines reads it.

Utilisation is demand (in flight and waiting) over the slots of the replicas in rotation, averaged over a window, so
that neither a burst nor a lull decides. Up from 70 %, down from 30 %, at most once a cool-down, to the number at which
half of the slots would be taken. An incident is no lull: nothing is taken away while a replica is out of rotation.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class AutoscaleSettings:
    """Thresholds as shares of all slots; `slots` is how many requests one replica works on at once."""

    up_at: float = 0.7
    down_at: float = 0.3
    aim_at: float = 0.5
    window_s: float = 30.0
    cooldown_s: float = 300.0
    minimum: int = 1
    maximum: int = 8
    slots: int = 16

    def __post_init__(self) -> None:
        """Raises ValueError for thresholds that would chase each other."""
        if not 0 < self.down_at < self.aim_at < self.up_at or not self.slots:
            raise ValueError("policies.autoscale: 0 < down_at < aim_at < up_at must hold, and slots be above 0")


@dataclass(frozen=True)
class Wanted:
    """A decision: from `replicas` to `wanted`, because of this utilisation."""

    direction: Literal["up", "down"]
    replicas: int
    wanted: int
    utilisation: float


class Autoscaler:
    """Takes what is seen, gives a decision now and then. Times are monotonic seconds."""

    def __init__(self, settings: AutoscaleSettings) -> None:
        self._settings = settings
        self._seen: deque[tuple[float, int]] = deque()
        self._sum = 0
        self._began: float | None = None
        self._quiet_until = float("-inf")

    def observe(self, now: float, demand: int, in_rotation: int, known: int) -> Wanted | None:
        """Requests in flight and waiting, replicas in rotation, replicas there are. A change that is wanted now, or
        None.
        """
        self._remember(now, demand)
        if self._began is None or now - self._began < self._settings.window_s or now < self._quiet_until:
            return None
        busy = self._sum / len(self._seen)
        utilisation = self.utilisation(in_rotation)
        wanted = self._wanted(busy, utilisation, in_rotation, known)
        if wanted == in_rotation:
            return None
        self._quiet_until = now + self._settings.cooldown_s
        return Wanted("up" if wanted > in_rotation else "down", in_rotation, wanted, utilisation)

    def utilisation(self, in_rotation: int) -> float:
        """Mean demand of the window over the slots of these replicas; 1 where demand meets none at all."""
        busy = self._sum / len(self._seen) if self._seen else 0.0
        return busy / (in_rotation * self._settings.slots) if in_rotation else min(1.0, math.ceil(busy))

    def _remember(self, now: float, demand: int) -> None:
        self._began = now if self._began is None else self._began
        self._seen.append((now, demand))
        self._sum += demand
        while now - self._seen[0][0] > self._settings.window_s:
            self._sum -= self._seen.popleft()[1]

    def _wanted(self, busy: float, utilisation: float, in_rotation: int, known: int) -> int:
        rules = self._settings
        enough = math.ceil(busy / (rules.slots * rules.aim_at))
        if utilisation >= rules.up_at:
            return max(in_rotation, min(rules.maximum, max(enough, in_rotation + 1)))
        if utilisation <= rules.down_at and in_rotation == known:
            return min(in_rotation, max(rules.minimum, min(enough, in_rotation - 1)))
        return in_rotation
