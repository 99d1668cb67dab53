#!/usr/bin/env python3
"""The page of a report in headless Chromium: what a reader does with it, how soon it answers, and accessibility where axe-core is there
(ULPSCOPE_AXE names axe.min.js). Needs nothing but the browser, which it drives over a pipe.
"""
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT, ulpscope  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
AXE = os.environ.get("ULPSCOPE_AXE", "")
TESTS = pathlib.Path(os.environ.get("ULPSCOPE_TESTS", ROOT / "build/release/bin/test_reports"))

CASE = """
cases:
  - name: parts
    tensors:
      x: {dtype: bfloat16, shape: [8, 16], fill: normal}
      y: {dtype: bfloat16, shape: [16, 8], fill: normal}
    program:
      - {op: empty, shape: [8, 8], dtype: float32, as: buffer}
      - {op: matmul, of: [x, y], out: buffer, as: product}
    observe: [product]
  - name: agrees
    tensors:
      x: {dtype: float32, shape: [4], fill: normal}
    program:
      - {op: neg, of: [x], as: y}
    observe: [y]
"""
MODEL = "emulated:model=in=as_is;prod=exact;acc=float32;mid={};out=float32_rne"

# A reader's actions in the page as it stands; the answer is what was seen.
SCRIPT = """
(async () => {
  const seen = {interactive: performance.timing.domInteractive - performance.timing.navigationStart,
                loaded: performance.timing.loadEventEnd - performance.timing.navigationStart};
  const by = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (element) => element.getClientRects().length > 0;
  const rows = () => all("#matrix tbody tr:not(.c)").filter(shown).length;
  const frame = () => new Promise((next) => requestAnimationFrame(() => setTimeout(next, 0)));
  const set = async (selector, value) => {
    by(selector).value = value;
    by(selector).dispatchEvent(new Event("input"));
    by(selector).dispatchEvent(new Event("change"));
    await frame();
  };
  by("#matrix").scrollIntoView();
  await frame();
  seen.rows = rows();
  seen.shown = by("#shown").textContent;
  by("#only").click();
  await frame();
  seen.unfolded = rows();
  const searching = performance.now();
  await set("#search", SEARCH);
  seen.searched = performance.now() - searching;
  seen.found = rows();
  await set("#search", "no such thing");
  seen.nothing = rows();
  await set("#search", "");
  await set("#status", "parts");
  seen.parting = rows();
  by("#columns input").click();
  seen.columns = all("#matrix thead th").filter(shown).length;
  by("#columns input").click();
  const link = by("#matrix td.d a");
  link.focus();
  link.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true, cancelable: true}));
  seen.walked = document.activeElement !== link && document.activeElement.closest("td") !== null;
  link.focus();
  const opening = performance.now();
  link.click();
  seen.opened = performance.now() - opening;
  seen.dialog = by("dialog").open;
  seen.title = by("#cell-title").textContent;
  seen.body = by("#cell-body").textContent;
  seen.heads = all("#cell-body h3").map((head) => head.textContent);
  seen.names = all("#cell-body .said code").map((name) => name.textContent);
  seen.plots = all("#cell-body svg[aria-label]").length;
  const check = async () => window.axe ? (await axe.run()).violations.map((each) => each.id + " " + each.nodes[0].html) : [];
  seen.violations = await check();
  by("dialog").close();
  seen.violations.push(...await check());
  seen.focus = document.activeElement === link;
  return JSON.stringify(seen);
})()
"""


class Browser:
    """One headless Chromium, asked in its own protocol over two pipes: messages that end in NUL."""

    def __init__(self):
        # The browser's children may write into it while it is taken away.
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read_in, self.out = os.pipe()
        self.replies, write_out = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{read_in} 4>&{write_out}', CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}"],
            pass_fds=(read_in, write_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        os.close(read_in)
        os.close(write_out)
        self.numbers, self.rest, self.events = itertools.count(1), b"", []

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.out)
        os.close(self.replies)
        self.profile.cleanup()

    def receive(self):
        while b"\0" not in self.rest:
            more = os.read(self.replies, 1 << 16)
            if not more:
                raise AssertionError("the browser has gone")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, session=None, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            reply = self.receive()
            if reply.get("id") == number:
                assert "error" not in reply, reply["error"]
                return reply["result"]
            self.events.append(reply)

    def wait_for(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive())


