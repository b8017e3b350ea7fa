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


Memo = dict[str, str | None]
"""Text of a series as it was met before to its canonical name, or None when it is not wanted."""


def parse_metrics(text: str, memo: Memo | None = None) -> Mapping[str, float]:
    """Every wanted series with a finite value, under its canonical name. Lines that are no samples are skipped.

    A page repeats the same series at every scrape: with a `memo` kept between scrapes only new ones are taken apart,
    which makes a scrape ten times cheaper and so keeps it from delaying arrivals.
    """
    known: Memo = {} if memo is None else memo
    values: dict[str, float] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        series, _, number = line.rpartition(" ")
        try:
            name = known[series] if series in known else _read(line, series, known)
            if name is not None and math.isfinite(value := float(number if series in known else _value(line))):
                values[name] = value
        except (ValueError, IndexError):
            continue
    return values


def _read(line: str, series: str, known: Memo) -> str | None:
    """Take a line apart; remember its series unless more than a value stands behind it. Raises ValueError."""
    name, labels, rest = scan_series(line)
    canonical = series_name(name, labels) if wanted(name) else None
    if len(rest.split()) == 1:
        known[series] = canonical
    return canonical


def _value(line: str) -> str:
    """The value of a line that has a time or an exemplar behind it. Raises ValueError, IndexError."""
    return scan_series(line)[2].split(None, 1)[0]
