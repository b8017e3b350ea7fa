"""The keeper lives as long as the foreign proxy answers, and leaves nothing of ours in it."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from target_stack import proxy_keeper

pytestmark = pytest.mark.system


def test_a_server_that_answers_is_kept_until_the_end_and_our_edges_are_taken_out() -> None:
    over, seen = threading.Event(), list[str]()

    class Foreign(BaseHTTPRequestHandler):
        """Answers, and tells the keeper to end after the second look."""

        def do_GET(self) -> None:
            seen.append(f"GET {self.path}")
            self._done()
            if len(seen) == 2:
                over.set()

        def do_DELETE(self) -> None:
            seen.append(f"DELETE {self.path}")
            self._done()

        def _done(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Foreign) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        code = proxy_keeper.keep(f"127.0.0.1:{server.server_address[1]}", ["engine-a", "tools"], over)
        server.shutdown()
    assert (0, ["GET /version"] * 2) == (code, seen[:2])
    assert ["DELETE /proxies/engine-a", "DELETE /proxies/tools"] == seen[2:]


def test_a_server_that_is_gone_ends_the_keeper() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        address = f"127.0.0.1:{server.server_address[1]}"
    assert 1 == proxy_keeper.keep(address, [], threading.Event())
