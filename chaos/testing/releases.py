"""The releases of an in-memory gateway: the operators' routes, and the counters that show who was answered by what."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from chaos.ports import HttpReply
from chaos.testing.stack import reply

_FIRST = {"name": "first", "code": "1", "model": "brownout-chat", "config": {}}


def _whole(release: Mapping[str, Any]) -> dict[str, Any]:
    parts = {key: release[key] for key in ("code", "model", "config")}
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return {"name": release["name"], **parts, "fingerprint": f"sha256:{digest}"}


class FakeReleases:
    """One gateway. Its users come at once: a new release has answered one of them as soon as it is there."""

    def __init__(self, admin: str, address: str) -> None:
        """Reached on the socket `admin`; its /metrics are at `address`."""
        self._admin = f"unix://{admin}:/admin/releases"
        self._metrics = f"http://{address}/metrics"
        self.stable = _whole(_FIRST)
        self.previous: dict[str, Any] | None = None
        self.canary: dict[str, Any] | None = None
        self._answers: Counter[str] = Counter()

    def answer(self, method: str, url: str, body: Any) -> HttpReply | None:
        """The reply, or None when the address is another's."""
        if (method, url) == ("GET", self._metrics):
            lines = [
                f'gateway_release_answers_total{{release="{n}",result="whole"}} {c}' for n, c in self._answers.items()
            ]
            return HttpReply(200, "\n".join(lines) + "\n", {})
        if (method, url) == ("GET", self._admin):
            return self._report()
        if (method, url) == ("POST", self._admin):
            return self._start(body)
        if (method, url) == ("POST", f"{self._admin}/rollback"):
            return self._roll_back(body)
        return None

    def finish(self) -> None:
        """The canary becomes the stable release."""
        if self.canary:
            self.previous, self.stable, self.canary = self.stable, self.canary, None

    def _report(self, status: int = 200) -> HttpReply:
        return reply(status, {"stable": self.stable, "canary": self.canary, "previous": self.previous})

    def _start(self, body: Mapping[str, Any]) -> HttpReply:
        if self.canary:
            return reply(409, {"error": {"message": "a canary is under way"}})
        release = _whole({**self.stable, **body})
        if body.get("canary", True):
            self.canary = release
        else:
            self.previous, self.stable = self.stable, release
        self._answers[release["name"]] += 1
        return self._report(201)

    def _roll_back(self, body: Mapping[str, Any]) -> HttpReply:
        wrong = self.canary or self.stable
        if body.get("release") not in (None, wrong["name"]):
            return reply(409, {"error": {"message": "another would be rolled back"}})
        if self.canary:
            self.canary = None
        elif self.previous:
            self.stable, self.previous = self.previous, None
        return self._report()
