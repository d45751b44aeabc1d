// Charts as inline SVG: text in, text out, no scripts. Colours come from CSS classes ("series-0", "axis", "whisker", "label") and
// currentColor, so that a page decides how they look in the dark and on paper. Pure and deterministic; every label is escaped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

// `text` as content or attribute of HTML and SVG: & < > " ' become entities, control characters and malformed UTF-8 U+FFFD.
std::string EscapeHtml(absl::string_view text);

struct IntervalBar {
  std::string label;
  double value = 0, low = 0, high = 0;
  int series = 0;  // which colour
};
// Horizontal bars from `origin` with whiskers, one row each, values written behind them with `digits` significant digits.
std::string IntervalBarChart(absl::Span<const IntervalBar> bars, double origin, int digits);

// counts[i] values lie in [edges[i], edges[i + 1]); edges ascend, one more than counts. Edges that are powers are spaced evenly.
// Bars are scaled to the largest count.
std::string HistogramChart(absl::Span<const double> edges, absl::Span<const int64_t> counts, absl::string_view axis);

struct LineSeries {
  std::string label;
  std::vector<double> y;  // at x = 0, 1, 2, ...; what is not finite leaves a gap
};
// Lines over a shared axis that begins at `first`, with a legend.
std::string LineChart(absl::Span<const LineSeries> series, int64_t first, absl::string_view x_axis, absl::string_view y_axis);

struct ScatterPoint {
  std::string label;
  double x = 0, y = 0;
};
// Labelled points; those that no other point beats in both x and y (smaller is better) are joined by a line: the frontier.
std::string FrontierChart(absl::Span<const ScatterPoint> points, absl::string_view x_axis, absl::string_view y_axis);
// Indices of the points on the frontier, by ascending x. Of equal points the first counts.
std::vector<size_t> Frontier(absl::Span<const ScatterPoint> points);

}  // namespace pith
