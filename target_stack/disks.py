"""Disks of limited size for parts that keep data, so that a full one harms the part and nobody else.

Each is a tmpfs in a mount namespace of the stack's own (mount_namespaces(7)): nobody else on the machine sees it, and
the kernel takes it away with the last process of the stack, however that ends. From outside its files are at
/proc/PID/root. It takes root; without, parts keep their data in ordinary folders.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from target_stack.process import Account

_CLONE_NEWNS = 0x00020000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_SLAVE = 0x2, 0x4, 0x4000, 0x80000
_MNT_DETACH = 0x2
MIB = 1 << 20


def _mount(source: str, target: Path | str, kind: str | None, flags: int, options: str = "") -> bool:
    """mount(2); whether it was done."""
    libc = ctypes.CDLL(None, use_errno=True)
    words = (source.encode(), os.fsencode(target), kind.encode() if kind else None)
    return bool(libc.mount(*words, ctypes.c_ulong(flags), options.encode()) == 0)


def separate() -> bool:
    """Give this process, and whom it forks from now on, a mount namespace of their own; False when that is not allowed.

    Mounts of the machine go on to appear in it; those made in it appear nowhere else.
    """
    if os.geteuid() != 0:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.unshare(_CLONE_NEWNS) == 0 and _mount("none", "/", None, _MS_REC | _MS_SLAVE)


def attach(folder: Path, size_mib: int, account: Account | None) -> None:
    """Put an empty disk of this size over a folder; it belongs to the account. Raises OSError."""
    owner = account or Account(os.geteuid(), os.getegid())
    options = f"size={size_mib}m,mode=700,uid={owner.uid},gid={owner.gid}"
    if not _mount("brownout", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, options):
        raise OSError(ctypes.get_errno(), "no disk of limited size could be mounted", str(folder))


def detach(folder: Path) -> None:
    """Take the disk away; one that is not there is fine."""
    ctypes.CDLL(None).umount2(os.fsencode(folder), _MNT_DETACH)
