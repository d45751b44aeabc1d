#include "eval/svg_charts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

constexpr double kWidth = 640;       // of every chart, in its own units; the page scales it
constexpr double kLabelWidth = 190;  // left of bars
constexpr double kValueWidth = 150;  // right of bars
constexpr double kRow = 22;
constexpr double kPlotHeight = 240;
constexpr double kLeft = 64, kRight = 16, kTop = 12, kBottom = 40;  // margins of plots with two axes

std::string Open(double height, absl::string_view name) {
  return absl::StrFormat("<svg class=\"chart\" viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">", kWidth, height, EscapeHtml(name));
}

std::string Text(double x, double y, absl::string_view anchor, absl::string_view text) {
  return absl::StrFormat("<text class=\"label\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>", x, y, anchor, EscapeHtml(text));
}

std::string Line(double x1, double y1, double x2, double y2, absl::string_view css) {
  return absl::StrFormat("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", css, x1, y1, x2, y2);
}

// Values between low and high go to pixels between from and to; a range of no width goes to the middle.
struct Scale {
  double low, high, from, to;
  double operator()(double value) const { return high > low ? from + (value - low) / (high - low) * (to - from) : (from + to) / 2; }
};

Scale RangeOf(absl::Span<const double> values, double from, double to, bool with_zero) {
  double low = with_zero ? 0 : std::numeric_limits<double>::infinity(), high = with_zero ? 0 : -low;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!(low <= high)) low = high = 0;
  return {low, high, from, to};
}

