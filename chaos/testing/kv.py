"""Prefill in memory: a prompt's reference, and what the toxic on references makes of it, as the real proxy does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.ports import HttpReply
from chaos.testing.stack import reply

_KEY = "kv_transfer_params"


class FakeReferences:
    """Every prompt gets a reference of its own. What has passed a toxic is kept for each engine."""

    def __init__(self) -> None:
        """Nothing was computed yet."""
        self._passed: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        self._made = 0

    def answer(self, engine: str, body: Mapping[str, Any], toxic: Mapping[str, Any] | None) -> HttpReply:
        """The answer to a prompt that this engine computes for a peer."""
        self._made += 1
        reference = {
            "remote_engine_id": "e" * 32,
            "remote_request_id": f"r{self._made}",
            "remote_block_ids": [[self._made]],
            "remote_num_tokens": len(str(body["prompt"]).split()),
        }
        if toxic and toxic["type"] == "http_rewrite_kv_reference":
            passed = self._passed.setdefault((engine, toxic["name"]), [])
            passed.append(reference)
            return reply(200, {_KEY: _damaged(passed, toxic["attributes"]["damage"])})
        return reply(200, {_KEY: reference})


def _damaged(passed: list[Mapping[str, Any]], damage: str) -> Mapping[str, Any]:
    """What becomes of the last reference that passed."""
    match damage:
        case "swapped":
            return passed[-2:][0]
        case "expired":
            return passed[0]
        case "stale":
            return {**passed[-1], "remote_engine_id": "0" * 32}
        case _:
            return {**passed[-1], "remote_block_ids": [[1 << 30]]}
