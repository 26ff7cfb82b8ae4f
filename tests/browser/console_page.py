"""Open the console as a person does, and collect what the browser complains about."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from local.cloud import LocalCloud
from local.console_sign_in import ConsoleSecrets, make_sign_in_link
from local.front_door.console import SESSION_PATH

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "packages" / "node_modules" / "axe-core" / "axe.min.js"
WATCH = """
window.violations = [];
const keep = ({violatedDirective, blockedURI}) => violations.push(`${violatedDirective} ${blockedURI}`);
document.addEventListener("securitypolicyviolation", keep);
"""
FORGET = """
async () => {
  localStorage.clear();
  violations.length = 0;
  document.querySelector("#announcements").replaceChildren();
  for (const {name} of await indexedDB.databases()) await new Promise((resolve, reject) => {
    const opening = indexedDB.open(name);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const stores = [...opening.result.objectStoreNames];
      const clearing = opening.result.transaction(stores, "readwrite");
      for (const store of stores) clearing.objectStore(store).clear();
      clearing.oncomplete = () => { opening.result.close(); resolve(); };
      clearing.onerror = () => reject(clearing.error);
    };
  });
}
"""
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
        page.on("pageerror", lambda error: self.complaints.append(error.stack or str(error)))
        self.sign_in()

    def sign_in(self) -> None:
        code = {"code": ConsoleSecrets(self._cloud.directory).issue_code()}
        own_page = {"sec-fetch-site": "same-origin"}
        assert self.page.context.request.post(f"{self.url}{SESSION_PATH}", data=code, headers=own_page).ok

    def begin_anew(self) -> None:
        """Take back what a test has done in this window, except that the console is loaded."""
        page = self.page
        page.unroute_all(behavior="ignoreErrors")
        for other in page.context.pages:
            if other != page:
                other.close()
        page.context.set_offline(False)
        page.mouse.move(0, 0)
        page.set_viewport_size({"width": 1280, "height": 720})
        page.emulate_media(color_scheme="null", reduced_motion="null")
        self.sign_in()
        if page.locator(".shell").count():
            page.goto(f"{self.url}/console/#/policy")  # editors that are left store what they have
            page.locator(".page-policy h1").wait_for()
            page.evaluate(FORGET)
        else:
            page.goto("about:blank")
        self.complaints.clear()

    def _collect(self, kind: str, text: str) -> None:
        if kind == "error":
            self.complaints.append(text)

    def open_link(self) -> None:
        """Sign in as a person does."""
        self.page.goto(make_sign_in_link(self.url, self._cloud.directory))
        self.page.get_by_role("navigation").wait_for(state="attached")

    def open(self, path: str) -> None:
        """Show a page, and wait until it has loaded what it shows."""
        name = path.split("/")[0]
        self.page.locator(f".page-{name}").evaluate_all("pages => pages.forEach(page => page.remove())")
        address = f"{self.url}/console/#/{path}"
        if self.page.url == address:
            self.page.reload()
        else:
            self.page.goto(address)
        self.page.locator(f".page-{name} h1").first.wait_for(state="attached")
        expect(self.page.locator("#page [aria-busy]")).to_have_count(0)
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

    def expect_accessible(self) -> None:
        expect_accessible(self.page)


def photograph(page: Page, name: str) -> None:
    """Write what a window shows into `build/screenshots`, for whoever wants to see it."""
    page.screenshot(path=ROOT / "build" / "screenshots" / f"{name}.png", animations="disabled")


def expect_accessible(page: Page) -> None:
    """Look for serious problems in light, and for those of colours in dark: the others are the same in both."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    problems = find_accessibility_problems(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    problems += find_accessibility_problems(page, {"runOnly": ["color-contrast"]})
    assert not problems, problems


def find_accessibility_problems(page: Page, options: dict[str, Any] | None = None) -> list[str]:
    """Return the serious problems that axe finds. The canvas shows somebody's page and is not the console's.

    Args:
        options: Of `axe.run`.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())  # by the debugger: the page's policy allows no such script
    all_options = {"iframes": False, "preload": False, "resultTypes": ["violations"], **(options or {})}
    run = "options => axe.run({exclude: [['.canvas']]}, options)"
    results: dict[str, Any] = page.evaluate(run, all_options)
    return [
        f"{problem['id']}: {node['html'][:160]}"
        for problem in results["violations"]
        if problem["impact"] in ("serious", "critical")
        for node in problem["nodes"]
    ]
