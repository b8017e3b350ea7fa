"""The toxics. One file, one toxic: its settings and the state machine that carries them out. `TOXICS` is the list."""

from __future__ import annotations

from chaos.proxy.toxics.bandwidth import Bandwidth
from chaos.proxy.toxics.http_body import HttpBody
from chaos.proxy.toxics.http_delay import HttpDelay
from chaos.proxy.toxics.http_page import HttpPage
from chaos.proxy.toxics.http_reset_mid_body import HttpResetMidBody
from chaos.proxy.toxics.http_rewrite_kv_reference import HttpRewriteKvReference
from chaos.proxy.toxics.http_status import HttpStatus
from chaos.proxy.toxics.latency import Latency
from chaos.proxy.toxics.limit_data import LimitData
from chaos.proxy.toxics.mcp_error import McpError
from chaos.proxy.toxics.mcp_lose_session import McpLoseSession
from chaos.proxy.toxics.mcp_wrong_schema import McpWrongSchema
from chaos.proxy.toxics.noop import Noop
from chaos.proxy.toxics.reset_peer import ResetPeer
from chaos.proxy.toxics.slicer import Slicer
from chaos.proxy.toxics.slow_close import SlowClose
from chaos.proxy.toxics.sse_cut import SseCut
from chaos.proxy.toxics.sse_drop_done import SseDropDone
from chaos.proxy.toxics.sse_duplicate import SseDuplicate
from chaos.proxy.toxics.sse_error_frame import SseErrorFrame
from chaos.proxy.toxics.sse_garble import SseGarble
from chaos.proxy.toxics.sse_slow_first import SseSlowFirst
from chaos.proxy.toxics.sse_stall import SseStall
from chaos.proxy.toxics.sse_truncate_tool_call import SseTruncateToolCall
from chaos.proxy.toxics.stub import Attributes
from chaos.proxy.toxics.timeout import Timeout

TOXIPROXYS: tuple[type[Attributes], ...] = (
    Bandwidth,
    Latency,
    LimitData,
    Noop,
    ResetPeer,
    Slicer,
    SlowClose,
    Timeout,
)
"""On bytes, with the names and settings that Toxiproxy's clients know."""

PER_REQUEST: tuple[type[Attributes], ...] = (
    HttpBody,
    HttpDelay,
    HttpPage,
    HttpResetMidBody,
    HttpRewriteKvReference,
    HttpStatus,
    McpError,
    McpLoseSession,
    McpWrongSchema,
    SseCut,
    SseDropDone,
    SseDuplicate,
    SseErrorFrame,
    SseGarble,
    SseSlowFirst,
    SseStall,
    SseTruncateToolCall,
)
"""On HTTP requests, tool calls and token streams."""

TOXICS: tuple[type[Attributes], ...] = (*TOXIPROXYS, *PER_REQUEST)
