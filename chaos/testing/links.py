"""Bad links in memory: the packet rules of a machine, and what TCP counts of a talk over the links that they lead to.

A link acts while its rule is there and its saboteur is at work, as on the real machine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.ports import Exchanged, Ran, Segments
from chaos.testing.programs import FakePrograms

_SEGMENT = 536
_COUNTED: Mapping[str, Mapping[str, Any]] = {
    "lossy": {"resent": 2, "early": 3},
    "garbling": {"resent": 1, "garbled": 2},
    "doubling": {"copied": 1, "again": 2},
    "shuffling": {"reordered": 1, "early": 2},
}


@dataclass
class _Rule:
    words: tuple[str, ...]
    packets: int = 0

    def of(self, option: str) -> str | None:
        """The word after this one."""
        return self.words[self.words.index(option) + 1] if option in self.words else None


class FakeLinks:
    """`iptables` and `readlink` as tools, and the talks of an observer."""

    def __init__(self, programs: FakePrograms) -> None:
        """No rule yet; every process lives in the one network there is."""
        self.rules: list[_Rule] = []
        self._programs = programs
        programs.tools["iptables"] = self._iptables
        programs.tools["readlink"] = lambda words: Ran(0, "net:[4026531840]\n" * (len(words) - 1), "")

    def talk(self, address: str, talk: Exchanged, size: int, rtt_s: float) -> Segments:
        """What TCP counts of a talk that goes well, after all the links on its way."""
        few = max(1, size // _SEGMENT) if size else 0
        seen = Segments(talk, rtt_s, sent=few, received=few)
        for rule, link, given in self._acting(address):
            rule.packets += 2 * few + 3
            seen = _over(seen, link, given, size)
        return seen

    def _acting(self, address: str) -> Iterator[tuple[_Rule, str, Mapping[str, Any]]]:
        port = address.rpartition(":")[2]
        for rule in self.rules:
            for orders in self._programs.at_work("packets"):
                queues = [str(edge["queue"]) for edge in orders["edges"]]
                if port in (rule.of("--dport"), rule.of("--sport")) and rule.of("--queue-num") in queues:
                    yield rule, orders["link"], orders["given"]

    def _iptables(self, words: Sequence[str]) -> Ran:
        command = next(word for word in words if word in ("-S", "-I", "-D"))
        rest = tuple(words[words.index(command) + 1 :])
        if command == "-S":
            return Ran(0, "-P INPUT ACCEPT\n" + "".join(map(_line, self.rules)), "")
        if command == "-I":
            self.rules.insert(0, _Rule(rest))
            return Ran(0, "", "")
        found = [rule for rule in self.rules if rule.words == rest]
        if not found:
            return Ran(1, "", "iptables: Bad rule (does a matching rule exist in that chain?).")
        self.rules.remove(found[0])
        return Ran(0, "", "")


def _line(rule: _Rule) -> str:
    jump = rule.words.index("-j")
    return f"-A {' '.join(rule.words[:jump])} -c {rule.packets} {rule.packets * 60} {' '.join(rule.words[jump:])}\n"


def _over(seen: Segments, link: str, given: Mapping[str, Any], size: int) -> Segments:
    """The talk after one more link, which is met once each way."""
    if link == "slow":
        return dataclasses.replace(seen, rtt_s=(seen.rtt_s or 0.0) + given["delay_s"])
    if link == "narrow":
        took_s = seen.talk.took_s + size / given["rate"]
        return dataclasses.replace(seen, talk=dataclasses.replace(seen.talk, took_s=took_s))
    return dataclasses.replace(seen, **_COUNTED[link])
