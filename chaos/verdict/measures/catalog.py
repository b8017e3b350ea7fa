"""The list of measures, explicit: to add one, write its file and name it here."""

from __future__ import annotations

from chaos.verdict.measures.absent import Absent
from chaos.verdict.measures.audit_gaps import AuditGaps
from chaos.verdict.measures.cross_talk import CrossTalk
from chaos.verdict.measures.degraded_ratio import DegradedRatio
from chaos.verdict.measures.durability import Durability
from chaos.verdict.measures.e2e import E2e
from chaos.verdict.measures.event import Event
from chaos.verdict.measures.event_count import EventCount
from chaos.verdict.measures.itl import Itl
from chaos.verdict.measures.load_lateness import LoadLateness
from chaos.verdict.measures.measure import Estimator
from chaos.verdict.measures.metastability import Metastability
from chaos.verdict.measures.metric import Metric
from chaos.verdict.measures.order import Order
from chaos.verdict.measures.output_length import OutputLength
from chaos.verdict.measures.recall import Recall
from chaos.verdict.measures.recovery_time import RecoveryTime
from chaos.verdict.measures.requests_running import RequestsRunning
from chaos.verdict.measures.retry_amplification import RetryAmplification
from chaos.verdict.measures.shed_latency import ShedLatency
from chaos.verdict.measures.shed_ratio import ShedRatio
from chaos.verdict.measures.side_effects import SideEffects
from chaos.verdict.measures.sql import Sql
from chaos.verdict.measures.stream_integrity import StreamIntegrity
from chaos.verdict.measures.success_ratio import SuccessRatio
from chaos.verdict.measures.ttft import Ttft
from chaos.verdict.measures.unauthorised_calls import UnauthorisedCalls

MEASURES: tuple[type[Estimator], ...] = (
    SuccessRatio,
    DegradedRatio,
    ShedRatio,
    ShedLatency,
    Ttft,
    Itl,
    E2e,
    StreamIntegrity,
    OutputLength,
    Recall,
    CrossTalk,
    RetryAmplification,
    RecoveryTime,
    Metastability,
    Event,
    Order,
    EventCount,
    Absent,
    Metric,
    RequestsRunning,
    LoadLateness,
    SideEffects,
    Durability,
    AuditGaps,
    UnauthorisedCalls,
    Sql,
)
"""Every measure a hypothesis can use, in the order in which people read them."""


def by_name() -> dict[str, type[Estimator]]:
    """The catalog by the name used in experiment files."""
    return {measure.name: measure for measure in MEASURES}
