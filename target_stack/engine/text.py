"""Words in and words out: a reversible tokenizer and answers that depend on the prompt alone.

A token is about a word. An answer quotes the sentence of its context that shares the rarest words with the question, so
it is right exactly when retrieval was; without a context it is small talk drawn from the seed and the prompt. A prompt
that names its `Reference: <word>` gets it back, so that an answer can be seen to belong to its question.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal
from zlib import crc32

_PIECE = re.compile(r" ?\w(?:[\w'’-]|[.,](?=\w)){0,15}| ?[^\w\s]{1,4}|\s")
_DOCUMENT = re.compile(r"^\[[^\]\s]+\] (.+)$", re.MULTILINE)
_QUESTION = re.compile(r"^Question:[ \t]*(.+)$", re.MULTILINE)
_REFERENCE = re.compile(r"\bReference: ([\w-]+)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\w+")
_FILLER = frozenset(
    _WORD.findall(
        "a an and are as at be been by can could did do does for from had has have how i if in is it its may me my of "
        "on or our should that the their them there these they this to was we what when where which who why will with "
        "would you your"
    )
)
_OPENINGS = ("In short", "As a rule", "In most cases", "To begin with", "Put simply", "From experience", "In practice")
_SUBJECTS = ("the answer", "a good plan", "the usual advice", "a careful reader", "such a question", "the first step")
_VERBS = ("depends on", "starts with", "comes down to", "gains from", "rests on", "asks for")
_OBJECTS = ("a little patience", "clear priorities", "the details", "one small test", "honest numbers", "the season")


def pieces(text: str) -> list[str]:
    """Cut a text into tokens; joined again they are the text, character for character."""
    return _PIECE.findall(text)


class UnknownTokenError(ValueError):
    """A token id that this tokenizer has never given out."""


class Tokenizer:
    """Ids for pieces. An id is a hash, equal in every process; `decode` knows the ids that `encode` handed out here."""

    def __init__(self, memory: int = 65_536) -> None:
        """Remember at most `memory` pieces; the oldest are forgotten."""
        self._memory = memory
        self._piece_of: dict[int, str] = {}

    def encode(self, text: str) -> list[int]:
        """The ids of a text's tokens."""
        return [self._remember(piece) for piece in pieces(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids. Raises UnknownTokenError."""
        try:
            return "".join(self._piece_of[each] for each in ids)
        except KeyError as unknown:
            raise UnknownTokenError(f"token id {unknown} is out of vocabulary") from None

    def _remember(self, piece: str) -> int:
        token = crc32(piece.encode())
        self._piece_of[token] = piece
        if len(self._piece_of) > self._memory:
            del self._piece_of[next(iter(self._piece_of))]
        return token


@dataclass(frozen=True)
class Sampling:
    """What a request asks of its answer. `draw` tells the choices of one request apart."""

    max_tokens: int
    min_tokens: int = 0
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()
    draw: int = 0


@dataclass(frozen=True)
class Answer:
    """The tokens of an answer and why it ends. A natural end is a token of its own, without text, as a model's is."""

    pieces: tuple[str, ...]
    finish: Literal["stop", "length"]
    stop_reason: str | None = None


def answer(prompt: str, *, seed: int, sampling: Sampling, verbosity: float = 1.0) -> Answer:
    """The answer to a rendered prompt: the same prompt, seed and sampling always give the same one.

    `verbosity` 2 doubles its natural length with small talk, 0.5 breaks it off half-way.
    """
    dice = random.Random(f"{seed}/{sampling.draw}/{prompt}")
    body = quote(prompt) or " ".join(_small_talk(dice) for _ in range(dice.randint(2, 4)))
    if named := _REFERENCE.findall(prompt):
        body += f" Reference: {named[-1]}."
    if found := _first_stop(body, sampling.stop):
        return _stopped(body, found, sampling)
    tokens = pieces(body)
    natural = max(1, round(len(tokens) * verbosity))
    tokens = tokens[:natural]
    least = sampling.max_tokens if sampling.ignore_eos else max(sampling.min_tokens, natural)
    while len(tokens) < least:
        tokens += pieces(" " + _small_talk(dice))
    if len(tokens) < sampling.max_tokens:
        return Answer((*tokens, ""), "stop")
    return Answer(tuple(tokens[: sampling.max_tokens]), "length")


def quote(prompt: str) -> str | None:
    """The context sentence that fits the question best; None without a context or without any word in common."""
    _, found, context = prompt.partition("Context:\n")
    sentences = (
        list(chain.from_iterable(_SENTENCE_END.split(text) for text in _DOCUMENT.findall(context))) if found else []
    )
    asked = _words(_question(prompt))
    shared = [asked & _words(sentence) for sentence in sentences]
    common = Counter(chain.from_iterable(shared))
    scores = [sum(1 / common[word] for word in words) for words in shared]
    best = max(scores, default=0.0)
    return sentences[scores.index(best)] if best else None


def _question(prompt: str) -> str:
    asked: list[str] = _QUESTION.findall(prompt)
    return asked[-1] if asked else prompt.rpartition("<|user|>\n")[2]


def _words(text: str) -> frozenset[str]:
    """Words that carry meaning, plural and singular alike."""
    return frozenset(word.rstrip("s") for word in _WORD.findall(text.lower())) - _FILLER


def _small_talk(dice: random.Random) -> str:
    return f"{dice.choice(_OPENINGS)}, {dice.choice(_SUBJECTS)} {dice.choice(_VERBS)} {dice.choice(_OBJECTS)}."


def _first_stop(body: str, stops: Sequence[str]) -> str | None:
    hits = [(body.index(stop), stop) for stop in stops if stop and stop in body]
    return min(hits)[1] if hits else None


def _stopped(body: str, stop: str, sampling: Sampling) -> Answer:
    """An answer that runs into a stop string: the string itself is not part of it."""
    tokens = pieces(body[: body.index(stop)]) or [""]
    if len(tokens) > sampling.max_tokens:
        return Answer(tuple(tokens[: sampling.max_tokens]), "length")
    return Answer(tuple(tokens), "stop", stop)
