"""Every probe there is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from chaos.probes.call_spans import CallSpans
from chaos.probes.gpu import Gpu
from chaos.probes.http_health import HttpHealth
from chaos.probes.metrics_text import MetricsText
from chaos.probes.probe import Probe
from chaos.probes.process_state import ProcessState
from chaos.probes.stack_events import StackEvents
from chaos.probes.stored_documents import StoredDocuments
from chaos.probes.tool_records import ToolRecords

PROBES: tuple[type[Probe], ...] = (
    CallSpans,
    Gpu,
    HttpHealth,
    MetricsText,
    ProcessState,
    StackEvents,
    StoredDocuments,
    ToolRecords,
)

by_kind: Mapping[str, type[Probe]] = MappingProxyType({probe.kind: probe for probe in PROBES})


def new_probes() -> tuple[Probe, ...]:
    """A fresh set of all probes for one run."""
    return tuple(probe() for probe in PROBES)
