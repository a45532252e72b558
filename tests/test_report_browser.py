"""The report in a real browser: headless Chromium, driven by playwright."""

import csv
import io
import json
import re
import shutil
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from consilience import Fusion, Partitions, fuse
from consilience.diagnostics import profile
from consilience.report import summarize, write_report
from tests.conftest import REQUIRED
from tests.planted import planted
from tests.test_report import HOSTILE

pytestmark = pytest.mark.browser
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
)
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


def _skip(reason):
    if "browser" in REQUIRED:
        pytest.fail(f"{reason}, and CONSILIENCE_REQUIRE asks for it", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium, or a skip that says why."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _skip("playwright is not installed")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        _skip("no Chromium is installed")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=list(QUIET))
        yield chromium
        chromium.close()


def doubtful(n=260, m=6, c=4, seed=0):
    """A result with gaps, doubts, unassigned instances and ids."""
    truth, base = planted(n, m, c, noise=0.3, missing=0.3, seed=seed)
    truth[:5], base[:5] = -1, -1
    names = [f"source {letter}" for letter in "ABCDEFGHIJ"[:m]]
    table = Partitions.of(
        dict(zip(names, base.T, strict=True)), index=[f"P{i:04d}" for i in range(n)], unobserved="keep"
    )
    return Fusion(truth, table, "Planted", "It was given.", None)


@pytest.fixture(scope="module")
def result():
    return doubtful()


@pytest.fixture(scope="module")
def one(result, tmp_path_factory):
    return write_report(result, tmp_path_factory.mktemp("one") / "page.html", title="One result")


@pytest.fixture(scope="module")
def three(result, tmp_path_factory):
    """Three answers about the same table: with two clusters joined, as it is, and with one split."""
    joined = np.where(result.labels == 3, 2, result.labels)
    split = np.where((result.labels == 0) & (np.arange(260) % 2 == 0), 4, result.labels)
    fusions = {
        f"k = {labels.max() + 1}": Fusion(labels, result.partitions, "Planted", "It was given.", None)
        for labels in (joined, result.labels, split)
    }
    return write_report(fusions, tmp_path_factory.mktemp("three") / "page.html", title="Three results")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    ids = [*HOSTILE, *(f"id {i}" for i in range(22))]
    truth, base = planted(30, len(HOSTILE), 2, noise=0.2, missing=0.2, seed=0)
    table = Partitions.of(dict(zip(HOSTILE, base.T, strict=True)), index=ids)
    fusions = {name: Fusion(truth, table, HOSTILE[0], HOSTILE[2], None) for name in HOSTILE[:3]}
    path = tmp_path_factory.mktemp("hostile") / "page.html"
    return write_report(fusions, path, title=HOSTILE[1], command=HOSTILE[0])


@contextmanager
def opened(browser, path, *, viewport=DESK, **settings):
    """The page, open; at the end no error, no dialog and no request but for the file itself."""
    context = browser.new_context(viewport=viewport, **settings)
    page = context.new_page()
    trouble, requests = [], []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.resolve().as_uri())
    try:
        yield page
        assert trouble == []
        assert [url for url in requests if not url.startswith("blob:")] == [path.resolve().as_uri()]
    finally:
        context.close()


def column(page, number, table="#instances"):
    return page.locator(f"{table} tbody tr > :nth-child({number})").all_inner_texts()


def shown(listed, i):
    """What the first cell of a line says: an id, and how many instances share the line."""
    return listed["id"][i] + (f" {listed['alike'][i]} alike" if listed["alike"][i] > 1 else "")


def shown_result(page):
    return page.evaluate("[...document.querySelectorAll('section > [data-result]:not([hidden])')]"
                         ".map((part) => part.dataset.result)")  # fmt: skip


