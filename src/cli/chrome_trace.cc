#include "cli/chrome_trace.h"

#include <algorithm>

namespace pith {

OrderedJson MakeChromeTrace(absl::Span<const TraceTrack> tracks) {
  int64_t first_ns = INT64_MAX;
  for (const TraceTrack& track : tracks) {
    for (const OperatorRecord& record : track.records) first_ns = std::min(first_ns, record.begin_ns);
  }
  const auto microseconds = [](int64_t ns) { return static_cast<double>(ns) / 1e3; };
  OrderedJson events = OrderedJson::array();
  for (size_t i = 0; i < tracks.size(); ++i) {
    events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", i + 1}, {"args", {{"name", tracks[i].name}}}});
    for (const OperatorRecord& record : tracks[i].records) {
      OrderedJson args = {{"rows", record.rows},
                          {"threads", record.threads},
                          {"kernel", record.kernel},
                          {"weight_bytes", record.work.weight_bytes},
                          {"activation_bytes", record.work.activation_bytes},
                          {"kv_bytes", record.work.kv_bytes},
                          {"operations", record.work.operations}};
      if (record.layer >= 0) args["layer"] = record.layer;
      events.push_back({{"name", record.name},
                        {"cat", "operator"},
                        {"ph", "X"},
                        {"ts", microseconds(record.begin_ns - first_ns)},
                        {"dur", microseconds(record.duration_ns())},
                        {"pid", 1},
                        {"tid", i + 1},
                        {"args", args}});
    }
  }
  return {{"traceEvents", events}, {"displayTimeUnit", "ns"}};
}

}  // namespace pith
