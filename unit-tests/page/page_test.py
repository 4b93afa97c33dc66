#!/usr/bin/env python3
"""Looks at the server's web page in a headless Chromium.

usage: page_test.py SERVER_MAIN DIRECTORY [--pictures]

DIRECTORY is emptied and used for data and pictures. With --pictures the test only takes pictures of
a server that has something to show. Ends with 77 where chromium or chromedriver is not installed.
"""

import base64
import math
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

from browser import Browser, wait_for

# Width, and how much of the page a picture shows.
SIZES = {"wide": (1440, 1650), "tablet": (834, 1500), "phone": (390, 1250)}
SERVER_MAIN = None
DIRECTORY = None


class Server:
    """A server_main on free ports, or on those that it had before."""

    def __init__(self, name, *flags):
        self.directory = DIRECTORY / name
        self.flags = flags
        self.port = self.http_port = None
        self.start()

    def start(self):
        log_path = str(self.directory) + ".log"
        log = open(log_path, "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [SERVER_MAIN, f"--dir={self.directory}", f"--port={self.port or 0}",
             f"--http-port={self.http_port or -1}", *self.flags], stdout=log, stderr=log)
        log.close()

        def ports():
            text = pathlib.Path(log_path).read_text(encoding="utf-8")
            found = [re.search(r"HTTP is served at [^\s]*:(\d+)", text),
                     re.search(r"serves .* on [^\s,]*:(\d+), opened", text)]
            return all(found) and [int(match.group(1)) for match in found]

        try:
            self.http_port, self.port = wait_for("the server's start", ports)
        except AssertionError:
            self.end(signal.SIGKILL)
            raise
        self.origin = f"http://127.0.0.1:{self.http_port}"

    def end(self, how=signal.SIGTERM):
        """Ends the server, if it has not ended yet."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait()

    def get(self, path):
        with urllib.request.urlopen(self.origin + path) as reply:
            return reply.headers, reply.read()


class Client:
    """A connection over which requests are sent together and their replies read."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.replies = self.socket.makefile("rb")

    def send(self, *requests):
        data = b""
        for request in requests:
            words = [word if isinstance(word, bytes) else str(word).encode() for word in request]
            data += b"*%d\r\n" % len(words)
            data += b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.socket.sendall(data)
        return [self._reply() for _ in requests]

    def _reply(self):
        line = self.replies.readline().decode()
        if line.startswith("-"):
            raise AssertionError(line)
        if line.startswith("$"):
            size = int(line[1:])
            return None if size < 0 else self.replies.read(size + 2)[:-2]
        if line.startswith("*"):
            return [self._reply() for _ in range(int(line[1:]))]
        return line[1:].strip()

    def close(self):
        self.replies.close()
        self.socket.close()


