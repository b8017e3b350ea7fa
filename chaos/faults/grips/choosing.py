"""The settings by which a fault on requests chooses them: described once, listed by every such fault."""

from __future__ import annotations

from typing import Any

from chaos.settings import setting
from chaos.units import Ratio


def share_of(what: str) -> Any:
    """The setting `share`: of which requests."""
    return setting(f"share of {what}", default=Ratio(1))


def by_path(more: str = "") -> Any:
    """The setting `path`."""
    return setting(f"only requests whose path begins so; default all{more}", default=None)


def by_model() -> Any:
    """The setting `model`."""
    return setting("only requests whose JSON asks for this model; default all", default=None)


def by_trace() -> Any:
    """The setting `trace`."""
    return setting("only requests of this trace id; default all", default=None)


def by_tool() -> Any:
    """The setting `tool`."""
    return setting("only calls of this tool; default all", default=None)


def matching(path: str | None, model: str | None, trace: str | None) -> dict[str, str | None]:
    """The three as attributes of a toxic."""
    return {"match_path": path, "match_model": model, "match_trace": trace}
