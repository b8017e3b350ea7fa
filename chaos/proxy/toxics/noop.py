"""`noop`: is listed, changes nothing."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.stub import Plain, Stub


@dataclass
class Noop(Plain):
    """No settings."""

    kind: ClassVar[str] = "noop"
    go_name: ClassVar[str] = "NoopToxic"

    def stub(self, _dice: random.Random, /) -> Stub:
        return Stub()
