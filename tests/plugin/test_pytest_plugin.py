"""The installed plugin from outside, as far as it needs no stack: what is collected, selected and said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = """\
version: 1
title: Nothing is broken
why: Something to collect.
owner: tests
runbook: some-page
tags: [{tags}]
blast_radius: {{roles: [gateway], targets: 0, duration: 2s}}
load: {{name: chat, route: chat, rate: 5/s}}
faults:
  - {{name: harm, kind: noop, for: 2s}}
hypotheses:
  - {{name: users are served, window: harm, measure: success_ratio, at_least: 10%}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project below a folder that is itself called `experiments`; not all of its files are tests."""
    root = tmp_path / "experiments" / "project"
    for name, tags in (("gpu/loss", "ci, end-to-end"), ("gpu/skipped", "skip, xfail"), ("retrieval/outage", "slow")):
        write(root / "experiments" / f"{name}.yaml", GOOD.format(tags=tags))
    write(root / "experiments/gamedays/autumn.yaml", "not: an experiment\n")
    write(root / "experiments/README.md", "not an experiment\n")
    write(root / "deploy/values.yaml", "not: an experiment\n")
    write(root / "runbooks/some-page.md", "# Some page\n")
    write(root / "pytest.ini", "[pytest]\n")
    return root


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


OBEYS_MODES = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""Makes even root obey the modes of files."""


def pytest_in(project: Path, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """pytest as a person calls it; every warning is an error, and plugins that have no part in this stay outside."""
    others = [f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "timeout", "anyio")]
    return subprocess.run(
        [
            *before,
            sys.executable,
            "-W",
            "error",
            "-m",
            "pytest",
            "-W",
            "error",
            *(f"-pno:{name}" for name in others),
            *arguments,
        ],
        cwd=project,
        env={**os.environ, "BROWNOUT_STATE": str(project / "state"), "NO_COLOR": "1", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def collected(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode in {0, 5}, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


ALL = [
    "experiments/gpu/loss.yaml::gpu/loss",
    "experiments/gpu/skipped.yaml::gpu/skipped",
    "experiments/retrieval/outage.yaml::retrieval/outage",
]


def test_every_experiment_is_a_test_and_nothing_else_is(project: Path) -> None:
    """Game days, other YAML and a folder of that name above the project are not collected; no stack is brought up."""
    assert collected(pytest_in(project, "--collect-only", "-q", "--strict-markers")) == ALL
    assert not (project / "state").exists()


def test_tags_are_marks_as_they_are_written(project: Path) -> None:
    """A hyphen stays a hyphen, and --strict-markers knows every tag."""
    selected = collected(
        pytest_in(project, "experiments", "--collect-only", "-q", "--strict-markers", "-m", "end-to-end")
    )
    assert selected == ALL[:1]


def test_names_and_tags_select_with_k(project: Path) -> None:
    """Also tags that must not become marks, because pytest would skip the test."""
    assert collected(pytest_in(project, "--collect-only", "-q", "-k", "retrieval or xfail")) == ALL[1:]


def test_one_experiment_is_called_by_its_id(project: Path) -> None:
    assert collected(pytest_in(project, "--collect-only", "-q", ALL[2])) == ALL[2:]


def test_the_folder_may_be_where_pytest_is_called(project: Path) -> None:
    """Without an ini file above, the experiments folder itself is the root of the session."""
    (project / "pytest.ini").unlink()
    assert collected(pytest_in(project / "experiments", "--collect-only", "-q", ".")) == [
        id_.removeprefix("experiments/") for id_ in ALL
    ]


def test_a_bad_file_fails_with_its_diagnostic_and_the_others_still_run(project: Path) -> None:
    """No traceback, and no stack is brought up for a file that cannot be run."""
    write(project / "experiments/bad.yaml", GOOD.format(tags="ci").replace("kind: noop", "kind: nop"))
    write(project / "experiments/empty.yaml", "")
    write(project / "experiments/test_other.py", "def test_other() -> None:\n    pass\n")
    done = pytest_in(project, "-v", "--junitxml=junit.xml", "-k", "bad or empty or other")
    assert (done.returncode, "Traceback" in done.stdout) == (1, False)
    assert "experiments/bad.yaml::bad FAILED" in done.stdout
    assert "error[unknown-fault]" in done.stdout
    assert "experiments/bad.yaml:10:" in done.stdout
    assert "experiments/empty.yaml::empty FAILED" in done.stdout
    assert "experiments/test_other.py::test_other PASSED" in done.stdout
    assert "2 failed, 1 passed, 3 deselected" in done.stdout
    assert "error[unknown-fault]" in (project / "junit.xml").read_text()
    assert not (project / "state").exists()


def test_a_file_that_cannot_be_read_fails_in_one_sentence(project: Path) -> None:
    (project / "experiments/gpu/loss.yaml").chmod(0)
    done = pytest_in(project, "-k", "loss", before=OBEYS_MODES if os.geteuid() == 0 else ())
    assert (done.returncode, "Traceback" in done.stdout) == (1, False)
    assert "error: cannot be read" in done.stdout


def test_the_options_stand_in_the_help(project: Path) -> None:
    shown = pytest_in(project, "--help").stdout
    names = ["--chaos-profile", "--chaos-seed", "--chaos-out", "--chaos-weakness"]
    names += ["--chaos-repeat", "--chaos-until-refuted", "--chaos-stop-when-refuted"]
    assert [name for name in names if name in shown] == names


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--chaos-repeat=0"], "`0` is not a whole number from 1 up"),
        (["--chaos-until-refuted=x"], "`x` is not a whole number from 1 up"),
        (["--chaos-repeat=2", "--chaos-until-refuted=9"], "exclude each other"),
        (["--chaos-repeat=2", "--chaos-stop-when-refuted"], "only whole runs are pooled"),
    ],
)
def test_a_series_that_cannot_be_is_wrong_usage(project: Path, options: list[str], said: str) -> None:
    done = pytest_in(project, *options)
    assert (pytest.ExitCode.USAGE_ERROR, True) == (done.returncode, said in done.stderr), done.stderr


def test_a_session_without_experiments_imports_none_of_the_harness() -> None:
    """The plugin is loaded in every session of its environment, so it must be next to nothing."""
    script = "import sys, chaos.pytest_plugin; print([m for m in sys.modules if m.startswith('chaos.')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "['chaos.pytest_plugin']"


def test_a_metrics_page_that_other_machines_could_reach_is_refused_before_any_stack_is_started(project: Path) -> None:
    done = pytest_in(project, "--chaos-metrics", "0.0.0.0:0", "experiments/retrieval")
    assert (1, True) == (done.returncode, "so it needs a token file" in done.stdout), done.stdout
    assert not (project / "state" / "stacks").exists()
