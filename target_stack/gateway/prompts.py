"""The answer code path by version: the words that the gateway puts around a question before an engine sees it.

A version that was released is not edited; a new wording is a new version, so that a rollback finds the old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FIRST_CODE = "1"
RAG_SYSTEM: Mapping[str, str] = MappingProxyType(
    {
        FIRST_CODE: "Answer from the context. Name nothing that it does not say.",
        "2": "Answer from the context in one sentence. Where the context is silent, say that you do not know.",
    }
)
