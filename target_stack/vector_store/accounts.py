"""What must not run as root (PostgreSQL refuses to): an account for it that reaches the binaries."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import stat
import tempfile
from pathlib import Path

from target_stack.process import Account


class NoAccount(Exception):
    """We are root, and there is no unprivileged account to run as."""


def unprivileged(euid: int) -> Account | None:
    """The account for a root's PostgreSQL (`nobody`); None when we are no root. Raises NoAccount."""
    if euid != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise NoAccount("PostgreSQL must not run as root, and this machine has no user 'nobody'") from None
    return Account(entry.pw_uid, entry.pw_gid)


def _may_enter(folder: Path, account: Account) -> bool:
    status = folder.stat()
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def can_reach(folder: Path, account: Account) -> bool:
    """Whether an account may enter a folder through all the folders above it."""
    path = folder.resolve()
    return all(_may_enter(step, account) for step in (path, *path.parents))


def _is_ours_alone(folder: Path) -> bool:
    """Whether nobody but us can have put anything there: a real folder, ours, that no other may write."""
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _copy_with_libraries(source: Path, target: Path) -> None:
    """Copy a folder of a package; a wheel keeps the libraries beside the package and finds them by a relative path."""
    package = source.parent.name
    shutil.copytree(source, target / package / source.name, symlinks=True)
    libraries = source.parent.with_name(f"{package}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name, symlinks=True)
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            # Readable by all, and enterable or executable by all where it was by us.
            path.chmod(path.stat().st_mode & 0o755 | 0o444 | (path.stat().st_mode & 0o100 and 0o111))


def reachable_copy(source: Path, account: Account, below: Path) -> Path:
    """`source` if the account reaches it, else a copy in `below`, made once per source and change. Raises OSError."""
    if can_reach(source, account):
        return source
    stamp = f"{source.resolve()}:{source.stat().st_mtime_ns}"
    copy = below / f"brownout-{source.name}-{hashlib.sha256(stamp.encode()).hexdigest()[:12]}"
    inside = Path(source.parent.name, source.name)
    if _is_ours_alone(copy):
        return copy / inside
    fresh = Path(tempfile.mkdtemp(prefix=f"{copy.name}.", dir=below))
    _copy_with_libraries(source, fresh)
    try:
        return fresh.rename(copy) / inside
    except OSError:
        # Another stack was faster, or a stranger holds the name: then this private copy serves as well.
        if _is_ours_alone(copy):
            shutil.rmtree(fresh)
            return copy / inside
        return fresh / inside
