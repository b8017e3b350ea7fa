"""Experiments that must come out as they should, with other dice each time: upheld, or refuted by the right claim."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from caught import CATCHES, EXPERIMENTS, Catch
from drill import SHORT, Drill
from matrix import Figure, Found, Matrix, Row, Trial

from chaos.journal.reader import read_journal
from chaos.load.report import quantile

CONTROL_SEEDS, MISSION_SEEDS, WEAKNESS_SEEDS, LOAD_SEEDS = range(1, 21), range(1, 11), range(1, 6), range(1, 4)
INJECT_LATE_S = 0.005
LOAD_LATE_S = 0.001
MISSION_EXPERIMENTS = (
    "gpu/node_loss",
    "engine/latency",
    "engine/stall",
    "retrieval/vector_store_outage",
    "load/retry_storm",
)


def run_verdict(drill: Drill, file: Path, seed: int, out: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """Run one experiment: exit code and verdict.json. Raises AssertionError when there is no verdict at all."""
    arguments = ("run", str(file), "--no-runbook", "--json", "--seed", str(seed), "--out", str(out), *more)
    done = drill.call(*arguments, within_s=180)
    assert done.stdout.strip(), f"exit code {done.returncode} and no verdict:\n{done.stderr}"
    verdict: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, verdict


def told(hypothesis: Mapping[str, Any]) -> str:
    """One hypothesis with its number and bound."""
    value = hypothesis["value"]
    shown = "no value" if value is None else f"{value:.4g}"
    sides = hypothesis["interval"] or ()
    within = " [" + ", ".join("inf" if side is None else f"{side:.4g}" for side in sides) + "]" if sides else ""
    bound = " ".join(f"{word} {number:.4g}" for word, number in hypothesis["bound"].items())
    return f"{hypothesis['verdict']} {hypothesis['name']}: {shown}{within} n={hypothesis['n']} {bound}"


def not_upheld(code: int, verdict: Mapping[str, Any]) -> str | None:
    """Why a run is not upheld: preconditions that did not hold, else the hypotheses that are not; None when it is."""
    if (code, verdict["verdict"]) == (0, "upheld"):
        return None
    reasons = [f"{p['name']} did not hold: {p['why']}" for p in verdict["preconditions"] if not p["held"]]
    reasons = reasons or [told(h) for h in verdict["hypotheses"] if h["verdict"] != "upheld"]
    return f"exit code {code}, {verdict['verdict']}: " + "; ".join(reasons)


def facts_of(run_dir: Path, verdict: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a run, also of one that was upheld: a bound that is nearly broken shows before it breaks."""
    numbers = {h["name"]: {key: h[key] for key in ("value", "interval", "n", "bound")} for h in verdict["hypotheses"]}
    return {"run": verdict["run"], "verdict": verdict["verdict"], **lateness(run_dir), "hypotheses": numbers}


def lateness(run_dir: Path) -> dict[str, Any]:
    """How late the injects and the requests of a run were, in seconds."""
    records = read_journal((run_dir / "journal.jsonl").read_bytes()).records
    late: dict[str, Any] = {
        "inject_late_s": [round(r.t - r.fields["planned"], 6) for r in records if r.kind == "fault_injected"]
    }
    for record in records:
        if record.kind == "load_finished":
            late |= {key: record.fields[key] for key in ("lateness_s_p50", "lateness_s_p99")}
    return late


def upheld(trial: Trial, drill: Drill, out: Path) -> Found:
    """The experiment of the trial is upheld."""
    experiment = trial.name.rpartition("/")[0]
    code, verdict = run_verdict(drill, EXPERIMENTS / f"{experiment}.yaml", trial.seed, out)
    return Found(not_upheld(code, verdict), facts_of(out / experiment / verdict["run"], verdict))


def refuted(trial: Trial, drill: Drill) -> Found:
    """The planted weakness of the trial is refuted by the hypothesis that should catch it."""
    catch = _catch_of(trial)
    file = EXPERIMENTS / f"{catch.experiment}.yaml"
    code, verdict = run_verdict(drill, file, trial.seed, drill.runs, "--weakness", catch.weakness)
    wrong = None if is_caught(code, verdict, catch) else f"exit code {code}: {told(claim_of(verdict, catch))}"
    return Found(wrong, facts_of(drill.runs / catch.experiment / verdict["run"], verdict))


