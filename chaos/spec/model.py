"""An experiment as frozen values: what `chaos.spec` makes of a YAML file and every later stage reads.

The field names and docs here are also the keys and docs of the file format (see `chaos.settings`); nothing describes
the format twice. Faults and measures are held as the protocol says, never as concrete classes: the catalogs are handed
in from outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, get_args, runtime_checkable

from chaos.faults.fault import Fault
from chaos.settings import setting
from chaos.units import Duration, Rate

Profile = Literal["embedded", "embedded-pd"]
PROFILES: tuple[Profile, ...] = get_args(Profile)
"""How the parts of the bundled stack are realised; the first is meant where none is named."""

Unit = Literal["ratio", "duration", "count", "factor", "points"]
"""What a bound of a measure is written in: `99%`, `1.5s`, `0`, `1.1`; points, the difference of two shares, as `2%`."""


class Measure(Protocol):
    """One way to boil a window of evidence down to a number; its fields are its settings, like a fault's.

    `chaos.verdict.measures` holds them. `needs_window` is False for those that span the whole run (recovery_time,
    event); one of these that looks at a window where it is given one says so with `may_have_window`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    unit: ClassVar[Unit]
    needs_window: ClassVar[bool]


def takes_window(measure: Any) -> bool:
    """Whether a measure looks at a window, always or when it is given one."""
    return bool(measure.needs_window or getattr(measure, "may_have_window", False))


@dataclass(frozen=True)
class Misreading:
    """What is wrong with a setting in a language of its own (a query): `at` and `length` are the stretch of the text of
    `key` that is at fault, in characters.
    """

    key: str
    headline: str
    help: str | None
    at: int = 0
    length: int = 1


@runtime_checkable
class Readable(Protocol):
    """A measure with such a setting, which it can read without any evidence."""

    def misread(self) -> Misreading | None:
        """What is wrong; None when nothing is, or when nobody here can tell."""
        ...


def compared_in(measure: Measure | type[Measure]) -> Unit | None:
    """The unit in which a window of this measure is held against a control; None for a measure without `compared`."""
    return getattr(measure, "compared", None)


@dataclass(frozen=True)
class BlastRadius:
    """The most an experiment may harm."""

    roles: tuple[str, ...] = setting("roles that may be harmed")
    duration: Duration = setting("longest that any fault may last")
    targets: int = setting("how many targets may be harmed at the same time", default=1, least=0)


@dataclass(frozen=True)
class Client:
    """How the people behind a load behave. A persona gives defaults; the other keys change them."""

    persona: Literal["patient", "impatient", "retry_happy"] = setting(
        "patient waits 30s and never resends; impatient leaves after 3s; retry_happy resends 3 times at once",
        default="patient",
    )
    timeout: Duration | None = setting("how long a client waits for the whole answer before it gives up", default=None)
    retries: int | None = setting("how often a client sends the same request again", default=None, least=0, most=10)
    backoff: Duration | None = setting("pause before a resend", default=None)


@dataclass(frozen=True)
class Slo:
    """Bounds that make a finished answer late rather than good."""

    ttft: Duration | None = setting("longest time from intended send to first token", default=None)
    e2e: Duration | None = setting("longest time from intended send to last token", default=None)


@dataclass(frozen=True)
class Surge:
    """A stretch in which many more requests are due."""

    times: float = setting("how many times the rate", least=1, most=1000)
    for_: Duration = setting("how long it lasts", key="for")
    at: Duration = setting("start, counted from the end of the baseline", default=Duration(0))


