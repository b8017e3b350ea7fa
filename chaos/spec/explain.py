"""Why each diagnostic exists, with an example that is right: what `brownout explain CODE` prints.

Codes are stable: a code may be added, never renamed. Every example is a piece of a file that `brownout check` accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """The reason for a rule, and top-level keys of a file that keep it."""

    reason: str
    example: str


_TITLE = "title: The vector store goes away"
_RADIUS = "blast_radius: {roles: [vector-store, engine], targets: 1, duration: 30s}"
_WINDOWS = "windows: {baseline: 15s, recovery: 20s, settled: 15s}"
_TAGS = "tags: [quarterly, ci]"
_LOAD = "load: {name: chat, route: rag, rate: 20/s, stream: true, client: {timeout: 8s, retries: 2}}"
_SURGE = "load: {name: chat, route: chat, rate: 20/s, priority: batch, surge: {times: 12, for: 10s}}"
_GUARD = "guards:\n  - {measure: success_ratio, below: 50%, over: 5s}"
_KNOWN_GUARD = "guards:\n  - {measure: success_ratio, usual: 99%, below: 97%}"
_FAULT = "faults:\n  - {name: outage, kind: process_kill, target: {role: vector-store}, for: 15s}"
_SERVED = "hypotheses:\n  - {name: users are served, window: outage, measure: success_ratio, at_least: 99%}"
_FAST = "hypotheses:\n  - {name: no slow failure, window: outage, measure: ttft, at_most: 1.5s, grace: 3s}"
_CALM = "hypotheses:\n  - {name: calm, window: outage, measure: retry_amplification, dependency: engine, at_most: 1.1}"
_EVENT = "hypotheses:\n  - {name: breaker opens, event: breaker_opened, within: 3s, of: outage.start}"
_SERIES = "hypotheses:\n  - {name: nothing waits, window: settled, metric: 'queue_depth{pool=\"a\"}', at_most: 0}"

_SLOWER = (
    "hypotheses:\n"
    "  - {name: no slower than before, window: recovery, against: baseline, measure: ttft, quantile: p90, at_most: 1.5}"
)

_READING: Mapping[str, Explanation] = {
    "not-utf-8": Explanation("Files are UTF-8, so that every machine reads the same text.", _TITLE),
    "bad-character": Explanation(
        "A control character is invisible in an editor and breaks terminals, XML and reports.", _TITLE
    ),
    "bad-syntax": Explanation("The text is not YAML. Nothing after this place can be judged.", _RADIUS),
    "tab-indent": Explanation("YAML forbids tabs as indentation: their width is a matter of taste.", _FAULT),
    "empty-file": Explanation(
        "There is nothing to run. `brownout schema` helps an editor to write a first file.", _TITLE
    ),
    "several-documents": Explanation("One file is one experiment, so that its name says which.", _TITLE),
    "too-deep": Explanation("No experiment needs such nesting; it is refused before it costs time or memory.", _LOAD),
    "anchor-used": Explanation(
        "Text that is reused out of sight is read wrongly at 3 a.m.; write values out.", _RADIUS
    ),
    "alias-used": Explanation("Text that is reused out of sight is read wrongly at 3 a.m.; write values out.", _RADIUS),
    "tag-used": Explanation("Tags change the type of a value; here the key alone decides it.", _TAGS),
    "directive-used": Explanation("Directives change how YAML itself is read; all files are read one way.", _TITLE),
    "bad-key": Explanation("A key is a word; anything else cannot be a setting.", _TITLE),
    "duplicate-key": Explanation("Most YAML readers silently keep the last of two equal keys.", _RADIUS),
}

_SHAPE: Mapping[str, Explanation] = {
    "missing-key": Explanation("The setting has no sensible default, so it must be given.", _FAULT),
    "unknown-key": Explanation("A key that nobody reads is a setting that silently does not hold.", _RADIUS),
    "empty-value": Explanation("A key without a value is an unfinished thought: fill it in or remove it.", _TITLE),
    "empty-list": Explanation("Without a load, a fault and a hypothesis there is no experiment.", _SERVED),
    "not-text": Explanation("Text that looks like a number or like true is quoted, to show that it is text.", _TITLE),
    "not-true-or-false": Explanation(
        "Only true and false; yes, on and 1 mean different things to different readers.", _LOAD
    ),
    "not-a-whole-number": Explanation(
        "Plain decimal digits. 017, 0x11 and 1_000 mean different things to different readers.", _RADIUS
    ),
    "not-a-number": Explanation("A plain decimal number without a unit.", _CALM),
    "not-a-duration": Explanation("Times carry their unit (us, ms, s, m, h): 30 alone could be any of them.", _WINDOWS),
    "not-a-rate": Explanation("Rates say per what: 20/s, 90/m, 10/h.", _LOAD),
    "not-a-percentage": Explanation("Shares are written in percent, from 0% to 100%.", _SERVED),
    "not-a-size": Explanation(
        "Sizes carry their unit: B, KB, MB, GB or KiB, MiB, GiB.",
        "faults:\n  - {name: outage, kind: stream_cut, target: {role: engine}, after: 64KiB, for: 15s}",
    ),
    "not-a-list": Explanation("The setting takes several values; a list of one is still a list.", _TAGS),
    "not-a-mapping": Explanation("The setting has parts with names of their own.", _RADIUS),
    "unknown-choice": Explanation("The setting takes one of a few words; `brownout faults NAME` lists them.", _FAULT),
    "out-of-range": Explanation("The value is outside of what the setting can mean.", _LOAD),
    "invalid-setting": Explanation("The fault or measure itself refuses what was given.", _SERIES),
    "unknown-version": Explanation("The format is at version 1. Another version may mean anything.", "version: 1"),
    "unknown-fault": Explanation("`brownout faults` lists every kind with its settings.", _FAULT),
    "unknown-measure": Explanation("`brownout measures` lists every measure with its settings and unit.", _SERVED),
    "foreign-bound": Explanation(
        "The measure has a bound of its own: `within` for a time, none at all for what must be absent.", _EVENT
    ),
    "bad-override": Explanation(
        "An option names one place of the file and a value for it: --set windows.settled=20s.", _WINDOWS
    ),
    "unknown-override": Explanation(
        "List items are named by index or by their name: --set faults.outage.for=10s.", _FAULT
    ),
}

_NAMES: Mapping[str, Explanation] = {
    "duplicate-name": Explanation("Reports, windows and bounds refer to loads, faults and hypotheses by name.", _FAULT),
    "reserved-name": Explanation(
        "A fault names a window; gate, baseline, fault, recovery and settled exist already.", _FAULT
    ),
    "unknown-window": Explanation(
        "A hypothesis looks at gate, baseline, fault, recovery, settled or a fault.", _SERVED
    ),
    "unknown-load": Explanation("A measure can look at one load only if the file has it.", _GUARD),
    "unknown-moment": Explanation("An event is timed from the start or the end of a fault of the same file.", _EVENT),
    "unknown-role": Explanation("A mistyped role would select nobody, and nothing would be tested.", _RADIUS),
    "unknown-prompts": Explanation("Prompt sets are the files in fixtures/prompts/, with known right answers.", _LOAD),
    "runbook-not-found": Explanation(
        "A finding goes into the page that an SRE will open; the page has to exist.", "runbook: vector-store-outage"
    ),
    "missing-runbook": Explanation(
        "Whoever breaks something says which page helps when it breaks by itself. Only a control may do without.",
        "runbook: vector-store-outage",
    ),
}

_HARM: Mapping[str, Explanation] = {
    "fault-exceeds-blast-radius": Explanation("The blast radius is the most that was agreed on.", _RADIUS),
    "role-outside-blast-radius": Explanation("The blast radius names every role that may be harmed.", _RADIUS),
    "count-exceeds-blast-radius": Explanation("The blast radius says how many targets may be harmed at once.", _RADIUS),
    "no-target": Explanation("An empty selection is an error, never everybody.", _FAULT),
    "empty-fault": Explanation("A fault that lasts no time cannot be confirmed.", _FAULT),
    "no-traffic": Explanation("Without requests nothing can be observed.", _LOAD),
    "surge-outlasts-load": Explanation(
        "What would be due after the end of the load is never sent: the surge would be smaller than it says.",
        _SURGE,
    ),
    "no-prompt-to-lengthen": Explanation(
        "Tools, agents and embeddings get what the prompt set says, word for word.",
        "load: {name: chat, route: chat, rate: 20/s, prompt_words: 1500}",
    ),
}

_CLAIMS: Mapping[str, Explanation] = {
    "no-bound": Explanation("Without a bound nothing could refute the claim.", _SERVED),
    "contradicting-bounds": Explanation("No value could lie within both bounds.", _FAST),
    "cannot-fail": Explanation("Every hypothesis can fail; one that cannot is decoration.", _SERVED),
    "no-window": Explanation("The measure boils down one window of the run, so the claim says which.", _SERVED),
    "window-not-used": Explanation("The measure spans the whole run; a window would be ignored.", _EVENT),
    "measure-not-for-guards": Explanation("A guard decides while the run goes on, from the last few seconds.", _GUARD),
    "empty-window": Explanation("A window, less its grace, needs some length to look at.", _FAST),
    "bad-query": Explanation(
        "The query is tried on empty tables: one SELECT that gives one number (or two: hits, of how many), over the "
        "tables of the evidence, and the same answer every time. `brownout measures sql` lists tables and columns.",
        _SERVED,
    ),
    "no-comparison": Explanation(
        "`brownout measures NAME` says how a measure is compared; the others are no number of a window's requests.",
        _SLOWER,
    ),
    "no-control": Explanation(
        "A control is another window of the same run, or another load beside the one that is looked at.", _SLOWER
    ),
    "no-margin": Explanation(
        "Two windows of one quiet run differ. Their noise comes in waves, so that no number of requests makes it "
        "small: a difference is claimed with a margin, a factor 5 % away from 1, points of at least 0.1%.",
        _SLOWER,
    ),
    "usual-without-room": Explanation(
        "The guard weighs every outcome: is a share as bad as the bound more likely by now than the usual one? Both "
        "have to be possible and apart, and what is usual has to lie on the good side of one bound.",
        _KNOWN_GUARD,
    ),
    "over-not-used": Explanation(
        "A guard that says what is usual looks at every outcome since the load began, not at the last few seconds.",
        _KNOWN_GUARD,
    ),
    "too-few-to-compare": Explanation(
        "Beyond a p99 lies one request of a hundred; with fewer than five of them the comparison rests on single "
        "requests. p99 takes 500 in each window, p95 100, p90 50.",
        _SLOWER,
    ),
    "no-minimum-samples": Explanation(
        "With n requests, all of them good, the one-sided 95% Wilson interval of a share starts at n / (n + 2.706). "
        "Below the claimed share the run could only be inconclusive, however well it goes: 99% takes 268 requests.",
        _SERVED,
    ),
}

EXPLANATIONS: Mapping[str, Explanation] = {**_READING, **_SHAPE, **_NAMES, **_HARM, **_CLAIMS}

CODES: tuple[str, ...] = tuple(sorted(EXPLANATIONS))


def explain(code: str) -> str | None:
    """The page of a code: why it exists, and an example that is right. None for a code that does not exist."""
    found = EXPLANATIONS.get(code)
    if found is None:
        return None
    example = "".join(f"    {line}\n" for line in found.example.split("\n"))
    return f"{code}\n\n{found.reason}\n\nRight:\n\n{example}"
