#include "cli/chrome_trace.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

OperatorRecord Record(const char* name, int64_t layer, int64_t begin_ns, int64_t end_ns) {
  OperatorRecord record;
  record.name = name;
  record.layer = layer;
  record.begin_ns = begin_ns;
  record.end_ns = end_ns;
  record.work.weight_bytes = 7;
  return record;
}

TEST(ChromeTraceTest, CompleteEventsInMicrosecondsFromTheFirst) {
  const std::vector<TraceTrack> tracks = {{"prefill", {Record("qkv", 0, 5000, 7500), Record("lm_head", -1, 7500, 7600)}},
                                          {"decode", {Record("qkv", 0, 9000, 9100)}}};
  const OrderedJson trace = OrderedJson::parse(DumpJson(MakeChromeTrace(tracks)));
  const OrderedJson& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["ph"], "M");
  EXPECT_EQ(events[0]["args"]["name"], "prefill");
  EXPECT_EQ(events[1]["name"], "qkv");
  EXPECT_EQ(events[1]["ph"], "X");
  EXPECT_EQ(events[1]["ts"], 0.0);
  EXPECT_EQ(events[1]["dur"], 2.5);
  EXPECT_EQ(events[1]["args"]["layer"], 0);
  EXPECT_EQ(events[1]["args"]["weight_bytes"], 7);
  EXPECT_FALSE(events[2]["args"].contains("layer"));
  EXPECT_EQ(events[4]["ts"], 4.0);
  EXPECT_EQ(events[4]["tid"], 2);
  for (const OrderedJson& event : events) {
    for (const char* key : {"name", "ph", "pid", "tid", "args"}) EXPECT_TRUE(event.contains(key)) << key;
  }
}

TEST(ChromeTraceTest, NothingIsAValidTrace) { EXPECT_TRUE(MakeChromeTrace({})["traceEvents"].empty()); }

}  // namespace
}  // namespace pith
