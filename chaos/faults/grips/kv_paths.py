"""Faults on the two paths between a prefill engine and those that decode: the side channel, where peers meet, and the
transfer path, where they read KV blocks. Each is an edge of its own, with a listener of the fault proxy before it.

A fault on an edge becomes one on a path when it is told of the path in the target's place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from chaos.inventory import Target
from chaos.settings import setting

FIDELITY = "network, of a simulated KV connector"

Path = Literal["side_channel", "transfer"]


def which_path() -> Path:
    """The setting `path`."""
    doc = "side_channel: where decode engines meet the prefill engine; transfer: where they read its KV blocks"
    chosen: Path = setting(doc, default="transfer")
    return chosen


def without_path(targets: tuple[Target, ...], path: Path) -> tuple[str, ...]:
    """A sentence for each target that has no such path."""
    return tuple(
        f"{t.name}: a {t.role} hands on no KV blocks; choose a target of role prefill (profile embedded-pd)"
        for t in targets
        if path not in t.handles.get("kv_paths", {})
    )


def paths_of(targets: tuple[Target, ...], path: Path) -> tuple[Target, ...]:
    """The path of each as a target of its own: its address, and the edge before it."""
    return tuple(_path_of(target, target.handles["kv_paths"][path], path) for target in targets)


def _path_of(target: Target, handle: Mapping[str, Any], path: Path) -> Target:
    proxy = {"proxy": handle["proxy"]} if "proxy" in handle else {}
    name = f"{target.name}.{path}"
    return dataclasses.replace(target, name=name, address=handle["address"], via=handle["via"], handles=proxy, edges=())
