"""A disk of limited size is full when it is full, is nobody else's, and goes with the last process that sees it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from target_stack.disks import MIB, detach

STRANGER = """
import os
from target_stack.disks import separate
if os.geteuid() == 0:
    os.setuid(65534)
print(separate())
"""
HOLDER = """
import sys
from pathlib import Path
from target_stack.disks import attach, separate
assert separate()
attach(Path(sys.argv[1]), 2, None)
print("attached", flush=True)
sys.stdin.read()
"""


ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may have disks of its own")


def test_whoever_is_not_root_has_none() -> None:
    answer = subprocess.run([sys.executable, "-c", STRANGER], capture_output=True, text=True, check=False)
    assert ("False\n", "") == (answer.stdout, answer.stderr)


def test_what_is_not_attached_is_detached_without_a_word(tmp_path: Path) -> None:
    detach(tmp_path)


@ONLY_ROOT
def test_a_disk_holds_its_size_and_nobody_outside_sees_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert "attached\n" == holder.stdout.readline()
        inside = Path(f"/proc/{holder.pid}/root{tmp_path}")
        (inside / "fits").write_bytes(bytes(MIB))
        with pytest.raises(OSError, match="No space left") as full:
            (inside / "more").write_bytes(bytes(2 * MIB))
        assert errno.ENOSPC == full.value.errno
        assert [] == [*tmp_path.iterdir()]
        holder.kill()
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
