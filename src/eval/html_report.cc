#include "eval/html_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "eval/svg_charts.h"

namespace pith {
namespace {

constexpr char kStyle[] = R"css(
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#f2f4f7;--rule:#c9d0d9;--bad:#b3261e;--good:#1a7f37;--open:#9a6700}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--paper:#14171a;--soft:#1f2429;--rule:#414a54;--bad:#ff8a80;--good:#6fdd8b;--open:#e3b341}}
body{margin:0 auto;max-width:60rem;padding:1rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.15rem;margin:2em 0 .5em;border-bottom:1px solid var(--rule)}
.verdict{padding:.8rem 1rem;border-left:.4rem solid var(--rule);background:var(--soft)}
.verdict.failed{border-color:var(--bad)}.verdict.undecided{border-color:var(--open)}.verdict.passed{border-color:var(--good)}
.failed b{color:var(--bad)}.passed b{color:var(--good)}.undecided b{color:var(--open)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}td,th{padding:.25rem .6rem;border-bottom:1px solid var(--rule);text-align:right;
white-space:nowrap}td:first-child,th:first-child{text-align:left}small{color:inherit;opacity:.75}
pre,code{font:.85rem/1.4 ui-monospace,monospace;overflow-wrap:anywhere;white-space:pre-wrap}
.chart{width:100%;max-width:42rem;height:auto;display:block}.label{font-size:12px;fill:currentColor}.axis{stroke:currentColor;opacity:.5}
.line{fill:none;stroke-width:1.8}.whisker{stroke:currentColor;stroke-width:1.5}
.series-0{fill:#3b78c9;stroke:#3b78c9}.series-1{fill:#c9703b;stroke:#c9703b}.series-2{fill:#4a9a5b;stroke:#4a9a5b}
.series-3{fill:#8a5bb5;stroke:#8a5bb5}.series-4{fill:#b59a3b;stroke:#b59a3b}.series-5{fill:#6b7785;stroke:#6b7785}
path.line{fill:none}rect,circle{stroke:none}mark{background:#f5c54288;color:inherit}
@media print{body{max-width:none;font-size:11px}h2{break-after:avoid}svg,table,.verdict{break-inside:avoid}}
)css";

// A member of an object; null when absent.
const OrderedJson& At(const OrderedJson& json, const char* key) {
  static const OrderedJson kNull;
  if (!json.is_object()) return kNull;
  const auto member = json.find(key);
  return member == json.end() ? kNull : *member;
}

std::string TextOf(const OrderedJson& json) {
  if (json.is_null()) return "";
  return EscapeHtml(json.is_string() ? json.get<std::string>() : DumpJson(json));
}

double NumberOf(const OrderedJson& json) { return json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN(); }

// "0.0556 [0.0501, 0.0618]"
std::string EstimateText(const OrderedJson& estimate) {
  const double value = NumberOf(At(estimate, "value"));
  if (!std::isfinite(value)) return "";
  const OrderedJson& interval = At(estimate, "ci95");
  std::string text = absl::StrFormat("%.4g", value);
  if (interval.is_array() && interval.size() == 2)
    absl::StrAppend(&text, absl::StrFormat(" <small>[%.4g, %.4g]</small>", NumberOf(interval[0]), NumberOf(interval[1])));
  return text;
}

std::string Row(const std::vector<std::string>& cells, absl::string_view tag) {
  std::string row = "<tr>";
  for (const std::string& cell : cells) absl::StrAppend(&row, "<", tag, ">", cell, "</", tag, ">");
  return row + "</tr>\n";
}

std::string Section(absl::string_view title, absl::string_view content) {
  return content.empty() ? std::string() : absl::StrCat("<section><h2>", EscapeHtml(title), "</h2>\n", content, "</section>\n");
}

std::string Table(const std::vector<std::string>& head, const std::string& rows) {
  return rows.empty() ? std::string() : absl::StrCat("<div class=\"wide\"><table>", Row(head, "th"), rows, "</table></div>\n");
}

const OrderedJson& ModelsOf(const OrderedJson& result) {
  static const OrderedJson kNone = OrderedJson::array();
  const OrderedJson& models = At(result, "models");
  return models.is_array() ? models : kNone;
}

// The outcome of all of a gate: failed before undecided before passed.
std::string OverallOutcome(const OrderedJson& gate) {
  std::string overall = "passed";
  for (const OrderedJson& line : gate) {
    const std::string outcome = TextOf(At(line, "outcome"));
    if (outcome == "failed") return outcome;
    if (outcome != "passed") overall = "undecided";
  }
  return overall;
}

std::string Verdict(const OrderedJson& result) {
  std::string html;
  for (const OrderedJson& model : ModelsOf(result)) {
    const OrderedJson& gate = At(model, "gate");
    if (!gate.is_array() || gate.empty()) continue;
    const std::string overall = OverallOutcome(gate);
    absl::StrAppend(&html, "<div class=\"verdict ", overall, "\"><b>", overall, "</b> ", TextOf(At(model, "path")), "<ul>");
    for (const OrderedJson& line : gate) {
      const std::string outcome = TextOf(At(line, "outcome"));
      absl::StrAppend(&html, "<li class=\"", outcome, "\"><b>", outcome, "</b>: ", TextOf(At(line, "reason")), "</li>");
    }
    absl::StrAppend(&html, "</ul></div>\n");
  }
  if (!html.empty()) return html;
  return "<div class=\"verdict\">No gate was given: these are figures without a judgement. <code>--gate FILE.toml</code> makes "
         "one.</div>\n";
}

std::string Sizes(const OrderedJson& result) {
  const double reference = NumberOf(At(result, "reference_bytes"));
  std::string rows;
  std::vector<ScatterPoint> points;
  for (const OrderedJson& model : ModelsOf(result)) {
    const double bytes = NumberOf(At(model, "bytes"));
    const OrderedJson& kl = At(At(model, "metrics"), "kl_mean");
    rows += Row({TextOf(At(model, "path")), std::isfinite(bytes) ? absl::StrFormat("%.1f", bytes / 1e6) : "",
                 std::isfinite(bytes / reference) ? absl::StrFormat("%.3f", bytes / reference) : "", EstimateText(kl),
                 TextOf(At(model, "data_path")), TextOf(At(model, "kv_cache"))},
                "td");
    if (std::isfinite(bytes) && std::isfinite(NumberOf(At(kl, "value"))))
      points.push_back({At(model, "path").is_string() ? At(model, "path").get<std::string>() : "", bytes / 1e6, NumberOf(At(kl, "value"))});
  }
  std::string html = Table({"model", "MB", "of the reference", "mean KL [95 %]", "data path", "KV cache"}, rows);
  if (points.size() > 1) html += FrontierChart(points, "MB", "mean KL");
  return html;
}

// Metrics that a reader compares first, with the value of a model that kept everything.
constexpr struct {
  const char *key, *title;
  double perfect;
} kMetrics[] = {
    {"kl_mean", "mean KL, nats", 0},          {"kl_p99", "KL, 99th percentile", 0}, {"served_kl_mean", "mean KL as served", 0},
    {"same_top", "same top token, share", 1}, {"ppl_ratio", "perplexity ratio", 1}, {"accuracy_delta", "accuracy difference", 0}};

std::vector<std::pair<std::string, const OrderedJson*>> SlicesOf(const OrderedJson& model) {
  std::vector<std::pair<std::string, const OrderedJson*>> slices = {{"all", &At(model, "metrics")}};
  for (const auto& [name, metrics] : At(model, "slices").items()) slices.emplace_back(name, &metrics);
  return slices;
}

std::string Slices(const OrderedJson& result) {
  std::string html;
  for (const OrderedJson& model : ModelsOf(result)) {
    std::vector<std::string> head = {"slice"};
    std::string rows;
    for (const auto& metric : kMetrics) head.push_back(metric.title);
    head.push_back("n");
    for (const auto& [name, metrics] : SlicesOf(model)) {
      std::vector<std::string> cells = {EscapeHtml(name)};
      for (const auto& metric : kMetrics) cells.push_back(EstimateText(At(*metrics, metric.key)));
      cells.push_back(TextOf(At(At(*metrics, "kl_mean"), "n")));
      rows += Row(cells, "td");
    }
    absl::StrAppend(&html, "<h3>", TextOf(At(model, "path")), "</h3>\n", Table(head, rows));
  }
  for (const auto& metric : kMetrics) {
    std::vector<IntervalBar> bars;
    int series = 0;
    for (const OrderedJson& model : ModelsOf(result)) {
      for (const auto& [name, metrics] : SlicesOf(model)) {
        const OrderedJson& estimate = At(*metrics, metric.key);
        const OrderedJson& interval = At(estimate, "ci95");
        if (!interval.is_array() || interval.size() != 2 || !std::isfinite(NumberOf(At(estimate, "value")))) continue;
        bars.push_back({.label = name,
                        .value = NumberOf(At(estimate, "value")),
                        .low = NumberOf(interval[0]),
                        .high = NumberOf(interval[1]),
                        .series = series % 6});
      }
      ++series;
    }
    if (!bars.empty()) absl::StrAppend(&html, "<h3>", EscapeHtml(metric.title), "</h3>\n", IntervalBarChart(bars, metric.perfect, 3), "\n");
  }
  return html;
}

// What would be served at each temperature.
std::string Served(const OrderedJson& result) {
  std::string html;
  for (const OrderedJson& model : ModelsOf(result)) {
    std::string rows;
    for (const auto& [name, metrics] : SlicesOf(model)) {
      for (const OrderedJson& served : At(*metrics, "served")) {
        std::vector<std::string> cells = {EscapeHtml(name)};
        for (const char* key : {"temperature", "top_k", "top_p"}) cells.push_back(TextOf(At(served, key)));
        for (const char* key : {"total_variation_mean", "jensen_shannon_mean", "kl_mean", "lost_mass_mean"})
          cells.push_back(EstimateText(At(served, key)));
        rows += Row(cells, "td");
      }
    }
    if (rows.empty()) continue;
    absl::StrAppend(
        &html, "<h3>", TextOf(At(model, "path")), "</h3>\n",
        Table({"slice", "temperature", "top-k", "top-p", "total variation", "Jensen-Shannon", "KL before cuts", "lost mass"}, rows));
  }
  return html;
}

// Tables of figures that were swept: an array of objects with the same keys, estimates among them.
std::string Sweep(const OrderedJson& result, const char* key) {
  std::string html;
  for (const OrderedJson& model : ModelsOf(result)) {
    const OrderedJson& sweep = At(model, key);
    if (!sweep.is_array() || sweep.empty() || !sweep[0].is_object()) continue;
    std::vector<std::string> head;
    for (const auto& [name, value] : sweep[0].items()) head.push_back(EscapeHtml(name));
    std::string rows;
    for (const OrderedJson& entry : sweep) {
      std::vector<std::string> cells;
      for (const auto& [name, value] : entry.items()) cells.push_back(value.is_object() ? EstimateText(value) : TextOf(value));
      rows += Row(cells, "td");
    }
    absl::StrAppend(&html, "<h3>", TextOf(At(model, "path")), "</h3>\n", Table(head, rows));
  }
  return html;
}

std::string Histograms(const OrderedJson& result) {
  std::string html;
  for (const OrderedJson& model : ModelsOf(result)) {
    const OrderedJson& histogram = At(model, "kl_histogram");
    std::vector<double> edges;
    std::vector<int64_t> counts;
    for (const OrderedJson& edge : At(histogram, "edges")) edges.push_back(NumberOf(edge));
    for (const OrderedJson& count : At(histogram, "counts")) counts.push_back(count.is_number_integer() ? count.get<int64_t>() : 0);
    if (counts.empty() || edges.size() != counts.size() + 1) continue;
    absl::StrAppend(&html, "<h3>", TextOf(At(model, "path")), "</h3>\n", HistogramChart(edges, counts, "KL per token, nats"), "\n");
  }
  return html;
}

std::string Layers(const OrderedJson& result) {
  std::string html;
  for (const OrderedJson& model : ModelsOf(result)) {
    LineSeries local{.label = "of the layer alone"}, accumulated{.label = "accumulated"};
    for (const OrderedJson& block : At(model, "blocks")) {
      local.y.push_back(NumberOf(At(At(block, "local"), "relative_error")));
      accumulated.y.push_back(NumberOf(At(At(block, "accumulated"), "relative_error")));
    }
    if (local.y.empty()) continue;
    absl::StrAppend(&html, "<h3>", TextOf(At(model, "path")), "</h3>\n",
                    LineChart({std::move(local), std::move(accumulated)}, 0, "layer", "relative error of hidden states"), "\n");
  }
  return html;
}

std::string Code(const OrderedJson& text) { return absl::StrCat("<code>", TextOf(text), "</code>"); }

std::string WorstTokenTable(const OrderedJson& result) {
  std::string html;
  for (const OrderedJson& model : ModelsOf(result)) {
    std::string rows;
    for (const OrderedJson& token : At(model, "worst_tokens")) {
      rows += Row({absl::StrCat("<code>", TextOf(At(token, "before")), "<mark>", TextOf(At(token, "token_text")), "</mark></code>"),
                   TextOf(At(token, "slice")), absl::StrFormat("%.3g", NumberOf(At(token, "kl"))), Code(At(token, "reference_top_text")),
                   Code(At(token, "model_top_text"))},
                  "td");
    }
    if (!rows.empty())
      absl::StrAppend(&html, "<h3>", TextOf(At(model, "path")), "</h3>\n",
                      Table({"the token that follows", "slice", "KL", "likeliest of the reference", "of the model"}, rows));
  }
  return html;
}

std::string Origin(const OrderedJson& result) {
  std::string rows;
  for (const char* key : {"command", "version", "date", "machine", "reference", "reference_sha256", "reference_data_path", "data",
                          "context", "windows", "scored", "seed"}) {
    if (!At(result, key).is_null()) rows += Row({key, absl::StrCat("<code>", TextOf(At(result, key)), "</code>")}, "td");
  }
  for (const OrderedJson& model : ModelsOf(result)) {
    if (!At(model, "sha256").is_null())
      rows += Row({TextOf(At(model, "path")), absl::StrCat("<code>", TextOf(At(model, "sha256")), "</code>")}, "td");
  }
  return Table({"", ""}, rows);
}

}  // namespace

std::string RenderHtmlReport(const OrderedJson& result) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">"
      "<title>Quality against ",
      TextOf(At(result, "reference")), "</title><style>", kStyle, "</style></head><body>\n<h1>Quality against ",
      TextOf(At(result, "reference")), "</h1>\n", Verdict(result), Section("Size and quality", Sizes(result)),
      Section("Slices", Slices(result)), Section("Tasks", Sweep(result, "tasks")), Section("As served", Served(result)),
      Section("Context and KV cache", Sweep(result, "contexts")), Section("How KL is spread over tokens", Histograms(result)),
      Section("Error layer by layer", Layers(result)), Section("Worst tokens", WorstTokenTable(result)),
      Section("Where these figures come from", Origin(result)), "</body></html>\n");
}

}  // namespace pith
