"""A series in words: the cells and sentences that its page, the terminal and a failing test share."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from chaos.report.plain import plain
from chaos.series.chances import confidence, rarer_than, runs_to_exclude
from chaos.series.order import Entry, Order, Series
from chaos.series.pool import Pooled, Repeated, Tally, pool
from chaos.verdict.view import Bound
from chaos.verdict.wording import say, say_bound, say_found, say_interval

RUN_COLUMNS = ("run", "seed", "verdict", "exit code", "why", "directory")
HYPOTHESIS_COLUMNS = ("hypothesis", "held in", "share of runs", "one run found", "worst", "all requests", "wanted")
_RARE = (0.01, 0.05, 0.1)


def held_in(tally: Tally) -> str:
    """`9 of 10`; runs that decided nothing are told apart: `7 of 8, 2 undecided`."""
    told = f"{tally.upheld} of {tally.decided}"
    return f"{told}, {tally.inconclusive} undecided" if tally.inconclusive else told


def share(tally: Tally) -> str:
    """`90% (65.16% to 97.7%)`, or nothing known."""
    interval = tally.interval()
    if interval is None:
        return "-"
    return f"{say(tally.upheld / tally.decided, 'ratio')} ({say_interval(interval, 'ratio')})"


def sentence(one: Repeated) -> str:
    """One hypothesis in a sentence: `back within 10s in 9 of 10 runs: 90% (65.16% to 97.7%)`."""
    tally = one.tally
    undecided = f" ({tally.inconclusive} undecided)" if tally.inconclusive else ""
    if not tally.decided:
        return f"no run decided it{undecided}"
    bound = Bound(one.bound.get("at_least"), one.bound.get("at_most"))
    claim = "held"
    if bound.at_most is not None and bound.at_least is None and one.measure in _ARRIVES:
        claim = f"{_ARRIVES[one.measure]} within {say(bound.at_most, one.unit)}"
    return f"{claim} in {tally.upheld} of {tally.decided} runs{undecided}: {share(tally)}"


_ARRIVES = {"recovery_time": "back", "event": "seen"}
"""Measures of how long something takes, and what has happened then."""


def typical(one: Repeated) -> str:
    """`174ms (152ms to 226ms)`: the median run, and where the true median lies."""
    if one.typical is None or one.interval is None:
        return "-"
    low, high = one.interval
    if low == high or min(one.values) == max(one.values):
        return say(one.typical, one.unit)
    if len(one.values) < _FEWEST_FOR_MEDIAN:
        return f"{say(min(one.values), one.unit)} to {say(max(one.values), one.unit)}"
    return f"{say(one.typical, one.unit)} ({say(low, one.unit)} to {say(high, one.unit)})"


_FEWEST_FOR_MEDIAN = 5
"""With fewer runs no two of them hold the true median between them with 95 % on each side; the range is told."""


def together(one: Repeated) -> str:
    """`99.2% (98.7% to 99.5%), n 3000`."""
    pooled = one.together
    return "-" if pooled is None else f"{say_found(pooled.value, pooled.interval, one.unit)}, n {pooled.n}"


def hypothesis_row(one: Repeated) -> tuple[str, ...]:
    """The cells under HYPOTHESIS_COLUMNS."""
    bound = Bound(one.bound.get("at_least"), one.bound.get("at_most"))
    return (
        one.name,
        held_in(one.tally),
        share(one.tally),
        typical(one),
        say(one.worst, one.unit),
        together(one),
        say_bound(bound, one.unit),
    )


def run_row(entry: Entry) -> tuple[str, ...]:
    """The cells under RUN_COLUMNS."""
    verdict = entry.verdict
    where = entry.folder if entry.whole else f"{entry.folder} (verdict.json only)"
    return (str(entry.number), str(entry.seed), verdict.verdict, str(verdict.exit_code), verdict.why, where)


def how_rare(tally: Tally) -> Iterator[str]:
    """What so many runs without a refuted one say about how rare failures are; nothing when one was refuted."""
    runs = tally.decided
    if tally.refuted or not runs:
        return
    decided = f"{runs} decided run{'s' if runs > 1 else ''}"
    excluded = f"a failure in more than {_percent(rarer_than(runs))} of runs is excluded with 95% confidence"
    yield f"After {decided} without a refuted one, {excluded}."
    for rate in _RARE:
        known = f"excluded with {_percent(confidence(runs, rate))} confidence"
        yield f"A failure in more than {rate:.0%} of runs: {known}; 95% takes {runs_to_exclude(rate)} runs."


def _percent(share: float) -> str:
    return f"{share * 100:.3g}%"


def run_alone(order: Order, entry: Entry) -> str:
    """The command that makes one run of the series again."""
    return shlex.join(["brownout", "run", order.path, *_stack(order), "--seed", str(entry.seed)])


def run_again(order: Order) -> str:
    """The command that makes the series again."""
    times = ["--until-refuted" if order.hunt else "--repeat", str(order.most)]
    return shlex.join(["brownout", "run", order.path, *_stack(order), "--seed", str(order.seed), *times])


def _stack(order: Order) -> list[str]:
    words = ["--profile", order.profile] if order.profile else []
    words += [word for weakness in order.weaknesses for word in ("--weakness", weakness)]
    return words + [word for option in order.set_ for word in ("--set", option)]


def size(series: Series) -> str:
    """`10 runs`, `3 of 10 runs`, `a hunt of 4 runs`."""
    done, most = len(series.entries), series.order.most
    if series.order.hunt:
        return f"a hunt of {done} run{'' if done == 1 else 's'}, at most {most}"
    return f"{most} runs" if done == most else f"{done} of {most} runs"


def block(series: Series, pooled: Pooled, page: str | None = None) -> str:
    """The answer for a terminal. No trailing newline."""
    lines = [f"{pooled.verdict.upper()}  {plain(series.order.title)}: {size(series)}", f"  {plain(pooled.why)}"]
    width = max((len(one.name) for one in pooled.hypotheses), default=0)
    lines += [f"  {plain(one.name):<{width}}  {sentence(one)}" for one in pooled.hypotheses]
    lines += [f"  to settle: {pooled.to_settle}"] if pooled.to_settle else []
    if first := series.first_refuted:
        lines.append(f"  run {first.number} again, alone: {plain(run_alone(series.order, first))}")
    lines += [f"  series: {plain(page)}"] if page else []
    return "\n".join(lines)


def run_line(series: Series, entry: Entry) -> str:
    """One run as it ends: `run 3 of 10  upheld        seed 1763  all 8 hypotheses hold`."""
    verdict, digits = entry.verdict, len(str(series.order.most))
    number = f"run {entry.number:>{digits}} of {series.order.most}"
    return f"{number}  {verdict.verdict:<12}  seed {entry.seed}  {plain(verdict.why)}"


def one_line(series: Series) -> str:
    """`upheld        gpu/node_loss  10 upheld  (exit 0)`, in line with those of single runs."""
    pooled = pool(series)
    tally = pooled.tally
    counts = (("upheld", tally.upheld), ("refuted", tally.refuted), ("inconclusive", tally.inconclusive))
    told = ", ".join(f"{count} {truth}" for truth, count in counts if count) or "no run"
    return f"{pooled.verdict:<12}  {plain(series.order.experiment)}  runs: {told}  (exit {pooled.exit_code})"
