#include "cli/version.h"

#include <elf.h>
#include <link.h>

#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/cpu_features.h"
#include "build_commit.h"

namespace pith {
namespace {

// The build id among the notes [begin, end): header, name and content of each begin at a multiple of 4 bytes.
absl::string_view FindBuildId(const char* begin, const char* end) {
  while (end - begin >= static_cast<ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, begin, sizeof(note));
    const char* name = begin + sizeof(note);
    const char* content = name + (note.n_namesz + 3) / 4 * 4;
    if (content + note.n_descsz > end) return {};
    if (note.n_type == NT_GNU_BUILD_ID && absl::string_view(name, note.n_namesz) == absl::string_view("GNU", 4)) {
      return {content, note.n_descsz};
    }
    begin = content + (note.n_descsz + 3) / 4 * 4;
  }
  return {};
}

int CopyBuildId(dl_phdr_info* object, size_t, void* out) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const char* begin = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    if (const absl::string_view id = FindBuildId(begin, begin + segment.p_memsz); !id.empty()) {
      *static_cast<std::string*>(out) = absl::BytesToHexString(id);
    }
  }
  return 1;  // the program itself comes first; its libraries do not matter
}

}  // namespace

std::string VersionText() { return absl::StrCat("pith ", kVersion, " (", __VERSION__, ", ", IsaName(DetectIsa()), ")"); }

std::string BuildCommit() { return PITH_BUILD_COMMIT; }

std::string BuildId() {
  std::string id;
  dl_iterate_phdr(CopyBuildId, &id);
  return id;
}

}  // namespace pith
