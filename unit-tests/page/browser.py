"""A headless Chromium, driven through chromedriver's HTTP (the WebDriver protocol)."""

import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--force-color-profile=srgb",
]
PATIENCE = 60  # seconds that a test waits for an event before it fails


def wait_for(what, condition):
    """Waits until `condition()` is true, and returns what it returned."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come about")


class Browser:
    """One window. Requires: chromium and chromedriver are installed."""

    def __init__(self):
        self._profile = tempfile.mkdtemp(prefix="varve-page-")
        self._driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self._session = None
        try:
            self._base = f"http://127.0.0.1:{self._read_port()}"
            self._open_session()
        except Exception:
            self.close()
            raise

    def _read_port(self):
        for line in self._driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                return int(found.group(1))
        raise AssertionError("chromedriver did not start")

    def _open_session(self):
        options = {"args": FLAGS + [f"--user-data-dir={self._profile}"]}
        options["perfLoggingPrefs"] = {"enableNetwork": True}
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        self._session = f"/session/{answer['sessionId']}"

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data, method=method,
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return json.load(reply)["value"]

    def close(self):
        """Ends the browser and its driver, and removes what they wrote."""
        if self._session is not None:
            self._call("DELETE", self._session)
        self._driver.terminate()
        self._driver.wait()
        self._driver.stdout.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, url):
        self._call("POST", self._session + "/url", {"url": url})

    def run(self, script, *arguments):
        """Runs the body of a function in the page, and returns what it returns."""
        return self._call("POST", self._session + "/execute/sync",
                          {"script": script, "args": list(arguments)})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def press(self, *keys):
        """Presses keys one after the other, where the focus is."""
        codes = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012",
                 "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}
        actions = []
        for key in keys:
            actions += [{"type": "keyDown", "value": codes[key]}, {"type": "keyUp", "value": codes[key]}]
        self._call("POST", self._session + "/actions",
                   {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def log(self, kind):
        """Returns the entries since the last call: of the console ("browser") or of all that
        happened ("performance")."""
        return self._call("POST", self._session + "/se/log", {"type": kind})

    def requests(self):
        """Returns the addresses of the requests since the last call."""
        urls = []
        for entry in self.log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.append(message["params"]["request"]["url"])
        return urls

    def command(self, name, **parameters):
        """Executes a command of the DevTools protocol."""
        return self._call("POST", self._session + "/goog/cdp/execute",
                          {"cmd": name, "params": parameters})
