"""`make weaknesses`: every planted mistake is caught by the claim that should catch it; the hardened stack makes none.

    python tests/soak/weaknesses.py [--seed N] [--to FILE] [--readme FILE] [--keep DIR]

Writes docs/weaknesses.md and the table of the README. Every run is live. Resumable: an experiment whose verdict lies in
DIR is not run again. The exit code is 1 when a weakness is not caught, or when the hardened stack is not upheld by
every experiment.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "system"), str(HERE.parent / "spec")]

from caught import CATCHES, EXPERIMENTS, Catch, stale, table, with_table
from drill import ROOT, Drill
from judging import claim_of, is_caught, not_upheld, run_verdict, told
from matrix import be_interruptible, bring_up, own_place

Verdict = Mapping[str, Any]

_PAGE = """\
# Weaknesses

Mistakes that can be planted in the bundled stack, and the experiment that catches each. `make weaknesses` runs all this
and writes this page: once with each mistake planted, then every experiment on the hardened stack, which must be upheld.

| weakness | what it is | experiment | hypothesis that catches it | bound | hardened | planted |
| --- | --- | --- | --- | --- | --- | --- |
{caught}

| experiment on the hardened stack | verdict |
| --- | --- |
{hardened}
"""


@dataclass(frozen=True)
class Shown:
    """One run and what is wrong with its outcome (None: as it should be)."""

    verdict: Verdict
    wrong: str | None


def known_weaknesses(drill: Drill) -> dict[str, str]:
    """Name to summary, from the command line, so that a new one without a catch cannot be overlooked."""
    found = json.loads(drill.call("weaknesses", "--json").stdout)["weaknesses"]
    return {weakness["name"]: weakness["summary"] for weakness in found}


@dataclass(frozen=True)
class Kept:
    """The verdicts of a seed that are there already, one file each."""

    folder: Path
    drill: Drill
    seed: int

    def verdict(self, experiment: str, *weakness: str) -> tuple[int, Verdict]:
        """Exit code and verdict of an experiment, run now unless it was before."""
        name = "-".join([experiment.replace("/", "_"), *weakness, str(self.seed)])
        path = self.folder / f"{name}.json"
        if path.exists():
            record = json.loads(path.read_text())
            return record["code"], record["verdict"]
        planted = [word for name in weakness for word in ("--weakness", name)]
        file = EXPERIMENTS / f"{experiment}.yaml"
        code, verdict = run_verdict(self.drill, file, self.seed, self.drill.runs, *planted)
        path.write_text(json.dumps({"code": code, "verdict": verdict}))
        return code, verdict


def run_planted(kept: Kept) -> dict[Catch, Shown]:
    """Run the experiment of every catch on a stack with its weakness."""
    shown: dict[Catch, Shown] = {}
    for catch in CATCHES:
        code, verdict = kept.verdict(catch.experiment, catch.weakness)
        claim = told(claim_of(verdict, catch))
        shown[catch] = Shown(verdict, None if is_caught(code, verdict, catch) else f"exit code {code}; {claim}")
        say(f"planted   {catch.weakness} in {catch.experiment}: {shown[catch].wrong or claim}")
    return shown


def run_hardened(kept: Kept) -> dict[str, Shown]:
    """Run every experiment on one stack without weaknesses."""
    bring_up(kept.drill)
    shown: dict[str, Shown] = {}
    for file in sorted(path for path in EXPERIMENTS.rglob("*.yaml") if "gamedays" not in path.parts):
        name = file.relative_to(EXPERIMENTS).with_suffix("").as_posix()
        code, verdict = kept.verdict(name)
        shown[name] = Shown(verdict, not_upheld(code, verdict))
        say(f"hardened  {name}: {shown[name].wrong or 'upheld'}")
    return shown


def page(summaries: Mapping[str, str], planted: Mapping[Catch, Shown], hardened: Mapping[str, Shown]) -> str:
    """docs/weaknesses.md."""
    rows = [
        _row(catch, summaries[catch.weakness], shown, hardened[catch.experiment]) for catch, shown in planted.items()
    ]
    verdicts = [f"| {name} | {shown.verdict['verdict']} |" for name, shown in hardened.items()]
    return _PAGE.format(caught="\n".join(rows), hardened="\n".join(verdicts))


def _row(catch: Catch, summary: str, planted: Shown, hardened: Shown) -> str:
    weak, strong = claim_of(planted.verdict, catch), claim_of(hardened.verdict, catch)
    bound = ", ".join(f"{word.replace('_', ' ')} {_quantity(value, weak)}" for word, value in weak["bound"].items())
    cells = (f"`{catch.weakness}`", summary, catch.experiment, catch.hypothesis, bound, _value(strong), _value(weak))
    return f"| {' | '.join(cells)} |"


def _value(hypothesis: Mapping[str, Any]) -> str:
    """What was found; what never came is told by how long was waited for it."""
    if hypothesis["value"] is not None:
        return f"{hypothesis['verdict']}: {_quantity(hypothesis['value'], hypothesis)}"
    low = (hypothesis["interval"] or (None,))[0]
    waited = "" if low is None else f" in {_quantity(low, hypothesis)}"
    return f"{hypothesis['verdict']}: never{waited}"


def _quantity(value: float, hypothesis: Mapping[str, Any]) -> str:
    if hypothesis["unit"] == "ratio":
        return f"{100 * value:.3g}%"
    return f"{value:.3g}s" if hypothesis["unit"] == "duration" else f"{value:.3g}"


def troubles(planted: Mapping[Catch, Shown], hardened: Mapping[str, Shown]) -> list[str]:
    """Everything that did not come out as it should."""
    return [
        *(f"{c.weakness} is not caught by {c.experiment}: {s.wrong}" for c, s in planted.items() if s.wrong),
        *(f"the hardened stack is not upheld by {name}: {s.wrong}" for name, s in hardened.items() if s.wrong),
    ]


def outcome(planted: Mapping[Catch, Shown], hardened: Mapping[str, Shown]) -> str:
    """How many came out as they should, in one sentence."""
    caught, upheld = (sum(shown.wrong is None for shown in each) for each in (planted.values(), hardened.values()))
    return (
        f"{caught} of {len(planted)} planted weaknesses are caught by the claim that should, and {upheld} of "
        f"{len(hardened)} experiments are upheld on the hardened stack."
    )


def say(text: str) -> None:
    """To whoever waits."""
    print(text, flush=True)  # noqa: T201  the command's own output


def main(arguments: Iterable[str]) -> int:
    """Run, write the page, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "weaknesses.md", metavar="FILE")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md", metavar="FILE")
    parser.add_argument("--keep", type=Path, default=ROOT / "soak" / "weaknesses", metavar="DIR")
    options = parser.parse_args(list(arguments))
    options.keep.mkdir(parents=True, exist_ok=True)
    be_interruptible()
    with own_place() as drill:
        summaries = known_weaknesses(drill)
        if old := stale(summaries):
            say("\n".join(f"tests/soak/caught.py: {why}" for why in old))
            return 1
        kept = Kept(options.keep, drill, options.seed)
        planted, hardened = run_planted(kept), run_hardened(kept)
    text = page(summaries, planted, hardened)
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.write_text(text)
    options.readme.write_text(with_table(options.readme.read_text(), table(outcome(planted, hardened))))
    wrong = troubles(planted, hardened)
    say("\n".join([text, *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command carries on from here")
