"""A catalog that no file could be read with is refused when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from chaos.settings import setting
from chaos.spec.catalog import Catalog


def test_names_are_unique(toy):
    with pytest.raises(ValueError, match="noop"):
        Catalog(faults=(toy.Noop, toy.Noop), measures=())
    with pytest.raises(ValueError, match="ttft"):
        Catalog(faults=(), measures=(toy.Ttft, toy.Ttft))


def test_no_setting_hides_a_key_of_every_entry(toy):
    @dataclass(frozen=True)
    class Greedy(toy.Noop):
        kind: ClassVar[str] = "greedy"
        at: str = setting("hides `at` of the entry")

    with pytest.raises(ValueError, match=r"Greedy.*at"):
        Catalog(faults=(Greedy,), measures=())
