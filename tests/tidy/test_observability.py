"""The page docs/observability.md and the gateway's code name the same metrics and events."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "observability.md").read_text()
CODE = [ast.parse(path.read_text()) for path in (ROOT / "target_stack" / "gateway").rglob("*.py")]
_METRICS, _EVENTS = PAGE.split("## Events")[0], PAGE.split("## Events")[1].split("## The structured log")[0]


def _documented(text: str) -> list[str]:
    """Names in the first cell of every row."""
    return [name for row in re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]


def _strings(node: ast.AST) -> Iterator[str]:
    return (n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _told() -> Iterator[ast.expr]:
    """First arguments of everything that adds an event, and the values of tables called `_..._EVENTS`."""
    for tree in CODE:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and re.search(r"events\.add$|\._tell$", ast.unparse(node.func)):
                yield node.args[0].body if isinstance(node.args[0], ast.IfExp) else node.args[0]
                if isinstance(node.args[0], ast.IfExp):
                    yield node.args[0].orelse
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("_EVENTS"):
                yield from node.value.values if isinstance(node.value, ast.Dict) else ()


def test_every_metric_is_documented_once_and_every_documented_metric_exists() -> None:
    """Write a new metric into the table of its layer in docs/observability.md."""
    code = {text for tree in CODE for text in _strings(tree) if re.fullmatch(r"gateway_[a-z_]+", text)}
    assert sorted(code) == sorted(_documented(_METRICS))


def test_every_event_that_the_code_tells_is_documented() -> None:
    """Write a new event into the table in docs/observability.md; names that are computed must match a row."""
    documented = _documented(_EVENTS)
    for told in _told():
        if isinstance(told, ast.Constant):
            assert told.value in documented
        if isinstance(told, ast.JoinedStr):
            pattern = "".join(part.value if isinstance(part, ast.Constant) else r"\w+" for part in told.values)
            assert [name for name in documented if re.fullmatch(pattern, name)], pattern


def test_every_documented_event_is_in_the_code() -> None:
    """Take a row out when its event goes."""
    code = {text for tree in CODE for text in _strings(tree)}
    patterns = [told for told in _told() if isinstance(told, ast.JoinedStr)]
    shapes = [
        "".join(part.value if isinstance(part, ast.Constant) else r"\w+" for part in shape.values) for shape in patterns
    ]
    gone = [n for n in _documented(_EVENTS) if n not in code and not any(re.fullmatch(shape, n) for shape in shapes)]
    assert gone == []
