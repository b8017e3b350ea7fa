"""junit.xml for CI: one test case a precondition and a hypothesis. What is not known is an error, never a pass or a
skip.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from chaos.report.facts import told
from chaos.verdict.outcome import Verdict

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(verdict: Verdict) -> str:
    """The document. Refuted is a failure; inconclusive and an unmet precondition are errors."""
    suite = ET.Element("testsuite", name=_text(verdict.experiment))
    for condition in verdict.preconditions:
        case = _case(suite, verdict, f"precondition: {condition.name}")
        if not condition.held:
            _problem(case, "error", "precondition", condition.why)
    for judged in verdict.hypotheses:
        case = _case(suite, verdict, judged.name)
        if judged.verdict != "upheld":
            _problem(case, "failure" if judged.verdict == "refuted" else "error", judged.verdict, told(judged))
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(len(suite.findall("*/failure"))))
    suite.set("errors", str(len(suite.findall("*/error"))))
    suite.set("skipped", "0")
    root = ET.Element("testsuites", name="brownout")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, verdict: Verdict, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_text(verdict.experiment), name=_text(name))


def _problem(case: ET.Element, element: str, kind: str, why: str) -> None:
    ET.SubElement(case, element, type=kind, message=_text(why)).text = _text(why)


def _text(text: str) -> str:
    """Characters that XML 1.0 has no way to write are replaced."""
    return _NOT_XML.sub("\ufffd", text)
