"""What is wrong with a page, all at once: a runbook that lacks a section or points nowhere fails at 3 a.m., not now."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from chaos.runbooks.parse import SECTIONS, RunbookError, parse, split

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_ANCHOR = re.compile(r"[^\w\- ]")


@dataclass(frozen=True)
class Problem:
    """One thing to repair; `code` is stable, `what` is for people."""

    code: str
    what: str


def lint(text: bytes, exists: Callable[[str], bool]) -> tuple[Problem, ...]:
    """Everything wrong with one page. `exists` answers for a link to a file, relative to the page. Pure."""
    try:
        page = parse(text)
    except RunbookError as error:
        return (Problem("unreadable", str(error)),)
    problems = []
    try:
        split(text)
    except RunbookError as error:
        problems.append(Problem("broken-block", str(error)))
    if page.title is None:
        problems.append(Problem("no-title", "the page has no `# Title`"))
    problems += [Problem("missing-section", f"no `## {name}`") for name in SECTIONS if name not in page.sections]
    problems += [
        Problem("empty-section", f"`## {name}` says nothing")
        for name in SECTIONS
        if name in page.sections and not page.sections[name]
    ]
    present = [name for name in page.sections if name in SECTIONS]
    if present != [name for name in SECTIONS if name in present]:
        problems.append(
            Problem("section-order", f"sections stand as {', '.join(present)}; wanted {', '.join(SECTIONS)}")
        )
    return (*problems, *_dead_links(text, page.sections, exists))


def _dead_links(text: bytes, sections: dict[str, str], exists: Callable[[str], bool]) -> tuple[Problem, ...]:
    anchors = {anchor_of(name) for name in sections}
    found = []
    for link in _LINK.findall(text.decode("utf-8")):
        path, _, anchor = link.partition("#")
        dead = not exists(path) if path else anchor not in anchors
        if not _OUTSIDE.match(link) and dead:
            found.append(Problem("dead-link", f"`{link}` leads nowhere"))
    return tuple(found)


def anchor_of(heading: str) -> str:
    """The anchor that Markdown renderers give a heading: `Rehearsed by` is `rehearsed-by`."""
    return _ANCHOR.sub("", heading.lower()).replace(" ", "-")
