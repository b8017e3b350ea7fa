"""Rules that hand the packets of one port to a packet queue, in the network where its target lives.

    iptables -t mangle -I INPUT -p tcp -d 127.0.0.1 --dport 41001 -m mark ! --mark BIT/BIT -m comment --comment MARK
             -j NFQUEUE --queue-num 7 --queue-bypass

Who reads the queue gives each packet back with its bit set, and the packet goes through the rules again: so several
faults can act on one port. While nobody reads the queue the rule lets everything pass. A rule is found by our mark.
"""

from __future__ import annotations

import re
import shlex
import signal as signals
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from chaos.faults.fault import CannotInject, RevertFailed
from chaos.ports import Host, Ran

Way = Literal["both", "downstream", "upstream"]
PLACES = tuple(range(20, 28))
"""Bits of the packet mark that are ours: eight faults can act in one network at the same time, each with one of them.
The kernel gives a queue to one reader alone, and so decides who has which.
"""

_TABLE = ("-w", "2", "-t", "mangle")
_DYING_S, _LOOK_EVERY_S = 0.5, 0.01
_OURS = re.compile(r"--mark 0x([0-9a-f]+)/0x\1 .*--comment \"?brownout-")
_COUNT = re.compile(r" -c (\d+) \d+")


@dataclass(frozen=True)
class Edge:
    """The port of one target.

    `address` is its own in the network where it lives: `namespace` (an inode number), or ours when that is None.
    `process` lived there when the edge was found. `number` tells the edges of one fault apart.
    """

    name: str
    number: int
    address: str
    process: int
    namespace: str | None

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Back from `undo`."""
        return cls(**record)

    def to_json(self) -> dict[str, Any]:
        """As it stands in `undo`."""
        return asdict(self)

    @property
    def tool(self) -> str:
        """Each version of IP has its own."""
        return "ip6tables" if self.address.startswith("[") else "iptables"

    def queue(self, place: int) -> int:
        """The queue for its packets, for the fault that has this bit."""
        return place * 1000 + self.number

    def comment(self, mark: str) -> str:
        """By which its rules are known, for the fault with this mark."""
        return f"{mark}.{self.number}"


async def edge_to(name: str, number: int, address: str, process: int, host: Host) -> Edge:
    """The edge in the network of this process. Raises CannotInject."""
    ran = await host.programs.look(["readlink", f"/proc/{process}/ns/net", "/proc/self/ns/net"])
    found = re.findall(r"\[(\d+)\]", ran.output)
    if len(found) != 2:
        raise CannotInject(f"{name}: the network of its process {process} cannot be seen: {_why(ran)}")
    return Edge(name, number, address, process, found[0] if found[0] != found[1] else None)


async def free_places(edges: Iterable[Edge], host: Host) -> list[int]:
    """Those that no rule of ours uses in the networks of these edges. Raises CannotInject."""
    try:
        listed = [rule for edge in edges for rule in await _listed(edge, host) or ()]
    except RevertFailed as failure:
        raise CannotInject(str(failure)) from None
    taken = {int(bit, 16) for rule in listed for bit in _OURS.findall(rule)}
    return [place for place in PLACES if 1 << place not in taken]


async def put(edge: Edge, way: Way, place: int, mark: str, host: Host) -> None:
    """Begin to hand over packets. Raises CannotInject."""
    for rule in _rules(edge, way, place, edge.comment(mark)):
        ran = await _in_network_of(edge, (*_TABLE, "-I", *rule), host)
        if ran is None or ran.status != 0:
            raise CannotInject(f"{edge.name}: no rule for its packets: {_why(ran)}")


async def packets_counted(edge: Edge, mark: str, host: Host) -> int | None:
    """How many packets our rules have handed over; None when there is no such rule."""
    found = [rule for rule in await _listed(edge, host) or () if edge.comment(mark) in shlex.split(rule)]
    return sum(int(count) for rule in found for count in _COUNT.findall(rule)) if found else None


async def other_marks(edge: Edge, mark: str, host: Host) -> tuple[str, ...]:
    """Marks of other faults whose rules act on the same port."""
    port = edge.address.rpartition(":")[2]
    words = [shlex.split(rule) for rule in await _listed(edge, host) or () if _OURS.search(rule)]
    marks = {each[each.index("--comment") + 1].rpartition(".")[0] for each in words if port in each}
    return tuple(sorted(marks - {mark}))


async def take_away(edge: Edge, mark: str, host: Host) -> None:
    """Remove our rules. Idempotent. Raises RevertFailed."""
    await _stop_writers(edge.comment(mark), host)
    for rule in await _listed(edge, host) or ():
        words = shlex.split(_COUNT.sub("", rule))
        if edge.comment(mark) not in words:
            continue
        ran = await _in_network_of(edge, (*_TABLE, "-D", *words[1:]), host)
        if ran is not None and ran.status != 0:
            by_hand = shlex.join([edge.tool, "-t", "mangle", "-D", *words[1:]])
            raise RevertFailed(f"{edge.name}: a rule is left: {_why(ran)}; by hand: sudo {by_hand}")


def _rules(edge: Edge, way: Way, place: int, comment: str) -> Iterator[tuple[str, ...]]:
    """On the way into the target's socket, and on the way out of its network."""
    host, _, port = edge.address.rpartition(":")
    been = f"{1 << place:#x}/{1 << place:#x}"
    told = ("-m", "mark", "!", "--mark", been, "-m", "comment", "--comment", comment)
    queued = ("-j", "NFQUEUE", "--queue-num", str(edge.queue(place)), "--queue-bypass")
    if way != "downstream":
        yield ("INPUT", "-p", "tcp", "-d", host.strip("[]"), "--dport", port, *told, *queued)
    if way != "upstream":
        yield ("POSTROUTING", "-p", "tcp", "-s", host.strip("[]"), "--sport", port, *told, *queued)


