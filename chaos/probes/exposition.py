"""The Prometheus text format to numbers: pure, forgiving, and without the series that no hypothesis asks for.

Understands the classic format and OpenMetrics (exemplars, timestamps). Histogram buckets and creation times are left
out, and of the exporter's own process only memory and processor time stay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from chaos.journal.series import scan_series, series_name

_KEPT_PROCESS = ("process_resident_memory_bytes", "process_cpu_seconds_total")


def wanted(name: str) -> bool:
    """Whether a series of this name is kept."""
    if name.endswith(("_bucket", "_created")) or name.startswith("python_"):
        return False
    return not name.startswith("process_") or name in _KEPT_PROCESS


def parse_metrics(text: str) -> Mapping[str, float]:
    """Every wanted series with a finite value, under its canonical name. Lines that are no samples are skipped."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        try:
            name, labels, rest = scan_series(line)
            value = float(rest.split(None, 1)[0])
        except (ValueError, IndexError):
            continue
        if wanted(name) and math.isfinite(value):
            values[series_name(name, labels)] = value
    return values
