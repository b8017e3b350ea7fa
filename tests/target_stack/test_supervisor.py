"""The supervised stack as real processes on loopback."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import pytest

from target_stack.fixtures import fixtures_dir, read_lines

pytestmark = [pytest.mark.system, pytest.mark.timeout(90)]

ROOT = Path(__file__).parents[2]
PROXY = f"{sys.executable} -m chaos.proxy --host 127.0.0.1 --port {{port}} --token-file {{token_file}}"


def eventually(look, timeout_s=15.0):
    """What `look` finds, as soon as it finds something."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(f"never came true: {look}")


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("stack", timeout=5)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(str(self.path))


class Stack:
    """A supervisor that was started by a test, and what it tells."""

    def __init__(self, state: Path, scratch: Path, *arguments: str):
        self.state, self.scratch = state, scratch
        self.process = subprocess.Popen(
            [sys.executable, "-m", "target_stack", "--state-dir", str(state), *arguments],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(scratch)},
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, method, path, body=None):
        with contextlib.closing(UnixConnection(self.state / "control.sock")) as connection:
            connection.request(method, path, body and json.dumps(body))
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())

    def ready(self, ready=True):
        def look():
            assert self.process.poll() is None, self.process.stderr.read()
            with contextlib.suppress(OSError, http.client.HTTPException):
                # Asked, not read: the file may be of a supervisor that was killed here before.
                return self.call("GET", "/status")[1]["stack"]["ready"] is ready

        eventually(look, 20.0)
        return self

    def inventory(self):
        return json.loads((self.state / "inventory.json").read_text())

    def target(self, name):
        return next(t for t in self.inventory()["targets"] if t["name"] == name)

    def processes(self):
        """Every live process that the supervisor started, found through the kernel's list of children."""
        return descendants(self.process.pid)

    def proxy(self):
        return next(pid for pid in self.processes() if b"chaos.proxy" in Path(f"/proc/{pid}/cmdline").read_bytes())

    def ports(self):
        found = [address for t in self.inventory()["targets"] for address in (t["address"], t["via"]) if address]
        return [int(address.rpartition(":")[2]) for address in found]

    def end(self):
        self.process.terminate()
        try:
            return self.process.wait(15)
        finally:
            self.process.kill()
            self.process.stderr.close()


def descendants(pid):
    children = []
    with contextlib.suppress(OSError):
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*children, *(d for child in children for d in descendants(child))]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def listener(address):
    """A stranger's server on that address, or None while somebody else has it."""
    with contextlib.suppress(OSError):
        return socket.create_server(("127.0.0.1", int(address.rpartition(":")[2])))


