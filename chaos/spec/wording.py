"""How messages quote and suggest: values are cut to fit a headline, a name is suggested only when it is really near."""

from __future__ import annotations

from collections.abc import Collection, Iterable

FARTHEST_GUESS = 3
LONGEST_LIST = 8


def shown(text: str, room: int = 24) -> str:
    """`text` in backquotes on one line, cut to `room` characters."""
    return f"`{cut(text, room)}`"


def cut(text: str, room: int) -> str:
    """`text` on one line, cut to `room` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= room else f"{flat[: room - 1]}…"


def listed(names: Iterable[str]) -> str:
    """`a`, `b` or `c`."""
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def joined(path: str, key: str | int) -> str:
    """The data path one step further down."""
    return f"{path}.{key}" if path else str(key)


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that `name` is most likely a slip for; None when none is near."""
    reach = min(FARTHEST_GUESS, max(1, len(name) // 2))
    # A difference in length is a lower bound of the distance; it also keeps absurdly long names cheap.
    candidates = [other for other in known if abs(len(other) - len(name)) <= reach]
    scored = [(edit_distance(name.lower(), other.lower()), other) for other in candidates]
    best = min(scored, default=None)
    return best[1] if best is not None and best[0] <= reach else None


def suggestion(name: str, known: Collection[str]) -> str | None:
    """One help line: the nearest name, or the whole list when it is short, or nothing."""
    near = nearest(name, known)
    if near is not None:
        return f"did you mean `{near}`?"
    return f"use {listed(known)}" if 0 < len(known) <= LONGEST_LIST else None


def edit_distance(left: str, right: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours from one to the other (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        older, before, row = before, row, [i]
        for j, b in enumerate(right, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
