"""What can be wrong with a GPU. Each condition is a value with two faces, both pure:

onset     what happens once when it begins: log entries, destroyed contexts, counted memory errors
effects   what holds while it lasts; those of all conditions on a device add up

Taking a condition away is the repair: a reset, a cooled machine room, another tenant's leaving.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from target_stack.device.xid import MANY_CORRECTED, REMAP_FAILED, ROW_REMAPPED, XIDS

THROTTLE_REASONS: Mapping[str, int] = {
    "sw_power_cap": 0x04,
    "hw_slowdown": 0x08,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x08 | 0x40,
    "hw_power_brake": 0x08 | 0x80,
}
"""NVML's clocks event reasons that slow a GPU down; where the hardware does it, the bit `hw_slowdown` is there too."""
MIG_PROFILES: Mapping[str, tuple[float, float]] = {
    "1g.6gb": (1 / 4, 1 / 4),
    "2g.12gb": (2 / 4, 2 / 4),
    "4g.24gb": (1.0, 1.0),
}
"""GPU instance profiles: share of the compute slices, share of the memory."""


class BadCondition(ValueError):
    """A condition that makes no sense; the message names the setting."""


@dataclass(frozen=True)
class Onset:
    """What happens once."""

    xids: tuple[int, ...] = ()
    destroys_contexts: bool = False
    uncorrected: int = 0
    remapped_rows: int = 0
    remap_failed: bool = False


@dataclass(frozen=True)
class Effects:
    """What holds while a condition lasts. `compute` multiplies, shares and rates add up.

    `clock` is the share that is left of the best one, `power` of what may be drawn above idling; `overheated` keeps the
    device at the temperature at which it must slow down.
    """

    lost: bool = False
    hung: bool = False
    unusable: bool = False
    clock: float = 1.0
    power: float = 1.0
    overheated: bool = False
    compute: float = 1.0
    other_tenants: float = 0.0
    reserved: float = 0.0
    memory: float = 1.0
    corrected_per_s: float = 0.0
    heat_c: float = 0.0
    reasons: int = 0
    mig_profile: str | None = None

    def __add__(self, other: Effects) -> Effects:
        """Both at once."""
        return Effects(
            lost=self.lost or other.lost,
            hung=self.hung or other.hung,
            unusable=self.unusable or other.unusable,
            clock=min(self.clock, other.clock),
            power=min(self.power, other.power),
            overheated=self.overheated or other.overheated,
            compute=self.compute * other.compute,
            other_tenants=min(1.0, self.other_tenants + other.other_tenants),
            reserved=min(1.0, self.reserved + other.reserved),
            memory=min(self.memory, other.memory),
            corrected_per_s=self.corrected_per_s + other.corrected_per_s,
            heat_c=self.heat_c + other.heat_c,
            reasons=self.reasons | other.reasons,
            mig_profile=other.mig_profile or self.mig_profile,
        )


class Condition(Protocol):
    """One thing that is wrong."""

    kind: ClassVar[str]

    def onset(self) -> Onset:
        """What its beginning does."""
        ...

    def effects(self) -> Effects:
        """What its lasting does."""
        ...


@dataclass(frozen=True)
class Lost:
    """The device has fallen off the bus."""

    kind: ClassVar[str] = "lost"

    def onset(self) -> Onset:
        """Xid 79, and whatever ran is gone."""
        return Onset(xids=(79,), destroys_contexts=True)

    def effects(self) -> Effects:
        """Nothing can be asked or computed."""
        return Effects(lost=True)


@dataclass(frozen=True)
class Hung:
    """A kernel never returns: full utilisation, no progress, no error."""

    kind: ClassVar[str] = "hung"

    def onset(self) -> Onset:
        """Silent."""
        return Onset()

    def effects(self) -> Effects:
        """Nothing gets ready."""
        return Effects(hung=True)


@dataclass(frozen=True)
class XidEvent:
    """The driver reports an error number; what follows is the number's matter."""

    kind: ClassVar[str] = "xid"
    code: int = 31

    def __post_init__(self) -> None:
        """Only known numbers."""
        if self.code not in XIDS:
            raise BadCondition(f"code: {self.code} is none of {', '.join(map(str, XIDS))}")

    def onset(self) -> Onset:
        """Its log entry, and the end of the contexts if the number means that."""
        ends = XIDS[self.code].effect in ("process", "reset", "lost")
        return Onset(xids=(self.code,), destroys_contexts=ends, remap_failed=self.code == REMAP_FAILED)

    def effects(self) -> Effects:
        """Until the reset."""
        effect = XIDS[self.code].effect
        return Effects(lost=effect == "lost", hung=effect == "hang", unusable=effect == "reset")


@dataclass(frozen=True)
class Ecc:
    """Memory errors: corrected ones (a single bit) at a rate, or one uncorrectable (two bits), contained to its process
    or not. The row of the latter waits for a reset that remaps it, or no spare row is left for it.
    """

    kind: ClassVar[str] = "ecc"
    errors: Literal["corrected", "uncorrected"] = "uncorrected"
    contained: bool = True
    remap: Literal["pending", "failed"] = "pending"
    rate_per_s: float = 20.0

    def __post_init__(self) -> None:
        """One of the two, twice."""
        if self.errors not in ("corrected", "uncorrected"):
            raise BadCondition(f"errors: {self.errors!r} is neither corrected nor uncorrected")
        if self.remap not in ("pending", "failed"):
            raise BadCondition(f"remap: {self.remap!r} is neither pending nor failed")

    def onset(self) -> Onset:
        """A burst of corrected errors is told once. An uncorrectable one ends the process, and its row is given up."""
        if self.errors == "corrected":
            return Onset((MANY_CORRECTED,))
        failed = self.remap == "failed"
        codes = (48, REMAP_FAILED if failed else ROW_REMAPPED, 94 if self.contained else 95)
        return Onset(codes, destroys_contexts=True, uncorrected=1, remapped_rows=int(not failed), remap_failed=failed)

    def effects(self) -> Effects:
        """Corrected errors cost nothing; an uncontained one needs a reset, a row without a spare another GPU."""
        if self.errors == "corrected":
            return Effects(corrected_per_s=self.rate_per_s)
        return Effects(unusable=not self.contained or self.remap == "failed")


