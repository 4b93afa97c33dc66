#!/usr/bin/env python3
"""run_transcripts.py SERVER CLIENT PAGE ...: does what the pages show, and holds what comes against what they say.

A block ```console of a page is a transcript: lines that begin with `$ ` are commands for a shell, those below them what it answers, where
`...` stands for any text. All transcripts of a page are one session with a fresh server in an empty directory. In commands 7777 is the
server's port, 7778 the port of its pages over HTTP, and 6379 a redis-server that is started for the page. Exits with 1 where an answer is
another one, and with 77, and says so, where a program that the pages call is missing.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NEEDED = ("redis-cli", "redis-server", "nc", "curl", "openssl")


class Server:
    """A process that says in its output when it is ready."""

    def __init__(self, command, directory, patterns):
        os.makedirs(directory)
        self.process = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.found = []
        said = ""
        while len(self.found) < len(patterns):
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"{command[0]} did not start:\n{said}")
            said += line
            match = re.search(patterns[len(self.found)], line)
            if match:
                self.found.append(match[1])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.stdout.read()
        self.process.wait()


def start_varve(server, directory):
    command = [server, "--port=0", "--http-port=-1", f"--dir={directory}/store"]
    return Server(command, directory, [r"HTTP is served at 127\.0\.0\.1:(\d+)", r"serves .* on 127\.0\.0\.1:(\d+)"])


def start_redis(directory):
    """A redis-server on a port that was free a moment ago; another one is tried where it is taken meanwhile."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        try:
            server = Server(["redis-server", "--port", str(port), "--save", ""], f"{directory}/{port}", [r"(Ready to accept)"])
            server.found = [str(port)]
            return server
        except RuntimeError:
            continue


def steps_of(block):
    """The commands of a transcript with what is to be answered."""
    steps = []
    for line in block.split("\n"):
        if line.startswith("$ "):
            steps.append([line[2:], []])
        elif steps:
            steps[-1][1].append(line)
    return [(command, "\n".join(lines).strip()) for command, lines in steps]


def agrees(expected, answer):
    pattern = "".join(".*" if part == "..." else re.escape(part) for part in re.split(r"(\.\.\.)", expected))
    return re.fullmatch(pattern, answer, re.DOTALL) is not None


def run_page(page, text, server, client, directory):
    """Returns how many commands the page has, and what was answered otherwise."""
    blocks = BLOCK.findall(text)
    if not blocks:
        return 0, []
    programs = f"{directory}/programs"
    os.makedirs(programs)
    for name, path in (("server_main", server), ("varve-server", server), ("client_main", client), ("varve", client)):
        os.symlink(os.path.abspath(path), f"{programs}/{name}")
    environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", HOME=directory)
    varve = start_varve(os.path.abspath(server), f"{directory}/varve")
    redis = start_redis(f"{directory}/redis") if any("6379" in block for block in blocks) else None
    ports = {"7778": varve.found[0], "7777": varve.found[1]}
    if redis:
        ports["6379"] = redis.found[0]
    os.makedirs(f"{directory}/session")
    count, problems = 0, []
    try:
        for block in blocks:
            for command, expected in steps_of(block):
                count += 1
                line = re.sub(r"\b(7777|7778|6379)\b", lambda match: ports.get(match[1], match[1]), command)
                line = line.replace("redis-cli ", "redis-cli --no-raw ").replace("build/release/", "")
                done = subprocess.run(["bash", "-c", line], cwd=f"{directory}/session", env=environment, text=True, timeout=300,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                answer = done.stdout.replace("\r", "").strip()
                if not agrees(expected, answer):
                    problems.append(f"{page}: $ {command}\nthe page says:\n{expected}\nbut the answer is:\n{answer}\n")
    finally:
        varve.stop()
        if redis:
            redis.stop()
    return count, problems


def main():
    server, client, *pages = sys.argv[1:]
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing:
        print(f"run_transcripts: there is no {missing[0]}")
        sys.exit(77)
    total, problems = 0, []
    for page in pages:
        with open(page, encoding="utf-8") as file, tempfile.TemporaryDirectory() as directory:
            count, found = run_page(page, file.read(), server, client, directory)
        total += count
        problems += found
    for problem in problems:
        print(problem)
    print(f"{total} commands of {len(pages)} pages, {len(problems)} answered otherwise")
    sys.exit(1 if problems or total == 0 else 0)


if __name__ == "__main__":
    main()