@dataclass(frozen=True)
class Load:
    """Open-loop traffic: arrivals do not wait for answers."""

    name: str = setting("name that hypotheses and guards refer to")
    route: Literal["chat", "rag", "agent", "tools", "embeddings", "ingest"] = setting(
        "front-door route the requests take"
    )
    rate: Rate = setting("mean arrivals")
    model: str | None = setting("model that the requests name; left out when not given", default=None)
    prompts: str = setting(
        "prompt set: a name in fixtures/prompts, each line with its known right answer", default="small-talk"
    )
    arrivals: Literal["constant", "poisson"] = setting("spacing of arrivals", default="poisson")
    surge: Surge | None = setting("a stretch with a multiple of the rate", default=None)
    priority: Literal["interactive", "batch"] = setting(
        "class that the requests name: people who wait, or work that can", default="interactive"
    )
    prompt_words: int | None = setting(
        "length of the prompts in words: a shorter one gets text that asks for nothing before it; default as it is",
        default=None,
        least=1,
        most=100_000,
    )
    marked: bool = setting(
        "give each request a marker of its own, which no other answer may hold (`cross_talk`)", default=False
    )
    stream: bool = setting("ask for a token stream", default=True)
    cache: bool = setting(
        "accept answers that were kept or are under way for others (`x-cache: prefer`)", default=False
    )
    max_tokens: int = setting("longest answer asked for", default=24, least=1, most=4096)
    client: Client = setting("who sends", default=Client())
    slo: Slo = setting("when an answer counts as late", default=Slo())


@dataclass(frozen=True)
class Windows:
    """Lengths of the parts of a run around the faults."""

    baseline: Duration = setting("undisturbed load before the first fault", default=Duration(10))
    recovery: Duration = setting("load after the last revert", default=Duration(10))
    settled: Duration = setting("load after recovery, when all must be as before", default=Duration(5))


@dataclass(frozen=True)
class Selector:
    """Who is harmed. At least one of role, name, node must be given; all that are given must match."""

    role: str | None = setting("part of the stack", default=None)
    name: str | None = setting("one target by name", default=None)
    node: str | None = setting(
        "a GPU node by name, or `any` for one drawn with the seed: all that lives on it", default=None
    )
    count: int | None = setting(
        "how many to draw with the seed; default 1, or the whole node where a node is given", default=None, least=1
    )


@dataclass(frozen=True)
class FaultEntry:
    """One fault on the timeline. The other keys of the entry are the settings of its kind."""

    name: str = setting("name of the fault and of the window in which it is in force")
    kind: str = setting("which fault; `brownout faults` lists them")
    for_: Duration = setting("how long it stays in force", key="for")
    target: Selector | None = setting("who is harmed; only `noop` may leave it out", default=None)
    at: Duration = setting("start, counted from the end of the baseline", default=Duration(0))
    fault: Fault = None  # type: ignore[assignment]  # set by decode from the catalog


@dataclass(frozen=True)
class Guard:
    """Stops the run early, with everything reverted, when users suffer more than agreed."""

    measure: Measure
    over: Duration = setting("length of the sliding window that is looked at", default=Duration(5))
    below: float | None = None
    above: float | None = None
    usual: float | None = None


@dataclass(frozen=True)
class Hypothesis:
    """A falsifiable claim: `measure` over `window` stays within the bound. With a control, the window `against` or the
    load `against_load` beside it, the claim is about the difference.
    """

    name: str
    measure: Measure
    window: str | None = None
    grace: Duration = Duration(0)
    at_least: float | None = None
    at_most: float | None = None
    against: str | None = None
    against_load: str | None = None

    @property
    def compares(self) -> bool:
        """Whether it is about a difference."""
        return self.against is not None or self.against_load is not None

    @property
    def unit(self) -> Unit:
        """What its bound is written in."""
        return (compared_in(self.measure) if self.compares else None) or self.measure.unit


@dataclass(frozen=True)
class Experiment:
    """A checked experiment file. `name` is its path below `experiments/` without the suffix."""

    name: str
    path: str
    text: str
    version: int
    title: str
    why: str
    owner: str
    runbook: str
    tags: tuple[str, ...]
    blast_radius: BlastRadius
    loads: tuple[Load, ...]
    windows: Windows
    faults: tuple[FaultEntry, ...]
    guards: tuple[Guard, ...]
    hypotheses: tuple[Hypothesis, ...]
    lines: dict[str, int]  # data path (`hypotheses.3`, `faults.0.target`) to line number, for later messages
    profile: Profile = PROFILES[0]