class TestOpen:
    def test_from_a_file_with_no_error_and_no_request(self, browser, one):
        with opened(browser, one) as page:
            assert page.title() == "One result"
            charts = page.locator("figure[data-chart]")
            assert charts.count() == 6
            for chart in charts.all():
                assert chart.locator("svg, canvas").count() == 1
            assert page.locator("#instances tbody tr").count() == 25

    def test_the_list_is_that_of_the_summary(self, browser, one, result):
        listed = summarize(result)["results"][0]["instances"]
        with opened(browser, one) as page:
            assert column(page, 1) == [shown(listed, i) for i in range(25)]
            assert [text.strip() for text in column(page, 7)] == listed["why"][:25]
            assert column(page, 4) == [f"{value:.2f}" for value in listed["confidence"][:25]]

    def test_hover_shows_values(self, browser, one):
        with opened(browser, one) as page:
            page.locator("figure[data-chart=histogram] rect").last.hover()
            assert "confidence 0.95 to 1.00" in page.locator("#tip").inner_text()
            page.locator("figure[data-chart=consensus] canvas").hover(position={"x": 60, "y": 60})
            assert "together in" in page.locator("#tip").inner_text()

    def test_an_analysis_with_a_found_number_of_clusters(self, browser, tmp_path):
        _, base = planted(200, 8, 3, noise=0.2, missing=0.3, seed=6)
        fusion = fuse(base, "auto", method="DAL", random_state=0)
        with opened(browser, write_report(fusion, tmp_path / "page.html")) as page:
            assert page.locator("figure[data-chart=count] path").count() == 2
            chart = page.locator("figure[data-chart=modularity]")
            assert chart.locator("path").count() == 2
            chart.locator("circle").last.hover()
            assert "modularity 0." in page.locator("#tip").inner_text()

    @pytest.mark.parametrize(
        ("labels", "base"),
        [
            ([0, 0, 1], [[0], [0], [1]]),
            ([0], [[0]]),
            ([0, 0, 0], [[0, 0], [0, 1], [1, 1]]),
            ([0, 0, 1, 1], [[0, -1], [0, -1], [-1, 0], [-1, 1]]),
            (
                np.repeat(np.arange(160), 2),
                np.repeat(np.arange(160), 2)[:, None] * np.ones((1, 3), dtype=int),
            ),
        ],
    )
    def test_small_and_strange_tables(self, browser, tmp_path, labels, base):
        fusion = Fusion(np.asarray(labels), Partitions.of(base), "Planted", "It was given.", None)
        with opened(browser, write_report([fusion, fusion], tmp_path / "page.html")) as page:
            page.locator("[data-show='1']").first.click()
            assert set(shown_result(page)) == {"1"}

    def test_many_base_clusterings(self, browser, tmp_path):
        truth, base = planted(120, 60, 2, noise=0.2, missing=0.2, seed=1)
        fusion = Fusion(truth, Partitions.of(base), "Planted", "It was given.", None)
        with opened(browser, write_report(fusion, tmp_path / "page.html")) as page:
            assert page.locator("table.bases tbody tr").count() == 60
            assert page.locator("figure[data-chart=patterns]").count() == 0
            assert page.locator(".votes").count() == 0


class TestTable:
    def test_every_column_sorts_both_ways(self, browser, one, result):
        listed = summarize(result)["results"][0]["instances"]
        with opened(browser, one) as page:
            names = ["id", "cluster", "alternative", "confidence", "margin", "coverage", "why"]
            for number, name in enumerate(names, start=1):
                heading = page.locator(f"#instances thead th:nth-child({number})")
                if heading.get_attribute("aria-sort"):
                    heading.locator("button").click()  # sorted by it from the start
                    heading.locator("button").click()
                else:
                    heading.locator("button").click()
                for direction in ("ascending", "descending"):
                    assert heading.get_attribute("aria-sort") == direction
                    assert page.locator("#instances th[aria-sort]").count() == 1
                    order = sorted(
                        range(len(listed["id"])),
                        key=lambda i: listed[name][i],
                        reverse=direction == "descending",
                    )
                    assert column(page, 1) == [shown(listed, i) for i in order[:25]]
                    heading.locator("button").click()

    def test_search_finds_ids_and_reasons(self, browser, one, result):
        listed = summarize(result)["results"][0]["instances"]
        with opened(browser, one) as page:
            page.fill("#search", "p0123")
            assert column(page, 1) == ["P0123"]
            assert page.inner_text("#found") == "1 of 260 listed instances"
            page.fill("#search", "TIE BETWEEN")
            alike = zip(listed["why"], listed["alike"], strict=True)
            ties = sum(count for why, count in alike if "tie between" in why)
            assert page.inner_text("#found") == f"{ties} of 260 listed instances"
            page.fill("#search", "nothing like this")
            assert "No listed instance matches." in page.inner_text("#instances")
            page.fill("#search", "")
            assert page.locator("#instances tbody tr").count() == 25

    def test_pages(self, browser, one, result):
        listed = summarize(result)["results"][0]["instances"]
        n = len(listed["id"])
        assert 225 < n < 250
        with opened(browser, one) as page:
            assert page.locator("#previous").is_disabled()
            page.click("#next")
            assert column(page, 1) == [shown(listed, i) for i in range(25, 50)]
            assert page.inner_text("#page") == f"26 to 50 of {n}"
            for _ in range(8):
                page.click("#next")
            assert column(page, 1) == [shown(listed, i) for i in range(225, n)]
            assert page.locator("#next").is_disabled()

    def test_base_clusterings_and_clusters_sort(self, browser, one, result):
        with opened(browser, one) as page:
            order = np.argsort(-result.agreement, kind="stable")
            page.locator("table.bases th button", has_text="Agreement").click()
            assert column(page, 1, "table.bases") == [result.partitions.names[j] for j in order]
            page.locator("#clusters th button", has_text="Instances").click()
            sizes = [int(text) for text in column(page, 2, "#clusters table[data-sortable]")]
            assert sizes == sorted(np.bincount(result.labels[result.labels >= 0]), reverse=True)


