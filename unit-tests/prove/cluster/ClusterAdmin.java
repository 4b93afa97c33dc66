// ClusterAdmin COMMAND: what the tests of the store over HBase ask of the cluster itself. hbase_cluster.sh java runs it.
//
//   spread TABLE N            splits the table at rows of its own into N regions or more of about the same number of rows, unless it
//                             has as many, gives each server its share of them, and prints how many there are
//   share TABLE               gives each server its share of the regions, which the balancer does not touch from then on, and prints a
//                             line for each region that holds rows: the number of the region server that has it, and its first row in
//                             hexadecimal
//   churn TABLE SECONDS SEED  splits regions at rows chosen at random, and moves regions to servers chosen at random, one after the
//                             other, and prints how many splits and moves there were, and how many were refused
//   make TABLE FAMILY         makes a table with one column family, as programs other than Varve do
//   drop PREFIX               removes the tables whose names begin with it
//
// A split that HBase refuses as a region is "NOT splittable" yet is asked for again.
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
import org.apache.hadoop.hbase.util.Bytes;

public class ClusterAdmin {
  private static Connection connection;
  private static Admin admin;

  public static void main(String[] arguments) throws Exception {
    connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
    admin = connection.getAdmin();
    switch (arguments[0]) {
      case "spread" -> spread(TableName.valueOf(arguments[1]), Integer.parseInt(arguments[2]));
      case "share" -> {
        share(TableName.valueOf(arguments[1]));
        printOwners(TableName.valueOf(arguments[1]));
      }
      case "churn" -> churn(TableName.valueOf(arguments[1]), Integer.parseInt(arguments[2]), Long.parseLong(arguments[3]));
      case "make" -> make(TableName.valueOf(arguments[1]), arguments[2]);
      case "drop" -> drop(arguments[1]);
      default -> throw new IllegalArgumentException("unknown command " + arguments[0]);
    }
    connection.close();
  }

  private static List<byte[]> rows(TableName name) throws Exception {
    List<byte[]> rows = new ArrayList<>();
    try (Table table = connection.getTable(name);
        ResultScanner scanner = table.getScanner(new Scan().setFilter(new KeyOnlyFilter()).setCaching(5000))) {
      for (Result row : scanner) rows.add(row.getRow());
    }
    return rows;
  }

  private static List<ServerName> servers() throws Exception {
    List<ServerName> servers = new ArrayList<>(admin.getRegionServers());
    servers.sort(Comparator.comparingInt(ServerName::getPort));
    return servers;
  }

  // Returns why the split was refused, or null.
  private static String split(TableName table, byte[] row) throws Exception {
    for (RegionInfo region : admin.getRegions(table)) {
      if (!region.containsRow(row)) continue;
      try {
        admin.splitRegionAsync(region.getRegionName(), row).get(60, TimeUnit.SECONDS);
        return null;
      } catch (Exception error) {
        Throwable cause = error;
        while (cause.getCause() != null) cause = cause.getCause();
        return String.valueOf(cause.getMessage());
      }
    }
    return "no region has the row";
  }

