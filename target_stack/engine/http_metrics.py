"""What vLLM's server says about itself beside the engine: HTTP calls by route, the process, the Python runtime."""

from __future__ import annotations

import gc
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from target_stack.engine.prometheus import Family, Histogram, Instrument, Number, Summary

_COARSE_S = (0.1, 0.5, 1)
_FINE_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60)
UNCOUNTED = frozenset({"/health", "/load", "/ping", "/version", "/metrics", "/server_info"})


class HttpMetrics:
    """Calls by route; a route's series appear with its first call."""

    def __init__(self) -> None:
        """No calls yet."""
        now = time.time()
        self._requests: Family[Number] = Family(
            "http_requests_total", "counter", "Calls by route and status class.", now
        )
        self._request_size: Family[Summary] = Family("http_request_size_bytes", "summary", "Size of requests.", now)
        self._response_size: Family[Summary] = Family("http_response_size_bytes", "summary", "Size of replies.", now)
        name = "http_request_duration_highr_seconds"
        self._fine: Family[Histogram] = Family(name, "histogram", "Time of all calls, in many buckets.", now)
        name = "http_request_duration_seconds"
        self._coarse: Family[Histogram] = Family(name, "histogram", "Time of calls by route, in few buckets.", now)
        self._all = self._fine.add({}, Histogram(_FINE_S))
        self._known: dict[tuple[str, ...], Any] = {}

    @property
    def families(self) -> tuple[Family[Any], ...]:
        """In the order of a scrape."""
        return self._requests, self._request_size, self._response_size, self._fine, self._coarse

    def record(
        self, handler: str, method: str, status: int, *, request_bytes: int, response_bytes: int, seconds: float
    ) -> None:
        """Count one call."""
        by_route = {"handler": handler}
        self._child(self._requests, {**by_route, "method": method, "status": f"{status // 100}xx"}, Number).value += 1
        self._child(self._request_size, by_route, Summary).observe(request_bytes)
        self._child(self._response_size, by_route, Summary).observe(response_bytes)
        self._child(self._coarse, {**by_route, "method": method}, lambda: Histogram(_COARSE_S)).observe(seconds)
        self._all.observe(seconds)

    def _child(self, family: Family[Instrument], labels: dict[str, str], make: Callable[[], Instrument]) -> Instrument:
        key = (family.name, *labels.values())
        if key not in self._known:
            self._known[key] = family.add(labels, make())
        child: Instrument = self._known[key]
        return child


def runtime_families() -> Iterator[Family[Number]]:
    """The state of this process and its Python, read now."""
    yield from _collector_families()
    version = sys.version_info
    labels = {
        "implementation": platform.python_implementation(),
        "major": str(version.major),
        "minor": str(version.minor),
        "patchlevel": str(version.micro),
        "version": platform.python_version(),
    }
    yield _family("python_info", "gauge", "The Python that runs.", [(labels, 1.0)])
    usage = resource.getrusage(resource.RUSAGE_SELF)
    pages = Path("/proc/self/statm").read_text().split()
    page_bytes = resource.getpagesize()
    for name, value in (
        ("virtual_memory_bytes", int(pages[0]) * page_bytes),
        ("resident_memory_bytes", int(pages[1]) * page_bytes),
        ("start_time_seconds", _started_at()),
    ):
        yield _family(f"process_{name}", "gauge", "As the kernel tells it.", [({}, value)])
    cpu_s = usage.ru_utime + usage.ru_stime
    yield _family("process_cpu_seconds_total", "counter", "Processor time, user and system.", [({}, cpu_s)])
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  only their number matters, and it is asked often
    yield _family("process_open_fds", "gauge", "Open file descriptors.", [({}, descriptors)])
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    yield _family("process_max_fds", "gauge", "Most file descriptors.", [({}, limit)])


def _collector_families() -> Iterator[Family[Number]]:
    generations = gc.get_stats()
    for name, key in (
        ("objects_collected", "collected"),
        ("objects_uncollectable", "uncollectable"),
        ("collections", "collections"),
    ):
        values = [({"generation": str(number)}, each[key]) for number, each in enumerate(generations)]
        yield _family(f"python_gc_{name}_total", "counter", "Work of the garbage collector.", values)


def _family(name: str, kind: str, text: str, values: list[tuple[dict[str, str], Any]]) -> Family[Number]:
    family: Family[Number] = Family(name, kind, text)
    for labels, value in values:
        family.add(labels, Number()).value = float(value)
    return family


def _started_at() -> float:
    """Start of this process in unix seconds: field 22 of /proc/self/stat counts clock ticks from boot."""
    stat = Path("/proc/self/stat").read_text()
    ticks = int(stat.rpartition(")")[2].split()[19])
    uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - uptime_s + ticks / os.sysconf("SC_CLK_TCK")
