// Jedis does a round of the commands that the server has, in RESP2 and RESP3.
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.args.BitOP;
import redis.clients.jedis.csc.DefaultCache;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.LCSParams;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;

class Round {
  static void check(String what, Object got, Object expected) {
    if (!Objects.equals(got, expected)) throw new AssertionError(what + ": " + got + " instead of " + expected);
  }

  static void strings(JedisPooled c) {
    check("SET", c.set("k", "v"), "OK");
    check("SET NX", c.set("k", "w", SetParams.setParams().nx()), null);
    check("SET GET", c.setGet("k", "w"), "v");
    check("GET", c.get("k"), "w");
    check("GET of a missing key", c.get("missing"), null);
    check("MSET", c.mset("a", "1", "b", "", "c", "x"), "OK");
    check("MGET", c.mget("a", "b", "d"), java.util.Arrays.asList("1", "", null));
    check("MSETNX", c.msetnx("a", "2", "z", "2"), 0L);
    check("SETNX", c.setnx("a", "2"), 0L);
    check("INCR", c.incr("a"), 2L);
    check("INCRBY", c.incrBy("a", 5), 7L);
    check("DECR", c.decr("a"), 6L);
    check("DECRBY", c.decrBy("a", 4), 2L);
    check("INCRBYFLOAT", c.incrByFloat("a", 0.5), 2.5);
    check("APPEND", c.append("k", "xyz"), 4L);
    check("STRLEN", c.strlen("k"), 4L);
    check("GETRANGE", c.getrange("k", 1, -1), "xyz");
    check("SUBSTR", c.substr("k", 0, 0), "w");
    check("SETRANGE", c.setrange("k", 1, "__"), 4L);
    check("GETSET", c.getSet("k", "n"), "w__z");
    check("GETDEL", c.getDel("k"), "n");
    c.mset("s", "ohmytext", "t", "mynewtext");
    check("LCS", c.lcs("s", "t", LCSParams.LCSParams()).getMatchString(), "mytext");
  }

  static void keysAndBits(JedisPooled c) {
    check("SETBIT", c.setbit("bits", 7, true), false);
    check("GETBIT", c.getbit("bits", 7), true);
    check("BITCOUNT", c.bitcount("bits"), 1L);
    check("BITPOS", c.bitpos("bits", true), 7L);
    check("BITOP", c.bitop(BitOP.NOT, "tib", "bits"), 1L);
    check("BITFIELD", c.bitfield("bf", "INCRBY", "u8", "0", "3"), List.of(3L));
    check("BITFIELD_RO", c.bitfieldReadonly("bf", "GET", "u8", "0"), List.of(3L));
    check("EXISTS", c.exists("bits", "tib", "none"), 2L);
    check("TOUCH", c.touch("bits", "none"), 1L);
    check("TYPE", c.type("bits"), "string");
    check("RENAME", c.rename("bits", "moved"), "OK");
    check("RENAMENX", c.renamenx("moved", "tib"), 0L);
    check("COPY", c.copy("moved", "bits", true), true);
    check("OBJECT ENCODING", c.objectEncoding("bits"), "embstr");
    check("MEMORY USAGE", c.memoryUsage("none"), null);
    check("UNLINK", c.unlink("moved"), 1L);
    check("DEL", c.del("tib", "bf"), 2L);
    check("KEYS", c.keys("bit*"), Set.of("bits"));
    Set<String> seen = new TreeSet<>();
    String cursor = ScanParams.SCAN_POINTER_START;
    do {
      ScanResult<String> page = c.scan(cursor, new ScanParams().match("*").count(2));
      seen.addAll(page.getResult());
      cursor = page.getCursor();
    } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
    check("SCAN", seen, c.keys("*"));
    check("DBSIZE", c.dbSize(), (long) seen.size());
  }

  static void pipeline(JedisPooled c) {
    List<Response<String>> replies = new ArrayList<>();
    try (Pipeline pipeline = (Pipeline) c.pipelined()) {
      for (int i = 0; i < 1000; i++) {
        pipeline.set("p" + i, "" + i);
        replies.add(pipeline.get("p" + i));
      }
      pipeline.sync();
    }
    for (int i = 0; i < 1000; i++) check("a pipeline", replies.get(i).get(), "" + i);
  }

