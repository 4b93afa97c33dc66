#!/usr/bin/env python3
"""run_runbook.py SERVER CLIENT PAGE: loses a machine, and does what the page says line by line until it is back.

The section "The machine is gone" of the page has a block ```sh for each step. Each line runs in a shell as it stands, but for the
directories, which lie below one of the test's own. Server, client and archiver are the real ones; systemctl starts and stops them as the
page says the units do, and chown has nobody to give files to. Exits with 1 where a line fails or the machine does not come back.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

SECTION = re.compile(r"^### The machine is gone$(.*?)^##", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
PATIENCE = 60  # seconds for what takes a fraction of one

SYSTEMCTL = """#!/bin/sh
echo "$1 $2" > {root}/wanted && while [ -e {root}/wanted ]; do sleep 0.02; done
exit $(cat {root}/code)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Machine:
    """The services of a machine, and the programs that a shell finds there."""

    def __init__(self, root, server, client):
        self.root, self.client = root, client
        self.port = free_port()
        self.services = {
            "varve-server": [server, f"--port={self.port}", f"--dir={root}/var/lib/varve"],
            "varve-archive": [client, "-p", str(self.port), "archive", f"{root}/archive/varve"],
        }
        self.running = {}
        programs = f"{root}/programs"
        for directory in (programs, f"{root}/var/lib", f"{root}/archive"):
            os.makedirs(directory)
        os.symlink(client, f"{programs}/client_main")
        for name, text in (("systemctl", SYSTEMCTL.format(root=root)), ("chown", "#!/bin/sh\ntest -d \"$3\"\n")):
            with open(f"{programs}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(f"{programs}/{name}", 0o755)
        self.environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", VARVE_URL=f"redis://127.0.0.1:{self.port}")

    def start(self, name):
        with open(f"{self.root}/{name}.log", "a", encoding="utf-8") as log:
            self.running[name] = subprocess.Popen(self.services[name], stdout=log, stderr=log)
        if name == "varve-server":
            self.wait_for("the server", lambda: self.call("ping").returncode == 0)
        return 0

    def stop(self, name, how=signal.SIGTERM):
        process = self.running.pop(name, None)
        if process is None:
            return 0
        process.send_signal(how)
        return process.wait()

    def call(self, *words):
        return subprocess.run([self.client, "-p", str(self.port), *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def do(self, line):
        """Runs the line in a shell, and does meanwhile what it asks of systemctl. Returns its exit code and what it said."""
        line = re.sub(r"/(archive|var/lib)/varve\b", lambda match: f"{self.root}{match[0]}", line)
        with tempfile.TemporaryFile("w+") as said:
            shell = subprocess.Popen(["sh", "-ec", line], env=self.environment, stdout=said, stderr=said)
            while shell.poll() is None:
                self.serve()
                time.sleep(0.01)
            said.seek(0)
            return shell.returncode, said.read()

    def serve(self):
        wanted = f"{self.root}/wanted"
        if not os.path.exists(wanted) or os.path.getsize(wanted) == 0:
            return
        with open(wanted, encoding="utf-8") as file:
            verb, name = file.read().split()
        code = self.start(name) if verb == "start" else self.stop(name)
        with open(f"{self.root}/code", "w", encoding="utf-8") as file:
            file.write(str(code))
        os.remove(wanted)

    @staticmethod
    def wait_for(what, happened):
        end = time.monotonic() + PATIENCE
        while not happened():
            if time.monotonic() > end:
                raise RuntimeError(f"{what} did not come")
            time.sleep(0.05)

    def is_archived(self):
        return "would be lost now: 0" in self.call("archive-check", f"{self.root}/archive/varve").stdout

    def keys(self):
        return self.call("range", "--json").stdout


def lines_of(page):
    section = SECTION.search(page)
    blocks = BLOCK.findall(section[1]) if section else []
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


def lose_machine(machine):
    """A machine with an archive goes, with all of its data. Returns what it held."""
    machine.start("varve-server")
    machine.start("varve-archive")
    for i in range(200):
        machine_said = machine.call("put", f"key:{i % 50}", f"value {i}")
        if machine_said.returncode != 0:
            raise RuntimeError(machine_said.stdout)
    machine.wait_for("the archive", machine.is_archived)
    held = machine.keys()
    machine.stop("varve-server", signal.SIGKILL)
    subprocess.run(["rm", "-r", f"{machine.root}/var/lib/varve"], check=True)
    return held


def run(machine, lines):
    """Returns what went wrong; empty: nothing."""
    held = lose_machine(machine)
    for line in lines:
        code, said = machine.do(line)
        if code != 0:
            return f"$ {line}\nended with {code}:\n{said}"
    if machine.keys() != held:
        return f"the server holds something else:\n{machine.keys()}"
    if machine.call("put", "after", "all").returncode != 0:
        return "the server takes no write"
    machine.wait_for("the new base", machine.is_archived)
    return ""


def main():
    server, client, page = sys.argv[1:]
    with open(page, encoding="utf-8") as file:
        lines = lines_of(file.read())
    if len(lines) < 5:
        sys.exit(f"{page}: there is no runbook of a machine that is gone")
    with tempfile.TemporaryDirectory() as root:
        machine = Machine(root, os.path.abspath(server), os.path.abspath(client))
        try:
            problem = run(machine, lines)
        finally:
            for name in list(machine.running):
                machine.stop(name, signal.SIGKILL)
    if problem:
        sys.exit(problem)
    print(f"{len(lines)} lines of the runbook brought the machine back")


if __name__ == "__main__":
    main()
