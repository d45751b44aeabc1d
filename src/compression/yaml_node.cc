#include "compression/yaml_node.h"

#include <algorithm>
#include <sstream>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/status.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace pith {
namespace {

using Kind = YamlNode::Kind;

bool IsInteger(absl::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return false;
  return std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

bool IsDouble(absl::string_view text) {
  const bool digits = std::any_of(text.begin(), text.end(), absl::ascii_isdigit);
  const bool plain = text.find_first_not_of("0123456789.eE+-") == absl::string_view::npos;
  const absl::string_view whole = text.substr(text.find_first_not_of("+-") == absl::string_view::npos ? 0 : text.find_first_not_of("+-"));
  const bool leading_zero = whole.size() > 1 && whole[0] == '0' && absl::ascii_isdigit(whole[1]);
  double value = 0;
  return digits && plain && !leading_zero && absl::SimpleAtod(text, &value) && value - value == 0;
}

Kind ResolvePlain(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (const absl::string_view word : {"true", "false", "yes", "no", "on", "off"}) {
    if (lower == word) return Kind::kBool;
  }
  if (IsInteger(text)) return Kind::kInt;
  return IsDouble(text) ? Kind::kDouble : Kind::kString;
}

struct Extent {
  int nodes = 1;
  int depth = 0;  // 0: a scalar
};

Extent Measure(const YamlNode& node) {
  Extent extent{.depth = node.is_map() || node.is_sequence() ? 1 : 0};
  for (const YamlNode& item : node.items) {
    const Extent inner = Measure(item);
    extent.nodes += inner.nodes;
    extent.depth = std::max(extent.depth, inner.depth + 1);
  }
  return extent;
}

// Builds the tree from the parser's events. After the first error it ignores the rest.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const YamlLimits& limits) : limits_(limits) {}

  const absl::Status& status() const { return status_; }
  YamlNode& root() { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Add({.line = mark.line + 1, .text = "null"}, anchor, {}); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    const bool plain = tag.empty() || tag == "?";
    if (!CheckTag(mark, tag)) return;
    Add({.kind = plain ? ResolvePlain(value) : Kind::kString, .line = mark.line + 1, .text = value}, anchor, {});
    if (plain && value == "<<" && !open_.empty() && open_.back().has_key) Fail(mark.line + 1, "expected no merge key, found <<");
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!status_.ok()) return;
    const auto it = anchored_.find(anchor);
    if (it == anchored_.end()) return Fail(mark.line + 1, "expected an alias of a finished value, found one inside its own anchor");
    YamlNode copy = it->second;
    copy.line = mark.line + 1;
    Add(std::move(copy), 0, Measure(it->second));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Kind::kSequence);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Kind::kMap);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  struct OpenNode {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;  // of a map: whether the next value belongs to the last key
    absl::flat_hash_set<std::string> keys;
  };

  template <typename... Args> void Fail(int line, const Args&... args) {
    if (status_.ok()) status_ = BadFileError("line ", line, ": ", args...);
  }

  bool CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") Fail(mark.line + 1, "expected no tag, found !", Printable(tag, 60));
    return status_.ok();
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Kind kind) {
    if (!CheckTag(mark, tag)) return;
    if (static_cast<int>(open_.size()) >= limits_.max_depth) {
      return Fail(mark.line + 1, "expected at most ", limits_.max_depth, " levels, found more");
    }
    open_.push_back({.node = {.kind = kind, .line = mark.line + 1}, .anchor = anchor});
  }

  void Close() {
    if (!status_.ok()) return;
    OpenNode done = std::move(open_.back());
    open_.pop_back();
    Add(std::move(done.node), done.anchor, {});
  }

  // A finished node, into the map or sequence it stands in.
  void Add(YamlNode node, YAML::anchor_t anchor, Extent extent) {
    if (!status_.ok()) return;
    const int line = node.line;
    num_nodes_ += extent.nodes + (anchor != 0 ? Measure(node).nodes : 0);
    if (num_nodes_ > limits_.max_nodes) return Fail(line, "expected at most ", limits_.max_nodes, " values, found more");
    if (static_cast<int>(open_.size()) + extent.depth > limits_.max_depth) {
      return Fail(line, "expected at most ", limits_.max_depth, " levels, found more");
    }
    if (anchor != 0) anchored_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    OpenNode& parent = open_.back();
    if (parent.node.is_map() && !parent.has_key) return AddKey(node, parent);
    parent.has_key = false;
    parent.node.items.push_back(std::move(node));
  }

  void AddKey(const YamlNode& key, OpenNode& map) {
    if (key.is_map() || key.is_sequence() || key.is_null()) return Fail(key.line, "expected a name as key, found ", DescribeYaml(key));
    if (!map.keys.insert(key.text).second) {
      return Fail(key.line, "expected every key once, found \"", Printable(key.text, 60), "\" again");
    }
    map.node.keys.push_back(key.text);
    map.node.key_lines.push_back(key.line);
    map.has_key = true;
  }

  const YamlLimits limits_;
  absl::Status status_;
  YamlNode root_;
  std::vector<OpenNode> open_;
  absl::flat_hash_map<YAML::anchor_t, YamlNode> anchored_;
  int num_nodes_ = 0;
};

// Whether anything but comments and document ends follows the first document.
absl::Status ParseInto(TreeBuilder& builder, absl::string_view text) {
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return absl::OkStatus();
    RETURN_IF_ERROR(builder.status());
    TreeBuilder second({});
    if (parser.HandleNextDocument(second)) return BadFileError("expected one document, found a second");
    return second.status();
  } catch (const YAML::Exception& error) {
    return BadFileError("line ", error.mark.line + 1, ": expected YAML, found ", Printable(error.msg));
  }
}

}  // namespace

absl::StatusOr<YamlNode> ParseYaml(absl::string_view text, const YamlLimits& limits) {
  if (text.size() > limits.max_bytes) return BadFileError("expected at most ", limits.max_bytes, " bytes, found ", text.size());
  TreeBuilder builder(limits);
  RETURN_IF_ERROR(ParseInto(builder, text));
  RETURN_IF_ERROR(builder.status());
  return std::move(builder.root());
}

Json ToJson(const YamlNode& node) {
  const std::string lower = absl::AsciiStrToLower(node.text);
  int64_t integer = 0;
  double number = 0;
  switch (node.kind) {
    case Kind::kNull: return nullptr;
    case Kind::kBool: return lower == "true" || lower == "yes" || lower == "on";
    case Kind::kInt:
      if (absl::SimpleAtoi(node.text, &integer)) return integer;
      [[fallthrough]];
    case Kind::kDouble: return absl::SimpleAtod(node.text, &number) ? Json(number) : Json(node.text);
    case Kind::kString: return node.text;
    case Kind::kSequence: {
      Json list = Json::array();
      for (const YamlNode& item : node.items) list.push_back(ToJson(item));
      return list;
    }
    case Kind::kMap: break;
  }
  Json object = Json::object();
  for (size_t i = 0; i < node.keys.size(); ++i) object[node.keys[i]] = ToJson(node.items[i]);
  return object;
}

std::string DescribeYaml(const YamlNode& node) {
  switch (node.kind) {
    case Kind::kNull: return "null";
    case Kind::kSequence: return "a list";
    case Kind::kMap: return "a mapping";
    case Kind::kString: return absl::StrCat("\"", Printable(node.text, 60), "\"");
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kDouble: break;
  }
  return Printable(node.text, 60);
}

}  // namespace pith
