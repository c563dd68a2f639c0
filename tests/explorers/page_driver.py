"""A hand on explorers in a browser: their arithmetic by itself, and whole views in a page."""

from pathlib import Path
from typing import Any

import traitlets
from playwright.sync_api import Page

import attn_course.explorers.base as base
from attn_course.explorers.base import Explorer, browser_module

CORE = Path(base.__file__).parent / "core.mjs"

_LOAD = """async ([name, text]) => {
    const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    (globalThis.loaded ??= {})[name] = await import(address);
    URL.revokeObjectURL(address);
}"""
_CALL = """async ([module, name, values]) => {
    const plain = (data) => {
        if (ArrayBuffer.isView(data)) return Array.from(data);
        if (Array.isArray(data)) return data.map(plain);
        if (data === null || typeof data !== "object") return data;
        return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, plain(value)]));
    };
    return plain(await loaded[module][name](...values));
}"""
_TWO_FRAMES = """() => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(done)))"""


class Modules:
    """The pure functions of the explorers' modules, each loaded once into one page."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._loaded: set[str] = set()

    def core(self, function: str, *values: Any) -> Any:
        """Call what core.mjs exports."""
        return self._call("core", CORE.read_text(encoding="utf-8"), function, values)

    def of(self, widget: Explorer, function: str, *values: Any) -> Any:
        """Call what the widget's own module exports."""
        return self._call(widget.module, browser_module(widget.module), function, values)

    def _call(self, name: str, text: str, function: str, values: tuple) -> Any:
        if name not in self._loaded:
            self._page.evaluate(_LOAD, [name, text])
            self._loaded.add(name)
        return self._page.evaluate(_CALL, [name, function, list(values)])


class View:
    """The first explorer of a page, without a kernel."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        page.goto(address)
        self.root = page.locator(".attn-ex").first
        self.root.wait_for(state="attached")
        self.settle()

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.page.evaluate(_TWO_FRAMES)

    def press(self, *keys: str) -> None:
        """Press keys where the focus is, each drawn before the next."""
        for key in keys:
            self.page.keyboard.press(key)
            self.settle()

    def click(self, name: str, role: Any = "button") -> None:
        """Click the control of this name."""
        self.root.get_by_role(role, name=name, exact=True).click()
        self.settle()

    @property
    def caption(self) -> str:
        """The sentence below the view."""
        return self.root.locator(".caption").inner_text()

    @property
    def message(self) -> str:
        """Why something was refused; empty if nothing was."""
        return self.root.locator(".message").inner_text()

    @property
    def focused(self) -> str:
        """The label, or else the text, of what has the focus."""
        return self.page.evaluate(
            """() => {
                const at = document.activeElement;
                const label = at.getAttribute("aria-label") ?? at.closest("label")?.innerText;
                return label ?? at.innerText;
            }"""
        )

    def table(self) -> list[list[str]]:
        """All rows of all tables behind the table button, which is pressed if need be."""
        button = self.root.locator(".numbers > button").first
        if button.get_attribute("aria-expanded") == "false":
            button.click()
            self.settle()
        return self.page.evaluate(
            """() => Array.from(document.querySelectorAll(".tables tr"),
                (row) => Array.from(row.cells, (cell) => cell.textContent))"""
        )


def both_refuse(modules: Modules, widget: Explorer, **changes: Any) -> tuple[str, str]:
    """What Python and the browser say against a change; "" from the one that takes it."""
    problem = modules.of(widget, "check", widget.state | changes)
    before = {name: getattr(widget, name) for name in changes}
    try:
        with widget.hold_trait_notifications():
            for name, value in changes.items():
                setattr(widget, name, value)
        said = ""
    except traitlets.TraitError as error:
        said = str(error)
    with widget.hold_trait_notifications():
        for name, value in before.items():
            setattr(widget, name, value)
    return said, widget.t(problem[0], **dict(*problem[1:])) if problem else ""
