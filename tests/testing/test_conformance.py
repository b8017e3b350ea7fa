"""The conformance kit finds faults and probes that break a promise; a kit that accepts all proves nothing."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from chaos.faults.fault import Sighting
from chaos.faults.noop import Noop
from chaos.inventory import Target
from chaos.ports import Host, HttpReply
from chaos.probes.probe import Reading
from chaos.testing.clock import run_virtual
from chaos.testing.conformance import ContractBroken, check_fault, check_probe
from chaos.testing.host import InMemoryHost

MARKER = Path("/tmp/brownout-test")


def _broken(fault: Any) -> str:
    async def main() -> str:
        world = InMemoryHost()
        with pytest.raises(ContractBroken) as broken:
            await check_fault(fault, (world.add_target("tools", "tool"),), world.host)
        return str(broken.value)

    return run_virtual(main)


@dataclass(frozen=True)
class _Base(Noop):
    """A noop to break in one place."""


class Blind(_Base):
    async def confirm(self, targets, undo, host):
        return Sighting(seen=False, what="I see nothing")


class Gullible(_Base):
    async def confirm(self, targets, undo, host):
        return Sighting(seen=True, what="sure")


class Hasty(_Base):
    async def prepare(self, targets, host):
        host.files.write_atomic(MARKER, "")
        return await super().prepare(targets, host)


class Tupled(_Base):
    async def prepare(self, targets, host):
        return {**await super().prepare(targets, host), "pids": (1, 2)}


class Sticky(_Base):
    async def revert(self, undo, host):
        return


class Untidy(_Base):
    """Forgets that its own writing may be cut off."""

    async def revert(self, undo, host):
        host.files.remove(Path(undo["marker"]))


class Halfway(_Base):
    """Cannot be reverted any more once a revert was cut off after its first deed."""

    async def revert(self, undo, host):
        begun = Path(undo["marker"] + "-reverting")
        if host.files.read(begun) is None:
            host.files.write_atomic(begun, "")
            await super().revert(undo, host)
            host.files.remove(begun)


class Meddling(_Base):
    async def confirm(self, targets, undo, host):
        host.files.write_atomic(MARKER, "")
        return await super().confirm(targets, undo, host)


class Forgetful(_Base):
    """Changes the world before the undo knows of it."""

    async def inject(self, targets, undo, host):
        await super().inject(targets, undo, host)
        host.files.write_atomic(MARKER, "")
        await host.clock.sleep_until(host.clock.now() + 1)
        host.files.remove(MARKER)

    async def revert(self, undo, host):
        await super().revert(undo, host)
        host.files.sweep(MARKER.parent, MARKER.name)

    async def confirm_gone(self, targets, undo, host):
        gone = await super().confirm_gone(targets, undo, host)
        return Sighting(gone.seen and host.files.read(MARKER) is None, "a second marker may be left")


@dataclass(frozen=True)
class Attached(_Base):
    """Needs its settings to revert, which no watchdog has."""

    folder: str = dataclasses.field(kw_only=True)

    async def revert(self, undo, host):
        assert self.folder
        await super().revert(undo, host)


@pytest.mark.parametrize(
    ("fault", "promise"),
    [
        (Blind(), "confirm() is true after inject()"),
        (Gullible(), "confirm() is false before inject()"),
        (Hasty(), "prepare() changes nothing"),
        (Tupled(), "undo survives a round trip through JSON"),
        (Sticky(), "confirm_gone() is true after revert()"),
        (Untidy(), "revert() sweeps the drafts of a file in whose writing inject() died before call 1"),
        (Halfway(), "revert() died after call 2 (write "),
        (Meddling(), "confirm() changes nothing"),
        (Forgetful(), "inject() died after call 2 (write /tmp/brownout-test)"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_fault_that_breaks_a_promise_is_told_which(fault: Any, promise: str) -> None:
    assert promise in _broken(fault)


def test_a_broken_promise_leaves_no_harm_behind() -> None:
    """Whoever writes a fault sees its test fail many times before it passes."""

    async def main() -> dict[Path, str]:
        world = InMemoryHost()
        with pytest.raises(ContractBroken):
            await check_fault(Blind(), (world.add_target("tools", "tool"),), world.host)
        return world.files.texts

    assert {} == run_virtual(main)


def test_a_fault_that_needs_its_settings_to_revert_is_found() -> None:
    async def main() -> None:
        world = InMemoryHost()
        with pytest.raises(AttributeError):
            await check_fault(Attached(folder="x"), (world.add_target("tools", "tool"),), world.host)

    run_virtual(main)


@dataclass(frozen=True)
class PingProbe:
    kind: ClassVar[str] = "ping"
    summary: ClassVar[str] = "Asks whether the target answers."
    period_s: ClassVar[float] = 1.0

    def applies_to(self, target: Target) -> bool:
        return target.wire == "http"

    async def read(self, target: Target, host: Host) -> Reading:
        reply = await host.http.call("GET", f"http://{target.address}/health")
        if reply.status == 0:
            return Reading("ping", target.name, error=reply.error)
        return Reading("ping", target.name, {"up": 1.0})


class RaisingProbe(PingProbe):
    async def read(self, target: Target, host: Host) -> Reading:
        reading = await super().read(target, host)
        if reading.error:
            raise OSError(reading.error)
        return reading


class PostingProbe(PingProbe):
    async def read(self, target: Target, host: Host) -> Reading:
        await host.http.call("POST", f"http://{target.address}/reset")
        return await super().read(target, host)


def _probed(probe: Any) -> None:
    async def main() -> None:
        world = InMemoryHost()
        target = world.add_target("tools", "tool")
        world.http.pages[f"http://{target.address}/health"] = HttpReply(200, "", {})
        await check_probe(probe, target, world.host)

    run_virtual(main)


def test_a_good_probe_passes() -> None:
    _probed(PingProbe())


@pytest.mark.parametrize(("probe", "promise"), [(RaisingProbe(), "never raises"), (PostingProbe(), "changes nothing")])
def test_a_probe_that_breaks_a_promise_is_told_which(probe: Any, promise: str) -> None:
    with pytest.raises(ContractBroken, match=promise):
        _probed(probe)
