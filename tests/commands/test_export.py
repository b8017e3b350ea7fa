"""`brownout export otlp` and `brownout report --format`, on a stored run and a receiver of the official messages."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from chaos import cli
from tests.loopback import free_address

UPHELD = Path(__file__).parents[2] / "fixtures" / "journals" / "upheld"
MESSAGES = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}
IDS = ("traceId", "spanId", "parentSpanId")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A stored run."""
    shutil.copytree(UPHELD, tmp_path / "run")
    (tmp_path / "run" / "plan.json").write_text('{"experiment": "retrieval/vector_store_outage"}')
    return tmp_path / "run"


def with_bytes(value: Any) -> Any:
    """Ids as the JSON of protocol buffers has them."""
    if isinstance(value, dict):
        return {k: base64.b64encode(bytes.fromhex(v)).decode() if k in IDS else with_bytes(v) for k, v in value.items()}
    return [with_bytes(each) for each in value] if isinstance(value, list) else value


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes what decodes strictly, refuses everything else."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            json_format.ParseDict(with_bytes(json.loads(body)), MESSAGES[self.path]())
            status, answer = 200, b"{}"
        except (KeyError, json_format.ParseError) as wrong:
            status, answer = 400, json.dumps({"code": 3, "message": str(wrong)}).encode()
        self.server.taken.append((self.path, status, self.headers["content-type"]))
        self.send_response(status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@contextlib.contextmanager
def receiver() -> Iterator[http.server.HTTPServer]:
    with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.taken = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_a_collector_gets_the_trace_and_the_metrics(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with receiver() as server:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        code = cli.main(["export", "otlp", str(run_dir), "--endpoint", endpoint])
    said = capsys.readouterr()
    assert (code, said.err) == (0, "")
    assert server.taken == [(path, 200, "application/json") for path in ("/v1/traces", "/v1/metrics")]
    assert said.out == f"exported 2026-12-01T09-00-00Z-ab12 to {endpoint}\n"


def test_a_collector_that_is_not_there_is_said_in_one_line(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["export", "otlp", str(run_dir), "--endpoint", f"http://{free_address()}", "--within", "2s"])
    said = capsys.readouterr().err
    assert (code, said.count("\n")) == (70, 1)
    assert "error: not exported: http://127.0.0.1:" in said
    assert "refused" in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--endpoint", "localhost:4318"], "is not an endpoint"),
        (["--endpoint", "http://localhost:4318", "--within", "10"], "write for example `10s`"),
        ([], "--endpoint"),
    ],
)
def test_wrong_arguments_are_bad_input(
    run_dir: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    try:
        code = cli.main(["export", "otlp", str(run_dir), *more])
    except SystemExit as end:
        code = end.code
    assert (code, said in capsys.readouterr().err) == (64, True)


def test_the_prometheus_format_is_printed_and_not_kept(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(run_dir.iterdir())
    assert cli.main(["report", str(run_dir), "--format", "prometheus"]) == 0
    families = [family.name for family in text_string_to_metric_families(capsys.readouterr().out)]
    assert "brownout_run_verdict" in families
    assert before == sorted(run_dir.iterdir())


def test_the_otlp_format_is_one_document_a_line(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(run_dir), "--format", "otlp"]) == 0
    signals = [[*json.loads(line)] for line in capsys.readouterr().out.splitlines()]
    assert signals == [["resourceSpans"], ["resourceMetrics"]]
