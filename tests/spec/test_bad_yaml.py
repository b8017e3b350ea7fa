"""One pair per diagnostic code: a bad file, and exactly what people read about it.

`BROWNOUT_REWRITE=1 pytest tests/spec/test_bad_yaml.py` writes the texts anew; the difference is then read by a person.
A first line `# --set KEY=VALUE` in a file is given to the parser as an option.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from chaos.spec.catalog import Catalog
from chaos.spec.diagnostic import Diagnostic
from chaos.spec.explain import CODES
from chaos.spec.parse import parse
from chaos.spec.render import render_full

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "fixtures" / "bad_yaml"
LONGEST_HEADLINE = 80


@pytest.fixture
def problems(toy):
    return lambda code: _problems(code, toy.CATALOG)


def _problems(code: str, catalog: Catalog) -> tuple[Diagnostic, ...]:
    path = FOLDER / f"{code}.yaml"
    raw = path.read_bytes()
    options = re.findall(r"^# --set (.*)$", raw.decode(errors="replace"), re.MULTILINE)
    found = parse(raw, path.relative_to(ROOT).as_posix(), catalog, overrides=options)
    assert isinstance(found, tuple), f"{path} is a good file"
    return found


def test_every_code_has_a_pair_and_every_pair_a_code():
    assert set(CODES) == {path.stem for path in FOLDER.glob("*.yaml")}
    assert set(CODES) == {path.stem for path in FOLDER.glob("*.txt")} or os.environ.get("BROWNOUT_REWRITE")


@pytest.mark.parametrize("code", CODES)
def test_a_bad_file_prints_exactly_its_text(code, problems):
    text = render_full(problems(code))
    golden = FOLDER / f"{code}.txt"
    if os.environ.get("BROWNOUT_REWRITE"):
        golden.write_text(text, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("code", CODES)
def test_a_bad_file_shows_its_code_and_nothing_beside_it(code, problems):
    inseparable = {"alias-used": {"anchor-used"}}
    assert {d.code for d in problems(code)} == {code} | inseparable.get(code, set())


@pytest.mark.parametrize("code", CODES)
def test_headlines_stand_alone_and_help_is_one_line(code, problems):
    for d in problems(code):
        assert len(d.headline) <= LONGEST_HEADLINE
        assert not d.headline.endswith(".")
        assert not d.headline[0].isupper()
        assert "\n" not in (d.help or "")
