"""House rules as tests: what is banned says where, and what to use instead."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASSETS = sorted(p for p in (ROOT / "chaos").rglob("*") if p.suffix in {".js", ".css"})
PRODUCT = sorted(p for top in ("chaos", "target_stack") for p in (ROOT / top).rglob("*.py"))

LONGEST_FUNCTION = 50
LONGEST_FILE = 400

STACK = "target_stack/"
ADAPTERS = "chaos/adapters/"
PROXY = "chaos/proxy/"
WATCHDOG = "chaos/run/watchdog"
SABOTEURS = "chaos/saboteurs/"

BANNED_CALLS = {
    "time.time": ("host.clock.wall()", (ADAPTERS, PROXY, STACK)),
    "time.monotonic": ("host.clock.now()", (ADAPTERS, PROXY, WATCHDOG, SABOTEURS, STACK)),
    "time.sleep": ("host.clock.sleep_until()", (WATCHDOG, SABOTEURS, STACK)),
    "asyncio.sleep": ("host.clock.sleep_until()", (ADAPTERS, PROXY, "chaos/testing/", STACK)),
    "random.random": ("an entropy stream", ()),
    "random.choice": ("an entropy stream", ()),
    "random.shuffle": ("an entropy stream", ()),
    "os.kill": ("host.processes.signal()", (ADAPTERS, SABOTEURS, STACK)),
    "os.killpg": ("host.processes.signal()", (ADAPTERS, STACK)),
    "subprocess.run": ("a named launcher", ("chaos/environment.py",)),
    "subprocess.Popen": ("a named launcher", ("chaos/stacks/local.py", WATCHDOG, STACK)),
    "print": ("the voices of the command line", ("chaos/cli.py", STACK)),
    "sys.exit": ("an exit code returned to the command line", ("chaos/cli.py", "chaos/__main__.py", PROXY, STACK)),
}
"""Call to (what to use instead, where it is at home)."""


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Every product file, parsed once."""
    return {str(p.relative_to(ROOT)): ast.parse(p.read_text()) for p in PRODUCT}


def test_functions_are_short(trees: dict[str, ast.Module]) -> None:
    """Split along the sentence that describes it."""
    long = [
        f"{name}:{fn.lineno} {fn.name} has {size} lines, at most {LONGEST_FUNCTION}"
        for name, tree in trees.items()
        for fn in _functions(tree)
        if (size := (fn.end_lineno or fn.lineno) - fn.lineno + 1) > LONGEST_FUNCTION
    ]
    assert [] == long


