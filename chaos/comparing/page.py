"""A comparison in Markdown: what differs for real first, then each side beside the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_uppercase

from chaos.comparing.differ import Difference, differences
from chaos.comparing.side import Measured, Side
from chaos.report.facts import bite, gone
from chaos.report.markdown import cell, code, table
from chaos.verdict.view import Bound
from chaos.verdict.wording import say_bound

_NOTE = (
    "A difference is real when the intervals of the first and the last side lie apart; where a single run takes part "
    "it must also exceed 10% of the first value, or half a point of a share, because requests of one run share its "
    "noise. Of series the median run is compared, and the share of runs in which the hypothesis held. One observation "
    "a side decides only across its bound. Whether two single runs differ by more than any two runs do, only a series "
    "can tell: `brownout run FILE --repeat N`."
)


def names_of(sides: Sequence[Side]) -> tuple[str, ...]:
    """A, B, C: what the columns are called."""
    return tuple(ascii_uppercase[i] if i < len(ascii_uppercase) else str(i + 1) for i in range(len(sides)))


def to_markdown(sides: Sequence[Side], warnings: Iterable[str]) -> str:
    """The whole page; at least two sides."""
    found = differences(sides[0], sides[-1])
    parts = (
        _head(sides, found, tuple(warnings)),
        _hypotheses(sides, found),
        _felt(sides),
        _faults(sides),
        _around(sides),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(sides: Sequence[Side], found: Sequence[Difference], warnings: Sequence[str]) -> str:
    names = names_of(sides)
    lines = [f"# {cell(sides[0].title)}: {names[-1]} against {names[0]}", "", summary(sides, found), ""]
    lines += [f"- {name}: {code(side.label)}, {_about(side)}" for name, side in zip(names, sides, strict=True)]
    return "\n".join(lines + [f"- **note:** {cell(warning)}" for warning in warnings])


def _about(side: Side) -> str:
    what = f"series of {side.runs} runs" if side.kind == "series" else "run"
    return f"{what}, seed {side.seed}, **{side.verdict}**, exit code {side.exit_code}"


def summary(sides: Sequence[Side], found: Sequence[Difference]) -> str:
    """What is real, in one paragraph."""
    first, *_, last = names_of(sides)
    told = [
        f"{words}: {', '.join(cell(d.name) for d in found if d.change == change)}"
        for change, words in (("worse", "worse"), ("better", "better"), ("other", "changed"))
        if any(d.change == change for d in found)
    ]
    shown = "; ".join(told) if told else "no difference is shown"
    unknown = sum(d.change == "unknown" for d in found)
    rest = f" Not to be told from this evidence: {unknown} of {len(found)}." if unknown else ""
    return f"**{last} against {first}: {shown}.**{rest}"


def _hypotheses(sides: Sequence[Side], found: Sequence[Difference]) -> str:
    rows = [(d.name, _wanted(sides, d.name), *_answers(sides, d.name), f"{d.change}: {d.why}") for d in found]
    head = ("hypothesis", "wanted", *names_of(sides), "last against first")
    return f"## Hypotheses\n\n{table(head, rows)}\n\n{_NOTE}" if rows else ""


def _wanted(sides: Sequence[Side], name: str) -> str:
    asked = next(side.hypotheses[name] for side in sides if name in side.hypotheses)
    return say_bound(Bound(asked.bound.get("at_least"), asked.bound.get("at_most")), asked.unit)


def _answers(sides: Sequence[Side], name: str) -> list[str]:
    return [_answer(side.hypotheses.get(name)) for side in sides]


def _answer(measured: Measured | None) -> str:
    return "-" if measured is None else f"{measured.truth}: {measured.told}"


def _felt(sides: Sequence[Side]) -> str:
    outcomes = dict.fromkeys(name for side in sides for name in side.requests)
    rows = [(name, *(_count(side, name) for side in sides)) for name in outcomes]
    during = dict.fromkeys(name for side in sides for name in side.during)
    rows += [(f"during the fault: {name}", *(side.during.get(name, "-") for side in sides)) for name in during]
    rows = [row for row in rows if set(row[1:]) - {"0", "-"}]
    return f"## What users felt\n\n{table(('requests', *names_of(sides)), rows)}" if rows else ""


def _count(side: Side, name: str) -> str:
    count, planned = side.requests.get(name, 0), side.requests.get("planned", 0)
    return f"{count} ({100 * count / planned:.4g}%)" if count and planned and name != "planned" else str(count)


def _faults(sides: Sequence[Side]) -> str:
    names = dict.fromkeys(fault.name for side in sides for fault in side.faults)
    rows = [
        (f"{name}: {question}", *(_fact(side, name, question) for side in sides))
        for name in names
        for question in ("what", "did it bite?", "put back?")
    ]
    note = "\n\nOf a series: its first run." if any(side.kind == "series" for side in sides) else ""
    return f"## What was done to whom\n\n{table(('fault', *names_of(sides)), rows)}{note}" if rows else ""


def _fact(side: Side, name: str, question: str) -> str:
    proof = next((fault for fault in side.faults if fault.name == name), None)
    if proof is None:
        return "-"
    what = f"{proof.kind} on {', '.join(proof.targets) or 'nothing'}"
    return {"what": what, "did it bite?": bite(proof), "put back?": gone(proof)}[question]


def around_that_differs(sides: Sequence[Side]) -> dict[str, list[str]]:
    """What the sides ran on, where it is not the same."""
    names = dict.fromkeys(name for side in sides for name in side.around)
    told = {name: [side.around.get(name, "unknown") for side in sides] for name in names}
    return {name: values for name, values in told.items() if len(set(values)) > 1}


def _around(sides: Sequence[Side]) -> str:
    rows = [(name, *values) for name, values in around_that_differs(sides).items()]
    body = table(("what", *names_of(sides)), rows) if rows else "Nothing that was recorded."
    return f"## What differs around them\n\n{body}"