def look(page, search, axe=AXE):
    """SCRIPT's observations on the file `page`, with what the page fetched from the network and threw."""
    browser = Browser()
    try:
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            browser.ask(domain + ".enable", session)
        browser.ask("Page.navigate", session, url=page.as_uri())
        browser.wait_for("Page.loadEventFired")
        if axe:
            browser.ask("Runtime.evaluate", session, expression=pathlib.Path(axe).read_text(encoding="utf-8") + ";0")
        answer = browser.ask("Runtime.evaluate", session, expression=SCRIPT.replace("SEARCH", json.dumps(search)), awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        seen = json.loads(answer["result"]["value"])
        asked = [event["params"]["request"]["url"] for event in browser.events if event.get("method") == "Network.requestWillBeSent"]
        seen["fetched"] = [url for url in asked if not url.startswith("file:")]
        seen["thrown"] = [event["params"] for event in browser.events if event.get("method") == "Runtime.exceptionThrown"]
        return seen
    finally:
        browser.close()


@unittest.skipUnless(CHROMIUM, "no chromium: apt-get install chromium")
class Page(unittest.TestCase):
    def check(self, seen):
        self.assertEqual((seen["violations"], seen["fetched"], seen["thrown"]), ([], [], []))
        self.assertTrue(seen["dialog"])
        self.assertTrue(seen["walked"], "an arrow goes to the next cell")
        self.assertTrue(seen["focus"], "and the focus comes back")
        self.assertEqual(seen["nothing"], 0)

    def test_a_run_is_read_filtered_and_drilled_into(self):
        with tempfile.TemporaryDirectory() as folder:
            case = pathlib.Path(folder) / "mine.yaml"
            case.write_text(CASE, encoding="utf-8")
            done = ulpscope("run", str(case), "-b", ",".join([MODEL.format("none"), MODEL.format("bfloat16")]), "-o", folder + "/r",
                            "--html", folder + "/page.html")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            seen = look(pathlib.Path(folder) / "page.html", "AGREES")
        self.check(seen)
        self.assertEqual((seen["rows"], seen["unfolded"], seen["found"], seen["parting"]), (1, 2, 1, 1))
        self.assertEqual(seen["shown"], "1 of 2 rows")
        self.assertEqual(seen["columns"], 2, "one backend is hidden")
        self.assertEqual(seen["heads"][:3], ["Derivation", "Where it parts", "Values"])
        self.assertIn("product", seen["names"])
        self.assertNotIn("`", seen["body"])
        self.assertEqual(seen["plots"], 1)
        for words in ("as: product}   <- here they part", "ulpscope run ", " --seed 0", "ulp from the exact value"):
            self.assertIn(words, seen["body"])

    def test_ten_thousand_cells_answer_within_a_second(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            done = subprocess.run([TESTS, "--gtest_filter=Html.TenThousandCells*"], env=os.environ | {"ULPSCOPE_WRITE_PAGE": str(page)},
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            size = page.stat().st_size
            # A busy machine may hold some of them up.
            best = look(page, "case_7[", axe="")
            for _ in range(5):
                if best["interactive"] < 1000 and best["opened"] < 500:
                    break
                best = min(best, look(page, "case_7[", axe=""), key=lambda seen: seen["interactive"] + seen["opened"])
        self.check(best)
        print(f"10,000 results: {size} bytes, interactive after {best['interactive']:.0f} ms, loaded after {best['loaded']:.0f} ms, "
              f"a search took {best['searched']:.0f} ms, a cell {best['opened']:.0f} ms")
        self.assertLess(best["interactive"], 1000)
        self.assertLess(best["opened"], 500)
        self.assertEqual(best["found"], 2)
        self.assertEqual(best["rows"], 900)
        self.assertEqual(best["unfolded"], 2300)


if __name__ == "__main__":
    unittest.main(verbosity=2)