class TestFilter:
    def test_a_cluster_filters_table_and_charts(self, browser, one, result):
        size = int((result.labels == 2).sum())
        seen = int(((result.labels == 2) & result.partitions.observed[:, 0]).sum())
        with opened(browser, one) as page:
            first_cell = "(canvas) => canvas.getContext('2d').getImageData(15, 15, 1, 1).data[3]"
            assert page.locator("figure[data-chart=consensus] canvas").evaluate(first_cell) == 255
            page.locator("#clusters button[data-cluster='2']").first.click()
            assert page.inner_text("#found") == f"{size} of 260 listed instances"
            assert set(column(page, 2)) == {"2"}
            assert page.locator("#chips [data-cluster='2']").get_attribute("aria-pressed") == "true"
            assert page.locator("#chips [data-cluster='']").get_attribute("aria-pressed") == "false"
            assert page.input_value("#filter") == "2"
            bars = page.locator("figure[data-chart=histogram] rect")
            assert {bar.get_attribute("data-cluster") for bar in bars.all()} == {"2"}
            coverage = page.locator("figure[data-chart=coverage] g").first.get_attribute("data-tip")
            assert f"saw {seen} of {size}" in coverage
            assert page.locator("figure[data-chart=consensus] canvas").evaluate(first_cell) < 100  # faded
            assert "cluster 2 only" in page.inner_text("#status")
            page.locator("#chips [data-cluster='']").click()
            assert page.inner_text("#found") == "260 of 260 listed instances"

    def test_bars_cells_and_the_list_take_a_cluster_too(self, browser, one):
        with opened(browser, one) as page:
            page.locator("figure[data-chart=histogram] rect[data-cluster='1']").last.click()
            assert page.input_value("#filter") == "1"
            page.locator("figure[data-chart=histogram] rect[data-cluster='1']").last.click()
            assert page.input_value("#filter") == ""  # a second click takes it back
            box = page.locator("figure[data-chart=consensus] canvas").bounding_box()
            page.locator("figure[data-chart=consensus] canvas").click(
                position={"x": box["width"] - 3, "y": box["height"] - 3}
            )
            assert page.input_value("#filter") == "3"
            page.select_option("#filter", "0")
            assert set(column(page, 2)) == {"0"}

    def test_unassigned_instances(self, browser, one):
        with opened(browser, one) as page:
            page.locator("#chips [data-cluster='-1']").click()
            assert column(page, 1) == ["P0000 5 alike"]
            assert page.inner_text("#found") == "5 of 260 listed instances"
            assert set(column(page, 2)) == {"none"}
            assert {text.strip() for text in column(page, 7)} == {"no base clustering saw it"}

    def test_results_can_be_toggled(self, browser, three):
        with opened(browser, three) as page:
            assert set(shown_result(page)) == {"0"}
            assert "3 clusters of 260 instances" in page.inner_text(".top")
            page.locator("#chips [data-cluster='1']").click()
            page.locator(".choice button", has_text="k = 5").click()
            assert set(shown_result(page)) == {"2"}
            assert "5 clusters of 260 instances" in page.inner_text(".top")
            assert page.locator(".choice [aria-pressed=true]").inner_text() == "k = 5"
            assert page.locator("#chips button").count() == 7  # all, five, none
            assert page.inner_text("#found") == "260 of 260 listed instances"
            assert page.locator("#clusters table[data-sortable]:visible tbody tr").count() == 5

    def test_clusters_keep_their_colours_between_results(self, browser, three):
        color = "(c) => getComputedStyle(document.documentElement).getPropertyValue(`--c${c}`).trim()"
        with opened(browser, three) as page:
            first = [page.evaluate(color, c) for c in range(3)]
            page.locator("[data-show='2']").first.click()
            last = [page.evaluate(color, c) for c in range(5)]
            assert last[1] == first[1]
            assert first[0] in (last[0], last[4])  # the larger half keeps it
            assert first[2] in (last[2], last[3])
            assert len(set(last)) == 5

    def test_the_flow_leads_to_a_cluster_of_another_result(self, browser, three):
        with opened(browser, three) as page:
            page.locator("[data-node='1,3']").click()
            assert set(shown_result(page)) == {"1"}
            assert page.input_value("#filter") == "3"

    def test_many_results_have_a_list(self, browser, result, tmp_path):
        fusions = {f"result {i}": result for i in range(8)}
        with opened(browser, write_report(fusions, tmp_path / "page.html")) as page:
            page.select_option("#choose-result", "7")
            assert set(shown_result(page)) == {"7"}
            page.locator("#compare [data-show='2']").click()
            assert page.input_value("#choose-result") == "2"


