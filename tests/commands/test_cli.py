"""What the command line says about itself, compared whole; BROWNOUT_REWRITE=1 writes the texts anew for a reviewer."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaos import cli
from chaos.adapters.files import LocalFiles
from chaos.commands.files import experiment_files
from chaos.faults.catalog import FAULTS
from chaos.series.order import Order, Series
from chaos.series.shelf import save
from chaos.settings import settings_of
from chaos.spec.layout import Document

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "cli"
REWRITE = os.environ.get("BROWNOUT_REWRITE") == "1"

COMMANDS = [command for names in cli._COMMANDS.values() for command in names]
KINDS = [fault.kind for fault in FAULTS]
SAYINGS = [
    *(["--help"], *([command, "--help"] for command in COMMANDS), ["export", "otlp", "--help"]),
    *(["faults"], *(["faults", kind] for kind in KINDS)),
    ["probes"],
    *(
        ["measures"],
        ["measures", "ttft"],
        ["measures", "metric"],
        *(["measures", name] for name in ("order", "event_count", "absent", "sql", "durability")),
    ),
    ["weaknesses"],
    *(["explain", "unknown-fault"], ["explain", "cannot-fail"]),
]


@dataclass
class Terminal:
    """The command line in this process, a hundred columns wide and without colours."""

    capsys: pytest.CaptureFixture[str]

    def call(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr. argparse ends `--help` and wrong usage by itself."""
        try:
            code = cli.main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        said = self.capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    return Terminal(capsys)


def golden_of(arguments: list[str]) -> Path:
    return GOLDEN / ("-".join(word.removeprefix("--") for word in arguments) + ".txt")


@pytest.mark.parametrize("arguments", SAYINGS, ids=" ".join)
def test_a_command_says_exactly_this(terminal: Terminal, arguments: list[str]) -> None:
    code, out, err = terminal.call(*arguments)
    path = golden_of(arguments)
    if REWRITE:
        path.write_text(out, encoding="utf-8")
    assert (code, err) == (0, "")
    assert one_value_per_option(path.read_text(encoding="utf-8")) == one_value_per_option(out)


def one_value_per_option(text: str) -> str:
    """argparse names the value of an option of two spellings twice before 3.13 and once since."""
    return " ".join(re.sub(r"(-\w+) [A-Z_]+, (--)", r"\1, \2", text).split()) if sys.version_info >= (3, 13) else text


def test_every_kept_text_is_still_compared() -> None:
    """A command that is gone takes its text with it."""
    assert {path.name for path in GOLDEN.iterdir()} == {golden_of(arguments).name for arguments in SAYINGS}


def test_the_schema_is_json_and_describes_every_key_of_the_file(terminal: Terminal) -> None:
    code, out, _ = terminal.call("schema")
    schema = json.loads(out)
    assert (code, schema["$schema"]) == (0, "https://json-schema.org/draft/2020-12/schema")
    assert set(schema["properties"]) == {setting.key for setting in settings_of(Document)}


def test_the_version_is_the_one_of_the_project(terminal: Terminal) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert terminal.call("version") == (0, f"brownout {project['version']}\n", "")


@pytest.mark.parametrize("what", ["faults", "probes", "measures", "weaknesses"])
def test_every_catalog_is_there_for_programs_too(terminal: Terminal, what: str) -> None:
    """Each entry with its name and its summary, in the order in which people read them."""
    _, listed, _ = terminal.call(what)
    code, out, _ = terminal.call(what, "--json")
    record = json.loads(out)
    assert (code, record["version"]) == (0, 1)
    assert [entry["name"] for entry in record[what]] == [line.split()[0] for line in listed.splitlines()]
    assert all(entry["summary"] for entry in record[what])


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["faults", "proces_kill"], "process_kill"),
        (["measures", "tfft"], "ttft"),
        (["explain", "unknown-falt"], "unknown-fault"),
    ],
)
def test_a_slip_of_the_keyboard_gets_the_right_word(terminal: Terminal, arguments: list[str], hint: str) -> None:
    code, out, err = terminal.call(*arguments)
    assert (code, out, hint in err) == (64, "", True)


