"""Where things are kept and what belongs together."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.paths import project_root, shown, state_root


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"BROWNOUT_STATE": "/a", "XDG_STATE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_STATE_HOME": "/b", "HOME": "/c"}, "/b/brownout"),
        ({"HOME": "/c"}, "/c/.local/state/brownout"),
    ],
)
def test_the_state_folder_follows_the_environment(environment: dict[str, str], expected: str) -> None:
    assert Path(expected) == state_root(environment)


def test_an_experiments_project_is_what_holds_its_experiments_folder(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "experiments" / "gpu" / "loss.yaml"
    (tmp_path / "fixtures" / "prompts").mkdir(parents=True)
    assert tmp_path / "project" == project_root(inner)


def test_a_file_elsewhere_belongs_to_the_nearest_folder_with_prompts(tmp_path: Path) -> None:
    (tmp_path / "fixtures" / "prompts").mkdir(parents=True)
    assert tmp_path == project_root(tmp_path / "tests" / "short" / "noop.yaml")


def test_paths_are_shown_as_people_type_them(tmp_path: Path) -> None:
    assert "a/b.yaml" == shown(tmp_path / "a" / "b.yaml", tmp_path)
    assert str(tmp_path / "b.yaml") == shown(tmp_path / "b.yaml", tmp_path / "a")
