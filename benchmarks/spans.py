"""What spans cost the gateway: CPU of writing one down, of telling it to a reader, and their share of a whole request.

    python benchmarks/spans.py [--request-ms 1.0]

A retrieval request makes four spans in the gateway: its own, and one for each call of embedder, vector store and
engine. `--request-ms` is the CPU of a request without them, as `benchmarks/gateway.py` prints it. Least round of many.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable

from target_stack.gateway.hops import Hop
from target_stack.gateway.trace import trace_of
from target_stack.spans import SpanRing

SPANS_A_REQUEST, REQUESTS, ROUNDS = 4, 2_000, 15


def least_us(work: Callable[[], None], spans: int) -> float:
    """CPU microseconds a span, of the quickest round."""
    found = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        found.append((time.process_time() - began) / spans * 1e6)
    return min(found)


def main() -> None:
    """Print one line for each part and the share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--request-ms", type=float, default=1.0)
    request_ms = parser.parse_args().request_ms
    ring = SpanRing(time.monotonic, 1)
    trace, spans = trace_of({}, random.Random(1)), SPANS_A_REQUEST * REQUESTS

    def write() -> None:
        for _ in range(spans):
            Hop(ring, trace, "engine", "engine-a", 1).end("ok", 120, 24)

    def tell() -> None:
        newest = ring.after(0, most=1)["last"]
        for after in range(newest - spans, newest, 400):
            ring.page(str(after))

    written, told = least_us(write, spans), least_us(tell, spans)
    share = SPANS_A_REQUEST * (written + told) / (request_ms * 1000)
    print(f"a span: {written:.2f} us to write down, {told:.2f} us to tell")
    print(f"a request of {SPANS_A_REQUEST} spans and {request_ms:g} ms: {share:.1%}")


if __name__ == "__main__":
    main()
