"""The toxics. One file, one toxic: its settings and the state machine that carries them out. `TOXICS` is the list."""

from __future__ import annotations

from chaos.proxy.toxics.bandwidth import Bandwidth
from chaos.proxy.toxics.latency import Latency
from chaos.proxy.toxics.limit_data import LimitData
from chaos.proxy.toxics.noop import Noop
from chaos.proxy.toxics.reset_peer import ResetPeer
from chaos.proxy.toxics.slicer import Slicer
from chaos.proxy.toxics.slow_close import SlowClose
from chaos.proxy.toxics.stub import Attributes
from chaos.proxy.toxics.timeout import Timeout

TOXICS: tuple[type[Attributes], ...] = (
    Bandwidth,
    Latency,
    LimitData,
    Noop,
    ResetPeer,
    Slicer,
    SlowClose,
    Timeout,
)
