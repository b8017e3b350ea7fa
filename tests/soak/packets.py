"""How true the links of the packet faults are, packet by packet: datagrams with a number and a time over each of them.

Datagrams, because TCP would mend what is broken: the same saboteur, the same kind of rule, in a network of its own.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import select
import socket
import statistics
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from drill import ROOT, Drill
from fidelity import prompt
from matrix import Figure, Found, Matrix, Row, Trial

sys.path.append(str(ROOT))

from chaos.adapters.programs import LocalPrograms
from tests.faults.networks import command, in_network_of_its_own

SIGMAS_MOST = 3
RATE_OFF_MOST = 0.05
DELAY_OFF_MOST_MS = 1.0
DRAWS = 10_000
SINGLE = 500
BATCH = 20
PAUSE_S = 0.004
LAST_S = 1.0
_MARK, _QUEUE = 1 << 20, 20_000
_STAMP = struct.Struct("=IBd")
_AS_TCP = 0x20  # stands where TCP tells the length of its head: here eight bytes, which is that of UDP


@dataclass(frozen=True)
class Arrived:
    """One datagram."""

    number: int
    sent: float
    came: float
    size: int


def over(
    link: str, given: Mapping[str, Any], count: int, size: int, pause_s: float, *, batch: int = BATCH
) -> list[Arrived]:
    """Send so many datagrams over a link, in batches; all that came, in order."""
    found: list[Arrived] = []

    async def main() -> None:
        with TemporaryDirectory() as folder:
            warrant = Path(folder) / "warrant"
            edges = [{"inside": None, "queue": _QUEUE}]
            warrant.write_text(
                json.dumps({"link": link, "given": given, "seed": 1, "mark": _MARK, "edges": edges}), encoding="utf-8"
            )
            ran = await LocalPrograms().sabotage("packets", warrant)
            assert ran.status == 0, ran.errors
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
                ear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
                ear.bind(("127.0.0.1", 0))
                ear.setblocking(False)
                told = f"-p udp --dport {ear.getsockname()[1]} -m mark ! --mark {_MARK}/{_MARK}"
                command(*f"iptables -t mangle -I INPUT {told} -j NFQUEUE --queue-num {_QUEUE} --queue-bypass".split())
                with prompt():
                    found.extend(_sent(ear, count, size, pause_s, batch))
            warrant.unlink()

    in_network_of_its_own(main)
    return found


def _sent(ear: socket.socket, count: int, size: int, pause_s: float, batch: int) -> Iterator[Arrived]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
        mouth.connect(ear.getsockname())
        for begin in range(0, count, batch):
            for number in range(begin, min(begin + batch, count)):
                mouth.send(_STAMP.pack(number, _AS_TCP, time.monotonic()).ljust(size, b"x"))
            yield from _heard(ear, pause_s)
        while last := list(_heard(ear, LAST_S)):
            yield from last


def _heard(ear: socket.socket, within_s: float) -> Iterator[Arrived]:
    """What comes meanwhile."""
    until = time.monotonic() + within_s
    while (left := until - time.monotonic()) > 0 and select.select([ear], [], [], left)[0]:
        with contextlib.suppress(BlockingIOError):  # its checksum was wrong
            data, came = ear.recv(65_536), time.monotonic()
            number, _, sent = _STAMP.unpack_from(data)
            yield Arrived(number, sent, came, len(data))


def delayed(given: float) -> Found:
    """By how much the delay of a datagram is off, beyond what a link costs that does nothing."""
    delay_s = given / 1000
    plain = statistics.median(each.came - each.sent for each in over("clear", {}, SINGLE, 100, 0.005, batch=1))
    came = over("slow", {"delay_s": delay_s, "jitter_s": 0.0}, SINGLE, 100, 0.005, batch=1)
    off_ms = [(each.came - each.sent - delay_s - plain) * 1000 for each in came]
    error_ms, worst = statistics.fmean(map(abs, off_ms)), max(map(abs, off_ms))
    wrong = f"mean error {error_ms:.3f} ms" if error_ms > DELAY_OFF_MOST_MS or len(came) != SINGLE else None
    return Found(
        wrong, {"error_ms": round(error_ms, 4), "worst_ms": round(worst, 3), "plain_ms": round(plain * 1e3, 4)}
    )


def shared(link: str, given: Mapping[str, Any], hit: Callable[[list[Arrived]], int], spread: float = 1.0) -> Found:
    """How far the share that is hit is from what it should be, in standard deviations of so many draws."""
    share = given["share"]
    count = hit(over(link, given, DRAWS, 100, PAUSE_S))
    away = abs(count - DRAWS * share) / (DRAWS * share * (1 - share) * spread) ** 0.5
    wrong = f"{count} of {DRAWS} hit, {away:.1f} sigma from {share:.0%}" if away > SIGMAS_MOST else None
    return Found(wrong, {"sigmas": round(away, 3), "hit": count})


def missing(came: list[Arrived]) -> int:
    """How many never came."""
    return DRAWS - len(came)


def twice(came: list[Arrived]) -> int:
    """How many came once more."""
    return len(came) - len({each.number for each in came})


def overtaken(came: list[Arrived]) -> int:
    """How many came after one that was sent later."""
    highest = itertools.accumulate((each.number for each in came), max)
    return sum(each.number < high for each, high in zip(came, highest, strict=True))


def narrow(rate: float) -> Found:
    """How far the bytes per second are from the rate when twice as many are sent."""
    size = 1000
    pause_s = BATCH * (size + 28) / (2 * rate)
    came = over("narrow", {"rate": rate, "queue": 65_536}, int(2 * rate * 2.0 / size), size, pause_s)
    carried = sum(each.size + 28 for each in came[1:]) / (came[-1].came - came[0].came)  # heads of IP and UDP
    off = abs(carried / rate - 1)
    return Found(f"{carried:.0f} B/s, {off:.1%} off" if off > RATE_OFF_MOST else None, {"rate_off": round(off, 4)})


CASES: Mapping[str, Callable[[], Found]] = {
    **{f"delay/{ms}ms": lambda ms=ms: delayed(ms) for ms in (10, 20, 50, 100)},
    **{
        f"loss/{share:.0%}": lambda share=share: shared("lossy", {"share": share, "burst": 1}, missing)
        for share in (0.01, 0.1, 0.3)
    },
    # In bursts of four fewer draws are independent: by (1 + r) / (1 - r), r being how alike neighbours are.
    "loss/10% in bursts": lambda: shared("lossy", {"share": 0.1, "burst": 4}, missing, spread=_SPREAD),
    "duplicate/10%": lambda: shared("doubling", {"share": 0.1}, twice),
    "corrupt/10%": lambda: shared("garbling", {"share": 0.1}, missing),
    "reorder/10%": lambda: shared("shuffling", {"share": 0.1, "by": 1, "at_most_s": 0.5}, overtaken),
    **{f"rate/{rate // 1000}KB": lambda rate=rate: narrow(rate) for rate in (50_000, 500_000)},
}
_ALIKE = 1 - 1 / 4 - (0.1 / 0.9) / 4
_SPREAD = (1 + _ALIKE) / (1 - _ALIKE)


def carried_out(trial: Trial, drill: Drill) -> Found:
    """One case."""
    del drill
    return CASES[trial.name]()


def figures(rows: Sequence[Row]) -> list[Figure]:
    """The worst of each."""

    def worst(fact: str) -> float | None:
        return max((row[fact] for row in rows if fact in row), default=None)

    return [
        Figure("delay off by", worst("error_ms"), unit=" ms", below=DELAY_OFF_MOST_MS),
        Figure("share off by", worst("sigmas"), unit=" sigma", below=SIGMAS_MOST),
        Figure("rate off by", worst("rate_off"), unit="", below=RATE_OFF_MOST),
    ]


PACKETS = Matrix(
    "packets",
    "packet faults do what they say: delays within 1 ms, shares within three sigma, rates within 5 %",
    lambda: [Trial(name, 1) for name in CASES],
    carried_out,
    figures,
    stack=False,
)
