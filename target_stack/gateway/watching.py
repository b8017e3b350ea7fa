"""Between an answer and its reader: when did its tokens come, how many were they, and what did they say in the end?"""

from __future__ import annotations

from collections.abc import AsyncIterator

from target_stack.gateway.fallback import Answer
from target_stack.gateway.request_record import RequestRecord, counts_only
from target_stack.gateway.sse import Frame
from target_stack.gateway.telemetry import Telemetry


async def watched(
    answer: Answer, record: RequestRecord, telemetry: Telemetry, *, streamed: bool
) -> AsyncIterator[list[Frame]]:
    """The frames of an answer as they come, written down in the record. Raises EngineFailure when the answer breaks.

    The frame that counts tokens goes on only to a client that asked for it: engines are always asked. Pauses between
    tokens are of interest while they are streamed; a whole reply comes at once.
    """
    inference, last = telemetry.metrics.inference, None
    async for frames in answer.frames():
        now = telemetry.clock()
        said = sum([record.see(frame, now - record.arrived) for frame in frames])
        if said:
            if last is None:
                record.ttft_s = now - record.arrived
                inference.ttft.observe(answer.served_by, record.ttft_s)
            if streamed:
                gaps = [0.0] * (said - 1) if last is None else [now - last, *[0.0] * (said - 1)]
                for gap in gaps:
                    inference.itl.observe(answer.served_by, gap)
            last = now
        yield frames if record.wants_counts else [frame for frame in frames if not counts_only(frame)]
    inference.count(answer.served_by, record.prompt_tokens, record.output_tokens)
