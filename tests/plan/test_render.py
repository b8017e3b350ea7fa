"""The plan as text, whole."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from test_make_plan import entry, planned

from chaos.plan.render import load_line, render
from chaos.spec.model import Load, Selector, Surge
from chaos.units import Duration, Rate

EXPECTED = """\
T
  experiment   x/y
  stack        bundled (profile embedded)
  seed         7
  fingerprint  {fingerprint}
  lasts        28s of load, then the drain

load
  chat: 10/s poisson on chat (small-talk), patient clients

faults
  poke: poke (depth 1s)
    harms      engine-a (engine on gpu-1)
    from       10s to 18s, lease 12s
    seen by    an eye
    fidelity   process

timeline
      0.00s  open window   baseline
      9.00s  arm           poke
     10.00s  close window  baseline
     10.00s  inject        poke
     10.00s  open window   fault
     10.00s  open window   poke
     15.50s  look          poke
     18.00s  close window  fault
     18.00s  close window  poke
     18.00s  revert        poke
     18.00s  open window   recovery
     24.00s  close window  recovery
     24.00s  open window   settled
     28.00s  close window  settled

hypotheses
"""


def test_the_whole_text_of_a_plan() -> None:
    plan = planned(entry(Selector(name="engine-a")))
    assert EXPECTED.format(fingerprint=plan.fingerprint) == render(plan)


def test_a_surge_of_batch_work_is_told() -> None:
    batch = Load(
        name="nightly",
        route="chat",
        rate=Rate(2.0),
        priority="batch",
        surge=Surge(times=12.0, for_=Duration(10)),
    )
    told = "nightly: 2/s poisson, 12 times as much for 10s of batch work on chat (small-talk), patient clients"
    assert told == load_line(batch)


def test_long_prompts_are_told() -> None:
    flood = Load(name="flood", route="chat", rate=Rate(2.0), prompt_words=900)
    assert load_line(flood) == "flood: 2/s poisson on chat (small-talk, prompts of 900 words), patient clients"
