"""`make soak`: the long matrices, each resumable, each with figures against bars.

    python tests/soak/soak.py [NAME...] [--list] [--trials N] [--to DIR]

Results are JSON lines in soak/<name>.jsonl, one a trial; what is recorded is not run again, so delete a line (or the
file) to repeat it. The exit code is 1 when a bar is missed, also when a matrix is not complete.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "system"), str(HERE.parent / "spec")]

from agent import AGENT
from breaking import SIGNALS
from clone import CLONE
from drill import ROOT
from early_stops import EARLY_STOPS
from edges import ABORT
from fidelity import FIDELITY
from judging import CONTROL, WEAKNESSES, injection, missions
from kills import KILLS, KILLS_DISAGGREGATED
from matrix import Ledger, Matrix, Score, be_interruptible, carry_on, own_place, score
from noise_pairs import PAIRED_NOISE
from packets import PACKETS
from policies import POLICIES
from quick import CHECK_SPEED, MUTATIONS, PLAN_BYTES, READY
from tamper import TAMPER
from tipping import BOUNDARY, METASTABLE, TIPPING
from tools import TOOLS
from virtual import AMPLIFICATION, ROTATION


def matrices(folder: Path) -> tuple[Matrix, ...]:
    """All of them, the quick ones first. `folder` holds what is stored."""
    quick = (AMPLIFICATION, ROTATION, POLICIES, PAIRED_NOISE, EARLY_STOPS, MUTATIONS, TAMPER)
    quick = (*quick, CHECK_SPEED, READY, PLAN_BYTES)
    theory = (METASTABLE, BOUNDARY, TIPPING)
    long = (
        SIGNALS,
        KILLS,
        KILLS_DISAGGREGATED,
        CONTROL,
        missions(folder / "runs"),
        injection(folder / "runs"),
        WEAKNESSES,
    )
    return (*quick, *theory, FIDELITY, PACKETS, ABORT, TOOLS, AGENT, CLONE, *long)


def table(scores: Sequence[Score]) -> str:
    """One line a matrix, and below it every failure with its reason."""
    lines = [f"{'matrix':<12} {'trials':>9} {'passed':>7}  {'':<7} figures"]
    for each in scores:
        passed = len(each.rows) - len(each.failed)
        trials, said = f"{len(each.rows)}/{each.planned}", "met" if each.met else "MISSED"
        figures = ", ".join(map(str, each.figures)) or "-"
        lines.append(f"{each.name:<12} {trials:>9} {passed:>7}  {said:<7} {figures}{_commits(each)}")
        lines += [f"    {row['trial']} (seed {row['seed']}): {_brief(row['why'])}" for row in each.failed]
    return "\n".join(lines)


def _brief(why: str) -> str:
    """A reason on one line; the ledger has it whole."""
    line = " ".join(why.split())
    return line if len(line) <= 400 else f"{line[:80]} ... {line[-300:]}"


def _commits(each: Score) -> str:
    """A figure over several versions of the code must say so."""
    commits = sorted({str(row["commit"])[:10] for row in each.rows})
    return f"  [of {len(commits)} commits: {', '.join(commits)}]" if len(commits) > 1 else ""


def shortened(matrix: Matrix, count: int | None) -> Matrix:
    """The first `count` trials of a matrix, to try it out."""
    if count is None:
        return matrix
    return dataclasses.replace(matrix, trials=lambda: itertools.islice(iter(matrix.trials()), count))


def say(text: str) -> None:
    """To whoever waits."""
    print(text, flush=True)  # noqa: T201  the command's own output


def main(arguments: Iterable[str]) -> int:
    """Carry on with the named matrices, or with all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="matrices, also separated by commas; default all")
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument("--trials", type=int, metavar="N", help="only the first N trials of each")
    parser.add_argument("--to", type=Path, default=ROOT / "soak", metavar="DIR", help="where results are kept")
    options = parser.parse_args(list(arguments))
    known = {matrix.name: shortened(matrix, options.trials) for matrix in matrices(options.to)}
    names = [name for argument in options.names for name in argument.split(",") if name] or list(known)
    if strange := [name for name in names if name not in known]:
        parser.error(f"no matrix is called {strange[0]}; there are: {', '.join(known)}")
    if options.list:
        say("\n".join(f"{matrix.name:<12} {matrix.promise}" for matrix in known.values()))
        return 0
    return soak([known[name] for name in names], options.to)


def soak(chosen: Sequence[Matrix], folder: Path) -> int:
    """One matrix after the other; what was done before an interrupt is kept and shown."""
    be_interruptible()
    ledgers = {matrix.name: Ledger(folder / f"{matrix.name}.jsonl") for matrix in chosen}
    try:
        for matrix in chosen:
            carry_on(matrix, ledgers[matrix.name], say, own_place)
    except KeyboardInterrupt:
        say("interrupted; the same command carries on from here")
    scores = [score(matrix, ledgers[matrix.name]) for matrix in chosen]
    say(table(scores))
    return 0 if all(each.met for each in scores) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