async def _stop_writers(comment: str, host: Host) -> None:
    """A rule that is still being written by a harness that is dead would come after we have looked."""
    writers = host.processes.with_argument(comment)
    for process in writers:
        host.processes.signal(process, signals.SIGKILL)
    give_up = host.clock.now() + _DYING_S
    while any(host.processes.state(each) for each in writers) and host.clock.now() < give_up:
        await host.clock.sleep_until(host.clock.now() + _LOOK_EVERY_S)


async def _listed(edge: Edge, host: Host) -> list[str] | None:
    """All rules of the table with their counts; None when the network is gone. Raises RevertFailed."""
    entry = await _entry(edge, host)
    if entry is None:
        return None
    ran = await host.programs.look([*entry, edge.tool, *_TABLE, "-v", "-S"])
    if ran.status != 0:
        raise RevertFailed(f"{edge.name}: its rules cannot be read: {_why(ran)}; by hand: sudo {edge.tool}-save")
    return [line for line in ran.output.splitlines() if line.startswith("-A ")]


async def _in_network_of(edge: Edge, words: Sequence[str], host: Host) -> Ran | None:
    entry = await _entry(edge, host)
    return None if entry is None else await host.programs.run([*entry, edge.tool, *words])


async def _entry(edge: Edge, host: Host) -> tuple[str, ...] | None:
    """How a command gets into the edge's network: through any process that lives there; None when none does any more,
    for then the network is gone with its rules.
    """
    if edge.namespace is None:
        return ()
    ran = await host.programs.look(["lsns", "--type", "net", "--noheadings", "--output", "NS,PID"])
    inside = [pid for namespace, pid in re.findall(r"(\d+) +(\d+)", ran.output) if namespace == edge.namespace]
    return ("nsenter", "--target", inside[0], "--net") if inside else None


def _why(ran: Ran | None) -> str:
    return "its network is gone" if ran is None else ran.errors.strip() or f"exit status {ran.status}"
