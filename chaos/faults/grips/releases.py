"""The releases of a gateway: what its operators are told on its socket, and what its own counters show to others."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaos.faults.fault import CannotInject, RevertFailed
from chaos.faults.grips.replies import told
from chaos.ports import Host, HttpReply

_SWITCH_S = 5.0  # the gateway asks its engines first whether they serve the model
_ANSWERS = re.compile(r'^gateway_release_answers_total\{release="([^"]+)",result="\w+"\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True)
class Desk:
    """A gateway as its operators reach it; `before` is its stable release when the fault was prepared."""

    name: str
    address: str
    admin: str
    before: Mapping[str, Any]

    async def report(self, host: Host) -> Mapping[str, Any] | None:
        """What is in force; None when the gateway does not say."""
        return report_in(await host.http.call("GET", self._url("")))

    async def start(self, release: Mapping[str, Any], host: Host) -> None:
        """Give a release to the first users. Raises CannotInject."""
        reply = await host.http.call("POST", self._url(""), release, timeout_s=_SWITCH_S)
        if reply.status != 201:
            raise CannotInject(f"{self.name} did not start the release: {told(reply)}")

    async def restore(self, mark: str, host: Host) -> None:
        """Take the release `mark` back, and leave the triple of `before` in place; safe to repeat. A release that
        somebody else has put in place since stays. Raises RevertFailed.
        """
        looked = await host.http.call("GET", self._url(""))
        if looked.status == 0 and (looked.error or "").startswith("absent"):
            return  # the whole stack went, and its releases with it
        report = report_in(looked)
        if report is None:
            raise RevertFailed(self._by_hand(f"does not say what is in force: {told(looked)}", mark))
        if mark in names_in(report):
            report = await self._changed("/rollback", {"release": mark}, mark, host)
        stable = report["stable"]
        if stable["name"] == self.before["name"] and stable["fingerprint"] != self.before["fingerprint"]:
            whole = {key: value for key, value in self.before.items() if key != "fingerprint"}
            await self._changed("", {**whole, "canary": False}, mark, host)

    async def answers(self, release: str, host: Host) -> int:
        """Requests that were answered under this release, as the gateway's /metrics counts them."""
        reply = await host.http.call("GET", f"http://{self.address}/metrics")
        found = _ANSWERS.findall(reply.body) if reply.status == 200 else ()
        return sum(int(float(count)) for name, count in found if name == release)

    async def _changed(self, route: str, body: Mapping[str, Any], mark: str, host: Host) -> Mapping[str, Any]:
        reply = await host.http.call("POST", self._url(route), body, timeout_s=_SWITCH_S)
        report = report_in(reply)
        if report is None:
            raise RevertFailed(self._by_hand(f"did not go back: {told(reply)}", mark))
        return report

    def _url(self, route: str) -> str:
        return f"unix://{self.admin}:/admin/releases{route}"

    def _by_hand(self, why: str, mark: str) -> str:
        return (
            f"{self.name} {why}; by hand: curl --unix-socket '{self.admin}' "
            f"-d '{json.dumps({'release': mark})}' http://localhost/admin/releases/rollback"
        )


def report_in(reply: HttpReply) -> Mapping[str, Any] | None:
    """The report of a reply that is one."""
    if reply.status not in (200, 201):
        return None
    report: Mapping[str, Any] = json.loads(reply.body)
    return report


def names_in(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the releases that users get now."""
    return tuple(release["name"] for release in (report["canary"], report["stable"]) if release)
