// The probe rows of every ISA folder, defined in cpu/<isa>/probe.cc; probes.cc lists them. POD only: ISA folders include this header.
#pragma once

#include "kernels/probe.h"

namespace pith {

extern const ProbeEntry kProbes__scalar[];
extern const size_t kNumProbes__scalar;
extern const ProbeEntry kProbes__avx2[];
extern const size_t kNumProbes__avx2;
extern const ProbeEntry kProbes__avx2_vnni[];
extern const size_t kNumProbes__avx2_vnni;
extern const ProbeEntry kProbes__avx512[];
extern const size_t kNumProbes__avx512;
extern const ProbeEntry kProbes__amx[];
extern const size_t kNumProbes__amx;
extern const ProbeEntry kProbes__avx512_vnni[];
extern const size_t kNumProbes__avx512_vnni;

}  // namespace pith
