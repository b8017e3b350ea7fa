"""report.html as its readers use it: in a real browser, from a file, with a mouse, a thumb, a keyboard, on paper."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from chaos.journal.record import Span
from chaos.journal.spans import SpanTable
from chaos.report.facts import gather
from chaos.report.html import to_html
from chaos.verdict.judge import judge
from tests.verdict.story import CASES, experiment

pytestmark = [pytest.mark.real, pytest.mark.browser]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHART = "svg.chart"
LENGTH = 50.0
CONTRAST = 4.5


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser of the machine; only a developer's machine may have none."""
    if CHROMIUM is None:
        assert not os.environ.get("CI"), "CI installs chromium"
        pytest.skip("no Chromium here: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


def written(case: str, folder: Path) -> Path:
    """The page of a story whose failed requests left traces."""
    story, checked = CASES[case], experiment()
    calls = [call for sample in story.samples() if sample.outcome == "failed" for call in _calls(sample)]
    evidence = dataclasses.replace(story.evidence(), spans=SpanTable.build(calls))
    page = folder / f"{case}.html"
    page.write_text(to_html(gather(checked, evidence, judge(checked, evidence), PurePosixPath("runs/the-run"))))
    return page


def _calls(sample: Any) -> Iterator[Span]:
    begin, end = sample.intended_s, sample.end_s
    served = Span(sample.trace_id, "a", "", "gateway", "callee", "rag", "", begin, end, "error", 1, 12, 0)
    yield served
    yield dataclasses.replace(served, span_id="b", parent_id="a", kind="caller", name="vector-store", outcome="timeout")


@dataclasses.dataclass
class Reader:
    """A page with everything that went wrong in it, and every address that it asked for."""

    page: Page
    troubles: list[str]
    asked: list[str]

    def view(self) -> tuple[float, float]:
        told = self.page.locator(CHART).evaluate("svg => [svg.dataset.from, svg.dataset.to]")
        return float(told[0]), float(told[1])

    def drag(self, begin: float, end: float) -> None:
        """Across the timeline, from one share of its width to another."""
        self.page.locator(CHART).scroll_into_view_if_needed()
        box = self.page.locator(CHART).bounding_box()
        assert box is not None
        x = lambda share: box["x"] + 52 + (box["width"] - 60) * share  # noqa: E731  a scale in one place
        self.page.mouse.move(x(begin), box["y"] + 150)
        self.page.mouse.down()
        self.page.mouse.move(x(end), box["y"] + 160, steps=3)
        self.page.mouse.up()


@pytest.fixture
def read(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """Opens a page; at the end nothing may have gone wrong and nothing may have left the machine."""
    readers = []

    def opened(case: str = "refuted_pile_on", **context: Any) -> Reader:
        page = browser.new_context(**{"viewport": {"width": 1100, "height": 800}, **context}).new_page()
        reader = Reader(page, [], [])
        page.on("console", lambda message: reader.troubles.append(message.text))
        page.on("pageerror", lambda error: reader.troubles.append(str(error)))
        page.on("request", lambda request: reader.asked.append(request.url))
        address = written(case, tmp_path).as_uri()
        page.goto(address)
        readers.append((reader, address))
        return reader

    yield opened
    for reader, address in readers:
        assert [] == reader.troubles
        assert [address] == reader.asked
        reader.page.context.close()


@pytest.mark.parametrize("case", sorted(CASES))
def test_every_page_opens_without_a_complaint(read: Any, case: str) -> None:
    reader = read(case)
    assert reader.page.locator("h1").is_visible()
    assert (1 if case != "gate_not_met" else 0) == reader.page.locator(CHART).count()


def test_dragging_looks_closer_and_reset_and_double_click_show_all(read: Any) -> None:
    reader = read()
    assert (0.0, LENGTH) == reader.view()
    reader.drag(0.2, 0.6)
    begin, end = reader.view()
    assert (10, 30) == (round(begin), round(end))
    reader.page.get_by_role("button", name="show the whole run").click()
    assert (0.0, LENGTH) == reader.view()
    reader.drag(0.5, 0.9)
    reader.page.locator(CHART).dblclick(position={"x": 400, "y": 150})
    assert (0.0, LENGTH) == reader.view()


def test_the_wheel_zooms_with_ctrl_and_scrolls_without(read: Any) -> None:
    reader = read()
    reader.page.locator(CHART).hover(position={"x": 400, "y": 150})
    before = reader.page.evaluate("scrollY")
    reader.page.mouse.wheel(0, 120)
    reader.page.wait_for_function(f"scrollY > {before}")
    assert (0.0, LENGTH) == reader.view()
    reader.page.locator(CHART).hover(position={"x": 400, "y": 150})
    reader.page.keyboard.down("Control")
    reader.page.mouse.wheel(0, -120)
    reader.page.wait_for_function(f"Number(document.querySelector('{CHART}').dataset.to) < {LENGTH}")
    reader.page.keyboard.up("Control")


def test_the_keyboard_does_what_the_mouse_does(read: Any) -> None:
    reader = read()
    chart = reader.page.locator(CHART)
    chart.focus()
    for _ in range(17):
        chart.press("ArrowRight")
    told = reader.page.get_by_role("status").inner_text()
    assert told.startswith("17.0s")
    assert "outage in force" in told
    chart.press("+")
    begin, end = reader.view()
    assert pytest.approx(LENGTH / 2) == end - begin
    chart.press("Shift+ArrowRight")
    assert reader.view()[0] > begin
    chart.press("0")
    assert (0.0, LENGTH) == reader.view()


def test_a_moment_of_the_list_is_found_in_the_timeline(read: Any) -> None:
    reader = read("upheld")
    reader.page.get_by_role("button", name="15.00s").click()
    assert "process_kill injected" in reader.page.get_by_role("status").inner_text()
    assert "process_kill injected" in reader.page.locator("#events tr.now").first.inner_text()


def test_hypotheses_sort_both_ways(read: Any) -> None:
    page = read().page
    names = lambda: page.locator("#hypothesis > tbody > tr > td:nth-child(2)").all_inner_texts()  # noqa: E731  asked thrice
    unsorted = names()
    head = page.locator("#hypothesis th", has_text="hypothesis")
    head.get_by_role("button").click()
    assert sorted(unsorted) == names() != unsorted
    assert "ascending" == head.get_attribute("aria-sort")
    head.get_by_role("button").click()
    assert sorted(unsorted, reverse=True) == names()
    page.locator("#hypothesis th", has_text="verdict").get_by_role("button").click()
    verdicts = page.locator("#hypothesis > tbody > tr > td:first-child").all_inner_texts()
    assert ["refuted"] * 7 + ["upheld"] * 2 == verdicts


def test_a_finding_leads_to_its_requests_their_attempts_and_their_traces(read: Any) -> None:
    page = read().page
    page.get_by_role("link", name="users are served").click()
    drill = page.locator("#hypothesis-1 + tr")
    assert "75 of 300 requests speak against it" in drill.inner_text()
    rows = drill.locator("table.requests > tbody > tr")
    assert 75 == rows.count()
    rows.first.get_by_role("button").click()
    request = rows.nth(1)
    assert "status_500" in request.inner_text()
    assert "One attempt" in request.inner_text()
    assert ["gateway rag", "vector-store"] == [
        text.split("→")[-1].strip() for text in request.locator("svg").nth(1).locator("text.ink").all_text_contents()
    ]
    request.get_by_role("button", name="copy").click()
    page.wait_for_function("document.body.innerText.includes('copied') || getSelection().toString().length === 32")


def test_a_request_and_a_window_are_found_in_the_timeline(read: Any) -> None:
    reader = read()
    reader.page.locator("#hypothesis-1").get_by_role("button").click()
    drill = reader.page.locator("#hypothesis-1 + tr")
    drill.get_by_role("button", name="show its window in the timeline").click()
    begin, end = reader.view()
    assert 0 < begin < 15
    assert 30 < end < LENGTH


def test_requests_sort_and_keep_what_was_opened(read: Any) -> None:
    page = read().page
    page.locator("#hypothesis-3").get_by_role("button").click()
    table = page.locator("#hypothesis-3 + tr table.requests")
    first = table.locator("tbody > tr").first.locator("td").first.inner_text()
    table.locator("tbody > tr").first.get_by_role("button").click()
    table.locator("th", has_text="due").get_by_role("button").click()
    opened = table.locator("tbody > tr.open")
    assert first.strip("▸▾\u00a0 ") in opened.inner_text()
    assert "One attempt" in opened.locator("+ tr").inner_text()
    due = [float(text.rstrip("s")) for text in table.locator("td[data-label=due]").all_inner_texts()]
    assert sorted(due) == due


def test_dark_and_light_follow_the_system_and_the_button(read: Any) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    page = read(color_scheme="dark").page
    dark = page.evaluate(back)
    page.get_by_role("button", name="dark").click()
    light = page.evaluate(back)
    assert ("rgb(13, 17, 23)", "rgb(255, 255, 255)") == (dark, light)


_CONTRASTS = """() => {
  const linear = (c) => c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const rgb = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const behind = (node) => {
    for (let n = node; n; n = n.parentElement) {
      const back = rgb(getComputedStyle(n).backgroundColor);
      if (back.length === 3 || back[3] > 0.99) return back;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || !node.checkVisibility() || node.closest("script")) continue;
    const style = getComputedStyle(node);
    const ink = rgb(node.closest("svg") ? style.fill : style.color);
    if (node.textContent.trim() === "\\u25A0") continue;
    const [a, b] = [light(ink), light(behind(node))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < LEAST) low.push(`${node.textContent.trim().slice(0, 30)}: ${contrast.toFixed(2)}`);
  }
  return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_enough(read: Any, scheme: str) -> None:
    page = read(color_scheme=scheme).page
    page.locator("#hypothesis-1").get_by_role("button").click()
    assert [] == page.evaluate(_CONTRASTS.replace("LEAST", str(CONTRAST)))


def test_everything_that_can_be_pressed_has_a_name_and_every_id_is_one_of_a_kind(read: Any) -> None:
    page = read().page
    nameless = "[...document.querySelectorAll('button')].filter((b) => !(b.textContent.trim() || b.ariaLabel)).length"
    assert 0 == page.evaluate(nameless)
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert sorted(set(ids)) == sorted(ids)
    assert "img" == page.locator("svg.interval").first.get_attribute("role")


def test_a_phone_scrolls_down_and_never_sideways(read: Any) -> None:
    phone = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
    page = read(**phone).page
    widths = "[innerWidth, document.documentElement.scrollWidth, document.body.scrollWidth]"
    assert [360, 360, 360] == page.evaluate(widths)
    page.locator("#hypothesis-1").get_by_role("button").tap()
    page.locator("#hypothesis-1 + tr table.requests > tbody > tr").first.get_by_role("button").tap()
    assert [360, 360, 360] == page.evaluate(widths)
    page.locator(CHART).tap(position={"x": 200, "y": 200})
    assert "served" in page.get_by_role("status").inner_text()


def test_without_script_the_tables_and_the_still_picture_stay(read: Any) -> None:
    page = read(java_script_enabled=False).page
    assert page.locator("svg.still").is_visible()
    assert 9 == page.locator("#hypothesis > tbody > tr").count()
    assert not page.locator("#chart").is_visible()


def test_it_prints(read: Any) -> None:
    page = read().page
    page.emulate_media(media="print")
    assert not page.get_by_role("button", name="Reset").is_visible()
    paper = page.pdf()
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") >= 2
