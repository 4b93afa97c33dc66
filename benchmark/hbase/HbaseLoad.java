// HbaseLoad QUORUM TABLE PORT KEYS VALUE_SIZE: HBase's own client, as its users use it, beside which server_benchmark measures the
// server over a cluster. It makes the table, fills it with KEYS keys, listens on PORT of 127.0.0.1, and answers each line with a line:
//
//   get|put|scan THREADS BATCH WARM_UP_SECONDS SECONDS   "requests seconds p50_us p99_us": so many threads, each with one call under
//                                                        way; a get or a put is of BATCH keys in one call, each of which is a request;
//                                                        a scan reads 50 rows
//   drop PREFIX                                          removes the tables whose names begin with it: "dropped"
//
// A put is on the disks of all copies when it is answered (`hsync`). Anything that fails ends the program.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

public class HbaseLoad {
  private static final byte[] FAMILY = {'v'};
  private static final byte[] QUALIFIER = {};
  private static final int SCANNED = 50;

  private static Connection connection;
  private static TableName name;
  private static int keys;
  private static int valueSize;

  public static void main(String[] arguments) throws Exception {
    String[] quorum = arguments[0].split(":");
    name = TableName.valueOf(arguments[1]);
    int port = Integer.parseInt(arguments[2]);
    keys = Integer.parseInt(arguments[3]);
    valueSize = Integer.parseInt(arguments[4]);
    Configuration configuration = HBaseConfiguration.create();
    configuration.set("hbase.zookeeper.quorum", quorum[0]);
    configuration.set("hbase.zookeeper.property.clientPort", quorum[1]);
    connection = ConnectionFactory.createConnection(configuration);
    fill();
    try (ServerSocket listener = new ServerSocket(port, 1, InetAddress.getLoopbackAddress());
        Socket socket = listener.accept();
        BufferedReader lines = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII))) {
      OutputStream answers = socket.getOutputStream();
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        answers.write((answer(line.split(" ")) + "\n").getBytes(StandardCharsets.US_ASCII));
        answers.flush();
      }
    } catch (Throwable error) {
      error.printStackTrace();
      System.exit(1);
    }
    System.exit(0);
  }

  private static void fill() throws Exception {
    try (Admin admin = connection.getAdmin(); Table table = connection.getTable(name)) {
      admin.createTable(TableDescriptorBuilder.newBuilder(name)
          .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(FAMILY).setMaxVersions(1).build()).build());
      List<Put> puts = new ArrayList<>();
      for (int key = 0; key < keys; key++) {
        puts.add(put(key));
        if (puts.size() < 500 && key + 1 < keys) continue;
        table.put(puts);
        puts.clear();
      }
    }
  }

  private static String answer(String[] line) throws Exception {
    if (line[0].equals("drop")) return drop(line[1]);
    int threads = Integer.parseInt(line[1]), batch = Integer.parseInt(line[2]);
    long warm = System.nanoTime() + (long) (Double.parseDouble(line[3]) * 1e9);
    long end = warm + (long) (Double.parseDouble(line[4]) * 1e9);
    List<Caller> callers = new ArrayList<>();
    for (int i = 0; i < threads; i++) callers.add(new Caller(line[0], batch, warm, end, System.nanoTime() + i));
    for (Caller caller : callers) caller.start();
    int calls = 0;
    for (Caller caller : callers) {
      caller.join();
      if (caller.error != null) throw caller.error;
      calls += caller.calls;
    }
    long[] nanos = new long[calls];
    int filled = 0;
    for (Caller caller : callers) {
      System.arraycopy(caller.nanos, 0, nanos, filled, caller.calls);
      filled += caller.calls;
    }
    Arrays.sort(nanos);
    long p50 = calls == 0 ? 0 : nanos[calls / 2], p99 = calls == 0 ? 0 : nanos[(int) ((long) calls * 99 / 100)];
    return (long) calls * batch + " " + line[4] + " " + p50 / 1000.0 + " " + p99 / 1000.0;
  }

  private static byte[] key(int number) {
    return String.format("key:%012d", number).getBytes(StandardCharsets.US_ASCII);
  }

  private static Put put(int number) {
    byte[] key = key(number), value = new byte[valueSize];
    Arrays.fill(value, (byte) 'x');
    System.arraycopy(key, 0, value, 0, Math.min(key.length, valueSize));
    return new Put(key).addColumn(FAMILY, QUALIFIER, value).setDurability(Durability.FSYNC_WAL);
  }

  private static String drop(String prefix) throws Exception {
    try (Admin admin = connection.getAdmin()) {
      for (TableName table : admin.listTableNames()) {
        if (!table.getNameAsString().startsWith(prefix)) continue;
        if (admin.isTableEnabled(table)) admin.disableTable(table);
        admin.deleteTable(table);
      }
    }
    return "dropped";
  }

  // One thread that calls until the end, and keeps how long each call took that was made after the warm-up.
  private static class Caller extends Thread {
    private final String work;
    private final int batch;
    private final long warm, end;
    private final SplittableRandom random;
    private long[] nanos = new long[1024];
    private int calls = 0;
    private Exception error;

    Caller(String work, int batch, long warm, long end, long seed) {
      this.work = work;
      this.batch = batch;
      this.warm = warm;
      this.end = end;
      random = new SplittableRandom(seed);
    }

    @Override
    public void run() {
      try (Table table = connection.getTable(name)) {
        for (long begin = System.nanoTime(); begin < end;) {
          call(table);
          long now = System.nanoTime();
          if (begin >= warm && now <= end) {
            if (calls == nanos.length) nanos = Arrays.copyOf(nanos, 2 * calls);
            nanos[calls++] = now - begin;
          }
          begin = now;
        }
      } catch (Exception failure) {
        error = failure;
      }
    }

    private void call(Table table) throws Exception {
      switch (work) {
        case "get" -> read(table);
        case "put" -> write(table);
        case "scan" -> scan(table);
        default -> throw new IllegalArgumentException("unknown work " + work);
      }
    }

    private Get get() {
      return new Get(key(random.nextInt(keys))).addColumn(FAMILY, QUALIFIER);
    }

    private void read(Table table) throws Exception {
      if (batch == 1) {
        check(table.get(get()));
        return;
      }
      List<Get> gets = new ArrayList<>();
      for (int i = 0; i < batch; i++) gets.add(get());
      Result[] rows = table.get(gets);
      if (rows.length != batch) throw new IllegalStateException("a get of many has answered " + rows.length + " rows");
      for (int i = 0; i < batch; i++) {
        check(rows[i]);
        if (!Arrays.equals(rows[i].getRow(), gets.get(i).getRow()))
          throw new IllegalStateException("a get of many has answered another row");
      }
    }

    private void write(Table table) throws Exception {
      if (batch == 1) {
        table.put(put(random.nextInt(keys)));
        return;
      }
      List<Put> puts = new ArrayList<>();
      for (int i = 0; i < batch; i++) puts.add(put(random.nextInt(keys)));
      table.put(puts);
    }

    private void scan(Table table) throws Exception {
      Scan scan = new Scan().withStartRow(key(random.nextInt(keys - SCANNED + 1))).addColumn(FAMILY, QUALIFIER).setLimit(SCANNED)
          .setCaching(SCANNED).setReadType(Scan.ReadType.PREAD);
      int rows = 0;
      try (ResultScanner scanner = table.getScanner(scan)) {
        for (Result row : scanner) {
          check(row);
          rows++;
        }
      }
      if (rows != SCANNED) throw new IllegalStateException("a scan has found " + rows + " rows");
    }

    private void check(Result row) {
      byte[] value = row.getValue(FAMILY, QUALIFIER), key = row.getRow();
      if (value == null || value.length != valueSize || !Arrays.equals(value, 0, key.length, key, 0, key.length))
        throw new IllegalStateException("a row has another value than was written");
    }
  }
}
