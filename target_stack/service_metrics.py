"""Counts and durations of a small service, written as Prometheus text."""

from __future__ import annotations

from collections import Counter

_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class RequestMetrics:
    """`<prefix>_requests_total{route,status}` and the histogram `<prefix>_request_seconds{route}`."""

    def __init__(self, prefix: str) -> None:
        """Start at nothing."""
        self._prefix = prefix
        self._requests: Counter[tuple[str, str]] = Counter()
        self._within: Counter[tuple[str, float]] = Counter()
        self._sum_s: Counter[str] = Counter()

    def observe(self, route: str, status: int | str, seconds: float) -> None:
        """Count one finished request; where HTTP's status says nothing, `status` is a word."""
        self._requests[route, str(status)] += 1
        self._sum_s[route] += seconds  # type: ignore[assignment]  # a Counter of floats is typed as one of ints
        self._within.update((route, bound) for bound in _BUCKETS_S if seconds <= bound)

    def text(self) -> str:
        """The exposition format, version 0.0.4."""
        name = f"{self._prefix}_requests_total"
        lines = [f"# TYPE {name} counter"]
        lines += [f'{name}{{route="{r}",status="{s}"}} {n}' for (r, s), n in sorted(self._requests.items())]
        name = f"{self._prefix}_request_seconds"
        lines.append(f"# TYPE {name} histogram")
        for route in sorted({route for route, _ in self._requests}):
            total = sum(n for (r, _), n in self._requests.items() if r == route)
            lines += [f'{name}_bucket{{route="{route}",le="{b}"}} {self._within[route, b]}' for b in _BUCKETS_S]
            lines.append(f'{name}_bucket{{route="{route}",le="+Inf"}} {total}')
            lines.append(f'{name}_sum{{route="{route}"}} {self._sum_s[route]:.6f}')
            lines.append(f'{name}_count{{route="{route}"}} {total}')
        return "\n".join(lines) + "\n"
