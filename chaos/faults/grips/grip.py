"""One target as a fault holds it: who it was when it was prepared, and the handles by which it is harmed and restored.

A grip is taken in `prepare`, travels through `undo` as JSON, and is all that confirm and revert look at, so that they
work in a process which has never seen the inventory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from chaos.faults.fault import CannotInject, Undo
from chaos.faults.grips import supervisor
from chaos.faults.grips.proxy import Proxy
from chaos.inventory import Edge, Target
from chaos.ports import Host, Processes, ProcessId, Wire

CONNECT_S = 0.5
"""Longest wait for a loopback connect; a listener that needs longer serves nobody."""
ANSWER_S = 1.0
"""Longest wait for the smallest answer."""


@dataclass(frozen=True)
class Grip:
    """`processes` are the ones that the fault harms, parents first."""

    name: str
    address: str
    via: str | None
    wire: Wire
    supervisor: str | None
    proxy: Proxy | None
    processes: tuple[ProcessId, ...] = ()

    @classmethod
    def of(cls, target: Target, processes: tuple[ProcessId, ...] = ()) -> Self:
        """The grip on a target of the inventory."""
        handle = target.handles.get("proxy")
        return cls(
            name=target.name,
            address=target.address,
            via=target.via,
            wire=cast("Wire", target.wire),
            supervisor=target.handles.get("supervisor"),
            proxy=Proxy.of(handle) if handle else None,
            processes=processes,
        )

    @classmethod
    def on(cls, edge: Edge, target: Target) -> Self:
        """The grip on one edge, given a target at one end of it."""
        return cls(
            name=edge.target,
            address=edge.address,
            via=edge.via,
            wire=cast("Wire", edge.wire),
            supervisor=target.handles.get("supervisor"),
            proxy=Proxy.of({**target.handles["proxy"], "name": edge.proxy}),
        )

    def to_json(self) -> dict[str, Any]:
        """As it stands in `undo`."""
        return {
            "name": self.name,
            "address": self.address,
            "via": self.via,
            "wire": self.wire,
            "supervisor": self.supervisor,
            "proxy": self.proxy.to_json() if self.proxy else None,
            "processes": [[process.pid, process.start_ticks] for process in self.processes],
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Back from `undo`."""
        return cls(
            name=record["name"],
            address=record["address"],
            via=record["via"],
            wire=record["wire"],
            supervisor=record["supervisor"],
            proxy=Proxy.of(record["proxy"]) if record["proxy"] else None,
            processes=tuple(ProcessId(pid, ticks) for pid, ticks in record["processes"]),
        )


def grips_in(undo: Undo) -> tuple[Grip, ...]:
    """The grips that `prepare` stored under `targets`."""
    return tuple(Grip.from_json(record) for record in undo["targets"])


def on_edges(targets: Iterable[Target], caller: str | None = None) -> tuple[Grip, ...]:
    """Grips on all edges of the targets, or on those of one role of callers."""
    return tuple(
        grip
        for target in targets
        for grip in (
            (Grip.on(edge, target) for edge in target.edges if caller in (None, edge.caller))
            if target.edges
            else (Grip.of(target),)
        )
    )


async def listed_processes(target: Target, host: Host) -> tuple[ProcessId, ...]:
    """The target's own processes as they are now, parent first. Raises CannotInject when one is dead.

    The supervisor knows better than the inventory, which was read before earlier faults of the run restarted some.
    """
    socket = target.handles.get("supervisor")
    record = await supervisor.look(socket, target.name, host) if socket else None
    pids = tuple(record["pids"]) if record else target.pids
    found = tuple(host.processes.identify(pid) for pid in pids)
    dead = [str(pid) for pid, process in zip(pids, found, strict=True) if process is None]
    if dead or not found:
        what = f"process {', '.join(dead)} is gone" if dead else "it has no live process"
        raise CannotInject(
            f"{target.name} is dead already: {what}; start it or wait until `brownout status` shows it ready"
        )
    return tuple(process for process in found if process)


Part = Literal["core", "worker"]
"""A process of a model server that can be harmed alone: the one that schedules, the one that computes."""


async def part_process(target: Target, part: Part, host: Host) -> ProcessId:
    """This one process as it is now. Raises CannotInject when it is dead.

    A stack that names no parts has the core last in its list.
    """
    listed = await listed_processes(target, host)
    socket = target.handles.get("supervisor")
    record = await supervisor.look(socket, target.name, host) if socket else None
    pid = (record.get("parts") or {} if record else target.parts).get(part)
    found = next((process for process in listed if process.pid == pid), listed[-1] if part == "core" else None)
    if found is None:
        raise CannotInject(f"{target.name} is dead already: its {part} is gone; wait until `brownout status` shows it")
    return found


def without_part(targets: tuple[Target, ...], part: str) -> tuple[str, ...]:
    """A sentence for each target that names no such process."""
    return tuple(
        f"{t.name}: the inventory names none of its processes as its {part}; choose an engine with a KV connector"
        for t in targets
        if part == "worker" and part not in t.parts
    )


def without_proxy(targets: tuple[Target, ...]) -> tuple[str, ...]:
    """Why edges cannot be harmed: a sentence for each target that no fault proxy stands before."""
    return tuple(
        f"{t.name}: no fault proxy stands before it (`via` and the handle `proxy` are missing in the inventory); "
        "route its callers through one"
        for t in targets
        if not t.via or not t.handles.get("proxy")
    )


def without_caller(targets: tuple[Target, ...], caller: str | None) -> tuple[str, ...]:
    """Why the edges of one role of callers cannot be harmed: a sentence for each target that it does not call."""
    return tuple(
        f"{t.name}: nobody of role {caller} has an edge to it; its callers are {_callers(t)}"
        for t in targets
        if caller is not None and all(edge.caller != caller for edge in t.edges)
    )


def _callers(target: Target) -> str:
    return ", ".join(edge.caller for edge in target.edges) or "not told apart in the inventory"


async def must_answer(target: Target | Grip, host: Host) -> None:
    """Raises CannotInject when the target does not accept connections: nothing about its edge could be proved then."""
    result = await host.network.connect(target.address, CONNECT_S)
    if result != "accepted":
        raise CannotInject(
            f"{target.name} is dead already: a connect to {target.address} ended {result}; "
            "start it or wait until `brownout status` shows it ready"
        )


def family(roots: tuple[ProcessId, ...], processes: Processes) -> tuple[ProcessId, ...]:
    """The processes and all their live descendants, parents first, each once."""
    found = dict.fromkeys(roots)
    waiting = list(roots)
    while waiting:
        new = [child for child in processes.children(waiting.pop()) if child not in found]
        found.update(dict.fromkeys(new))
        waiting.extend(new)
    return tuple(found)


def alive(wanted: tuple[ProcessId, ...], processes: Processes) -> tuple[ProcessId, ...]:
    """Those that still exist."""
    return tuple(process for process in wanted if processes.state(process) is not None)


def numbers(processes: tuple[ProcessId, ...]) -> str:
    """Their numbers, for a message."""
    return ", ".join(str(process.pid) for process in processes)