@dataclass(frozen=True)
class Throttle:
    """The clocks are held down to a share of their best."""

    kind: ClassVar[str] = "throttle"
    reason: str = "hw_thermal_slowdown"
    clock: float = 0.3

    def __post_init__(self) -> None:
        """A known reason, and some clock."""
        if self.reason not in THROTTLE_REASONS:
            raise BadCondition(f"reason: {self.reason!r} is none of {', '.join(THROTTLE_REASONS)}")
        _share("clock", self.clock)

    def onset(self) -> Onset:
        """Silent."""
        return Onset()

    def effects(self) -> Effects:
        """Slower, and what is the reason shows: a temperature at its limit, or a lower limit of power."""
        return Effects(
            clock=self.clock,
            power=self.clock if self.reason == "sw_power_cap" else 1.0,
            overheated="thermal" in self.reason,
            reasons=THROTTLE_REASONS[self.reason],
        )


@dataclass(frozen=True)
class Heat:
    """Cooling fails by so many degrees; whether that slows the device is the thermal model's matter."""

    kind: ClassVar[str] = "heat"
    degrees_c: float = 40.0

    def onset(self) -> Onset:
        """Silent."""
        return Onset()

    def effects(self) -> Effects:
        """Warmer surroundings."""
        return Effects(heat_c=self.degrees_c)


@dataclass(frozen=True)
class ReservedMemory:
    """Another process takes a share of the memory."""

    kind: ClassVar[str] = "reserved_memory"
    share: float = 0.75

    def __post_init__(self) -> None:
        """A share."""
        _share("share", self.share)

    def onset(self) -> Onset:
        """Silent."""
        return Onset()

    def effects(self) -> Effects:
        """Less for everybody else."""
        return Effects(reserved=self.share)


@dataclass(frozen=True)
class Contention:
    """Another process computes on the same device and takes a share of its time."""

    kind: ClassVar[str] = "contention"
    share: float = 0.5

    def __post_init__(self) -> None:
        """A share, and something has to be left."""
        _share("share", self.share)
        if self.share == 1:
            raise BadCondition("share: 1 would leave nothing; use the condition `hung`")

    def onset(self) -> Onset:
        """Silent."""
        return Onset()

    def effects(self) -> Effects:
        """Slower, and busier than one's own work explains."""
        return Effects(compute=1 - self.share, other_tenants=self.share)


@dataclass(frozen=True)
class Mig:
    """The device is cut into instances and one is left for the engine; with `stuck` the reconfiguration never ends.

    No client may be on a device while its instances change, so whoever is there has to leave, also when it is undone.
    """

    kind: ClassVar[str] = "mig"
    profile: str = "2g.12gb"
    stuck: bool = False

    def __post_init__(self) -> None:
        """A known profile."""
        if self.profile not in MIG_PROFILES:
            raise BadCondition(f"profile: {self.profile!r} is none of {', '.join(MIG_PROFILES)}")

    def onset(self) -> Onset:
        """Reconfiguring means that every process has to leave."""
        return Onset(destroys_contexts=True)

    def effects(self) -> Effects:
        """A smaller and slower device, or none."""
        compute, memory = MIG_PROFILES[self.profile]
        return Effects(compute=compute, memory=memory, mig_profile=self.profile, unusable=self.stuck)


_KINDS: tuple[type[Condition], ...] = (
    Lost, Hung, XidEvent, Ecc, Throttle, Heat, ReservedMemory, Contention, Mig,
)  # fmt: skip
CONDITIONS: Mapping[str, type[Condition]] = {each.kind: each for each in _KINDS}


def read_condition(record: Any) -> Condition:
    """`{"kind": ..., its settings}` as a condition. Raises BadCondition."""
    kind = CONDITIONS.get(record.get("kind", "")) if isinstance(record, Mapping) else None
    if kind is None:
        raise BadCondition(f"kind: expected one of {', '.join(CONDITIONS)}")
    fields = {each.name: each for each in dataclasses.fields(kind)}  # type: ignore[arg-type]  # all are dataclasses
    settings = {name: value for name, value in record.items() if name not in ("kind", "mark")}
    for name, value in settings.items():
        if name not in fields:
            raise BadCondition(f"{name}: a condition {kind.kind} has no such setting")
        if not _alike(value, fields[name].default):
            raise BadCondition(f"{name}: {value!r} is not of the kind of {fields[name].default!r}")
    return kind(**settings)


def total(conditions: Iterable[Condition]) -> Effects:
    """All effects together."""
    return functools.reduce(Effects.__add__, (each.effects() for each in conditions), Effects())


def _alike(value: Any, default: Any) -> bool:
    """Whether a JSON value can stand where this default stands; a bool is no number to a caller."""
    if isinstance(value, bool) or isinstance(default, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    return isinstance(value, int | float if isinstance(default, float) else type(default))


def _share(name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise BadCondition(f"{name}: {value:g} is no share above 0 and up to 1")
