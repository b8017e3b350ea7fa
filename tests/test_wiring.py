"""Files to experiments, as every command reads them."""

import dataclasses
import json
from pathlib import Path

from chaos.faults.grips.needs import ROOT, tool
from chaos.faults.noop import Noop
from chaos.plan.targeting import PlanProblem
from chaos.spec.model import Experiment
from chaos.wiring import missing_needs, read_experiment

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


class Needy(Noop):
    """A control that cannot do without this and that."""

    needs = (ROOT, tool("iptables"))


def test_what_the_machine_lacks_is_told_where_it_is_asked_for_with_how_to_get_it() -> None:
    read = read_experiment(NODE_LOSS, NODE_LOSS.parent)
    assert isinstance(read, Experiment), read
    needy = dataclasses.replace(read, faults=(dataclasses.replace(read.faults[0], fault=Needy()),))
    headline = "`noop` needs tool iptables, which is not here"
    wanted = PlanProblem("missing-need", headline, "faults.0", "apt install iptables")
    assert (wanted,) == missing_needs(needy, lambda need: need.kind == "root")
    assert () == missing_needs(read, lambda _need: False)