  static void channels(JedisPooled c) throws Exception {
    LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
    JedisPubSub listener = new JedisPubSub() {
      @Override public void onSubscribe(String channel, int count) { heard.add("+" + channel); }
      @Override public void onPSubscribe(String pattern, int count) { heard.add("+" + pattern); }
      @Override public void onMessage(String channel, String message) { heard.add(channel + " " + message); }
      @Override public void onPMessage(String pattern, String channel, String message) { heard.add(pattern + " " + message); }
    };
    Thread thread = new Thread(() -> c.subscribe(listener, "news"));
    thread.start();
    check("SUBSCRIBE", heard.poll(10, TimeUnit.SECONDS), "+news");
    listener.psubscribe("n*");
    check("PSUBSCRIBE", heard.poll(10, TimeUnit.SECONDS), "+n*");
    check("PUBLISH", c.publish("news", "hello"), 2L);
    check("messages", Set.of(heard.poll(10, TimeUnit.SECONDS), heard.poll(10, TimeUnit.SECONDS)), Set.of("news hello", "n* hello"));
    listener.unsubscribe();
    listener.punsubscribe();
    thread.join(10000);
    check("the listener ends", thread.isAlive(), false);
  }

  static void round(int port, DefaultJedisClientConfig config) throws Exception {
    HostAndPort server = new HostAndPort("127.0.0.1", port);
    try (JedisPooled c = new JedisPooled(server, config); Jedis j = new Jedis(server, config)) {
      check("FLUSHDB", j.flushDB(), "OK");
      strings(c);
      keysAndBits(c);
      pipeline(c);
      channels(c);
      check("PING", j.ping(), "PONG");
      check("ECHO", j.echo("x"), "x");
      check("CLIENT GETNAME", j.clientGetname(), "round");
      check("CLIENT INFO", j.clientInfo().contains("id=" + j.clientId() + " "), true);
      check("CONFIG GET", j.configGet("port").get("port"), "" + port);
      check("COMMAND GETKEYS", j.commandGetKeys("MSET", "a", "1", "b", "2"), List.of("a", "b"));
      check("COMMAND INFO", j.commandInfo("get").get("get").getArity(), 2L);
      check("COMMAND DOCS", j.commandDocs("get").get("get").getGroup(), "string");
      check("SELECT", j.select(0), "OK");
      check("MEMORY DOCTOR", j.memoryDoctor().contains("resident"), true);
      check("CONFIG SET", j.configSet("slowlog-log-slower-than", "-1"), "OK");
      check("SLOWLOG RESET", j.slowlogReset(), "OK");
      check("SLOWLOG LEN", j.slowlogLen(), 0L);
      check("ROLE", j.role().get(0), "master");
      check("INFO", j.info("server").contains("redis_version:"), true);
      try {
        c.sendCommand(() -> "NOSUCH".getBytes());
        throw new AssertionError("NOSUCH was accepted");
      } catch (JedisDataException error) {
        check("an unknown command", error.getMessage().contains("unknown command"), true);
      }
    }
  }

  // The library's own cache, which CLIENT TRACKING keeps up to date. It asks for a server that calls
  // itself Redis 7.4, unless its cache says that any will do.
  static void cachedReads(HostAndPort server, DefaultJedisClientConfig config) throws Exception {
    DefaultCache cache = new DefaultCache(100) {
      @Override public boolean compatibilityMode() { return true; }
    };
    try (JedisPooled c = new JedisPooled(server, config, cache); Jedis other = new Jedis(server, config)) {
      other.set("cached", "1");
      for (int i = 0; i < 10; i++) check("GET", c.get("cached"), "1");
      check("hits", cache.getStats().getHitCount(), 9L);
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
      other.set("cached", "2");
      while (!"2".equals(c.get("cached"))) check("the cache is told", System.nanoTime() < deadline, true);
      other.flushDB();
      while (c.get("cached") != null) check("the cache is told", System.nanoTime() < deadline, true);
    }
  }

  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(arguments[0]);
    boolean tls = System.getenv("VARVE_TLS_CA") != null;  // which is in the trust store then
    round(port, DefaultJedisClientConfig.builder().clientName("round").ssl(tls).build());
    DefaultJedisClientConfig resp3 = DefaultJedisClientConfig.builder().clientName("round").ssl(tls).resp3().build();
    round(port, resp3);
    cachedReads(new HostAndPort("127.0.0.1", port), resp3);
  }
}
