"""Counters in Prometheus text, under Toxiproxy's names. A link's bytes are added when it ends, as there."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from chaos.proxy.connection import Traffic
from chaos.proxy.proxy import Proxy

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
_Labels = tuple[str, str, str, str]


class Metrics:
    """`proxy` counts traffic, `runtime` describes the process; with neither there is no /metrics."""

    def __init__(self, *, proxy: bool, runtime: bool) -> None:
        self.proxy = proxy
        self.runtime = runtime
        self._started_at = time.time()
        self._received: dict[_Labels, int] = {}
        self._sent: dict[_Labels, int] = {}

    def count(self, proxy: Proxy, traffic: Traffic) -> None:
        """Add what one link carried."""
        if not self.proxy:
            return
        labels = (traffic.direction, proxy.listen, proxy.name, proxy.upstream)
        self._received[labels] = self._received.get(labels, 0) + traffic.received
        self._sent[labels] = self._sent.get(labels, 0) + traffic.sent

    def text(self) -> str:
        """The whole exposition."""
        process = self._process() if self.runtime else ""
        return (
            process
            + _family("toxiproxy_proxy_received_bytes_total", self._received)
            + _family("toxiproxy_proxy_sent_bytes_total", self._sent)
        )

    def _process(self) -> str:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        values = {
            "process_cpu_seconds_total": (usage.ru_utime + usage.ru_stime, "counter"),
            "process_max_fds": (resource.getrlimit(resource.RLIMIT_NOFILE)[0], "gauge"),
            "process_open_fds": (sum(1 for _ in Path("/proc/self/fd").iterdir()), "gauge"),
            "process_resident_memory_bytes": (pages * os.sysconf("SC_PAGE_SIZE"), "gauge"),
            "process_start_time_seconds": (self._started_at, "gauge"),
        }
        return "".join(f"# TYPE {name} {kind}\n{name} {_number(value)}\n" for name, (value, kind) in values.items())


def _family(name: str, values: dict[_Labels, int]) -> str:
    if not values:
        return ""
    lines = [f"# HELP {name} ", f"# TYPE {name} counter"]
    for (direction, listener, proxy, upstream), value in sorted(values.items()):
        labels = {"direction": direction, "listener": listener, "proxy": proxy, "upstream": upstream}
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        lines.append(f"{name}{{{inside}}} {_number(value)}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    """As Go's %g with the fewest digits: an exponent from a million up."""
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return f"{value:.15g}"
    digits = next(n for n in range(17) if float(f"{value:.{n}e}") == float(value))
    return f"{value:.{digits}e}"
