#include "eval/quality_gate.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr char kEverySlice[] = "default";
constexpr size_t kMaxGateBytes = size_t{1} << 20;

// THE TABLE of limits.
struct LimitKind {
  absl::string_view name, metric;
  enum { kAtMost, kAtLeast, kDropAtMost } kind;  // a drop is minus the figure, which is a difference
  double bound_low, bound_high;                  // bounds that make sense
};
constexpr LimitKind kLimits[] = {
    {"max_drop", "accuracy_delta", LimitKind::kDropAtMost, 0, 1},
    {"max_kl_mean", "kl_mean", LimitKind::kAtMost, 0, 100},
    {"max_kl_p99", "kl_p99", LimitKind::kAtMost, 0, 100},
    {"max_ppl_ratio", "ppl_ratio", LimitKind::kAtMost, 0, 1e6},
    {"max_served_kl_mean", "served_kl_mean", LimitKind::kAtMost, 0, 100},
    {"max_total_variation", "total_variation_mean", LimitKind::kAtMost, 0, 1},
    {"min_same_top", "same_top", LimitKind::kAtLeast, 0, 1},
};

const LimitKind* FindLimit(absl::string_view name) {
  const auto found = std::find_if(std::begin(kLimits), std::end(kLimits), [&](const LimitKind& kind) { return kind.name == name; });
  return found == std::end(kLimits) ? nullptr : found;
}

Decision Decide(const LimitKind& kind, const Estimate& estimate, double bound) {
  switch (kind.kind) {
    case LimitKind::kAtMost: return DecideAtMost(estimate, bound);
    case LimitKind::kAtLeast: return DecideAtLeast(estimate, bound);
    case LimitKind::kDropAtMost: break;
  }
  return DecideAtLeast(estimate, -bound);
}

std::string Shown(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return absl::StrCat("\"", Printable(*text), "\"");
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (node.is_number()) return absl::StrCat(node.value<double>().value_or(0));
  return node.is_table() ? "a table" : node.is_array() ? "an array" : "a date or time";
}

absl::Status Wrong(const toml::node& node, const std::string& key, absl::string_view expected) {
  return BadFileError("line ", node.source().begin.line, ": ", Printable(key), ": expected ", expected, ", found ", Shown(node));
}

absl::StatusOr<double> NumberIn(const toml::node& node, const std::string& key, double low, double high) {
  const std::optional<double> value = node.value<double>();
  if (!node.is_number() || !value.has_value() || !(*value >= low && *value <= high))
    return Wrong(node, key, absl::StrFormat("a number from %g to %g", low, high));
  return *value;
}

absl::Status ReadCondition(const toml::node& node, const std::string& key, GateLine* line) {
  if (key == "temperature") {
    ASSIGN_OR_RETURN(line->temperature, NumberIn(node, key, 0, 100));
  } else if (key == "context") {
    if (!node.is_integer()) return Wrong(node, key, "a whole number of tokens");
    ASSIGN_OR_RETURN(const double tokens, NumberIn(node, key, 1, 1 << 30));
    line->context = static_cast<int64_t>(tokens);
  } else if (key == "kv_cache") {
    line->kv_cache = node.value<std::string>();
    if (!line->kv_cache.has_value()) return Wrong(node, key, "the name of a KV cache format");
  } else if (key == "confidence") {
    ASSIGN_OR_RETURN(line->confidence, NumberIn(node, key, 0.5, 0.9999));
  } else {
    return BadFileError("line ", node.source().begin.line, ": expected one of temperature, context, kv_cache, confidence, ",
                        absl::StrJoin(GateLimitNames(), ", "), ", found \"", Printable(key), "\"");
  }
  return absl::OkStatus();
}

absl::Status ReadTable(const std::string& slice, const toml::table& table, std::vector<GateLine>* lines) {
  GateLine conditions{.slice = slice};
  std::vector<GateLine> limits;
  for (const auto& [toml_key, node] : table) {
    const std::string key(toml_key.str());
    if (const LimitKind* kind = FindLimit(key)) {
      ASSIGN_OR_RETURN(const double bound, NumberIn(node, key, kind->bound_low, kind->bound_high));
      limits.push_back({.limit = key, .bound = bound, .line = static_cast<int>(node.source().begin.line)});
    } else {
      RETURN_IF_ERROR(ReadCondition(node, key, &conditions));
    }
  }
  if (limits.empty()) {
    return BadFileError("line ", table.source().begin.line, ": [", Printable(slice), "]: expected at least one of ",
                        absl::StrJoin(GateLimitNames(), ", "), ", found none");
  }
  for (const GateLine& limit : limits) {
    GateLine line = conditions;
    line.limit = limit.limit;
    line.bound = limit.bound;
    line.line = limit.line;
    lines->push_back(std::move(line));
  }
  return absl::OkStatus();
}

bool Matches(const GateLine& line, const LimitKind& kind, const EvidenceConditions& at) {
  return at.metric == kind.metric && (line.slice == kEverySlice || line.slice == at.slice) &&
         (!line.temperature.has_value() || line.temperature == at.temperature) &&
         (!line.context.has_value() || line.context == at.context) && (!line.kv_cache.has_value() || line.kv_cache == at.kv_cache);
}

