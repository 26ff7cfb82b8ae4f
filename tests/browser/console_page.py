"""Open the console as a person does, and collect what the browser complains about."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from local.cloud import LocalCloud
from local.console_sign_in import ConsoleSecrets, make_sign_in_link
from local.front_door.console import SESSION_PATH

AXE = Path(__file__).resolve().parents[2] / "packages" / "node_modules" / "axe-core" / "axe.min.js"
WATCH = """
window.violations = [];
const keep = ({violatedDirective, blockedURI}) => violations.push(`${violatedDirective} ${blockedURI}`);
document.addEventListener("securitypolicyviolation", keep);
"""
LOAD_TIMEOUT_MS = 60_000
"""What a page loads is slow on a busy machine, above all what a function answers first."""
PAGES = (
    "editor",
    "content",
    "studio",
    "usage",
    "turns",
    "approvals",
    "policy",
    "providers",
    "models",
    "budgets",
    "tools",
    "webhooks",
)


class ConsolePage:
    """A window that is signed in to the console. It shows nothing yet, because the console begins with its editor."""

    def __init__(self, page: Page, cloud: LocalCloud) -> None:
        self.page = page
        self.url = cloud.url
        self._cloud = cloud
        self.complaints: list[str] = []
        page.add_init_script(WATCH)
        page.on("console", lambda message: self._collect(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        code = {"code": ConsoleSecrets(cloud.directory).issue_code()}
        own_page = {"sec-fetch-site": "same-origin"}
        assert page.context.request.post(f"{cloud.url}{SESSION_PATH}", data=code, headers=own_page).ok

    def _collect(self, kind: str, text: str) -> None:
        if kind == "error":
            self.complaints.append(text)

    def open_link(self) -> None:
        """Sign in as a person does."""
        self.page.goto(make_sign_in_link(self.url, self._cloud.directory))
        self.page.get_by_role("navigation").wait_for(state="attached")

    def open(self, path: str) -> None:
        """Show a page, and wait until it has loaded what it shows."""
        self.page.goto(f"{self.url}/console/#/{path}")
        self.page.locator(f".page-{path.split('/')[0]} h1").first.wait_for(state="attached")
        expect(self.page.locator("#page [aria-busy]")).to_have_count(0, timeout=LOAD_TIMEOUT_MS)
        if path.startswith("editor"):
            self.page.frame_locator(".canvas iframe.gjs-frame").locator("body").wait_for()
            self.page.locator("fermata-panel textarea").wait_for(state="attached")

    def ask(self, prompt: str) -> None:
        """Ask the agent, and wait for the end of the turn."""
        count = self.page.locator("fermata-panel .summary").count()
        self.page.locator("fermata-panel textarea").fill(prompt)
        self.page.keyboard.press("Enter")
        self.page.locator("fermata-panel .summary").nth(count).wait_for()

    def read_violations(self) -> list[str]:
        violations: list[str] = self.page.evaluate("window.violations")
        return violations

    def find_accessibility_problems(self) -> list[str]:
        return self.find_accessibility_problems_in(self.page)

    @staticmethod
    def find_accessibility_problems_in(page: Page) -> list[str]:
        """Return the serious problems that axe finds. The canvas shows somebody's page and is not the console's."""
        source = AXE.read_text()
        page.evaluate(source)  # by the debugger: the page's policy allows no such script
        results: dict[str, Any] = page.evaluate("axe.run({exclude: [['.canvas']]}, {iframes: false})")
        return [
            f"{problem['id']}: {node['html'][:160]}"
            for problem in results["violations"]
            if problem["impact"] in ("serious", "critical")
            for node in problem["nodes"]
        ]
