"""Go's JSON habits, as clients of Toxiproxy see them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.proxy.gojson import GoError, Number, Object, Struct, decode, encode, encode_float32, parse

POINT = Struct("geo.Point", "Point", {"x": "int64", "name": "string", "on": "bool", "share": "float32"})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "EOF"),
        (" \n", "EOF"),
        ("{", "unexpected EOF"),
        ("nul", "unexpected EOF"),
        ("not json", "invalid character 'o' in literal null (expecting 'u')"),
        ("{,}", "invalid character ',' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 2}', "invalid character '2' after object key:value pair"),
        ("[01]", "invalid character '1' after array element"),
        ("[1.]", "invalid character ']' after decimal point in numeric literal"),
        ("[1e]", "invalid character ']' in exponent of numeric literal"),
        ("-x", "invalid character 'x' in numeric literal"),
        ('"\\q"', "invalid character 'q' in string escape code"),
        ('"\\u00zz"', "invalid character 'z' in \\u hexadecimal character escape"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("[" * 100_000, "exceeded max depth"),
    ],
)
def test_an_unreadable_text_is_refused_in_gos_words(text: str, complaint: str) -> None:
    with pytest.raises(GoError) as caught:
        parse(text.encode())
    assert str(caught.value) == complaint


def test_only_the_first_value_is_read() -> None:
    assert parse(b'{"a":1} garbage') == Object((("a", Number("1")),))


def test_bad_utf8_and_lone_surrogates_become_the_replacement_character() -> None:
    assert parse(b'"\xff\\ud800"') == "��"


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=20))
def test_what_python_writes_is_read_back(value: object) -> None:
    def plain(read: object) -> object:
        if isinstance(read, Number):
            return int(read)
        return [plain(item) for item in read] if isinstance(read, list) else read

    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if b"\xed" not in text:
        assert plain(parse(text)) == value


def test_keys_match_in_any_case_unknown_ones_are_skipped_and_null_leaves_a_field_alone() -> None:
    decoded = decode(parse(b'{"NAME":"n","X":3,"other":{},"on":null}'), POINT)
    assert decoded.values == {"name": "n", "x": 3}
    assert decoded.error is None


def test_a_later_key_wins() -> None:
    assert decode(parse(b'{"x":1,"X":2}'), POINT).values == {"x": 2}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[]", "array into Go value of type geo.Point"),
        ('{"x":"1"}', "string into Go struct field Point.x of type int64"),
        ('{"x":1.5}', "number 1.5 into Go struct field Point.x of type int64"),
        ('{"x":1e3}', "number 1e3 into Go struct field Point.x of type int64"),
        ('{"x":9223372036854775808}', "number 9223372036854775808 into Go struct field Point.x of type int64"),
        ('{"name":5}', "number into Go struct field Point.name of type string"),
        ('{"on":1}', "number into Go struct field Point.on of type bool"),
        ('{"share":1e99}', "number 1e99 into Go struct field Point.share of type float32"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(text: str, complaint: str) -> None:
    assert decode(parse(text.encode()), POINT).error == f"json: cannot unmarshal {complaint}"


def test_the_first_complaint_is_kept_and_the_other_fields_are_still_decoded() -> None:
    decoded = decode(parse(b'{"x":"z","on":5,"name":"n"}'), POINT)
    assert decoded.values == {"name": "n"}
    assert decoded.error == "json: cannot unmarshal string into Go struct field Point.x of type int64"


def test_a_nested_field_is_named_by_its_whole_path() -> None:
    outer = Struct("Outer", "Outer", {"at": POINT})
    complaint = "json: cannot unmarshal string into Go struct field Point.at.x of type int64"
    assert decode(parse(b'{"at":{"x":"z","name":"n"}}'), outer).error == complaint
    assert decode(parse(b'{"at":{"x":1}}'), outer).values == {"at": {"x": 1}}


def test_angle_brackets_and_ampersands_are_escaped_and_other_text_is_not() -> None:
    assert encode("<é&\u2028>") == '"\\u003cé\\u0026\\u2028\\u003e"'


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "1"),
        (0, "0"),
        (-1, "-1"),
        (0.5, "0.5"),
        (0.1, "0.1"),
        (0.123456789, "0.12345679"),
        (1e-7, "1e-7"),
        (0.00001, "0.00001"),
        (1e10, "10000000000"),
        (1e21, "1e+21"),
        (16777217, "16777216"),
    ],
)
def test_a_32_bit_float_is_printed_with_the_fewest_digits(number: float, text: str) -> None:
    value = decode(parse(b'{"share":%s}' % repr(number).encode()), POINT).values["share"]
    assert encode_float32(value) == text
