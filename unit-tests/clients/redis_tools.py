# redis-cli and redis-benchmark against the server: what people try first.
import os
import pty
import re
import select
import subprocess
import sys
import time

port = sys.argv[1]
authority = os.environ.get("VARVE_TLS_CA")
tls = ["--tls", "--cacert", authority] if authority else []
cli = ["redis-cli", "-p", port, *tls]


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    return done.stdout + done.stderr


commands = set(run(cli + ["command", "list"]).split())
assert run(cli + ["flushall"]) == "OK\n"
assert run(cli + ["set", "a", "1"]) == "OK\n" and run(cli + ["-3", "get", "a"]) == "1\n"

# --pipe: bytes of requests, sent as they are
requests = "".join(f"*3\r\n$3\r\nSET\r\n${len(f'key:{i}')}\r\nkey:{i}\r\n$1\r\nx\r\n" for i in range(5000))
assert "errors: 0, replies: 5000" in run(cli + ["--pipe"], input=requests)
if "scan" in commands:
    assert len(run(cli + ["--scan", "--pattern", "key:*"]).split()) == 5000
    if "type" in commands and "strlen" in commands:
        found = run(cli + ["--bigkeys"])
        assert "Sampled 5001 keys" in found and "Biggest string" in found, found


def watch(command, wanted):
    """Runs a command that never ends until its output has what is wanted."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    seen = ""
    deadline = time.monotonic() + 20
    while not re.search(wanted, seen) and time.monotonic() < deadline:
        if select.select([process.stdout], [], [], 1)[0]:
            seen += os.read(process.stdout.fileno(), 65536).decode(errors="replace")
    process.kill()
    process.wait()
    assert re.search(wanted, seen), (command, seen)


watch(cli + ["--stat", "-i", "0.1"], r"keys.*requests[\s\S]*\n5001 ")
assert re.match(r"[\d.]+ [\d.]+ [\d.]+ \d+", run(cli + ["--latency", "-i", "1", "--raw"]))
watch(cli + ["subscribe", "news"], r"subscribe[\s\S]*news[\s\S]*1")
watch(cli + ["monitor"], r"OK")

# The prompt, on a terminal: a hint for a command that redis-cli doesn't know by itself.
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execvp("redis-cli", cli)
seen = b""
deadline = time.monotonic() + 20
typed = False
while time.monotonic() < deadline and b"[LIMIT offset count]" not in seen:
    if select.select([terminal], [], [], 0.2)[0]:
        seen += os.read(terminal, 65536)
    if seen.endswith(b"\x1b[6n"):  # asks a terminal where its cursor is, to learn how wide it is
        os.write(terminal, b"\x1b[1;80R")
        seen += b"?"
    if b"> " in seen and not typed:
        os.write(terminal, b"prefix ")
        typed = True
assert b"[LIMIT offset count]" in seen, seen
os.write(terminal, b"\x03")
os.close(terminal)
os.waitpid(pid, 0)

benchmark = ["redis-benchmark", "-p", port, *tls, "-n", "2000", "-q"]
for options in (["-t", "ping,set,get,incr,mset"], ["-t", "set,get", "--threads", "2"], ["-t", "set", "-P", "16"]):
    out = run(benchmark + options)
    assert out.count("requests per second") >= len(options[1].split(",")) and "rror" not in out, out
refused = run(benchmark + ["-t", "set", "--cluster"])
assert "requests per second" not in refused, refused
print(refused.strip().splitlines()[0])
