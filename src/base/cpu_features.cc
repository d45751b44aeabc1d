#include "base/cpu_features.h"

#include <cstdlib>
#include <fstream>

#include "base/status.h"
#include "base/thread_pool.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace pith {
namespace {

// F16C, which clang 14's __builtin_cpu_supports does not know: CPUID leaf 1, ECX bit 29.
bool HasF16c() {
#if defined(__x86_64__)
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) == 1 && (ecx & (1u << 29)) != 0;
#else
  return false;
#endif
}

// CPUID leaf 7, subleaf 1, EAX bit 5; not every compiler knows the name for __builtin_cpu_supports.
bool HasAvx512Bf16() {
#if defined(__x86_64__)
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) == 1 && (eax & (1u << 5)) != 0;
#else
  return false;
#endif
}

// CPUID leaf 7, EDX bits 24 (tiles) and 25 (int8), and the system's leave to use the tile registers (arch_prctl: process-wide, inherited
// by threads that start later, so it is asked for before kernels are chosen).
bool HasAmx() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr unsigned int kBf16 = 1u << 22, kTiles = 1u << 24, kInt8 = 1u << 25, kAll = kBf16 | kTiles | kInt8;
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 1 || (edx & kAll) != kAll) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

absl::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kScalar: return "scalar";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx512Vnni: return "avx512_vnni";
    case Isa::kAmx: return "amx";
  }
  return "unknown";
}

Isa DetectIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HasF16c() && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni") && HasAvx512Bf16() && __builtin_cpu_supports("avx512vbmi");
  static const bool amx = vnni && HasAmx();
  return amx ? Isa::kAmx : vnni ? Isa::kAvx512Vnni : avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kScalar;
#else
  return Isa::kScalar;
#endif
}

absl::StatusOr<Isa> SelectIsa() {
  const Isa best = DetectIsa();
  const char* forced = std::getenv("PITH_FORCE_ISA");
  if (forced == nullptr || *forced == '\0') return best;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAmx}) {
    if (IsaName(isa) != forced) continue;
    if (isa > best)
      return UnavailableError("PITH_FORCE_ISA: expected an instruction set of this CPU (best: ", IsaName(best), "), found ", forced);
    return isa;
  }
  return UsageError("PITH_FORCE_ISA: expected scalar, avx2, avx512, avx512_vnni or amx, found ", Printable(forced));
}

std::string CpuDescription() {
  std::ifstream info("/proc/cpuinfo");
  std::string line, model = "unknown CPU";
  while (std::getline(info, line)) {
    if (line.rfind("model name", 0) == 0) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) model = line.substr(colon + 2);
      break;
    }
  }
  return absl::StrCat(model, ", ", UsableCpus(), " CPUs, ", IsaName(DetectIsa()));
}

}  // namespace pith