std::string ConditionsText(const GateLine& line) {
  std::string text = line.slice == kEverySlice ? "every slice" : line.slice;
  if (line.temperature.has_value()) absl::StrAppend(&text, ", temperature ", *line.temperature);
  if (line.context.has_value()) absl::StrAppend(&text, ", context ", *line.context);
  if (line.kv_cache.has_value()) absl::StrAppend(&text, ", kv_cache ", *line.kv_cache);
  return text;
}

GateResult Judge(const GateLine& line, const LimitKind& kind, const GateFigure& figure) {
  const Estimate estimate = figure.estimate(line.confidence);
  GateResult result{.line = line, .conditions = figure.conditions, .estimate = estimate};
  result.outcome = Decide(kind, estimate, line.bound);
  const EvidenceConditions& at = figure.conditions;
  result.reason = absl::StrFormat("%s of %s is %.4g [%.4g, %.4g] (n = %d), %s = %g: %s", at.metric, at.slice, estimate.value, estimate.low,
                                  estimate.high, estimate.n, line.limit, line.bound,
                                  result.outcome == Decision::kHolds   ? "within the limit"
                                  : result.outcome == Decision::kFails ? "beyond the limit"
                                                                       : "not enough data to decide");
  if (at.temperature.has_value()) absl::StrAppend(&result.reason, ", at temperature ", *at.temperature);
  return result;
}

}  // namespace

std::vector<absl::string_view> GateLimitNames() {
  std::vector<absl::string_view> names;
  for (const LimitKind& kind : kLimits) names.push_back(kind.name);
  return names;
}

absl::StatusOr<std::vector<GateLine>> ParseGate(absl::string_view text) {
  const toml::parse_result parsed = toml::parse(std::string_view(text.data(), text.size()));
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return BadFileError("line ", error.source().begin.line, ": ", Printable(std::string(error.description())));
  }
  std::vector<GateLine> lines;
  for (const auto& [key, node] : parsed.table()) {
    const std::string slice(key.str());
    if (const toml::table* table = node.as_table()) {
      RETURN_IF_ERROR(ReadTable(slice, *table, &lines));
    } else if (const toml::array* tables = node.as_array(); tables != nullptr && tables->is_array_of_tables()) {
      for (const toml::node& entry : *tables) RETURN_IF_ERROR(ReadTable(slice, *entry.as_table(), &lines));
    } else {
      return Wrong(node, slice, "a table named after a slice, or [default]");
    }
  }
  if (lines.empty()) return BadFileError("expected at least one table with a limit, found none");
  std::stable_sort(lines.begin(), lines.end(), [](const GateLine& a, const GateLine& b) { return a.line < b.line; });
  return lines;
}

absl::StatusOr<std::vector<GateLine>> ReadGate(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxGateBytes));
  auto lines = ParseGate(text);
  if (!lines.ok()) return Annotate(lines.status(), path);
  return lines;
}

absl::string_view GateOutcomeName(Decision outcome) {
  switch (outcome) {
    case Decision::kHolds: return "passed";
    case Decision::kFails: return "failed";
    case Decision::kNotEnoughData: break;
  }
  return "undecided";
}

std::vector<GateResult> ApplyGate(absl::Span<const GateLine> lines, absl::Span<const GateFigure> figures) {
  std::vector<GateResult> results;
  for (const GateLine& line : lines) {
    const LimitKind& kind = *FindLimit(line.limit);
    const size_t before = results.size();
    for (const GateFigure& figure : figures) {
      if (Matches(line, kind, figure.conditions)) results.push_back(Judge(line, kind, figure));
    }
    if (results.size() == before) {
      results.push_back({.line = line, .reason = absl::StrCat(kind.metric, " was not measured for ", ConditionsText(line))});
    }
  }
  return results;
}

absl::Status GateStatus(absl::Span<const GateResult> results) {
  std::vector<std::string> refused;
  for (const GateResult& result : results) {
    if (result.outcome == Decision::kHolds) continue;
    const std::string where = result.line.line > 0 ? absl::StrCat(" (line ", result.line.line, ")") : "";
    refused.push_back(absl::StrCat("[", result.line.slice, "] ", GateOutcomeName(result.outcome), where, ": ", result.reason));
  }
  if (refused.empty()) return absl::OkStatus();
  return RefusedError("gate: ", refused.size(), " of ", results.size(), " not passed\n  ", absl::StrJoin(refused, "\n  "));
}

OrderedJson ToJson(absl::Span<const GateResult> results) {
  OrderedJson list = OrderedJson::array();
  for (const GateResult& result : results) {
    OrderedJson entry = {{"slice", result.conditions.has_value() ? result.conditions->slice : result.line.slice},
                         {"limit", result.line.limit},
                         {"bound", result.line.bound},
                         {"confidence", result.line.confidence},
                         {"outcome", GateOutcomeName(result.outcome)},
                         {"reason", result.reason}};
    if (result.conditions.has_value()) {
      entry["temperature"] = result.conditions->temperature.has_value() ? OrderedJson(*result.conditions->temperature) : OrderedJson();
      entry["context"] = result.conditions->context;
      entry["kv_cache"] = result.conditions->kv_cache;
    }
    if (result.estimate.has_value()) entry["estimate"] = ToJson(*result.estimate);
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace pith
