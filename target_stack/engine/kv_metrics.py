"""What an engine with a KV connector tells beside the rest, by vLLM's names. An engine without one has none of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from target_stack.engine.kv_transfer import STAGES
from target_stack.engine.prometheus import Family, Histogram, Number

_FETCH_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class KvTransferMetrics:
    """The instruments; `families` is what a scrape shows."""

    def __init__(self, labels: Mapping[str, str], created: float) -> None:
        """All series exist from the start, at 0."""
        self._labels = labels
        self._created = created
        self.families: list[Family[Any]] = []
        self.fetch_s = Histogram(_FETCH_S)
        self._family("nixl_xfer_time_seconds", "histogram", "Time of KV transfers.").add(labels, self.fetch_s)
        self.failed_transfers = self._counter("nixl_num_failed_transfers_total", "KV transfers that failed.")
        self.failed_notifications = self._counter(
            "nixl_num_failed_notifications_total", "Peers that could not be told that their blocks were read."
        )
        self.expired = self._counter(
            "nixl_num_kv_expired_reqs_total", "Prompts whose blocks nobody fetched before their lease ended."
        )
        stages = self._family("num_requests_kv_fetch_by_stage", "gauge", "Requests whose prompt is being fetched.")
        self.by_stage = {stage: stages.add({**labels, "stage": stage}, Number()) for stage in STAGES}

    def step(self, report: Mapping[str, Any]) -> None:
        """Take what the connector reports."""
        for seconds in report["fetches"]:
            self.fetch_s.observe(seconds)
        self.failed_transfers.value = report["failed_transfers"]
        self.failed_notifications.value = report["failed_notifications"]
        self.expired.value = report["expired"]
        for stage, number in self.by_stage.items():
            number.value = report["stages"][stage]

    def _family(self, name: str, kind: str, text: str) -> Family[Any]:
        family: Family[Any] = Family(f"vllm:{name}", kind, text, None if kind == "gauge" else self._created)
        self.families.append(family)
        return family

    def _counter(self, name: str, text: str) -> Number:
        self._family(name, "counter", text).add(self._labels, number := Number())
        return number
