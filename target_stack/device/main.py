"""The device process: one for all GPUs of the stack, small because it uses the standard library alone.

Config: `listen`, `devices` (a list of {"id", "path"}: the register files), `spec` (what differs from the data sheet),
`token_file` (its content is demanded as bearer token of who controls the devices; looking is free).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from target_stack.device.gpu import Gpu, Spec
from target_stack.device.panel import Panel
from target_stack.device.registers import Registers

_TICK_S = 0.2
_IDLE_S = 30.0
_MOST_BODY_BYTES = 1 << 16


def main(config: Mapping[str, Any]) -> None:
    """Serve until SIGTERM. Raises OSError for a taken port or a token file that cannot be read."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    token = Path(config["token_file"]).read_text("ascii").strip() if "token_file" in config else None
    panel, lock = Panel(power_on(config, time.monotonic()), token), threading.Lock()
    host, _, port = config["listen"].rpartition(":")
    with _Server((host, int(port)), _handler(panel, lock)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        while not stop.wait(_TICK_S):
            with lock:
                panel.tick(time.monotonic())
        server.shutdown()


def power_on(config: Mapping[str, Any], now: float) -> list[Gpu]:
    """The GPUs of a configuration, healthy. Raises OSError for a register file that cannot be made."""
    spec = Spec(**config.get("spec", {}))
    gpus = [
        Gpu(each["id"], index, Registers.at(Path(each["path"])), spec, is_alive=_is_alive)
        for index, each in enumerate(config["devices"])
    ]
    for gpu in gpus:
        gpu.power_on(now)
    return gpus


def _is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return pid > 0 and Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is no news."""


def _handler(panel: Panel, lock: threading.Lock) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _IDLE_S
        wbufsize = -1
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            length = min(int(self.headers.get("Content-Length") or 0), _MOST_BODY_BYTES)
            body = self.rfile.read(length)
            with lock:
                allowed = self.headers.get("Authorization", "")
                answer = panel.answer(self.command, self.path, body, time.monotonic(), allowed)
            data = answer.body.encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            if answer.status != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815  the names that http.server calls

        def log_message(self, *_: object) -> None:
            """Requests are not worth a line each."""

    return Handler