def fill(server):
    """Keys of several kinds, some of them in segments and some in the write buffer."""
    client = Client(server)
    kinds = [("user:{}:profile", 3000, 300), ("user:{}:settings", 3000, 60),
             ("session:{:08}", 6000, 120), ("order:2026/{}", 4000, 200), ("order:2025/{}", 2500, 200),
             ("cache/img/{}", 600, 900), ("cache/html/{}", 900, 700), ("counter:{}", 500, 8),
             ("queue:mail:{}", 800, 250), ("loose{}", 900, 100)]
    for i, (pattern, count, size) in enumerate(kinds):
        requests = [("SET", pattern.format(n), n if "counter" in pattern else os.urandom(size // 2).hex())
                    for n in range(count)]
        for begin in range(0, count, 500):
            client.send(*requests[begin:begin + 500])
        if i in (3, 6):
            client.send(("COMPACT",))
    client.close()


class Load:
    """Writes and reads, as a client of that name, until it is told to stop."""

    def __init__(self, server, name="load", swing=0):
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(server, name, swing))
        self._thread.start()

    def _run(self, server, name, swing):
        client = Client(server)
        client.send(("CLIENT", "SETNAME", name))
        n = 0
        while not self._stopping.is_set():
            n += 1
            client.send(("SET", f"session:{n % 5000:08}", "v" * 200), ("GET", f"user:{n % 3000}:profile"),
                        ("GET", f"order:2026/{n % 4000}"), ("INCR", f"counter:{n % 50}"))
            # The pause grows and shrinks in the course of minutes.
            time.sleep(0.001 * (1 + swing * (1 + math.sin(time.monotonic() / 40))))
        client.close()

    def stop(self):
        self._stopping.set()
        self._thread.join()


def figure(browser, name):
    """The number in front of a figure at the top of the page, such as that of "writes"."""
    text = browser.run("""
      const place = [...document.querySelectorAll('#figures div')]
          .find((each) => each.firstChild.textContent === arguments[0]);
      return place?.lastChild.textContent ?? '';""", name)
    return float(re.sub(r"[^0-9.].*", "", text.replace(",", "")) or 0)


def state(browser):
    return browser.run("return document.getElementById('state').dataset.state")


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("page", "--slowlog-log-slower-than=0", "--write-buffer-size=1MiB")
        cls.addClassCleanup(cls.server.end)
        fill(cls.server)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.open()

    def open(self):
        self.browser.log("browser")
        self.browser.requests()
        self.browser.open(self.server.origin + "/")
        wait_for("a first sample", lambda: int(self.browser.run(
            "return document.body.dataset.samples ?? 0")) >= 1)
        wait_for("the map of keys", lambda: "user:" in self.browser.text("#keys-table"))

    def test_nothing_is_wrong_and_no_request_leaves_the_origin(self):
        headers, body = self.server.get("/")
        self.assertTrue(headers["Content-Security-Policy"].startswith("default-src 'none'; "))
        self.assertNotIn("unsafe", headers["Content-Security-Policy"])
        self.assertLess(len(body), 100_000)
        wait_for("the slow log", lambda: "SET" in self.browser.text("#slow-table").upper())
        wait_for("the clients", lambda: self.browser.text("#clients-note") != "")
        wait_for("the strata", lambda: "segment" in self.browser.text("#strata"))
        self.assertEqual(self.browser.log("browser"), [])
        requests = self.browser.requests()
        self.assertIn(self.server.origin + "/keys.json", requests)
        for url in requests:
            self.assertTrue(url.startswith((self.server.origin + "/", "data:")), url)

    def test_the_policy_holds(self):
        ran = self.browser.run("""
          const script = document.createElement('script');
          script.textContent = 'window.ran = true';
          document.body.append(script);
          return window.ran === true;""")
        self.assertFalse(ran)
        answer = self.browser.run("""
          return fetch('http://localhost:1/').then(() => 'sent', (error) => String(error));""")
        self.assertIn("TypeError", answer)
        blocked = [entry for entry in self.browser.log("browser") if "Content Security Policy" in entry["message"]]
        self.assertGreaterEqual(len(blocked), 2)

    def test_follows_a_load(self):
        wait_for("rest", lambda: figure(self.browser, "writes") == 0)
        load = Load(self.server)
        try:
            wait_for("writes", lambda: figure(self.browser, "writes") > 10)
            wait_for("reads", lambda: figure(self.browser, "reads") > 10)
            label = "return document.querySelector('.chart canvas').getAttribute('aria-label')"
            wait_for("the chart's figure", lambda: re.search(r"writes [1-9]", self.browser.run(label)))
            sentence = self.browser.text("#sentence")
            self.assertTrue(sentence.endswith("."), sentence)
        finally:
            load.stop()
        wait_for("rest", lambda: figure(self.browser, "writes") == 0)
        # A visitor who comes later sees what was.
        self.open()
        highest = self.browser.run("""
          document.querySelector('details').open = true;
          return new Promise((done) => setTimeout(() => done(
              document.querySelectorAll('#history-table tr')[2].lastChild.textContent)));""")
        self.assertRegex(highest, r"^[1-9]")

    def test_works_with_the_keyboard(self):
        wait_for("samples", lambda: int(self.browser.run("return document.body.dataset.samples")) >= 4)
        focus = "document.querySelector(arguments[0]).focus()"
        self.browser.run(focus, "#charts")
        self.browser.press("ArrowLeft", "ArrowLeft")
        wait_for("the cursor", lambda: "ago" in self.browser.text("#cursor-time"))
        self.browser.press("Escape")
        wait_for("now", lambda: self.browser.text("#cursor-time").startswith("now"))
        self.browser.run(focus, "#keys-map [data-name='order:']")
        self.browser.press("Enter")
        wait_for("the group", lambda: self.browser.text("#keys-path").endswith("order:"))
        self.browser.run("document.querySelector('#keys-path button').click()")
        wait_for("all keys", lambda: "session:" in self.browser.text("#keys-table"))
        client = Client(self.server)
        client.send(*[("SET", f"fresh:{n}", os.urandom(500).hex()) for n in range(2500)])
        client.close()
        wait_for("two runs", lambda: self.browser.run(
            "return document.querySelectorAll('#strata .band:has([data-segment])').length") >= 2)
        self.browser.run(focus, "#strata [data-segment]")
        wait_for("a segment's facts", lambda: "Segment" in self.browser.text("#segment-facts h3"))
        self.assertIn("database 0", self.browser.text("#segment-facts"))
        first = self.browser.text("#segment-facts h3")
        self.browser.press("ArrowDown")
        wait_for("another segment", lambda: self.browser.text("#segment-facts h3") != first)

    def test_the_map_has_the_sizes_of_the_groups(self):
        names = self.browser.run("""
          return [...document.querySelectorAll('#keys-table tbody tr td:first-child')]
              .map((cell) => cell.textContent);""")
        for name in ["user:", "session:", "order:", "cache/", "order:2026/", "cache/img/"]:
            self.assertIn(name, names)
        self.assertIn("No key was read", self.browser.text("#keys-note"))

    def test_a_power_cut_is_told_by_mode(self):
        self.assertIn("no acknowledged write would be lost", self.browser.text("#power-cut"))
        self.assertIn("everysec", self.browser.text("#modes-table"))
        self.assertIn("durable", self.browser.text("#marks-table"))

    def test_names_of_keys_are_for_those_who_may_read_them(self):
        client = Client(self.server)
        client.send(("CONFIG", "SET", "requirepass", "secret"))
        try:
            self.browser.open(self.server.origin + "/")
            wait_for("a word about names", lambda: "Names of keys are shown" in self.browser.text("#keys-note"))
            wait_for("a word about the slow log", lambda: "SLOWLOG GET" in self.browser.text("#slow-note"))
            wait_for("a word about clients", lambda: "CLIENT LIST" in self.browser.text("#clients-note"))
            wait_for("the strata", lambda: "segment" in self.browser.text("#strata"))
            self.assertNotIn("user:", self.browser.run("return document.body.textContent"))
        finally:
            client.send(("CONFIG", "SET", "requirepass", ""))
            client.close()

    def test_says_when_the_server_is_gone_and_comes_back_to_it(self):
        wait_for("health", lambda: state(self.browser) in ("healthy", "limited"))
        self.server.end(signal.SIGKILL)
        wait_for("a word about it", lambda: state(self.browser) == "lost")
        self.assertIn("does not answer", self.browser.text("#sentence"))
        self.server.start()
        wait_for("health", lambda: state(self.browser) in ("healthy", "limited"))
        # The server brings indexes into memory when it is at rest, and the map with them.
        wait_for("the map of keys", lambda: "order:2026/" in self.browser.text("#keys-table"))


def take_pictures():
    """Pictures of the page at three sizes in both themes, of a server with some minutes behind it."""
    server = Server("pictures", "--slowlog-log-slower-than=2000", "--write-buffer-size=4MiB")
    fill(server)
    browser = Browser()
    loads = [Load(server, name, swing) for swing, name in enumerate(("web", "worker", "mailer"))]
    try:
        end = time.monotonic() + 60 * float(os.environ.get("VARVE_PICTURE_MINUTES", "0.3"))
        client = Client(server)
        while time.monotonic() < end:
            time.sleep(20)
            client.send(*[("SET", f"cache/img/{os.urandom(4).hex()}", os.urandom(450).hex())
                          for _ in range(1500)])
        client.close()
        browser.open(server.origin + "/")
        wait_for("a sample", lambda: int(browser.run("return document.body.dataset.samples ?? 0")) >= 1)
        for theme in ("light", "dark"):
            browser.command("Emulation.setEmulatedMedia",
                            features=[{"name": "prefers-color-scheme", "value": theme}])
            for name, (width, height) in SIZES.items():
                browser.command("Emulation.setDeviceMetricsOverride", width=width, height=900,
                                deviceScaleFactor=1, mobile=name == "phone")
                time.sleep(2.5)
                browser.run("document.querySelector('#strata [data-segment]')?.focus({preventScroll: true});"
                            "document.activeElement.blur(); window.scrollTo(0, 0)")
                picture = browser.command("Page.captureScreenshot", format="png",
                                          captureBeyondViewport=True,
                                          clip={"x": 0, "y": 0, "width": width, "height": height,
                                                "scale": 1})
                path = DIRECTORY / f"page-{name}-{theme}.png"
                path.write_bytes(base64.b64decode(picture["data"]))
                print(path)
    finally:
        for load in loads:
            load.stop()
        browser.close()
        server.end()


def main():
    global SERVER_MAIN, DIRECTORY
    arguments = [word for word in sys.argv[1:] if word != "--pictures"]
    SERVER_MAIN, DIRECTORY = arguments[0], pathlib.Path(arguments[1])
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            print(f"skipped: {program} is not installed (packages-test.txt)")
            sys.exit(77)
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    DIRECTORY.mkdir(parents=True)
    if "--pictures" in sys.argv:
        take_pictures()
    else:
        unittest.main(argv=[sys.argv[0]], verbosity=2)


if __name__ == "__main__":
    main()
