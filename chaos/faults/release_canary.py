"""A new release goes out to the first few users, as on any working day, and it is a bad one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.releases import Desk, names_in
from chaos.faults.grips.sightings import every_one
from chaos.faults.grips.together import all_of
from chaos.inventory import Target
from chaos.ports import Host, Need
from chaos.settings import setting


@dataclass(frozen=True)
class ReleaseCanary:
    """Starts a canary of a gateway."""

    kind: ClassVar[str] = "release_canary"
    summary: ClassVar[str] = "A gateway starts a canary with another model, code or configuration."
    fidelity: ClassVar[str] = "deployment"
    observer: ClassVar[str] = "the gateway's /metrics count answers under the new release, which only users can cause"
    needs: ClassVar[tuple[Need, ...]] = ()

    model: str | None = setting("model that the engines serve; default the stable release's", default=None)
    code: str | None = setting("version of the prompt template; default the stable release's", default=None)
    system_prompt: str | None = setting("system prompt where the client sends none; default none", default=None)
    max_tokens: int | None = setting("longest answer where the client sets none", default=None, least=1)
    min_tokens: int | None = setting("shortest answer where the client sets none", default=None, least=1)

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A gateway needs a socket for operators, a release something that is new."""
        found = [
            f"{t.name}: it has no releases (the handle `admin` is missing in the inventory); choose a target of role "
            "gateway"
            for t in targets
            if not t.handles.get("admin")
        ]
        if not self._changes():
            found.append("the release is the stable one; set model, code, system_prompt, max_tokens or min_tokens")
        return tuple(found)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Note the triple that is in force. Raises CannotInject."""
        desks = []
        for target in targets:
            desk = Desk(target.name, target.address, target.handles["admin"], {})
            report = await desk.report(host)
            if report is None:
                raise CannotInject(f"{target.name} does not say which release is in force; is it up?")
            if report["canary"]:
                raise CannotInject(f"{target.name} has a canary already, {report['canary']['name']}; wait for its end")
            desks.append({**vars(desk), "before": report["stable"]})
        return {"release": new_mark(self.kind), "targets": desks}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Start the canary. Raises CannotInject."""
        del targets
        for desk in _desks(undo):
            await desk.start({"name": undo["release"], **self._changes()}, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Users have been answered under the new release. It stays true when the gateway takes it back by itself."""
        del targets
        return await every_one(_seen_answering(desk, undo["release"], host) for desk in _desks(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Put back the triple that was in force. Raises RevertFailed."""
        await all_of(desk.restore(undo["release"], host) for desk in _desks(undo))

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The new release is nowhere, and where nobody released since, the triple is the old one whole."""
        del targets
        return await every_one(_seen_restored(desk, undo["release"], host) for desk in _desks(undo))

    def _changes(self) -> dict[str, Any]:
        """The release, but for its name."""
        parts = {"model": self.model, "code": self.code}
        config = {
            "system_prompt": self.system_prompt,
            "max_tokens": self.max_tokens,
            "min_tokens": self.min_tokens,
        }
        said = {key: value for key, value in config.items() if value is not None}
        return {key: value for key, value in {**parts, "config": said or None}.items() if value is not None}


def _desks(undo: Undo) -> tuple[Desk, ...]:
    return tuple(Desk(**record) for record in undo["targets"])


async def _seen_answering(desk: Desk, mark: str, host: Host) -> Sighting:
    count = await desk.answers(mark, host)
    return Sighting(count > 0, f"{desk.name}: {count} requests answered under {mark}")


async def _seen_restored(desk: Desk, mark: str, host: Host) -> Sighting:
    report = await desk.report(host)
    if report is None:
        return Sighting(seen=False, what=f"{desk.name}: does not say which release is in force")
    stable = report["stable"]
    if mark in names_in(report):
        return Sighting(seen=False, what=f"{desk.name}: {mark} is still in force")
    whole = stable["name"] != desk.before["name"] or stable["fingerprint"] == desk.before["fingerprint"]
    return Sighting(whole, f"{desk.name}: {stable['name']} is in force, {stable['fingerprint'][:19]}")
