"""Random damage to good files: whatever a file looks like, parsing it gives an experiment or diagnostics, never a
traceback.

`python tests/spec/mutations.py 2000` runs many and prints its figures; the test runs a slice.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from chaos.spec.catalog import Catalog
from chaos.spec.diagnostic import ordered
from chaos.spec.model import Experiment
from chaos.spec.parse import parse
from chaos.spec.render import render_full, render_github, render_lines, to_json

_VALUES = (
    "",
    "null",
    "true",
    "017",
    "1e9",
    "12:30",
    "-5s",
    "0s",
    "9" * 400 + "s",
    "0%",
    "100%",
    "[]",
    "{}",
    "*a",
    "&a b",
)
_PIECES = (
    "\t",
    ": ",
    "- ",
    "\n",
    "  ",
    "#",
    '"',
    "'",
    "{",
    "}",
    "[",
    "]",
    ",",
    "|\n",
    "?",
    "%",
    "\x00",
    "é",
    "\ud800",
    "🙂",
    "\x85",
)


def mutants(good: str, count: int, seed: int) -> Iterator[str]:
    """`count` damaged versions of a file, each with one to four mutations."""
    dice = random.Random(seed)
    for _ in range(count):
        text = good
        for _ in range(dice.randint(1, 4)):
            text = dice.choice(_MUTATIONS)(text, dice)
        yield text


def survive(good: str, catalog: Catalog, count: int, seed: int) -> Counter[str]:
    """Parse and render every mutant; how often each code (or `good`) came out. Raises AssertionError for a broken
    promise.
    """
    tally: Counter[str] = Counter()
    for text in mutants(good, count, seed):
        found = parse(text, "mutant.yaml", catalog)
        if isinstance(found, Experiment):
            tally["good"] += 1
            continue
        assert found, "neither an experiment nor a problem"
        assert found == ordered(found)
        assert all(len(d.headline) <= 80 and "\n" not in d.headline for d in found)
        for shown in (render_full(found), render_lines(found), render_github(found), str(to_json(found))):
            shown.encode("utf-8")
        tally.update({d.code for d in found})
    return tally


def _delete_line(text: str, dice: random.Random) -> str:
    lines = text.split("\n")
    del lines[dice.randrange(len(lines))]
    return "\n".join(lines) or "\n"


def _repeat_line(text: str, dice: random.Random) -> str:
    lines = text.split("\n")
    lines.insert(dice.randrange(len(lines)), dice.choice(lines))
    return "\n".join(lines)


def _reindent(text: str, dice: random.Random) -> str:
    lines = text.split("\n")
    index = dice.randrange(len(lines))
    lines[index] = dice.choice(("  ", "\t", " ")) + lines[index] if dice.random() < 0.5 else lines[index].lstrip()
    return "\n".join(lines)


def _insert(text: str, dice: random.Random) -> str:
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice(_PIECES) + text[at:]


def _drop_characters(text: str, dice: random.Random) -> str:
    at = dice.randrange(len(text) + 1)
    return text[:at] + text[at + dice.randint(1, 5) :]


def _swap_characters(text: str, dice: random.Random) -> str:
    at = dice.randrange(max(1, len(text) - 1))
    return text[:at] + text[at : at + 2][::-1] + text[at + 2 :]


def _replace_value(text: str, dice: random.Random) -> str:
    lines = text.split("\n")
    index = dice.randrange(len(lines))
    key, colon, _ = lines[index].partition(": ")
    lines[index] = f"{key}: {dice.choice(_VALUES)}" if colon else lines[index]
    return "\n".join(lines)


def _replace_word(text: str, dice: random.Random) -> str:
    words = text.split(" ")
    words[dice.randrange(len(words))] = dice.choice((*_VALUES, *words))
    return " ".join(words)


def _truncate(text: str, dice: random.Random) -> str:
    return text[: dice.randrange(len(text) + 1)] if dice.random() < 0.2 else text


_MUTATIONS: tuple[Callable[[str, random.Random], str], ...] = (
    _delete_line,
    _repeat_line,
    _reindent,
    _insert,
    _drop_characters,
    _swap_characters,
    _replace_value,
    _replace_word,
    _truncate,
)

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    from toy import CATALOG, GOOD

    for code, times in survive(GOOD, CATALOG, int(sys.argv[1]), seed=1).most_common():
        print(f"{times:6} {code}")  # noqa: T201  # a figure for whoever runs it by hand
