"""What it costs the gateway to account for one request: CPU of the record, of the metrics and of the line on disk.

python benchmarks/request_log.py
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path

from target_stack.gateway.events import EventRing
from target_stack.gateway.json_lines import JsonLines
from target_stack.gateway.metrics import GatewayMetrics
from target_stack.gateway.sse import Frame
from target_stack.gateway.telemetry import Telemetry
from target_stack.gateway.trace import trace_of

REQUESTS, TOKENS = 20_000, 24


def frame(content: str, finish: str | None = None) -> Frame:
    """One token as an engine sends it."""
    data = {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}]}
    return Frame(b"data: " + json.dumps(data).encode() + b"\n\n", data)


def main() -> None:
    """Print CPU microseconds a request, the writing thread included, and a token."""
    rng, frames = random.Random(1), [*[frame("word")] * (TOKENS - 1), frame("end", "stop")]
    with tempfile.TemporaryDirectory() as folder:
        log = JsonLines(Path(folder) / "log", file_bytes=1 << 30, files=2)
        telemetry = Telemetry(time.monotonic, rng, EventRing(time.monotonic), GatewayMetrics(), log.add)
        started = time.process_time()
        watching = 0.0
        for _ in range(REQUESTS):
            record = telemetry.began(trace_of({}, rng), "chat")
            telemetry.admitted(record)
            before = time.process_time()
            for one in frames:
                record.see(one, 0.1)
            watching += time.process_time() - before
            telemetry.ended(record, "ok")
        log.close()
        total = time.process_time() - started
        size = (Path(folder) / "log").stat().st_size
    print(f"request: {1e6 * (total - watching) / REQUESTS:.1f} us, {size / REQUESTS:.0f} bytes, {log.dropped} dropped")
    print(f"token:   {1e6 * watching / REQUESTS / TOKENS:.2f} us")


if __name__ == "__main__":
    main()
