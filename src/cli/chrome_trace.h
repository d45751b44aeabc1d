// Operator records as a trace for chrome://tracing and https://ui.perfetto.dev.
// Source: "Trace Event Format", complete events (ph "X"), times in microseconds.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/json.h"
#include "nn/profiler.h"

namespace pith {

struct TraceTrack {
  std::string name;  // "decode": one row of the display
  std::vector<OperatorRecord> records;
};

// {"traceEvents": [...], "displayTimeUnit": "ns"}; times count from the first record of all tracks.
OrderedJson MakeChromeTrace(absl::Span<const TraceTrack> tracks);

}  // namespace pith
