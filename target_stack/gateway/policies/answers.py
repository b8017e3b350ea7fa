"""How an answer ends: what proves that it is whole, and what becomes of it when nobody listens any more.

`whole_by: done` believes the `[DONE]` of an engine, which a real one also sends after its core has died.
`client_gone: finish` makes every answer to its end, also when the client has left, as a gateway does that bills or
stores whole answers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class AnswerSettings:
    """See the module."""

    whole_by: Literal["finish_reason", "done"] = "finish_reason"
    client_gone: Literal["stop", "finish"] = "stop"
