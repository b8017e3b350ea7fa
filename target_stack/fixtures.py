"""Where the corpus lies: inside the installed package, or beside it in a checkout."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Document:
    """One short text of the corpus."""

    id: str
    body: str


@dataclass(frozen=True)
class Question:
    """One of the standard questions, the document that answers it, and the words in which it does."""

    text: str
    document: str
    words: tuple[str, ...] = ()

    def answered_by(self, body: str) -> bool:
        """Whether a text holds all the words, in any case."""
        return all(word.casefold() in body.casefold() for word in self.words)


def fixtures_dir() -> Path:
    """The folder that holds `documents/`: packaged as `_fixtures`, else the checkout's `fixtures/`."""
    packaged = Path(__file__).parent / "_fixtures"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "fixtures"


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file. Raises OSError or ValueError."""
    for line in path.read_text("utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def read_documents(path: Path | None = None) -> tuple[Document, ...]:
    """The corpus that the vector store is filled with. Raises OSError, ValueError or KeyError."""
    lines = read_lines(path or fixtures_dir() / "documents" / "products.jsonl")
    return tuple(Document(line["id"], line["body"]) for line in lines)


def read_questions(path: Path | None = None) -> tuple[Question, ...]:
    """The standard questions about the corpus. Raises OSError, ValueError or KeyError."""
    lines = read_lines(path or fixtures_dir() / "prompts" / "product-questions.jsonl")
    return tuple(Question(line["question"], line["document"], tuple(line["expect"])) for line in lines)
