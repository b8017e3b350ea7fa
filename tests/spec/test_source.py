"""YAML text to nodes: positions are those of the text, and YAML's surprises are refused by name."""

from __future__ import annotations

import pytest
import yaml

from chaos.spec import source as module
from chaos.spec.diagnostic import Diagnostic, Source
from chaos.spec.source import MappingNode, Scalar, decoded, read


def tree(text):
    root, problems = read(Source("x.yaml", text))
    assert problems == ()
    return root


def codes(text):
    return [d.code for d in read(Source("x.yaml", text))[1]]


def position(span):
    return (span.line, span.column, span.end_line, span.end_column)


def test_keys_and_values_know_where_they_stand():
    entry = tree("a: 1\nbc:   word # said\n").entries[1]
    assert position(entry.key_span) == (2, 1, 2, 3)
    assert position(entry.value.span) == (2, 7, 2, 11)


def test_a_block_ends_where_its_last_value_ends():
    assert position(tree("a:\n  b: 1\n  c: 22\n\n\nd: 1\n").get("a").span) == (2, 3, 3, 8)


def test_columns_count_characters_not_bytes():
    assert position(tree("{é: 🙂, b: 1}").entries[1].key_span) == (1, 8, 1, 9)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("null", "null"),
        ("null", ""),
        ("boolean", "true"),
        ("boolean", "false"),
        ("whole", "0"),
        ("whole", "-12"),
        ("decimal", "1.50"),
        *(
            ("text", t)
            for t in (
                "on",
                "no",
                "Yes",
                "True",
                "~",
                "017",
                "1_000",
                "1e3",
                "0x1f",
                "12:30",
                ".5",
                ".inf",
                "2026-01-01",
            )
        ),
        ("text", "9" * 30),
        ("text", '"5"'),
        ("text", "'true'"),
    ],
)
def test_only_true_false_decimal_numbers_and_null_are_not_text(kind, text):
    value = tree(f"a: {text}\n").get("a")
    assert isinstance(value, Scalar)
    assert kind == value.kind


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("duplicate-key", "a: 1\nb: 2\na: 3"),
        ("duplicate-key", "a: 1\n'a': 3"),
        ("anchor-used", "a: &x 1"),
        ("tag-used", "a: !!str 1"),
        ("tag-used", "a: !e!b 1"),
        ("directive-used", "%YAML 1.1\n---\na: 1"),
        ("several-documents", "a: 1\n---\nb: 1"),
        ("bad-key", "? [a]\n: 1"),
        ("bad-key", "'': 1"),
        ("empty-file", ""),
        ("empty-file", "\n# nothing\n"),
        ("empty-file", "---\n"),
        ("tab-indent", "a:\n\tb: 1"),
        ("bad-character", "a: \x07"),
        ("bad-character", "a: \ud800"),
        ("bad-character", 'a: "\\a"'),
        ("bad-syntax", "a: b: c"),
        ("bad-syntax", "a: [1"),
        ("bad-syntax", 'a: "b'),
        ("too-deep", "a: " + "[" * 100_000),
        ("too-deep", "".join(f"{' ' * i}a:\n" for i in range(100))),
    ],
)
def test_what_yaml_could_surprise_with_is_refused(code, text):
    assert [code] == codes(text)


def test_an_alias_is_not_expanded():
    bomb = "a: &a [x]\n" + "".join(
        f"{c}: &{c} [{', '.join(['*' + b] * 9)}]\n" for b, c in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert {"anchor-used", "alias-used"} == set(codes(bomb))


def test_the_second_of_two_keys_names_the_first():
    (problem,) = read(Source("x.yaml", "a: 1\nb: 2\na: 3"))[1]
    assert (problem.span.line, problem.related[0].span.line) == (3, 1)
    assert "line 1" in problem.headline


def test_an_unclosed_bracket_is_shown_where_it_opens():
    (problem,) = read(Source("x.yaml", "x: 1\na: {b: 1\nd: 3\n"))[1]
    assert (problem.span.line, problem.span.column) == (2, 4)


def test_no_word_of_the_parser_leaks():
    for text in ("a: b: c", "- a\nb", "a: [1", "{", "'", "a: @b", "a: -", '"\\q"', "...", "%", "? ?", "a: |x"):
        for d in read(Source("x.yaml", text))[1]:
            assert not any(word in d.headline for word in ("token", "scanner", "parsing", "expected", "block mapping"))


def test_bytes_that_are_no_utf_8_are_shown_where_they_stand():
    problem = decoded(b"a: 1\nb: caf\xe9\n", "x.yaml")
    assert isinstance(problem, Diagnostic)
    assert (problem.code, problem.span.line, problem.span.column) == ("not-utf-8", 2, 7)


def test_a_byte_order_mark_is_not_text():
    assert Source("x.yaml", "a: 1") == decoded(b"\xef\xbb\xbfa: 1", "x.yaml")


def test_the_pure_parser_gives_the_same_tree(toy, monkeypatch):
    fast = tree(toy.GOOD)
    monkeypatch.setattr(module, "_LOADER", yaml.SafeLoader)
    assert isinstance(fast, MappingNode)
    assert fast == tree(toy.GOOD)
