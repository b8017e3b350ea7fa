"""Every text that a verdict can print, in one file for a reviewer to read; BROWNOUT_REWRITE=1 writes it anew.

Read it as somebody who knows the experiment file and has never seen the code: each reason says what was found, what was
wanted, and what would settle it.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.verdict.judge import judge
from tests.verdict.story import CASES, experiment

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "reasons.txt"
REWRITE = os.environ.get("BROWNOUT_REWRITE") == "1"
OTHER_READERS = {"schema.py"}
"""What these say goes to programs or to people who write experiments, not into a verdict."""

INTERNAL = re.compile(
    r"\b(None|NaN|nan|null|True|False|estimate|dataclass|tuple|dict|mask|numpy|array|evidence\.\w+)\b"
)


def texts(path: Path) -> Iterator[str]:
    """Texts of at least two words in the order of the file, without docstrings, summaries and docs of settings."""
    tree = ast.parse(path.read_text())
    skipped = {id(inner) for node in ast.walk(tree) if not_printed(node) for inner in ast.walk(node)}
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    found = [
        (node.lineno, node.col_offset, template(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in skipped | inside
    ]
    yield from (text for _, _, text in sorted(found) if re.search(r"[a-z}] +[a-z{]", text))


def not_printed(node: ast.AST) -> bool:
    """A text that stands by itself is a doc; `setting(...)`, `summary` and NotAVerdict speak to others."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.AnnAssign):
        return "ClassVar" in ast.unparse(node.annotation)
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("setting", "NotAVerdict")


def template(node: ast.expr) -> str:
    """An f-string with the last name of each value in its place."""
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "{" + re.findall(r"\w+", ast.unparse(node.value))[-1] + "}"
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def all_texts() -> dict[str, list[str]]:
    files = sorted((ROOT / "chaos" / "verdict").rglob("*.py"))
    named = {str(p.relative_to(ROOT)): [*texts(p)] for p in files if p.name not in OTHER_READERS}
    return {name: found for name, found in named.items() if found}


def test_every_reason_stands_in_the_file_that_a_reviewer_reads() -> None:
    text = (
        "\n\n".join("\n".join([name, *(f"  {each}" for each in found)]) for name, found in all_texts().items()) + "\n"
    )
    if REWRITE:
        GOLDEN.write_text(text, encoding="utf-8")
    assert GOLDEN.read_text(encoding="utf-8") == text


def test_no_reason_uses_a_word_of_the_code() -> None:
    told = [(name, text) for name, found in all_texts().items() for text in found]
    assert [] == [each for each in told if INTERNAL.search(re.sub(r"\{\w+\}", "", each[1]))]


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_decided_hypothesis_says_what_was_wanted_and_an_undecided_one_what_would_settle_it(case: str) -> None:
    for judged in judge(experiment(), CASES[case].evidence()).hypotheses:
        if judged.verdict == "inconclusive":
            assert judged.to_settle, judged
        else:
            assert (", wanted " in judged.why, judged.to_settle) == (True, None), judged


@pytest.mark.parametrize("case", sorted(CASES))
def test_an_unmet_precondition_is_named_with_its_reason_by_the_verdict(case: str) -> None:
    verdict = judge(experiment(), CASES[case].evidence())
    unmet = [condition for condition in verdict.preconditions if not condition.held]
    assert all(condition.why for condition in verdict.preconditions)
    assert not unmet or f"{unmet[0].name} ({unmet[0].why})" in verdict.why
