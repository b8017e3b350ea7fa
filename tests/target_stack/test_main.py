"""The command line of the stack."""

from __future__ import annotations

import json

import pytest

from target_stack.__main__ import main
from target_stack.weaknesses import WEAKNESSES


def test_the_weaknesses_are_listed_as_json(capsys):
    assert main(["--list-weaknesses"]) == 0
    assert [w["name"] for w in json.loads(capsys.readouterr().out)] == [w.name for w in WEAKNESSES]


def test_an_unknown_weakness_ends_with_64_and_the_nearest_name(tmp_path, capsys):
    assert main(["--state-dir", str(tmp_path), "--weakness", "retries_without_budgets"]) == 64
    assert "did you mean 'retries_without_budget'?" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--state-dir"], ["--state-dir", "x", "--profile", "moon"], ["--wat"]])
def test_senseless_arguments_end_with_64(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 64
    assert "usage: python -m target_stack" in capsys.readouterr().err
