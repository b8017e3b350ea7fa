"""One GPU: its conditions, its physics, its counters. Time and the engine's work come in as arguments.

Temperature follows power with one time constant: a device under load at ambient 25 °C settles near 70 °C in a minute.
Above `slowdown_c` the clock gives way, as the driver makes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from target_stack.device.conditions import THROTTLE_REASONS, Condition, Effects, Onset, total
from target_stack.device.registers import Registers
from target_stack.device.xid import XIDS

_LEAST_CLOCK = 0.3
_CLOCK_PER_DEGREE = 0.05
_IDLE_REASON = 0x01
_THERMAL = 0x20 | 0x40
_POWER = 0x04 | 0x80


@dataclass(frozen=True)
class Spec:
    """What the data sheet says. Bytes, watts, MHz, degrees Celsius, seconds."""

    name: str = "Brownout Simulated GPU 24GB"
    total_bytes: int = 24 << 30
    idle_w: float = 30.0
    limit_w: float = 165.0
    sm_mhz: float = 1440.0
    memory_mhz: float = 1215.0
    ambient_c: float = 25.0
    degrees_per_w: float = 0.28
    settles_s: float = 15.0
    slowdown_c: float = 90.0
    context_bytes: int = 512 << 20  # what a process that only computes holds


@dataclass
class Counters:
    """What only rises, but for the volatile ones: a reset clears those."""

    corrected_volatile: float = 0.0
    corrected_aggregate: float = 0.0
    uncorrected_volatile: int = 0
    uncorrected_aggregate: int = 0
    remapped_rows: int = 0
    pending_rows: int = 0
    remap_failed: bool = False
    energy_j: float = 0.0
    hot_s: float = 0.0
    capped_s: float = 0.0


@dataclass(frozen=True)
class LogEntry:
    """One Xid; `mono` is CLOCK_MONOTONIC in seconds."""

    seq: int
    mono: float
    code: int
    text: str


@dataclass
class Gpu:
    """The device behind one register file. Conditions stand under the marks of those who brought them about.

    `is_alive` tells whether the engine's process still exists: the memory of a dead one is free.
    """

    id: str
    index: int
    registers: Registers
    spec: Spec = field(default_factory=Spec)
    conditions: dict[str, Condition] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    log: list[LogEntry] = field(default_factory=list)
    last_xid: int = 0
    utilization: float = 0.0
    own_utilization: float = 0.0
    power_w: float = 0.0
    temperature_c: float = 0.0
    effects: Effects = field(default_factory=Effects)
    is_alive: Callable[[int], bool] = bool
    engine_pid: int = 0
    _at: float = 0.0
    _busy_s: float = 0.0

    def power_on(self, now: float) -> None:
        """A healthy device; what an earlier process left in the registers is forgotten, but never the work counters."""
        self._at, self._busy_s = now, self.registers["busy_s"]
        self.power_w, self.temperature_c = self.spec.idle_w, self.spec.ambient_c
        self._orders()

    def begin(self, mark: str, condition: Condition, now: float) -> None:
        """A condition sets in. One that is there already changes nothing."""
        if mark in self.conditions:
            return
        self.conditions[mark] = condition
        self._strike(condition.onset(), now)
        self._orders()

    def end(self, mark: str) -> bool:
        """A condition is repaired; with it go the volatile counts. Whether there was one.

        Instances are given back as they were taken: with nobody on the device.
        """
        ended = self.conditions.pop(mark, None)
        if ended is None:
            return False
        if ended.effects().mig_profile:
            self.registers["faults"] += 1
        counters = self.counters
        counters.remap_failed = False
        counters.corrected_volatile, counters.uncorrected_volatile, self.last_xid = 0.0, 0, 0
        counters.remapped_rows, counters.pending_rows = counters.remapped_rows + counters.pending_rows, 0
        self._orders()
        return True

    def advance(self, now: float) -> None:
        """Let time pass: load makes power, power makes heat, heat takes clock."""
        passed_s = now - self._at
        if passed_s <= 0:
            return
        busy_s, pid = self.registers["busy_s"], int(self.registers["pid"])
        self.engine_pid = pid if self.is_alive(pid) else 0
        own = min(1.0, max(0.0, busy_s - self._busy_s) / passed_s)
        self.own_utilization = own * self.effects.compute
        self.utilization = 1.0 if self.effects.hung else min(1.0, own + self.effects.other_tenants)
        self._at, self._busy_s = now, busy_s
        spec, clock = self.spec, self.clock
        self.power_w = spec.idle_w + (spec.limit_w - spec.idle_w) * self.utilization * clock
        settled_c = spec.ambient_c + self.effects.heat_c + spec.degrees_per_w * self.power_w
        self.temperature_c += (settled_c - self.temperature_c) * (1 - math.exp(-passed_s / spec.settles_s))
        if self.effects.overheated:
            self.temperature_c = max(self.temperature_c, spec.slowdown_c + 1)
        self.counters.energy_j += self.power_w * passed_s
        self.counters.hot_s += passed_s * bool(self.reasons & _THERMAL)
        self.counters.capped_s += passed_s * bool(self.reasons & _POWER)
        errors = self.effects.corrected_per_s * passed_s
        self.counters.corrected_volatile += errors
        self.counters.corrected_aggregate += errors
        self._orders()

    @property
    def clock(self) -> float:
        """Share of the best clock: what the conditions leave, or what the heat does."""
        too_hot_c = max(0.0, self.temperature_c - self.spec.slowdown_c)
        return min(self.effects.clock, max(_LEAST_CLOCK, 1 - _CLOCK_PER_DEGREE * too_hot_c))

    @property
    def reasons(self) -> int:
        """NVML's bits for why the clock is not at its best."""
        hot = THROTTLE_REASONS["sw_thermal_slowdown"] if self.temperature_c > self.spec.slowdown_c else 0
        found = self.effects.reasons | hot
        return found or (_IDLE_REASON if self.utilization == 0 else 0)

    @property
    def engine_bytes(self) -> float:
        """Memory of the engine's process: what others have left of it; none when no engine has it."""
        left = max(0.0, self.spec.total_bytes - self.reserved_bytes)
        return min(self.registers["memory_bytes"], left) if self.engine_pid else 0.0

    @property
    def limit_w(self) -> float:
        """The most that it may draw now."""
        return self.spec.idle_w + (self.spec.limit_w - self.spec.idle_w) * self.effects.power

    @property
    def reserved_bytes(self) -> float:
        """Memory of somebody else's process: what it takes on purpose, and what computing takes."""
        context_bytes = self.spec.context_bytes if self.effects.other_tenants else 0
        return self.effects.reserved * self.spec.total_bytes + context_bytes

    @property
    def used_bytes(self) -> float:
        """All memory in use."""
        return min(float(self.spec.total_bytes), self.engine_bytes + self.reserved_bytes)

    def _strike(self, onset: Onset, now: float) -> None:
        for code in onset.xids:
            self.log.append(LogEntry(len(self.log) + 1, now, code, XIDS[code].text))
            self.last_xid = code
        self.counters.uncorrected_volatile += onset.uncorrected
        self.counters.uncorrected_aggregate += onset.uncorrected
        self.counters.pending_rows += onset.remapped_rows
        self.counters.remap_failed |= onset.remap_failed
        if onset.destroys_contexts:
            self.registers["faults"] += 1

    def _orders(self) -> None:
        """Tell the engine what it has to work with."""
        self.effects = effects = total(self.conditions.values())
        orders = {
            "total_bytes": self.spec.total_bytes * effects.memory,
            "reserved_bytes": self.reserved_bytes,
            "speed": self.clock * effects.compute,
            "hung": effects.hung,
            "lost": effects.lost,
            "unusable": effects.unusable,
        }
        for name, value in orders.items():
            self.registers[name] = value
