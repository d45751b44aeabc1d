#include "kernels/probes.h"

#include "kernels/cpu/probe_tables.h"

namespace pith {

std::vector<const ProbeEntry*> AllProbes() {
  std::vector<const ProbeEntry*> all;
  const auto append = [&all](const ProbeEntry* rows, size_t count) {
    for (size_t i = 0; i < count; ++i) all.push_back(&rows[i]);
  };
  append(kProbes__amx, kNumProbes__amx);
  append(kProbes__avx512_vnni, kNumProbes__avx512_vnni);
  append(kProbes__avx512, kNumProbes__avx512);
  append(kProbes__avx2_vnni, kNumProbes__avx2_vnni);
  append(kProbes__avx2, kNumProbes__avx2);
  append(kProbes__scalar, kNumProbes__scalar);
  return all;
}

const ProbeEntry* FindProbe(ProbeLimit limit, Isa isa) {
  for (const ProbeEntry* row : AllProbes()) {
    if (row->limit == limit && IsaIncludes(isa, static_cast<Isa>(row->isa))) return row;
  }
  return nullptr;
}

}  // namespace pith