def test_both_endings_of_yaml_are_experiments(terminal: Terminal, tmp_path: Path) -> None:
    for name in ("one.yaml", "two.yml"):
        shutil.copy(ROOT / "experiments" / "control" / "no_fault.yaml", tmp_path / name)
    (tmp_path / "folder.yaml").mkdir()
    code, out, _ = terminal.call("plan", str(tmp_path))
    assert (64, "") == (code, out)
    found = {path.name for path in experiment_files([str(tmp_path)])}
    assert {"one.yaml", "two.yml"} == found


@pytest.mark.parametrize("command", ["check", "plan", "run"])
def test_a_file_that_cannot_be_read_is_bad_input(terminal: Terminal, command: str) -> None:
    unreadable = "/proc/self/mem"  # a file for which every read at its beginning fails, also for root
    code, _, err = terminal.call(command, unreadable)
    assert 64 == code
    assert f"`{unreadable}` cannot be read: Input/output error" in err


def test_a_folder_of_many_experiments_has_no_single_plan(terminal: Terminal) -> None:
    code, out, err = terminal.call("plan", str(ROOT / "experiments"))
    assert (code, out, "one file at a time" in err) == (64, "", True)


@pytest.mark.parametrize("command", ["judge", "report"])
def test_a_series_where_a_run_is_wanted_is_called_so(terminal: Terminal, tmp_path: Path, command: str) -> None:
    (tmp_path / "series.json").write_text("{}")
    code, _, err = terminal.call(command, str(tmp_path))
    assert (64, True) == (code, "is a series of runs" in err)


@pytest.mark.parametrize("option", ["--repeat", "--until-refuted"])
@pytest.mark.parametrize("times", ["0", "-1", "x"])
def test_no_run_at_all_is_not_upheld(terminal: Terminal, option: str, times: str) -> None:
    code, _, err = terminal.call("run", "experiment.yaml", f"{option}={times}")
    assert (code, "from 1 up" in err) == (64, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "name an experiment file"),
        (["x.yaml", "--keep", "refuted"], "`--keep refuted` is for a series"),
        (["x.yaml", "--repeat", "2", "--until-refuted", "3"], "not allowed with"),
        (["--resume", "."], "`.` cannot be resumed"),
        (["x.yaml", "--repeat", "2", "--stop-when-refuted"], "only whole runs are pooled"),
        (["x.yaml", "--control-arm", "retries", "--stop-when-refuted"], "held against whole runs"),
    ],
)
def test_a_series_that_cannot_be_is_refused_before_anything_starts(
    terminal: Terminal, options: list[str], said: str
) -> None:
    code, _, err = terminal.call("run", *options)
    assert (64, True) == (code, said in err), err


def test_a_series_is_resumed_only_as_it_began_and_with_the_file_it_began_with(
    terminal: Terminal, tmp_path: Path
) -> None:
    """Another seed, or a file that was edited meanwhile, would make it two halves of two things."""
    file, folder = tmp_path / "noop.yaml", tmp_path / "series-x"
    shutil.copy(ROOT / "tests" / "system" / "short" / "noop.yaml", file)
    order = Order("noop", "Nothing", str(file), seed=7, most=3, profile="embedded")
    save(LocalFiles(), folder, Series("series-x", order))
    (folder / "experiment.yaml").write_text(file.read_text().replace("25/s", "30/s"))
    for options, said in ((["--seed", "8"], "leave out --seed"), ([], "is not the experiment that")):
        code, _, err = terminal.call("run", "--resume", str(folder), *options)
        assert (64, True) == (code, said in err), err


def test_a_reader_that_has_left_does_not_turn_bad_input_into_success() -> None:
    """`brownout ... 2>&1 | head -1` must not lose the exit code."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "chaos", "explain", "no-such-code"]
    with os.fdopen(writer, "wb") as gone:
        done = subprocess.run(command, cwd=ROOT, stdout=gone, stderr=gone, timeout=30, check=False)
    assert done.returncode == 64