def claim_of(verdict: Mapping[str, Any], catch: Catch) -> Mapping[str, Any]:
    """The hypothesis that should catch the weakness, as it was judged."""
    claims: dict[str, Mapping[str, Any]] = {h["name"]: h for h in verdict["hypotheses"]}
    return claims[catch.hypothesis]


def is_caught(code: int, verdict: Mapping[str, Any], catch: Catch) -> bool:
    """Refuted, and by that hypothesis."""
    return (code, verdict["verdict"], claim_of(verdict, catch)["verdict"]) == (1, "refuted", "refuted")


def _catch_of(trial: Trial) -> Catch:
    return next(catch for catch in CATCHES if trial.name.startswith(f"{catch.weakness}/{catch.experiment}/"))


def _seeded(experiments: Sequence[str], seeds: range) -> list[Trial]:
    return [Trial(f"{experiment}/{seed}", seed) for seed in seeds for experiment in experiments]


def _load_lateness(rows: Sequence[Row]) -> list[Figure]:
    late = [row["lateness_s_p50"] for row in rows if row.get("lateness_s_p50") is not None]
    return [Figure("load lateness p50, worst run", max(late, default=None))]


def missions(runs: Path) -> Matrix:
    """Every mission experiment is upheld. Its run directories stay, for whoever has to find out why one was not."""
    return Matrix(
        "missions",
        "every mission experiment is upheld on the hardened stack",
        lambda: _seeded(MISSION_EXPERIMENTS, MISSION_SEEDS),
        lambda trial, drill: upheld(trial, drill, runs / "missions"),
        _load_lateness,
    )


def injection(runs: Path) -> Matrix:
    """How punctual the harness is: every stored mission, and short runs with fifty requests a second."""

    def trials() -> list[Trial]:
        stored = sorted(path.parent for path in (runs / "missions").rglob("journal.jsonl"))
        short = [Trial(f"50 requests a second/{seed}", seed) for seed in LOAD_SEEDS]
        return [*short, *(Trial(str(run_dir.relative_to(runs)), 0) for run_dir in stored)]

    def carry_out(trial: Trial, drill: Drill) -> Found:
        if (runs / trial.name).is_dir():
            return Found(None, lateness(runs / trial.name))
        _, verdict = run_verdict(drill, SHORT / "noop.yaml", trial.seed, drill.runs, "--set", "load.rate=50/s")
        late = lateness(drill.last_run())
        return Found(None, {"run": verdict["run"], **late, "at_50_s_p50": late["lateness_s_p50"]})

    return Matrix("injection", "faults and requests come when they are due", trials, carry_out, _punctuality)


def _punctuality(rows: Sequence[Row]) -> list[Figure]:
    stored = [row for row in rows if row["trial"].startswith("missions/")]
    injects = [late for row in stored for late in row.get("inject_late_s", ())]
    at_50 = [row["at_50_s_p50"] for row in rows if row.get("at_50_s_p50") is not None]
    return [
        Figure("injects of missions", float(len(injects)), unit=""),
        Figure("inject lateness p50", _ms(quantile(injects, 0.5)), "ms", 1000 * INJECT_LATE_S),
        Figure("p99", _ms(quantile(injects, 0.99)), "ms"),
        Figure("load lateness p50 at 50/s", _ms(quantile(at_50, 0.5)), "ms", 1000 * LOAD_LATE_S),
    ]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


CONTROL = Matrix(
    "control",
    "an experiment that breaks nothing is upheld",
    lambda: _seeded(["control/no_fault"], CONTROL_SEEDS),
    lambda trial, drill: upheld(trial, drill, drill.runs),
    _load_lateness,
)
WEAKNESSES = Matrix(
    "weaknesses",
    "every planted weakness is refuted by the hypothesis that should catch it",
    lambda: [Trial(f"{c.weakness}/{c.experiment}/{seed}", seed) for seed in WEAKNESS_SEEDS for c in CATCHES],
    refuted,
    stack=False,
)
