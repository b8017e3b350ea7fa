"""A canary is taken back wherever it has got to, and only the fault's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chaos.faults.fault import CannotInject, RevertFailed, Undo
from chaos.faults.release_canary import ReleaseCanary
from chaos.inventory import Target
from chaos.ports import HttpReply
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost
from chaos.testing.releases import FakeReleases

FAULT = ReleaseCanary(model="brownout-chat-v2-long")
Scene = Callable[[InMemoryHost, Target, FakeReleases, Undo], Awaitable[None]]


def after_inject(scene: Scene) -> None:
    """Play a scene on a gateway with the fault's canary."""

    async def main() -> None:
        world = InMemoryHost()
        gateway = world.add_gateway()
        undo = await FAULT.prepare((gateway,), world.host)
        await FAULT.inject((gateway,), undo, world.host)
        await scene(world, gateway, world.http.releases[0], undo)

    run_virtual(main)


def test_a_canary_that_went_to_everybody_is_taken_back() -> None:
    async def scene(world: InMemoryHost, gateway: Target, releases: FakeReleases, undo: Undo) -> None:
        releases.finish()
        assert not (await FAULT.confirm_gone((gateway,), undo, world.host)).seen
        await FAULT.revert(undo, world.host)
        assert releases.stable["name"] == "first"
        assert (await FAULT.confirm_gone((gateway,), undo, world.host)).seen

    after_inject(scene)


def test_one_that_the_gateway_took_back_itself_needs_nothing_and_stays_proved() -> None:
    async def scene(world: InMemoryHost, gateway: Target, releases: FakeReleases, undo: Undo) -> None:
        releases.canary = None
        before = world.changes
        await FAULT.revert(undo, world.host)
        assert world.changes == before
        assert (await FAULT.confirm((gateway,), undo, world.host)).seen

    after_inject(scene)


def test_a_triple_that_a_rollback_has_split_is_put_together_again() -> None:
    async def scene(world: InMemoryHost, gateway: Target, releases: FakeReleases, undo: Undo) -> None:
        whole, releases.canary = releases.stable, None
        releases.stable = {**whole, "config": {"min_tokens": 90}, "fingerprint": "sha256:split"}
        assert not (await FAULT.confirm_gone((gateway,), undo, world.host)).seen
        await FAULT.revert(undo, world.host)
        assert releases.stable == whole

    after_inject(scene)


def test_a_release_that_somebody_else_made_since_stays() -> None:
    async def scene(world: InMemoryHost, gateway: Target, releases: FakeReleases, undo: Undo) -> None:
        releases.canary, others = None, {**releases.stable, "name": "tuesday", "fingerprint": "sha256:other"}
        releases.stable = others
        await FAULT.revert(undo, world.host)
        assert releases.stable is others
        assert (await FAULT.confirm_gone((gateway,), undo, world.host)).seen

    after_inject(scene)


@pytest.mark.parametrize("trouble", [HttpReply(0, "", {}, "refused: nobody listens"), HttpReply(500, "oh", {})])
def test_a_gateway_that_does_not_answer_has_not_gone_back_and_the_command_is_told(trouble: HttpReply) -> None:
    async def scene(world: InMemoryHost, gateway: Target, releases: FakeReleases, undo: Undo) -> None:
        world.http.trouble[f"unix://{gateway.handles['admin']}"] = trouble
        with pytest.raises(RevertFailed, match="by hand: curl --unix-socket"):
            await FAULT.revert(undo, world.host)
        assert not (await FAULT.confirm_gone((gateway,), undo, world.host)).seen

    after_inject(scene)


def test_with_its_stack_the_canary_is_gone() -> None:
    async def scene(world: InMemoryHost, gateway: Target, releases: FakeReleases, undo: Undo) -> None:
        world.http.releases.clear()  # nobody has the socket any more: absent
        await FAULT.revert(undo, world.host)

    after_inject(scene)


def test_a_canary_of_somebody_else_is_not_disturbed() -> None:
    async def scene(world: InMemoryHost, gateway: Target, releases: FakeReleases, undo: Undo) -> None:
        with pytest.raises(CannotInject, match="has a canary already"):
            await FAULT.prepare((gateway,), world.host)

    after_inject(scene)


def test_a_target_without_releases_and_a_release_without_news_are_refused() -> None:
    world = InMemoryHost()
    engine, gateway = world.add_target("engine-a"), world.add_gateway()
    assert "has no releases" in FAULT.problems((engine,))[0]
    assert "is the stable one" in ReleaseCanary().problems((gateway,))[0]
    assert FAULT.problems((gateway,)) == ()


def test_the_gateways_refusal_is_told() -> None:
    async def main() -> None:
        world = InMemoryHost()
        gateway = world.add_gateway()
        undo: Any = await FAULT.prepare((gateway,), world.host)
        world.http.releases[0].canary = {"name": "other"}
        with pytest.raises(CannotInject, match="did not start the release: status 409"):
            await FAULT.inject((gateway,), undo, world.host)

    run_virtual(main)
