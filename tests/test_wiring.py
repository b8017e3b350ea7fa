"""Files to experiments, as every command reads them."""

import json
from pathlib import Path

from chaos.spec.model import Experiment
from chaos.wiring import read_experiment

NODE_LOSS = Path(__file__).parents[1] / "experiments" / "gpu" / "node_loss.yaml"


def named(path: Path) -> str:
    read = read_experiment(path, path.parent)
    assert isinstance(read, Experiment), read
    return read.name


def test_the_copy_in_a_run_directory_keeps_its_name_so_that_a_replay_is_the_same_plan(tmp_path: Path) -> None:
    copy = tmp_path / "experiment.yaml"
    copy.write_bytes(NODE_LOSS.read_bytes())
    assert "experiment" == named(copy)
    (tmp_path / "plan.json").write_text(json.dumps({"experiment": "gpu/node_loss"}))
    assert "gpu/node_loss" == named(copy) == named(NODE_LOSS)


def test_a_plan_that_cannot_be_read_names_nothing(tmp_path: Path) -> None:
    copy = tmp_path / "experiment.yaml"
    copy.write_bytes(NODE_LOSS.read_bytes())
    for torn in ("{", "[]", '{"experiment": 7}'):
        (tmp_path / "plan.json").write_text(torn)
        assert "experiment" == named(copy)
