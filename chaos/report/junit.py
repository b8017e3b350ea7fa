"""junit.xml for CI: one suite an experiment, one test case a precondition and a hypothesis.

Refuted is a failure: the stack is not as claimed. Inconclusive and an unmet precondition are errors: nothing is known.
A skip would be green in most servers, so there is none. The document is held against what Jenkins and Maven Surefire
publish: only their elements and attributes, in their order, so properties are the suite's and output is a case's own.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from chaos.report.facts import Facts, found, wanted
from chaos.report.measured import unix_time
from chaos.verdict.outcome import Judged, Verdict

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(facts: Facts) -> str:
    """The document."""
    verdict = facts.verdict
    suite = ET.Element("testsuite", name=_text(verdict.experiment))
    _properties(suite, facts)
    for condition in verdict.preconditions:
        case = _case(suite, verdict, f"precondition: {condition.name}")
        if not condition.held:
            _problem(case, "error", "precondition", condition.why)
    for judged in verdict.hypotheses:
        case = _case(suite, verdict, judged.name)
        if judged.verdict != "upheld":
            _problem(case, "failure" if judged.verdict == "refuted" else "error", judged.verdict, _why(judged))
        ET.SubElement(case, "system-out").text = _text(f"{judged.measure}: {found(judged)}, wanted {wanted(judged)}")
    counts = {
        "tests": len(suite.findall("testcase")),
        "failures": len(suite.findall("*/failure")),
        "errors": len(suite.findall("*/error")),
        "skipped": 0,
    }
    suite.attrib |= {name: str(count) for name, count in counts.items()} | _when(facts)
    root = ET.Element("testsuites", name="brownout")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _properties(suite: ET.Element, facts: Facts) -> None:
    verdict = facts.verdict
    known = {
        "run": verdict.run,
        "run_dir": facts.run_dir,
        "report": f"{facts.run_dir}/report.html",
        "verdict": verdict.verdict,
        "why": verdict.why,
        "exit_code": str(verdict.exit_code),
        "seed": str(verdict.seed),
        "fingerprint": verdict.fingerprint,
        "profile": verdict.profile,
        "weaknesses": ", ".join(verdict.weaknesses),
    }
    properties = ET.SubElement(suite, "properties")
    for name, value in known.items():
        ET.SubElement(properties, "property", name=f"brownout.{name}", value=_text(value))


def _when(facts: Facts) -> dict[str, str]:
    """How long the run took, and when it began in UTC; absent where the journal does not tell."""
    records, began = facts.evidence.records, unix_time(facts, 0.0)
    took_s = records[-1].t - records[0].t if records else 0.0
    started = datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%dT%H:%M:%S") if began is not None else None
    return {"time": f"{took_s:.3f}"} | ({"timestamp": started} if started else {})


def _case(suite: ET.Element, verdict: Verdict, name: str) -> ET.Element:
    """Cases take no time of their own: all are answered by the one run."""
    return ET.SubElement(suite, "testcase", classname=_text(verdict.experiment), name=_text(name), time="0.000")


def _problem(case: ET.Element, element: str, kind: str, why: str) -> None:
    ET.SubElement(case, element, type=kind, message=_text(why)).text = _text(why)


def _why(judged: Judged) -> str:
    return judged.why + (f". To settle: {judged.to_settle}" if judged.to_settle else "")


def _text(text: str) -> str:
    """Characters that XML 1.0 has no way to write are replaced."""
    return _NOT_XML.sub("\ufffd", text)
