#include "compression/recipe_document.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/file.h"
#include "base/status.h"
#include "compression/recipe_fields.h"
#include "compression/yaml_node.h"

namespace pith {
namespace {

// "quant_stage", "default_stage_0": stages that were merged are numbered.
bool IsStageKey(absl::string_view key) {
  const size_t end = key.find_last_not_of("0123456789");
  if (end != absl::string_view::npos && end + 1 < key.size() && key[end] == '_') key = key.substr(0, end);
  return absl::EndsWith(key, "_stage");
}

bool IsModifiersKey(absl::string_view key) { return key == "modifiers" || absl::EndsWith(key, "_modifiers"); }

bool IsModifierKey(absl::string_view key) { return absl::EndsWith(key, "Modifier"); }

// Reads the nesting: stages hold groups of modifiers, these hold modifiers; each level may be left out or be a list.
class DocumentReader {
 public:
  explicit DocumentReader(RecipeDocument& document) : document_(document) {}

  absl::Status ReadRoot(const RecipeValue& root) {
    if (root.node.is_sequence()) return ReadList(root);
    if (!root.node.is_map()) return BadFileError("line ", root.line, ": expected stages or modifiers, found ", DescribeYaml(root.node));
    for (size_t i = 0; i < root.node.keys.size(); ++i) {
      const std::string& key = root.node.keys[i];
      const RecipeValue value = root.Member(i);
      if (key == "args") {
        if (!value.node.items.empty() || !(value.node.is_map() || value.node.is_null())) {
          return NotSupportedError(value.Where(), ": variables are not supported");
        }
      } else if (IsStageKey(key)) {
        RETURN_IF_ERROR(ReadStage(value));
      } else {
        RETURN_IF_ERROR(ReadGroupOrModifier(value, key, {"quant_stage", "args"}));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadStage(const RecipeValue& stage) {
    if (stage.node.is_sequence()) return ReadList(stage);
    if (!stage.node.is_map()) return UnexpectedValue(stage, "groups of modifiers");
    for (size_t i = 0; i < stage.node.keys.size(); ++i) {
      const RecipeValue value = stage.Member(i);
      if (stage.node.keys[i] == "run_type") {
        if (value.node.text != "oneshot")
          return NotSupportedError(value.Where(), ": expected \"oneshot\", found ", DescribeYaml(value.node));
        continue;
      }
      RETURN_IF_ERROR(ReadGroupOrModifier(value, stage.node.keys[i], {"run_type"}));
    }
    return absl::OkStatus();
  }

  absl::Status ReadGroupOrModifier(const RecipeValue& value, const std::string& key, std::vector<absl::string_view> known) {
    if (IsModifiersKey(key)) return value.node.is_sequence() ? ReadList(value) : ReadModifiers(value);
    if (IsModifierKey(key)) return ReadModifier(value, key);
    known.push_back("quant_modifiers");
    for (const ModifierClass& row : ModifierClasses()) known.push_back(row.name);
    return UnknownKey(value, key, known);
  }

  // {GPTQModifier: {...}, ...}
  absl::Status ReadModifiers(const RecipeValue& group) {
    if (!group.node.is_map()) return UnexpectedValue(group, "modifiers");
    for (size_t i = 0; i < group.node.keys.size(); ++i) RETURN_IF_ERROR(ReadModifier(group.Member(i), group.node.keys[i]));
    return absl::OkStatus();
  }

  // [GPTQModifier: {...}, ...], where a name alone is a modifier without fields.
  absl::Status ReadList(const RecipeValue& list) {
    static const YamlNode kNoFields;
    for (size_t i = 0; i < list.node.items.size(); ++i) {
      const RecipeValue item = list.Item(i);
      if (item.node.is_string()) {
        RETURN_IF_ERROR(ReadModifier({kNoFields, item.line, absl::StrCat(item.path, ".", Printable(item.node.text, 60))}, item.node.text));
      } else {
        RETURN_IF_ERROR(ReadModifiers(item));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadModifier(const RecipeValue& value, const std::string& name) {
    const absl::StatusOr<const ModifierClass*> row = FindModifierClass(name);
    if (!row.ok()) return Annotate(row.status(), value.Where());
    if (*row == nullptr) {
      std::vector<absl::string_view> known;
      for (const ModifierClass& candidate : ModifierClasses()) known.push_back(candidate.name);
      return UnknownKey(value, name, known);
    }
    ModifierEntry entry{.kind = (*row)->kind, .path = value.path, .line = value.line};
    RETURN_IF_ERROR(ReadModifierFields(value, entry, document_.without_effect));
    document_.modifiers.push_back(std::move(entry));
    return absl::OkStatus();
  }

  RecipeDocument& document_;
};

}  // namespace

absl::string_view ModifierKindName(ModifierKind kind) {
  for (const ModifierClass& row : ModifierClasses()) {
    if (row.kind == kind) return row.name;
  }
  return "";
}

std::string ModifierEntry::Where(absl::string_view key) const {
  const auto it = lines.find(key);
  return absl::StrCat("line ", it == lines.end() ? line : it->second, ": ", path, key.empty() ? "" : ".", key);
}

absl::StatusOr<RecipeDocument> ParseRecipeDocument(absl::string_view text) {
  ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text));
  RecipeDocument document;
  RETURN_IF_ERROR(DocumentReader(document).ReadRoot({root, root.line, ""}));
  if (document.modifiers.empty()) return BadFileError("line ", root.line, ": expected at least one modifier, found none");
  return document;
}

absl::StatusOr<RecipeDocument> ReadRecipeDocument(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, YamlLimits().max_bytes));
  absl::StatusOr<RecipeDocument> document = ParseRecipeDocument(text);
  if (!document.ok()) return Annotate(document.status(), path);
  return document;
}

}  // namespace pith