// The frame of a plot with two axes: their lines, their ends and their names.
std::string Axes(const Scale& x, const Scale& y, absl::string_view x_axis, absl::string_view y_axis) {
  const double bottom = kTop + kPlotHeight;
  return absl::StrCat(Line(kLeft, bottom, kWidth - kRight, bottom, "axis"), Line(kLeft, kTop, kLeft, bottom, "axis"),
                      Text(kLeft, bottom + 16, "start", absl::StrFormat("%.4g", x.low)),
                      Text(kWidth - kRight, bottom + 16, "end", absl::StrFormat("%.4g", x.high)),
                      Text((kLeft + kWidth - kRight) / 2, bottom + 32, "middle", x_axis),
                      Text(kLeft - 6, bottom, "end", absl::StrFormat("%.3g", y.low)),
                      Text(kLeft - 6, kTop + 10, "end", absl::StrFormat("%.3g", y.high)), Text(kLeft + 6, kTop + 10, "start", y_axis));
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  std::string out;
  for (const char c : ReplaceInvalidUtf8(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F) {
          out += kReplacementUtf8;
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string IntervalBarChart(absl::Span<const IntervalBar> bars, double origin, int digits) {
  std::vector<double> ends = {origin};
  for (const IntervalBar& bar : bars) ends.insert(ends.end(), {bar.value, bar.low, bar.high});
  const Scale x = RangeOf(ends, kLabelWidth, kWidth - kValueWidth, /*with_zero=*/false);
  std::string svg = Open(kRow * static_cast<double>(bars.size()) + 4, "figures with their intervals");
  double top = 2;
  for (const IntervalBar& bar : bars) {
    const double from = std::min(x(origin), x(bar.value)), to = std::max(x(origin), x(bar.value)), middle = top + kRow / 2;
    absl::StrAppend(&svg, Text(kLabelWidth - 8, middle + 4, "end", bar.label),
                    absl::StrFormat("<rect class=\"series-%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", bar.series, from,
                                    top + 4, std::max(1.0, to - from), kRow - 8),
                    Line(x(bar.low), middle, x(bar.high), middle, "whisker"),
                    Text(kWidth - kValueWidth + 8, middle + 4, "start",
                         absl::StrFormat("%.*g [%.*g, %.*g]", digits, bar.value, digits, bar.low, digits, bar.high)));
    top += kRow;
  }
  return svg + "</svg>";
}

std::string HistogramChart(absl::Span<const double> edges, absl::Span<const int64_t> counts, absl::string_view axis) {
  const double largest = static_cast<double>(counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end()));
  const double bottom = kTop + kPlotHeight, step = (kWidth - kLeft - kRight) / static_cast<double>(std::max<size_t>(1, counts.size()));
  std::string svg = Open(bottom + kBottom, absl::StrCat("histogram of ", axis));
  const Scale y = {0, largest, bottom, kTop};
  for (size_t i = 0; i < counts.size(); ++i) {
    const double top = largest > 0 ? y(static_cast<double>(counts[i])) : bottom, left = kLeft + step * static_cast<double>(i);
    absl::StrAppend(
        &svg, absl::StrFormat("<rect class=\"series-0\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>%s</title></rect>",
                              left + 0.5, top, std::max(0.5, step - 1), bottom - top,
                              EscapeHtml(absl::StrFormat("%.3g to %.3g: %d", edges[i], edges[i + 1], counts[i]))));
  }
  absl::StrAppend(&svg, Line(kLeft, bottom, kWidth - kRight, bottom, "axis"), Line(kLeft, kTop, kLeft, bottom, "axis"),
                  Text(kLeft - 6, kTop + 10, "end", absl::StrFormat("%.0f", largest)), Text(kLeft - 6, bottom, "end", "0"),
                  Text((kLeft + kWidth - kRight) / 2, bottom + 32, "middle", axis));
  if (!edges.empty()) {
    absl::StrAppend(&svg, Text(kLeft, bottom + 16, "start", absl::StrFormat("%.2g", edges.front())),
                    Text(kWidth - kRight, bottom + 16, "end", absl::StrFormat("%.2g", edges.back())));
  }
  return svg + "</svg>";
}

std::string LineChart(absl::Span<const LineSeries> series, int64_t first, absl::string_view x_axis, absl::string_view y_axis) {
  std::vector<double> values;
  size_t length = 1;
  for (const LineSeries& line : series) {
    values.insert(values.end(), line.y.begin(), line.y.end());
    length = std::max(length, line.y.size());
  }
  const double bottom = kTop + kPlotHeight;
  const Scale x = {static_cast<double>(first), static_cast<double>(first) + static_cast<double>(length) - 1, kLeft, kWidth - kRight};
  const Scale y = RangeOf(values, bottom, kTop, /*with_zero=*/true);
  std::string svg = Open(bottom + kBottom + 16 * static_cast<double>(series.size()), absl::StrCat(y_axis, " by ", x_axis));
  absl::StrAppend(&svg, Axes(x, y, x_axis, y_axis));
  for (size_t s = 0; s < series.size(); ++s) {
    std::string path;
    bool down = false;  // whether the pen is on the paper
    for (size_t i = 0; i < series[s].y.size(); ++i) {
      const bool drawn = std::isfinite(series[s].y[i]);
      if (drawn)
        absl::StrAppend(&path, down ? "L" : "M",
                        absl::StrFormat("%.1f %.1f", x(static_cast<double>(first) + static_cast<double>(i)), y(series[s].y[i])));
      down = drawn;
    }
    const double legend = bottom + kBottom + 16 * static_cast<double>(s) + 8;
    absl::StrAppend(
        &svg, absl::StrFormat("<path class=\"line series-%d\" d=\"%s\"/>", s, path),
        absl::StrFormat("<path class=\"line series-%d\" d=\"M%.1f %.1fL%.1f %.1f\"/>", s, kLeft, legend - 4, kLeft + 24, legend - 4),
        Text(kLeft + 30, legend, "start", series[s].label));
  }
  return svg + "</svg>";
}

std::vector<size_t> Frontier(absl::Span<const ScatterPoint> points) {
  std::vector<size_t> order(points.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return points[a].x != points[b].x ? points[a].x < points[b].x : points[a].y < points[b].y; });
  std::vector<size_t> frontier;
  for (const size_t i : order) {
    if (frontier.empty() || points[i].y < points[frontier.back()].y) frontier.push_back(i);
  }
  return frontier;
}

std::string FrontierChart(absl::Span<const ScatterPoint> points, absl::string_view x_axis, absl::string_view y_axis) {
  std::vector<double> xs, ys;
  for (const ScatterPoint& point : points) {
    xs.push_back(point.x);
    ys.push_back(point.y);
  }
  const double bottom = kTop + kPlotHeight;
  const Scale x = RangeOf(xs, kLeft, kWidth - kRight, /*with_zero=*/true), y = RangeOf(ys, bottom, kTop, /*with_zero=*/true);
  std::string svg = Open(bottom + kBottom, absl::StrCat(y_axis, " against ", x_axis));
  absl::StrAppend(&svg, Axes(x, y, x_axis, y_axis));
  std::string path;
  for (const size_t i : Frontier(points)) {
    absl::StrAppend(&path, path.empty() ? "M" : "L", absl::StrFormat("%.1f %.1f", x(points[i].x), y(points[i].y)));
  }
  absl::StrAppend(&svg, "<path class=\"line axis\" d=\"", path, "\"/>");
  for (size_t i = 0; i < points.size(); ++i) {
    const double px = x(points[i].x), py = y(points[i].y);
    const bool right = px > kWidth * 0.7;  // where a label to the right would leave the picture
    absl::StrAppend(&svg, absl::StrFormat("<circle class=\"series-%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>", i % 6, px, py),
                    Text(right ? px - 8 : px + 8, py - 6, right ? "end" : "start", points[i].label));
  }
  return svg + "</svg>";
}

}  // namespace pith