class TestReach:
    def test_by_keyboard_alone(self, browser, three):
        focused = "document.activeElement.{}"
        with opened(browser, three) as page:
            page.keyboard.press("Tab")
            assert page.evaluate(focused.format("className")) == "skip"
            seen = []
            for _ in range(14):
                page.keyboard.press("Tab")
                seen.append(page.evaluate("document.activeElement.textContent.trim()"))
                if page.evaluate("document.activeElement.dataset.show") == "1":
                    page.keyboard.press("Space")
                if page.evaluate("document.activeElement.dataset.cluster") == "3":
                    page.keyboard.press("Enter")
                    break
            assert set(shown_result(page)) == {"1"}
            assert page.input_value("#filter") == "3"
            assert page.evaluate(focused.format("dataset.cluster")) == "3"  # focus stays where it was
            page.locator("#instances thead th:first-child button").focus()
            page.keyboard.press("Enter")
            ids = column(page, 1)
            assert ids == sorted(ids)
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid"

    def test_cells_of_a_map_by_arrow_keys(self, browser, one):
        with opened(browser, one) as page:
            page.locator("figure[data-chart=consensus] canvas").focus()
            page.keyboard.press("ArrowDown")
            text = page.inner_text("figure[data-chart=consensus] .readout")
            assert re.search(r"cluster 0 and .* cluster 0: (together|never)", text)
            page.keyboard.press("Enter")
            assert page.input_value("#filter") == "0"
            assert page.evaluate("document.activeElement.tagName") == "CANVAS"

    def test_everything_has_a_name(self, browser, three):
        with opened(browser, three) as page:
            nameless = page.evaluate(
                """[...document.querySelectorAll("button, select, input, canvas, svg, a")].filter((node) =>
                !(node.textContent.trim() || node.getAttribute("aria-label") || node.closest("label")))
                .map((node) => node.outerHTML)"""
            )
            assert nameless == []

    def test_without_javascript_the_facts_are_there(self, browser, three, result):
        with opened(browser, three, java_script_enabled=False) as page:
            text = page.inner_text("body")
            for expected in ("3 clusters of 260 instances", "5 clusters of 260 instances", "P0000"):
                assert expected in text
            assert all(warning[:30].lower() in text.lower() for warning in result.diagnostics.warnings)
            assert not page.locator("#search, #theme, figure").first.is_visible()
            assert page.locator("table.bases tbody tr").first.is_visible()
            assert page.locator("#instances tbody tr").count() == 50

    @pytest.mark.parametrize("which", ["one", "three", "hostile"])
    def test_a_phone_needs_no_sideways_scrolling(self, browser, which, request):
        with opened(browser, request.getfixturevalue(which), viewport=PHONE) as page:
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width == 390

    @pytest.mark.parametrize("width", [320, 768, 1024, 1920])
    def test_any_width_will_do(self, browser, three, width):
        with opened(browser, three, viewport=PHONE) as page:
            page.set_viewport_size({"width": width, "height": 800})
            page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            drawn, room = page.locator("figure[data-chart=histogram]:visible").first.evaluate(
                "(figure) => [figure.querySelector('svg').clientWidth, figure.clientWidth]"
            )
            assert drawn == room  # drawn again for this width
            assert page.evaluate("document.documentElement.scrollWidth") == width


