#include "server/server_context.h"

#include "base/status.h"

namespace pith {

absl::Status CheckModelName(const ServedModel& model, absl::string_view name) {
  if (name.empty() || name == model.name) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("The model `", Printable(name, 200), "` does not exist; this server has `", model.name, "`."));
}

}  // namespace pith
