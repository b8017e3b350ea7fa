"""The real model: its vectors are those of an independent reading of the same weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from reference import Reference

from target_stack.embedder.minilm import graph, graph_version, weights
from target_stack.embedder.minilm.model import MiniLm

FIXTURE = Path(__file__).with_name("minilm_vectors.json")
TEXTS = (
    "How many hours does the Pebble night light run on one charge?",
    "Gift cards cannot be refunded, but their balance never expires.",
    "x",
    "Crème brûlée -- 3.50 €, 東京?!",
    "The Larch tent sleeps four people. " * 60,
)
FOLDER = weights.find_model()
assert FOLDER is not None, "make setup installs the weights"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> MiniLm:
    return loaded(tmp_path_factory.mktemp("cache"))


def loaded(cache: Path) -> MiniLm:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        return MiniLm(FOLDER)


def cosine(left: object, right: object) -> float:
    a, b = np.asarray(left), np.asarray(right)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_the_pinned_vectors_are_those_of_the_numpy_forward_pass() -> None:
    """One text is enough to see that the pins are no output of the product; BROWNOUT_REWRITE=1 pins all anew."""
    reference = Reference(FOLDER)
    if os.environ.get("BROWNOUT_REWRITE") == "1":
        pins = {text: [round(x, 7) for x in reference.embed(text).tolist()] for text in TEXTS}
        FIXTURE.write_text("{\n" + ",\n".join(f"{json.dumps(t)}: {v}" for t, v in pins.items()) + "\n}\n")
    pinned = json.loads(FIXTURE.read_text())
    assert list(pinned) == list(TEXTS)
    assert cosine(pinned[TEXTS[0]], reference.embed(TEXTS[0])) > 0.9999999


@pytest.mark.parametrize("together", [1, len(TEXTS)])
def test_the_models_vectors_are_the_pinned_ones_alone_and_beside_longer_texts(model: MiniLm, together: int) -> None:
    pinned = json.loads(FIXTURE.read_text())
    for start in range(0, len(TEXTS), together):
        texts = TEXTS[start : start + together]
        for text, embedded in zip(texts, model.embed(texts), strict=True):
            assert cosine(pinned[text], embedded.vector) > 0.99999
            assert np.linalg.norm(embedded.vector) == pytest.approx(1.0, abs=1e-5)


def test_tokens_are_counted_with_both_ends_and_up_to_the_models_limit(model: MiniLm) -> None:
    assert [embedded.tokens for embedded in model.embed(["x", "the tent", TEXTS[-1]])] == [3, 4, 256]


def test_the_graph_holds_no_numbers_of_the_model(model: MiniLm) -> None:
    header = weights.read_header(FOLDER / weights.WEIGHTS)
    assert len(graph.build(header, weights.WEIGHTS)) < 40_000


def test_the_graph_is_built_once_and_kept_under_a_name_that_changes_with_weights_and_builder(tmp_path: Path) -> None:
    loaded(tmp_path)
    (kept,) = (tmp_path / "brownout").iterdir()
    digest = weights.read_header(FOLDER / weights.WEIGHTS).digest
    assert kept.name == f"all-MiniLM-L6-v2-{digest[:16]}-v{graph_version.VERSION}.onnx"
    before = (kept.stat().st_ino, kept.stat().st_mtime_ns)
    loaded(tmp_path)
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == before


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "brownout").write_text("a file where the folder should be")
    assert len(loaded(tmp_path).embed(["x"])[0].vector) == 384


def test_builders_at_once_leave_one_whole_graph_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with ThreadPoolExecutor(4) as threads:
        models = list(threads.map(lambda _: MiniLm(FOLDER), range(4)))
    (kept,) = (tmp_path / "brownout").iterdir()
    header = weights.read_header(FOLDER / weights.WEIGHTS)
    assert kept.read_bytes() == graph.build(header, weights.WEIGHTS)
    assert len({model.fingerprint for model in models}) == 1


def test_choosing_a_model_and_the_whole_nursery_import_no_runtime() -> None:
    code = (
        "import sys; from target_stack.nursery import preload; preload()\n"
        "from target_stack.embedder.embedding import choose; print(choose('auto'))\n"
        "sys.exit(any(name.split('.')[0] in ('onnxruntime', 'onnx', 'tokenizers', 'torch') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "all-MiniLM-L6-v2"), done.stderr
