#include "cli/version.h"

#include "absl/strings/str_cat.h"
#include "base/cpu_features.h"
#include "build_commit.h"

namespace pith {

std::string VersionText() { return absl::StrCat("pith ", kVersion, " (", __VERSION__, ", ", IsaName(DetectIsa()), ")"); }

std::string BuildCommit() { return PITH_BUILD_COMMIT; }

}  // namespace pith
