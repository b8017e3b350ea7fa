"""The command line from outside, for the system tests and the soak: start, signal, kill, look for what is left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harm import Sight, harm_in

HERE = Path(__file__).parent
SHORT = HERE / "short"
ROOT = HERE.parents[1]


@dataclass
class Drill:
    """One state folder with its stack, and commands run against it."""

    folder: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        """The state folder of the harness."""
        return self.folder / "state"

    @property
    def runs(self) -> Path:
        """Where run directories go."""
        return self.folder / "runs"

    @property
    def temporary(self) -> Path:
        """Where runs put their markers and warrants, so that what is left is known to be theirs."""
        return self.folder / "tmp"

    def environment(self) -> dict[str, str]:
        """Ours, with the state folder of this drill."""
        return {**os.environ, "BROWNOUT_STATE": str(self.state), "NO_COLOR": "1", **self.extra}

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Begin a command in a session of its own; a run keeps its markers and warrants apart."""
        environment = self.environment()
        if arguments[0] == "run":
            self.temporary.mkdir(parents=True, exist_ok=True)
            environment["TMPDIR"] = str(self.temporary)
        return subprocess.Popen(
            [sys.executable, "-m", "chaos", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=ROOT,
            start_new_session=True,
            **options,
        )

    def call(self, *arguments: str, within_s: float = 90, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"{arguments} did not end in {within_s}s:\n{out}\n{err}") from None
        except BaseException:  # an interrupted caller leaves no command behind
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def begin_run(self, name: str, *more: str, **options: Any) -> subprocess.Popen[str]:
        """Begin to run one of the short experiments."""
        return self.start(*self._run(name, *more), **options)

    def run(self, name: str, *more: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run one of the short experiments to its end."""
        return self.call(*self._run(name, *more), **options)

    def _run(self, name: str, *more: str) -> tuple[str, ...]:
        return ("run", str(SHORT / f"{name}.yaml"), "--no-runbook", "--out", str(self.runs), *more)

    def status(self) -> dict[str, Any]:
        """`brownout status --json`."""
        found: dict[str, Any] = json.loads(self.call("status", "--json").stdout)
        return found

    def inventory(self) -> dict[str, Any]:
        """What the supervisor wrote last."""
        found: dict[str, Any] = json.loads((self.state / "stacks" / "bundled" / "inventory.json").read_text())
        return found

    def last_run(self) -> Path:
        """The newest run directory."""
        return max(self.runs.rglob("journal.jsonl"), key=lambda p: p.stat().st_mtime).parent

    def journal(self) -> list[dict[str, Any]]:
        """All whole lines of the newest journal; none when there is no run yet."""
        try:
            lines = (self.last_run() / "journal.jsonl").read_text().splitlines()
        except (ValueError, OSError):
            return []
        return [json.loads(line) for line in lines]

    def wait_for(self, kind: str, process: subprocess.Popen[str], since: float, within_s: float = 40) -> None:
        """Wait until the journal of a run begun after `since` (wall clock) has a record of this kind."""
        give_up = time.monotonic() + within_s
        while time.monotonic() < give_up:
            if process.poll() is not None:
                out, err = process.communicate()
                raise AssertionError(f"ended with {process.returncode} before {kind}:\n{out}\n{err}")
            lines = self.journal()
            if lines and lines[0]["wall"] >= since and any(line["kind"] == kind for line in lines):
                return
            time.sleep(0.02)
        raise AssertionError(f"no {kind} within {within_s}s")

    def leases(self) -> list[str]:
        """Leases on disk."""
        folder = self.state / "leases"
        return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []


def harm(drill: Drill) -> list[str]:
    """Everything that an outsider can see to be broken on a stack that should be whole."""
    return harm_in(Sight(drill.leases(), drill.inventory()["targets"], drill.temporary))


def until_whole(drill: Drill, within_s: float) -> tuple[float, list[str]]:
    """Seconds until nothing is broken any more, and what still is when the time is up."""
    began = time.monotonic()
    while True:
        broken = harm(drill)
        took = time.monotonic() - began
        if not broken or took > within_s:
            return took, broken
        time.sleep(0.02)


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL the harness alone; its watchdog and the stack are not in its way."""
    os.kill(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=5)
