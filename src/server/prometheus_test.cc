#include "server/prometheus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pith {
namespace {

using ::testing::HasSubstr;

TEST(HistogramTest, BucketsAreCumulativeAndBoundsInclusive) {
  const double bounds[] = {1, 2};
  Histogram histogram(bounds);
  for (const double value : {0.5, 1.0, 1.5, 9.0}) histogram.Observe(value);
  EXPECT_EQ(histogram.Text("h", "m=\"a\""),
            "h_bucket{m=\"a\",le=\"1\"} 2\nh_bucket{m=\"a\",le=\"2\"} 3\nh_bucket{m=\"a\",le=\"+Inf\"} 4\nh_sum{m=\"a\"} "
            "12\nh_count{m=\"a\"} 4\n");
}

TEST(ServerMetricsTest, ShowsEngineCountersAndEscapesLabels) {
  ServerMetrics metrics("a\"b\\c\nd");
  metrics.CountFinished("stop");
  metrics.CountResponse("/health", 200);
  const std::string text = metrics.Text({.num_requests_running = 2,
                                         .kv_blocks_total = 8,
                                         .kv_blocks_used = 2,
                                         .kv_block_size = 32,
                                         .kv_cache_dtype = "int8",
                                         .generation_tokens = 7});
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_running{model_name=\"a\\\"b\\\\c\\nd\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_cache_usage_perc{model_name=\"a\\\"b\\\\c\\nd\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr(",block_size=\"32\",cache_dtype=\"int8\",num_blocks=\"8\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE vllm:generation_tokens_total counter\n"));
  EXPECT_THAT(text, HasSubstr("finished_reason=\"stop\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("finished_reason=\"abort\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("pith:http_responses_total{route=\"/health\",status=\"200\"} 1\n"));
}

}  // namespace
}  // namespace pith