def test_the_median_function_fits_in_one_glance(trees: dict[str, ast.Module]) -> None:
    """Half of all functions have fewer than eight lines of code, docstrings left out."""
    sizes = sorted(_code_lines(fn) for tree in trees.values() for fn in _functions(tree))
    assert sizes[len(sizes) // 2] < 8


def _code_lines(fn: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = fn.body[1:] if ast.get_docstring(fn) and len(fn.body) > 1 else fn.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


def test_files_are_short() -> None:
    """Split a file at its second idea."""
    files = [*PRODUCT, *ASSETS]
    long = [f"{p.relative_to(ROOT)}: {n} lines" for p in files if (n := p.read_text().count("\n")) > LONGEST_FILE]
    assert [] == long


def _script_functions(text: str) -> Iterator[tuple[str, int]]:
    """Functions and methods of a script with their lengths: from their first line to the brace under it."""
    opens = re.compile(r"^( *)(?:async )?(?:function (\w+)|(\w+))\(.*\) \{$")
    lines = text.split("\n")
    for number, line in enumerate(lines):
        found = opens.match(line)
        if found and (found[3] not in {"if", "for", "while", "switch"}):
            yield found[2] or found[3], lines.index(f"{found[1]}}}", number) - number + 1


def test_functions_of_scripts_are_short_too() -> None:
    """What runs in a reader's browser is held to the same length."""
    scripts = [p for p in ASSETS if p.suffix == ".js"]
    sizes = [(f"{p.relative_to(ROOT)}: {name}", n) for p in scripts for name, n in _script_functions(p.read_text())]
    assert len(sizes) > 30
    assert [] == [f"{name} has {n} lines" for name, n in sizes if n > LONGEST_FUNCTION]


def test_scripts_and_styles_open_with_their_idea_and_make_nothing_out_of_text() -> None:
    """Elements are made from values, and a page asks nothing of a network."""
    banned = re.compile(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|fetch\(|import\(|url\((?!#)"
    )
    for path in ASSETS:
        text = path.read_text()
        assert text.startswith(("// ", "/* ")), path
        assert not banned.search(text), path


def test_every_module_opens_with_its_idea(trees: dict[str, ast.Module]) -> None:
    """An empty `__init__.py` needs none."""
    silent = [name for name, tree in trees.items() if tree.body and not ast.get_docstring(tree)]
    assert [] == silent


def test_effects_happen_only_in_their_named_files(trees: dict[str, ast.Module]) -> None:
    """Time, dice, processes and printing come in through ports."""
    strays = [
        f"{name}:{node.lineno}: {called}() is banned here; use {BANNED_CALLS[called][0]}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (called := ast.unparse(node.func)) in BANNED_CALLS
        and not any(name.startswith(home) for home in BANNED_CALLS[called][1])
    ]
    assert [] == strays


def test_only_effects_are_async(trees: dict[str, ast.Module]) -> None:
    """Pure stages are plain functions: `async` is how an effect is spelt."""
    pure = ("chaos/spec/", "chaos/plan/", "chaos/verdict/", "chaos/report/", "chaos/runbooks/", "chaos/journal/")
    effects = [
        f"{name}:{fn.lineno} {fn.name}"
        for name, tree in trees.items()
        if name.startswith(pure)
        for fn in _functions(tree)
        if isinstance(fn, ast.AsyncFunctionDef)
    ]
    assert [] == effects


def test_nothing_is_left_open() -> None:
    """What is not done is in an issue, not in the code."""
    word = re.compile(
        r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b|NotImplemented" + "Error"
    )
    places = [
        f"{p.relative_to(ROOT)}:{i}"
        for p in [*PRODUCT, *sorted((ROOT / "tests").rglob("*.py"))]
        for i, line in enumerate(p.read_text().split("\n"), 1)
        if word.search(line)
    ]
    assert [] == places


def test_every_silenced_check_says_why() -> None:
    """`noqa` and `type: ignore` name the rule and carry a reason behind it."""
    bare = re.compile(
        r"#\s*(noqa(?!: [A-Z]+\d+(, [A-Z]+\d+)*\s{2}\S)|type: ignore(?!\[[a-z-]+(, ?[a-z-]+)*\]\s+#\s*\S))"
    )
    places = [
        f"{p.relative_to(ROOT)}:{i}: {line.strip()[:90]}"
        for p in PRODUCT
        for i, line in enumerate(p.read_text().split("\n"), 1)
        if bare.search(line)
    ]
    assert [] == places


def test_one_fault_one_file_one_word() -> None:
    """`faults/process_kill.py` holds `class ProcessKill` with `kind = "process_kill"`."""
    from chaos.faults.catalog import FAULTS

    spelt = {f.kind: (f.__module__, f.__name__) for f in FAULTS}
    wanted = {k: (f"chaos.faults.{k}", "".join(w.title() for w in k.split("_"))) for k in spelt}
    assert wanted == spelt


def test_no_file_names_a_registry_or_a_machine() -> None:
    """The repository works wherever its package clients are configured."""
    hosts = re.compile(r"pypi" + r"\.org|files\.pythonhosted|registry\.npmjs|/ro" + r"ot/|/wo" + r"rk/")
    texts = [
        p for p in ROOT.rglob("*") if p.is_file() and p.suffix in {".py", ".md", ".toml", ".yaml", ".txt", ".json"}
    ]
    own = [p for p in texts if not {".venv", ".git", "build", "runs", "soak"} & set(p.relative_to(ROOT).parts)]
    assert [] == [str(p.relative_to(ROOT)) for p in own if hosts.search(p.read_text(errors="replace"))]