class TestLook:
    LIGHT, DARK = "rgb(255, 255, 255)", "rgb(20, 23, 27)"

    def background(self, page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    def test_dark_as_the_system_or_by_the_button(self, browser, one):
        with opened(browser, one, color_scheme="dark") as page:
            assert self.background(page) == self.DARK
            page.click("#theme")
            assert (self.background(page), page.inner_text("#theme")) == (self.LIGHT, "◐ Light")
            page.click("#theme")
            assert (self.background(page), page.inner_text("#theme")) == (self.DARK, "◐ Dark")
        with opened(browser, one, color_scheme="light") as page:
            assert self.background(page) == self.LIGHT

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_text_has_contrast(self, browser, one, scheme):
        with opened(browser, one, color_scheme=scheme) as page:
            read = "(name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"
            ground = page.evaluate(read, "--page")
            for name in ("--ink", "--soft", "--accent", "--warn"):
                assert contrast(page.evaluate(read, name), ground) >= 4.5

    def test_print_shows_all_sections_and_no_controls(self, browser, one):
        with opened(browser, one) as page:
            page.emulate_media(media="print", color_scheme="dark")
            assert self.background(page) == self.LIGHT
            assert all(section.is_visible() for section in page.locator("main > section").all())
            for control in ("nav", ".bar", ".tools", ".pager", ".skip"):
                assert not page.locator(control).first.is_visible()
            styles = page.evaluate(
                """[...document.querySelectorAll(".scroll, .plot")].map((box) => getComputedStyle(box))
                .map((style) => [style.overflowX, style.overflowY, style.maxHeight].join())"""
            )
            assert set(styles) == {"visible,visible,none"}  # nothing is cut

    def test_paper_gets_more_rows(self, browser, one):
        with opened(browser, one) as page:
            page.evaluate("dispatchEvent(new Event('beforeprint'))")
            assert page.locator("#instances tbody tr").count() == 50
            page.evaluate("dispatchEvent(new Event('afterprint'))")
            assert page.locator("#instances tbody tr").count() == 25


def contrast(first, second):
    """Contrast of two colours as the accessibility guidelines define it."""

    def luminance(color):
        parts = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


class TestHostile:
    def test_names_stay_text_everywhere(self, browser, hostile):
        with opened(browser, hostile) as page:
            assert page.title() == HOSTILE[1]
            assert page.locator("h1").inner_text() == HOSTILE[1]
            for number in range(3):
                page.locator(f".choice [data-show='{number}']").click()
                for chart in page.locator("figure[data-chart] .plot:visible").all():
                    chart.hover()
                page.fill("#search", "<")
                page.fill("#search", "")
                page.locator("#instances th button").first.click()
            assert page.locator("script").count() == 2
            assert page.locator("img, iframe, [onerror]").count() == 0
            expected = {*HOSTILE, *(f"id {i}" for i in range(22))}
            titles = (
                "[...document.querySelectorAll('#instances > tbody > tr > th bdi')].map((cell) => cell.title)"
            )
            ids = set(page.evaluate(titles))
            page.click("#next")
            ids |= set(page.evaluate(titles))
            assert ids <= expected
            for name in expected - ids:  # it shares a line
                page.fill("#search", name)
                assert page.evaluate(titles) == [name]
            page.fill("#search", "")
            for button in page.locator("button.open").all():
                button.click()
            assert page.locator("script").count() == 2
            assert page.locator("img, iframe, [onerror]").count() == 0

    def test_a_script_that_got_in_would_not_run(self, browser, one, tmp_path):
        evil = tmp_path / "page.html"
        evil.write_text(one.read_text().replace("</h1>", "</h1><script>document.title = 'owned'</script>"))
        context = browser.new_context()
        page = context.new_page()
        page.goto(evil.as_uri())
        assert page.title() == "One result"
        context.close()

    def test_downloaded_cells_are_no_formulas(self, browser, hostile):
        with opened(browser, hostile) as page:
            with page.expect_download() as waiting:
                page.click("#download")
            text = waiting.value.path().read_bytes().decode()
            assert waiting.value.suggested_filename == "instances.csv"
        head, *rows = csv.reader(io.StringIO(text, newline=""))
        assert head == ["id", "cluster", "alternative", "confidence", "margin", "coverage", "why"]
        assert len(rows) == 30
        ids = {row[0] for row in rows}
        assert {"'=cmd()", *(name for name in HOSTILE if name != "=cmd()")} <= ids
        assert not any(row[0][0] in "=+-@\t\r" for row in rows)

    def test_numbers_are_left_alone_and_other_beginnings_are_not(self, browser, tmp_path):
        ids = ["-5", "+3.2e4", "-a", "+b", "@c", "\td", '=x,"y"', "plain"]
        ids += [" =1+1", "'@c", "' @c", "\uff1d1", "'d"]
        truth, base = planted(13, 3, 2, noise=0.1, missing=0.1, seed=0)
        fusion = Fusion(truth, Partitions.of(base, index=ids), "Planted", "It was given.", None)
        with opened(browser, write_report(fusion, tmp_path / "page.html")) as page:
            with page.expect_download() as waiting:
                page.click("#download")
            text = waiting.value.path().read_bytes().decode()
        found = {row[0] for row in csv.reader(io.StringIO(text, newline=""))} - {"id"}
        assert found == {
            *("-5", "+3.2e4", "'-a", "'+b", "'@c", "'\td", '\'=x,"y"', "plain"),
            *("' =1+1", "''@c", "'' @c", "'\uff1d1", "'d"),
        }

    def test_the_download_names_clusters_and_counts_rows(self, browser, tmp_path):
        table = Partitions.of([["a", "x"]] * 3 + [["b", "y"]] * 2 + [["b", None]] * 4).distinct
        fusion = fuse(table, 2, method="DAL", random_state=0).rename(["=big", "small"])
        with opened(browser, write_report(fusion, tmp_path / "page.html")) as page:
            assert page.inner_text("#found") == "9 of 9 listed instances"
            with page.expect_download() as waiting:
                page.click("#download")
            text = waiting.value.path().read_bytes().decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert {(row["labels"], row["instances"], row["name"]) for row in rows} == {
            ("a, x", "3", "small"),
            ("b, y", "2", "'=big"),
            ("b, –", "4", "'=big"),
        }

    def test_the_download_has_the_rows_that_are_shown(self, browser, one, result):
        with opened(browser, one) as page:
            page.locator("#chips [data-cluster='1']").click()
            with page.expect_download() as waiting:
                page.click("#download")
            rows = list(csv.DictReader(io.StringIO(waiting.value.path().read_text(), newline="")))
        expected = {f"P{i:04d}" for i in np.flatnonzero(result.labels == 1)}
        assert {row["id"] for row in rows} == expected
        assert {row["cluster"] for row in rows} == {"1"}


def test_a_page_made_from_saved_json_is_the_same(browser, result, tmp_path):
    saved = json.loads(json.dumps(summarize(result, title="Saved")))
    with opened(browser, write_report(saved, tmp_path / "page.html")) as page:
        assert page.title() == "Saved"
        assert page.inner_text("#found") == "260 of 260 listed instances"


@pytest.fixture(scope="module")
def april():
    """A company's second month."""
    _, base = planted(400, 3, 4, noise=0.2, missing=0.3, seed=5)
    names = np.array(["<b>gold", "silver", "new", "gone", None], dtype=object)
    frame = pd.DataFrame(names[base], columns=["sales", "web", "support"])
    frame.index = pd.Index([f"C-{i:03d}" for i in range(400)], name="customer")
    frame = frame[frame.notna().any(axis=1)]
    march = fuse(frame.iloc[:300], 3, method="DAL", named_after="sales", random_state=0)
    return fuse(frame.iloc[50:], 4, method="DAL", like=march, random_state=0)


@pytest.fixture(scope="module")
def living(april, tmp_path_factory):
    facts = pd.DataFrame({"revenue": 10.0 * april.labels}, index=april.index.astype(object))
    path = tmp_path_factory.mktemp("living") / "page.html"
    stable = april.stability(n_resamples=2)
    return write_report(april, path, title="April", profile=profile(april, facts), stability=stable)


class TestLiving:
    """Names, changes, a profile and explanations."""

    def test_a_line_opens_and_closes(self, browser, living, april):
        listed = summarize(april)["results"][0]["instances"]
        with opened(browser, living) as page:
            page.locator("button.open").first.click()
            told = april.explain(listed["id"][0])
            text = page.inner_text("tr.detail")
            for said in told.said:
                assert f"{said.source}\t{'not seen' if said.label is None else said.label}\t" in text
            for turn in told.turns:
                had = "had not seen it" if turn.instead is None else f"had said {turn.instead}"
                assert f"If {turn.source} {had}, it would be in cluster {turn.label}" in text
            assert f"Similar: {told.alike[0].id}" in text
            assert page.locator("button.open").first.get_attribute("aria-expanded") == "true"
            page.locator("button.open").first.press("Enter")
            assert page.locator("tr.detail").count() == 0

    def test_every_line_can_be_opened(self, browser, living):
        with opened(browser, living) as page:
            while True:
                for button in page.locator("button.open").all():
                    button.evaluate("(node) => node.click()")
                assert page.locator("tr.detail").count() == page.locator("button.open").count()
                if page.locator("#next").is_disabled():
                    break
                page.click("#next")

    def test_every_id_is_found(self, browser, living, april):
        listed = summarize(april)["results"][0]["instances"]
        shared = next(i for i, others in enumerate(listed["others"]) if len(others) > 3)
        wanted = listed["others"][shared][2]
        with opened(browser, living) as page:
            page.fill("#search", wanted)
            assert page.inner_text("#found") == f"1 of {len(april.labels)} listed instances"
            assert column(page, 1) == [f"{wanted} {listed['alike'][shared]} alike"]
            page.locator("button.open").first.click()
            assert listed["id"][shared] in page.inner_text("tr.detail .ids")

    def test_names_stand_beside_numbers(self, browser, living, april):
        named = f"0 {april.names[0]}"
        with opened(browser, living) as page:
            assert page.locator("#chips [data-cluster='0']").inner_text() == named
            assert column(page, 1, "table.clusters")[0] == named
            assert column(page, 1, "table.changes")[0] == named
            page.fill("#search", april.names[0].upper())
            assert set(column(page, 2)) >= {named}

    def test_changes_and_profile(self, browser, living, april):
        with opened(browser, living) as page:
            for sentence in april.changes.told(dict(enumerate(april.names))):
                assert sentence in page.inner_text("#changes")
            assert page.locator("nav a[href='#changes']").is_visible()
            assert "revenue" in page.inner_text("#profile")

    def test_stability(self, browser, living, april):
        found = april.stability(n_resamples=2)
        with opened(browser, living) as page:
            text = page.inner_text("#stability")
            for sentence in found.sentences:
                assert sentence in text
            bars = page.locator("figure[data-chart=refits] rect")
            kinds = [part for part in found.parts if part.part != "left out"]
            assert bars.count() == len(kinds) + len(found.left_out)
            tips = [bar.get_attribute("data-tip") for bar in bars.all()]
            first = found.left_out[0]
            assert tips[len(kinds)].startswith(f"without {first.source}\nARI {first.ari:.2f}")
            clusters = page.locator("figure[data-chart=holding] rect")
            assert clusters.count() == len(found.clusters)
            clusters.first.click()
            assert page.locator("#chips [aria-pressed=true]").get_attribute("data-cluster") == "0"
            rows = page.locator("#stability table tbody tr[data-row-cluster]")
            assert rows.count() == len(found.clusters)
            assert found.clusters[0].verdict in rows.first.inner_text()

    @pytest.mark.parametrize("viewport", [PHONE, DESK])
    def test_open_lines_fit(self, browser, living, viewport):
        with opened(browser, living, viewport=viewport) as page:
            for button in page.locator("button.open").all()[:10]:
                button.click()
            assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]

    def test_numbers_with_gaps(self, browser, april, tmp_path):
        """Where a cluster has gone, the counts of unassigned instances are still those of the last column."""
        labels = np.where(april.labels == 1, 0, april.labels)
        labels[:7] = -1
        fusion = Fusion(labels, april.partitions, "Planted", "It was given.", None)
        with opened(browser, write_report(fusion, tmp_path / "page.html")) as page:
            page.locator("#chips [data-cluster='-1']").click()
            bars = page.locator("figure[data-chart=histogram] rect")
            tips = [bar.get_attribute("data-tip") for bar in bars.all()]
            assert tips == ["confidence 0.00 to 0.05\nunassigned: 7 instances"]
            assert page.locator("#chips [data-cluster='1']").count() == 0
