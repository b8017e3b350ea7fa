"""The pages of this repository are complete, lead somewhere, and can be refreshed; the linter finds what is not so."""

from pathlib import Path

import pytest

from chaos.runbooks.lint import anchor_of, lint
from chaos.runbooks.parse import SECTIONS, parse
from chaos.runbooks.refresh import refresh

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "runbooks").glob("*.md") if path.name != "README.md")

GOOD = (
    b"---\nowner: sre\n---\n# Title\n"
    + b"".join(f"\n## {name}\n\ntext\n".encode() for name in SECTIONS)
    + b"\n<!-- brownout:rehearsed:begin -->\nNot rehearsed yet.\n<!-- brownout:rehearsed:end -->\n"
)


def codes(text: bytes) -> list[str]:
    return [problem.code for problem in lint(text, lambda path: path == "there.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_of_ours_has_no_problem(page: Path) -> None:
    text = page.read_bytes()
    assert lint(text, lambda link: (page.parent / link).exists()) == ()
    assert b"fresh" in refresh(text, "fresh")
    assert (ROOT / parse(text).front["experiment"]).suffix == ".yaml"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "runbooks" / "README.md").read_text()
    assert [page.name for page in PAGES if f"({page.name})" not in index] == []
    assert len(PAGES) >= 5


def test_a_good_page_is_good() -> None:
    assert codes(GOOD) == []
    assert (parse(GOOD).title, parse(GOOD).front) == ("Title", {"owner": "sre"})


SWAPPED = GOOD.replace(b"## Impact", b"## X").replace(b"## Meaning", b"## Impact").replace(b"## X", b"## Meaning")
LINKS = b"[a](gone.md) [b](there.md) [c](https://example.org/x) [d](#nowhere) [e](#rehearsed-by)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD.replace(b"## Impact\n", b"## Effects\n"), ["missing-section"]),
        (GOOD.replace(b"## Impact\n\ntext", b"## Impact\n"), ["empty-section"]),
        (GOOD.replace(b"# Title", b"Title"), ["no-title"]),
        (SWAPPED, ["section-order"]),
        (GOOD.replace(b"begin", b"start"), ["broken-block"]),
        (GOOD + LINKS, ["dead-link", "dead-link"]),
        (b"\xff\xfe", ["unreadable"]),
    ],
)
def test_the_linter_finds_what_is_wrong(text: bytes, expected: list[str]) -> None:
    assert codes(text) == expected


def test_a_comment_in_a_code_block_is_no_heading() -> None:
    page = parse(GOOD.replace(b"## Impact\n\ntext", b"## Impact\n\n```sh\n## Meaning of this\n# x\n```\n"))
    assert list(page.sections) == list(SECTIONS)


def test_the_anchor_of_a_heading() -> None:
    assert anchor_of("Rehearsed by: us!") == "rehearsed-by-us"
