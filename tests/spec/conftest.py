"""Hands out the toy catalog (`toy.py`) and the mutations (`mutations.py`), which are no tests and so are loaded by
path.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from chaos.spec.parse import parse


def load(name):
    qualified = f"brownout_spec_{name}"
    if qualified not in sys.modules:
        found = importlib.util.spec_from_file_location(qualified, Path(__file__).with_name(f"{name}.py"))
        module = importlib.util.module_from_spec(found)
        sys.modules[qualified] = module  # dataclasses look their own module up by name
        found.loader.exec_module(module)
    return sys.modules[qualified]


@pytest.fixture(scope="session")
def toy():
    return load("toy")


@pytest.fixture(scope="session")
def mutations():
    return load("mutations")


@pytest.fixture(scope="session")
def read(toy):
    """The good file, changed by replacing texts, parsed with the toy catalog."""

    def read_changed(*changes, overrides=()):
        text = toy.GOOD
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        return parse(text, "experiments/retrieval/outage.yaml", toy.CATALOG, overrides=overrides)

    return read_changed


@pytest.fixture(scope="session")
def codes(read):
    """The codes of what is wrong with the good file after changes, in order."""

    def codes_of(*changes, overrides=()):
        found = read(*changes, overrides=overrides)
        return [d.code for d in found] if isinstance(found, tuple) else []

    return codes_of
