"""A fault value for a process that has only the lease: kind and undo, no settings."""

from __future__ import annotations

from chaos.faults.fault import Fault


def bare(kind: type[Fault]) -> Fault:
    """A value without settings. `revert` and `confirm_gone` read the undo alone, so it is enough for them."""
    return kind.__new__(kind)
