"""The static pages in a real browser, opened from a folder: no barrier, no scrolling sideways, a search that works."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from nanlab.authoring import site

LESSON = "notebooks/beginner/02_loss_explosion.html"


@pytest.fixture(scope="module")
def pages(root: Path, tmp_path_factory) -> str:
    out = tmp_path_factory.mktemp("site") / "pages"
    site.build(root, out)
    return out.as_uri()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["index.html", LESSON])
def test_a_page_fits_and_has_no_barrier(page, scheme, width, pages, browser):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    shown = context.new_page()
    shown.goto(f"{pages}/{page}")
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(shown, context="main, article, [role=main]").response["violations"]
    severe = [v for v in found if v["impact"] in ("serious", "critical")]
    assert not severe, [(v["id"], node["html"][:200]) for v in severe for node in v["nodes"]]
    context.close()


def test_an_answer_stays_folded_until_it_is_opened(pages, browser):
    shown = browser.new_page()
    shown.goto(f"{pages}/{LESSON}")
    fold = shown.locator("details", has=shown.locator(".cell_output, .output")).first
    answer = fold.locator(".cell_output, .output").first
    expect(answer).not_to_be_visible()
    fold.locator("summary").click()
    expect(answer).to_be_visible()
    shown.close()


def test_search_finds_a_word_without_a_server(pages, browser):
    shown = browser.new_page()
    shown.goto(f"{pages}/search.html?q=padding")
    expect(shown.locator("#search-results li a").first).to_be_visible(timeout=20_000)
    shown.close()


def test_formulas_are_set_without_a_network(pages, browser):
    shown = browser.new_page()
    shown.goto(f"{pages}/notebooks/researcher/05_softmax.html")
    expect(shown.locator("mjx-container").first).to_be_visible(timeout=20_000)
    shown.close()
