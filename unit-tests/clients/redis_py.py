# redis-py does a round of the commands that the server has, in RESP2 and RESP3; over TLS where VARVE_TLS_CA names the file of an
# authority.
import os
import sys
import time

import redis
from redis.cache import CacheConfig
from redis.connection import CacheProxyConnection

port = int(sys.argv[1])
authority = os.environ.get("VARVE_TLS_CA")
tls = {"ssl": True, "ssl_ca_certs": authority} if authority else {}


def round_of(protocol):
    r = redis.Redis(port=port, **tls, protocol=protocol, decode_responses=True, client_name="round")
    r.flushall()
    commands = set(r.execute_command("COMMAND LIST"))
    assert r.ping() and r.echo("x") == "x"

    # (command, what is called, what it must return)
    calls = [
        ("set", lambda: r.set("k", "v"), True),
        ("set", lambda: r.set("k", "w", nx=True), None),
        ("set", lambda: r.set("k", "w", xx=True, get=True), "v"),
        ("get", lambda: r.get("k"), "w"),
        ("get", lambda: r.get("missing"), None),
        ("mset", lambda: r.mset({"a": "1", "b": "2", "c": ""}), True),
        ("mget", lambda: r.mget("a", "b", "c", "d"), ["1", "2", "", None]),
        ("exists", lambda: r.exists("a", "a", "d"), 2),
        ("incr", lambda: r.execute_command("INCR", "a"), 2),
        ("incrby", lambda: r.incrby("a", 5), 7),
        ("decrby", lambda: r.decrby("a", 5), 2),
        ("incrbyfloat", lambda: r.incrbyfloat("a", 0.5), 2.5),
        ("append", lambda: r.append("b", "34"), 3),
        ("strlen", lambda: r.strlen("b"), 3),
        ("getrange", lambda: r.getrange("b", 1, -1), "34"),
        ("setrange", lambda: r.setrange("b", 1, "xx"), 3),
        ("getset", lambda: r.getset("k", "z"), "w"),
        ("getdel", lambda: r.getdel("k"), "z"),
        ("setnx", lambda: r.setnx("k", "v"), True),
        ("msetnx", lambda: r.msetnx({"k": "1", "l": "2"}), False),
        ("type", lambda: r.type("a"), "string"),
        ("rename", lambda: r.rename("a", "e"), True),
        ("copy", lambda: r.copy("e", "f"), True),
        ("setbit", lambda: r.setbit("bits", 7, 1), 0),
        ("getbit", lambda: r.getbit("bits", 7), 1),
        ("bitcount", lambda: r.bitcount("bits"), 1),
        ("bitpos", lambda: r.bitpos("bits", 1), 7),
        ("bitop", lambda: r.bitop("NOT", "tib", "bits"), 1),
        ("bitfield", lambda: r.bitfield("bf").incrby("u8", 0, 3).execute(), [3]),
        ("lcs", lambda: (r.mset({"s": "ohmytext", "t": "mynewtext"}), r.lcs("s", "t"))[1], "mytext"),
        ("delete", lambda: r.delete("b", "missing"), 1),
        ("unlink", lambda: r.unlink("c"), 1),
        ("keys", lambda: sorted(r.keys("bit*")), ["bits"]),
        ("scan", lambda: sorted(r.scan_iter("bit*")), ["bits"]),
    ]
    for command, call, expected in calls:
        if command in commands:
            got = call()
            assert got == expected, (command, got, expected)
    assert r.dbsize() == int(r.info("keyspace")["db0"]["keys"])

    assert r.client_getname() == "round"
    me = r.client_info()
    assert me["id"] == r.client_id() and int(me["resp"]) == protocol and me["lib-name"] == "redis-py", me
    assert me["cmd"] == "client|info" and [c["name"] for c in r.client_list()].count("round") == 1
    assert r.client_unblock(1) is False or r.client_unblock(1) == 0
    assert r.command_count() == len([c for c in commands if "|" not in c])
    assert r.command_getkeys("MSET", "a", "1", "b", "2") == ["a", "b"]
    assert r.config_get("port")["port"] == str(port)

    with r.pipeline(transaction=False) as pipe:
        for i in range(1000):
            pipe.set(f"p{i}", i).get(f"p{i}")
        assert pipe.execute()[1::2] == [str(i) for i in range(1000)]

    p = r.pubsub()
    p.subscribe("news")
    p.psubscribe("n*")
    for expected in ("subscribe", "psubscribe"):
        assert p.get_message(timeout=5)["type"] == expected
    assert r.publish("news", "hello") == 2 and r.pubsub_numsub("news") == [("news", 1)] and r.pubsub_numpat() == 1
    assert sorted(p.get_message(timeout=5)["type"] for _ in range(2)) == ["message", "pmessage"]
    if protocol == 2:  # in RESP3 redis-py takes the reply apart as if it were a message
        p.ping("alive")
        assert p.get_message(timeout=5)["data"] == "alive"
    p.close()

    with r.monitor() as m:
        r.get("seen")
        assert m.next_command()["command"] == "GET seen"

    # RESET makes the connection what it was when it came: without a name, and in RESP2, whatever was spoken.
    with redis.Redis(port=port, **tls, protocol=protocol, client_name="reset", single_connection_client=True) as single:
        connection = single.connection
        map_type = dict if protocol == 3 else list
        connection.send_command("CONFIG", "GET", "port")
        assert type(connection.read_response()) is map_type
        connection.send_command("RESET")
        assert connection.read_response() == b"RESET"
        connection.send_command("CONFIG", "GET", "port")
        assert connection.read_response() == [b"port", str(port).encode()]
        connection.send_command("CLIENT", "INFO")
        info = connection.read_response().decode()
        assert "resp=2" in info and " name= " in info, info

    other = redis.Redis(port=port, **tls, protocol=protocol)
    assert r.client_kill_filter(_id=other.client_id()) == 1
    deadline = time.monotonic() + 5
    while other.connection_pool is not None and time.monotonic() < deadline and len(r.client_list()) > 3:
        time.sleep(0.01)
    assert other.ping()  # it connects again
    for wrong in (("GET",), ("NOSUCH",), ("CLIENT", "TRACKING", "MAYBE"), ("SELECT", "1000")):
        try:
            r.execute_command(*wrong)
            raise AssertionError(f"{wrong} was accepted")
        except redis.ResponseError:
            pass


def cached_reads():
    """The library's own cache, which CLIENT TRACKING keeps up to date. It asks for a server that calls itself Redis 7.4."""
    CacheProxyConnection.DEFAULT_SERVER_NAME, CacheProxyConnection.MIN_ALLOWED_VERSION = "varve", "7.0.0"
    r = redis.Redis(port=port, **tls, protocol=3, decode_responses=True, cache_config=CacheConfig())
    other = redis.Redis(port=port, **tls)
    gets = lambda: other.info("commandstats")["cmdstat_get"]["calls"]
    other.set("cached", "1")
    assert r.get("cached") == "1"
    before = gets()
    assert [r.get("cached") for _ in range(10)] == ["1"] * 10
    assert gets() == before and r.get_cache().size == 1
    for change, expected in ((lambda: other.set("cached", "2"), "2"), (other.flushdb, None)):
        change()
        deadline = time.monotonic() + 60
        while r.get("cached") != expected:
            assert time.monotonic() < deadline, "the cache was not told"


for version in (2, 3):
    round_of(version)
cached_reads()
