"""The run's measures as one text for Prometheus: node_exporter's textfile collector, a push gateway, or promtool.

Both readers of the world take it as it stands: it is valid OpenMetrics, and to the classic format the lines that only
OpenMetrics knows are comments.
"""

from __future__ import annotations

from chaos.openmetrics import to_text
from chaos.report.facts import Facts
from chaos.report.measured import measured


def to_prometheus(facts: Facts) -> str:
    """The text."""
    return to_text(measured(facts), openmetrics=True)
