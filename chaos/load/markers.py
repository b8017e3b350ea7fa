"""A word in each request that no other request has: an answer that holds another's was made from another's prompt.

It stands at the beginning of the prompt, in words that models are used to repeat: `Reference: m-1f2e3d4c5b6a`. It is
the beginning of the request's trace id, so that a leak names both requests.
"""

from __future__ import annotations

import re

_DIGITS = 12
_MARKER = re.compile(r"\bm-[0-9a-f]{12}\b")


def marker_of(trace_id: str) -> str:
    """The marker of a request."""
    return f"m-{trace_id[:_DIGITS]}"


def marked(question: str, trace_id: str) -> str:
    """The question with its marker before it."""
    return f"Reference: {marker_of(trace_id)}\n{question}"


def foreign(text: str, own: str) -> str:
    """Markers of other requests in a text, each once, with spaces between; empty when there is none."""
    return " ".join(dict.fromkeys(found for found in _MARKER.findall(text) if found != own))
