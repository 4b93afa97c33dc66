// The text of metrics in both formats.
#include "server/http/metrics_text.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

using Format = MetricsText::Format;
using Type = MetricsText::Type;

std::string Sampled(Format format) {
  MetricsText text(format);
  text.Family("varve_build", Type::kInfo, "", "What runs.");
  text.Sample({{"version", "1"}}, uint64_t{1});
  text.Only("varve_net_input_bytes", Type::kCounter, "bytes", "What came.", uint64_t{7});
  text.Family("varve_namespace_keys", Type::kGauge, "", "Keys.");
  text.Sample({{"namespace", "a\"b\\c\nd\xff"}}, 0.5);
  return text.Take();
}

TEST(MetricsTextTest, WritesPrometheusText) {
  EXPECT_EQ(Sampled(Format::kPlain),
            "# HELP varve_build_info What runs.\n# TYPE varve_build_info gauge\n"
            "varve_build_info{version=\"1\"} 1\n"
            "# HELP varve_net_input_bytes_total What came.\n"
            "# TYPE varve_net_input_bytes_total counter\nvarve_net_input_bytes_total 7\n"
            "# HELP varve_namespace_keys Keys.\n# TYPE varve_namespace_keys gauge\n"
            "varve_namespace_keys{namespace=\"a\\\"b\\\\c\\nd\xEF\xBF\xBD\"} 0.5\n");
}

TEST(MetricsTextTest, WritesOpenMetrics) {
  EXPECT_EQ(Sampled(Format::kOpenMetrics),
            "# HELP varve_build What runs.\n# TYPE varve_build info\n"
            "varve_build_info{version=\"1\"} 1\n"
            "# HELP varve_net_input_bytes What came.\n# TYPE varve_net_input_bytes counter\n"
            "# UNIT varve_net_input_bytes bytes\nvarve_net_input_bytes_total 7\n"
            "# HELP varve_namespace_keys Keys.\n# TYPE varve_namespace_keys gauge\n"
            "varve_namespace_keys{namespace=\"a\\\"b\\\\c\\nd\xEF\xBF\xBD\"} 0.5\n# EOF\n");
}

TEST(MetricsTextTest, HistogramsAreCumulated) {
  DurationCounts counts;
  counts.buckets[DurationCounts::BucketOf(10'000)] += 2;
  counts.buckets[DurationCounts::BucketOf(10'001)] += 1;
  counts.buckets[DurationCounts::BucketOf(11'000'000'000)] += 1;
  counts.nanos = 1'500'000'000;
  MetricsText text(Format::kPlain);
  text.Family("varve_x_seconds", Type::kHistogram, "seconds", "X.");
  text.Histogram({{"cmd", "get"}}, counts);
  const std::string all = text.Take();
  for (const char* line :
       {"varve_x_seconds_bucket{cmd=\"get\",le=\"1e-05\"} 2\n",
        "varve_x_seconds_bucket{cmd=\"get\",le=\"2.15e-05\"} 3\n",
        "varve_x_seconds_bucket{cmd=\"get\",le=\"10\"} 3\n",
        "varve_x_seconds_bucket{cmd=\"get\",le=\"+Inf\"} 4\n",
        "varve_x_seconds_sum{cmd=\"get\"} 1.5\n", "varve_x_seconds_count{cmd=\"get\"} 4\n"}) {
    EXPECT_NE(all.find(line), std::string::npos) << line << all;
  }
}

}  // namespace
}  // namespace varve