def open_port(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def scratch_folder():
    """A temporary folder that the database's unprivileged user can enter; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    with scratch_folder() as scratch:
        running = Stack(tmp_path_factory.mktemp("stack"), scratch, "--proxy-command", PROXY)
        try:
            yield running.ready()
        finally:
            status = running.end()
        assert status == 0


@pytest.fixture
def another(tmp_path):
    """Start a stack of one's own; it is ended whatever the test does."""
    started = []

    def start(*arguments):
        started.append(Stack(tmp_path, scratch, *arguments))
        return started[-1]

    with scratch_folder() as scratch:
        yield start
        for running in started:
            running.end()


def test_every_target_serves_and_shows_its_grips(stack):
    for target in stack.inventory()["targets"]:
        assert target["state"] == "ready"
        assert target["handles"]["process_group"] == target["pids"][0]
        assert target["handles"]["proxy"]["name"] == target["name"]
        assert os.getpgid(target["pids"][0]) == target["pids"][0]
    assert len(stack.target("engine-a")["pids"]) == 2


def test_where_root_started_it_data_is_on_disks_of_its_own_that_nobody_else_sees(stack):
    disks = {target["name"]: target["handles"].get("data") for target in stack.inventory()["targets"]}
    if os.geteuid() != 0:
        assert set(disks.values()) == {None}
        return
    assert {name for name, data in disks.items() if data} == {"vector-store", "agent"}
    size = os.statvfs(disks["vector-store"]["folder"])
    assert size.f_blocks * size.f_frsize == disks["vector-store"]["limit_bytes"]
    assert "brownout tmpfs" not in Path("/proc/mounts").read_text()


def test_an_answer_over_retrieval_holds_the_right_fact(stack):
    questions = list(read_lines(fixtures_dir() / "prompts" / "product-questions.jsonl"))
    for record in random.Random(1).sample(questions, 8):
        body = {
            "model": "brownout-chat",
            "messages": [{"role": "user", "content": record["question"]}],
            "max_tokens": 32,
        }
        reply = httpx.post(f"http://{stack.target('gateway')['via']}/v1/rag", json=body, timeout=10)
        assert reply.status_code == 200, reply.text
        assert record["document"] in reply.headers["x-documents"]
        answer = reply.json()["choices"][0]["message"]["content"]
        assert all(expected in answer for expected in record["expect"]), (record, answer)


@pytest.mark.parametrize("name", ["tools", "engine-b", "vector-store", "cache", "gateway"])
def test_a_killed_target_is_started_again_on_the_same_port(stack, name):
    before = stack.ready().target(name)
    os.killpg(before["pids"][0], signal.SIGKILL)
    eventually(lambda: stack.target(name)["pids"][:1] not in ([], before["pids"][:1]))
    after = stack.ready().target(name)
    assert after["address"] == before["address"]
    assert after["via"] == before["via"]


def test_killing_only_the_leader_leaves_no_process_of_the_old_group(stack):
    before = stack.ready().target("vector-store")["pids"][0]
    old = [before, *descendants(before)]
    os.kill(before, signal.SIGKILL)
    eventually(lambda: stack.target("vector-store")["pids"] not in ([], [before]))
    stack.ready()
    assert not [pid for pid in old if alive(pid)]


def test_a_held_target_stays_dead_until_it_is_released(stack):
    pid = stack.ready().target("embedder")["pids"][0]
    assert stack.call("POST", "/targets/embedder/hold", {"by": "lease-1"}) == (200, {"holds": ["lease-1"]})
    os.killpg(pid, signal.SIGKILL)
    eventually(lambda: stack.target("embedder")["state"] == "held")
    assert stack.call("GET", "/status")[1]["stack"]["ready"] is False
    time.sleep(0.5)
    assert stack.target("embedder")["pids"] == []
    assert stack.call("POST", "/targets/embedder/release", {"by": "lease-1"}) == (200, {"holds": []})
    assert stack.ready().target("embedder")["state"] == "ready"


def test_a_target_that_must_die_again_does_so_until_that_is_taken_away(stack):
    before = stack.ready().target("tools")
    burden = {"by": "lease-2", "life_s": 0.05, "deaths": None}
    assert stack.call("POST", "/targets/tools/burden", burden) == (200, {"burdens": ["lease-2"]})
    os.killpg(before["pids"][0], signal.SIGKILL)
    eventually(lambda: stack.target("tools")["starts"] >= before["starts"] + 3)
    assert stack.target("tools")["last_exit"] == -signal.SIGKILL
    stack.call("POST", "/targets/tools/release", {"by": "lease-2"})
    assert stack.ready().target("tools")["burdens"] == []


def test_a_target_runs_with_other_settings_as_long_as_somebody_says_so(stack):
    before = stack.ready().target("engine-b")

    def served():
        with contextlib.suppress(httpx.HTTPError):
            base = httpx.get(f"http://{before['address']}/v1/models").json()["data"][0]
            return base["id"], base["max_model_len"]

    burden = {"by": "lease-3", "settings": {"model": "another", "max_model_len": 1024}}
    assert stack.call("POST", "/targets/engine-b/burden", burden)[0] == 200
    eventually(lambda: served() == ("another", 1024))
    assert stack.ready().target("engine-b")["last_exit"] == 0
    stack.call("POST", "/targets/engine-b/release", {"by": "lease-3"})
    eventually(lambda: served() == ("brownout-chat", 4096))
    assert stack.ready().target("engine-b")["address"] == before["address"]


def test_what_is_no_service_of_ours_keeps_its_settings(stack):
    status, said = stack.call("POST", "/targets/vector-store/burden", {"by": "x", "settings": {"port": 1}})
    assert (status, said["error"]) == (400, "vector-store is no service of ours, so its settings cannot be changed")


def test_the_proxy_is_started_again_with_all_its_edges(stack):
    admin = stack.ready().target("tools")["handles"]["proxy"]["admin"]
    os.kill(stack.proxy(), signal.SIGKILL)
    stack.ready(ready=False)
    stack.ready()
    headers = {"Authorization": f"Bearer {(stack.state / 'admin.token').read_text().strip()}"}
    edges = {edge["proxy"] for target in stack.inventory()["targets"] for edge in target["edges"]}
    assert set(httpx.get(f"http://{admin}/proxies", headers=headers).json()) == edges >= {"tools", "agent->tools"}
    assert httpx.get(f"http://{stack.target('tools')['via']}/ping").status_code == 200


def test_a_target_whose_port_was_taken_meanwhile_moves_and_its_edge_follows(stack):
    before = stack.ready().target("tools")
    stack.call("POST", "/targets/tools/hold", {"by": "test"})
    os.killpg(before["pids"][0], signal.SIGKILL)
    eventually(lambda: stack.target("tools")["state"] == "held")
    with listener(before["address"]):
        stack.call("POST", "/targets/tools/release", {"by": "test"})
        after = stack.ready().target("tools")
    assert after["address"] != before["address"]
    assert after["via"] == before["via"]
    assert httpx.get(f"http://{after['via']}/tools").json()["tools"]


def test_an_edge_whose_port_was_taken_meanwhile_moves_and_the_gateway_learns_it(stack):
    before = stack.ready().target("tools")
    os.kill(stack.proxy(), signal.SIGKILL)
    with eventually(lambda: listener(before["via"])):
        stack.ready(ready=False)
        after = stack.ready().target("tools")
    assert after["via"] != before["via"]
    gateway = f"http://{stack.target('gateway')['via']}"
    reply = httpx.post(f"{gateway}/v1/tools/order_status", json={"order": "B-1001"}, timeout=5)
    assert reply.json().get("status") == "shipped", reply.text


def test_an_unknown_target_cannot_be_held(stack):
    assert stack.call("POST", "/targets/engine-z/hold", {"by": "x"})[0] == 404


def test_only_the_owner_may_use_the_admin_apis(stack):
    target = stack.ready().target("gateway")
    sockets = [stack.state / "control.sock", Path(target["handles"]["admin"])]
    assert [0o600] * 2 == [path.stat().st_mode & 0o777 for path in sockets]
    assert [0o700] * 2 == [path.parent.stat().st_mode & 0o777 for path in sockets]
    token_file = Path(target["handles"]["proxy"]["token_file"])
    assert 0o600 == token_file.stat().st_mode & 0o777
    devices = stack.target("engine-a")["handles"]["device"]
    assert str(token_file) == devices["token_file"]
    doors = (f"{target['handles']['proxy']['admin']}/proxies", f"{devices['admin']}/devices")
    headers = {"Authorization": f"Bearer {token_file.read_text().strip()}"}
    for door in doors:
        assert httpx.get(f"http://{door}").status_code == 401
        assert httpx.get(f"http://{door}", headers=headers).status_code == 200


def test_a_second_supervisor_is_refused(stack):
    second = subprocess.run(
        [sys.executable, "-m", "target_stack", "--state-dir", str(stack.state)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 1
    assert f"(pid {stack.process.pid}) is already running" in second.stderr


def test_a_shutdown_ends_everything_and_leaves_only_logs(another):
    stack = another("--proxy-command", PROXY).ready()
    processes, ports = stack.processes(), stack.ports()
    os.killpg(stack.target("tools")["pids"][0], signal.SIGSTOP)
    assert stack.call("POST", "/shutdown")[0] == 202
    assert stack.process.wait(15) == 0
    assert not [pid for pid in processes if alive(pid)]
    assert not [port for port in ports if open_port(port)]
    assert [path.name for path in stack.state.iterdir()] == ["logs"]
    assert not list(stack.scratch.glob("brownout-*"))


def test_a_killed_supervisor_takes_everything_with_it_and_the_next_one_cleans_up(another):
    stack = another().ready()
    processes, ports = stack.processes(), stack.ports()
    assert all(target["via"] is None for target in stack.inventory()["targets"])
    stack.process.kill()
    stack.process.wait()
    eventually(lambda: not [pid for pid in processes if alive(pid)], 5.0)
    # The first thread of a process may be gone a moment before the last one, which holds the sockets.
    eventually(lambda: not [port for port in ports if open_port(port)], 5.0)
    left = (stack.state / "scratch").read_text().strip()
    next_one = another().ready()
    assert not Path(left).exists()
    assert next_one.end() == 0


def test_an_interrupt_while_starting_is_an_orderly_end(another):
    stack = another()
    eventually((stack.state / "control.sock").exists)
    stack.process.send_signal(signal.SIGINT)
    assert stack.process.wait(15) == 0
    assert [path.name for path in stack.state.iterdir()] == ["logs"]


def test_a_part_that_cannot_start_is_named_with_its_log(another):
    stack = another("--proxy-command", "/bin/sh -c 'echo no such luck; exit 3' {port}")
    _, told = stack.process.communicate(timeout=30)
    assert stack.process.returncode == 1
    assert "proxy is dead, not ready: ended with status 3" in told
    assert "no such luck" in told
