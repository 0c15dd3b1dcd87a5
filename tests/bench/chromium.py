"""A headless Chromium spoken to over a pipe, by its own protocol: no driver, no port, no network."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Chromium:
    """with Chromium() as browser: browser.open(path); what the page did is in requests, problems."""

    def __init__(self, program=None):
        self.program = program or shutil.which("chromium") or shutil.which("chromium-browser")
        self.requests, self.problems = [], []
        self.buffer, self.count, self.answers = b"", 0, {}
        self.loaded = False

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="kdacheck-chromium-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def at_3_and_4():  # what --remote-debugging-pipe reads and writes
            high = [os.dup(fd) for fd in (to_browser, from_browser)]
            high = [os.dup2(fd, 20 + i) for i, fd in enumerate(high)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [self.program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-background-networking", f"--user-data-dir={self.folder}",
             "--remote-debugging-pipe", "about:blank"],
            preexec_fn=at_3_and_4, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.session = None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **parameters):
        """The result of one command; events that come before it are noted."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        wanted = self.count
        self.until(lambda: wanted in self.answers, method)
        answer = self.answers.pop(wanted)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer.get("result", {})

    def until(self, done, what, seconds=60):
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError(f"chromium: no answer to {what}")
            if select.select([self.read_end], [], [], 0.2)[0]:
                self.buffer += os.read(self.read_end, 1 << 20)
                *messages, self.buffer = self.buffer.split(b"\0")
                for message in messages:
                    self.note(json.loads(message))

    def note(self, message):
        if "id" in message:
            self.answers[message["id"]] = message
            return
        event, data = message["method"], message.get("params", {})
        if event == "Page.loadEventFired":
            self.loaded = True
        elif event == "Network.requestWillBeSent":
            self.requests.append(data["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(data["exceptionDetails"])[:500])
        elif event == "Log.entryAdded" and data["entry"]["level"] in ("error", "warning"):
            self.problems.append(data["entry"]["text"])
        elif event == "Runtime.consoleAPICalled" and data["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(data["args"])[:500])

    def open(self, path, width=1200, height=900, dark=False, media="", phone=False):
        self.requests, self.problems, self.loaded = [], [], False
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.until(lambda: self.loaded, "load")

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def screenshot(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self, path):
        data = self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=False)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