  private static void splitInTime(TableName table, byte[] row) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    String refusal = split(table, row);
    while (refusal != null && refusal.contains("NOT splittable") && System.nanoTime() < end) {
      Thread.sleep(500);
      refusal = split(table, row);
    }
  }

  private static void spread(TableName table, int regions) throws Exception {
    if (admin.getRegions(table).size() < regions) cut(table, regions);
    share(table);
    System.out.println(admin.getRegions(table).size());
  }

  private static void cut(TableName table, int regions) throws Exception {
    List<byte[]> rows = rows(table);
    // The middle first, so that regions which were just split are asked for nothing while they get ready.
    List<Integer> cuts = new ArrayList<>();
    for (int step = Integer.highestOneBit(regions); step > 0; step /= 2) {
      for (int cut = step; cut < regions; cut += step) if (!cuts.contains(cut)) cuts.add(cut);
    }
    for (int cut : cuts) splitInTime(table, rows.get((int) ((long) rows.size() * cut / regions)));
  }

  // A region that is on its way already is asked for again.
  private static void move(RegionInfo region, ServerName server) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (true) {
      try {
        admin.move(region.getEncodedNameAsBytes(), server);
        return;
      } catch (IOException error) {
        if (!String.valueOf(error.getMessage()).contains("in transition") || System.nanoTime() > end) throw error;
        Thread.sleep(200);
      }
    }
  }

  // The regions of each region server that lives, once each region has one. A server that was started again is another one.
  private static Map<ServerName, List<RegionInfo>> places(TableName name) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    try (RegionLocator locator = connection.getRegionLocator(name)) {
      while (true) {
        Map<ServerName, List<RegionInfo>> places = new TreeMap<>();
        for (ServerName server : servers()) places.put(server, new ArrayList<>());
        HRegionLocation away = null;
        locator.clearRegionLocationCache();
        for (HRegionLocation place : locator.getAllRegionLocations()) {
          ServerName server = place.getServerName();
          if (server == null || !places.containsKey(server)) away = place;
          else places.get(server).add(place.getRegion());
        }
        if (away == null) return places;
        if (System.nanoTime() > end) throw new IOException("no server that lives has the region " + away);
        Thread.sleep(500);
      }
    }
  }

  // Moves regions from servers that have more than their share to those that have less.
  private static void share(TableName name) throws Exception {
    admin.balancerSwitch(false, true);
    Map<ServerName, List<RegionInfo>> places = places(name);
    Comparator<Map.Entry<ServerName, List<RegionInfo>>> bySize = Comparator.comparingInt(place -> place.getValue().size());
    while (true) {
      var most = Collections.max(places.entrySet(), bySize);
      var least = Collections.min(places.entrySet(), bySize);
      if (most.getValue().size() <= least.getValue().size() + 1) return;
      RegionInfo region = most.getValue().remove(0);
      move(region, least.getKey());
      least.getValue().add(region);
    }
  }

  private static void printOwners(TableName name) throws Exception {
    int first = Integer.getInteger("varve.port.zookeeper");
    try (RegionLocator locator = connection.getRegionLocator(name);
        Table table = connection.getTable(name)) {
      for (HRegionLocation place : locator.getAllRegionLocations()) {
        RegionInfo region = place.getRegion();
        Scan scan = new Scan().withStartRow(region.getStartKey()).withStopRow(region.getEndKey()).setLimit(1);
        try (ResultScanner scanner = table.getScanner(scan.setFilter(new KeyOnlyFilter()))) {
          Result row = scanner.next();
          if (row != null) System.out.println((place.getPort() - first) / 10 + " " + Bytes.toHex(row.getRow()));
        }
      }
    }
  }

  private static void churn(TableName table, int seconds, long seed) throws Exception {
    Random random = new Random(seed);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    int splits = 0, moves = 0, refused = 0;
    List<byte[]> rows = rows(table);
    while (System.nanoTime() < end) {
      byte[] row = rows.get(random.nextInt(rows.size()));
      if (random.nextBoolean()) {
        if (split(table, row) == null) splits++; else refused++;
      } else {
        List<ServerName> servers = servers();
        for (RegionInfo region : admin.getRegions(table)) {
          if (region.containsRow(row)) move(region, servers.get(random.nextInt(servers.size())));
        }
        moves++;
      }
      Thread.sleep(100);
    }
    System.out.println(splits + " splits " + moves + " moves " + refused + " refused");
  }

  private static void make(TableName name, String family) throws Exception {
    admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamily(ColumnFamilyDescriptorBuilder.of(family)).build());
  }

  private static void drop(String prefix) throws Exception {
    for (TableName table : admin.listTableNames()) {
      if (!table.getNameAsString().startsWith(prefix)) continue;
      if (admin.isTableEnabled(table)) admin.disableTable(table);
      admin.deleteTable(table);
    }
  }
}
