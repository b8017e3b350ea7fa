"""What is asked: prompt sets with known right answers, and the HTTP request that each makes of a route.

A set is a JSON-lines file, one prompt a line: `{"id", "question", "expect"?: [...], "expect_json"?, "document"?}`, for
agents `{"id", "task", "question", "expect"?}` where `task` is the kind, for tools `{"id", "tool", "arguments",
"expect"?, "expect_json"?, "refused"?}`. It is looked for in the project of the experiment first, then among ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

_FILLER = "of these lines, which were pasted above the question and say nothing that an answer to it could need."
_PACKAGE = Path(__file__).resolve().parent.parent


class PromptError(ValueError):
    """A prompt set that is not there or not readable; the message says where and what."""


@dataclass(frozen=True)
class Prompt:
    """One question (for an agent: a task of this kind), or one tool call where `tool` is given, with the texts that a
    right answer contains. `refused`: the right answer is that this call is not allowed. `expect_json`: see
    chaos.load.json_answer.
    """

    id: str
    question: str = ""
    expect: tuple[str, ...] = ()
    document: str | None = None
    task: str | None = None
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    refused: bool = False
    expect_json: Any = None


def lengthened(question: str, words: int | None, document: str) -> str:
    """The question with text that asks for nothing before it, so that together they have so many words.

    The text begins with the document's name. Engines keep the work of beginnings that they have seen (prefix caching),
    so prompts that begin alike cost next to nothing, however long they are.
    """
    missing = (words or 0) - len(question.split())
    return question if missing <= 0 else f"{' '.join(islice(_text(document), missing))}\n\n{question}"


def _text(document: str) -> Iterator[str]:
    """Its words, without end."""
    yield from (f"Document-{document}", "is", "made")
    yield from cycle(_FILLER.split())


def prompts_dirs(experiment: Path | None) -> tuple[Path, ...]:
    """Folders with prompt sets, nearest first: the experiment's project, the installed package, our own checkout."""
    found: list[Path] = []
    if experiment is not None:
        above = (folder / "fixtures" / "prompts" for folder in experiment.resolve().parents)
        found += [folder for folder in above if folder.is_dir()][:1]
    found += [_PACKAGE / "_fixtures" / "prompts", _PACKAGE.parent / "fixtures" / "prompts"]
    return tuple(dict.fromkeys(folder for folder in found if folder.is_dir()))


def prompt_sets(folders: Iterable[Path]) -> frozenset[str]:
    """The names of all sets in these folders."""
    return frozenset(path.stem for folder in folders for path in folder.glob("*.jsonl"))


def load_prompts(name: str, folders: Iterable[Path]) -> tuple[Prompt, ...]:
    """The prompts of a set, from the first folder that has it. Raises PromptError."""
    tried = tuple(folders)
    for folder in tried:
        path = folder / f"{name}.jsonl"
        if path.is_file():
            return parse_prompts(path.read_text(encoding="utf-8"), str(path))
    looked = ", ".join(str(folder) for folder in tried) or "no folder with prompt sets"
    raise PromptError(f"no prompt set is called {name!r} (looked in {looked})")


def parse_prompts(text: str, label: str) -> tuple[Prompt, ...]:
    """Prompts of a JSON-lines text. Raises PromptError naming the line."""
    prompts = tuple(
        _prompt(line, f"{label}:{number}") for number, line in enumerate(text.splitlines(), start=1) if line.strip()
    )
    if not prompts:
        raise PromptError(f"{label}: the prompt set is empty")
    return prompts


def _prompt(line: str, where: str) -> Prompt:
    try:
        record = json.loads(line)
        return _from_json(record, where)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PromptError(f"{where}: not a prompt: {error!r}") from error


def _from_json(record: Mapping[str, Any], where: str) -> Prompt:
    expect = record.get("expect", ())
    prompt = Prompt(
        id=str(record["id"]),
        question=str(record.get("question", "")),
        expect=(expect,) if isinstance(expect, str) else tuple(str(text) for text in expect),
        document=record.get("document"),
        task=record.get("task"),
        tool=record.get("tool"),
        arguments=dict(record.get("arguments", {})),
        refused=bool(record.get("refused", False)),
        expect_json=record.get("expect_json"),
    )
    if not prompt.question and not prompt.tool:
        raise PromptError(f"{where}: a prompt needs a `question` or a `tool`")
    return prompt
