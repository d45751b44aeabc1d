#include "base/cpu_features.h"

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_join.h"
#include "absl/types/span.h"
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

// A bit of CPUID leaf 7, subleaf 1, EAX: features whose names not every compiler's __builtin_cpu_supports knows.
constexpr unsigned int kAvxVnni = 1u << 4, kAvx512Bf16 = 1u << 5;
bool HasExtended([[maybe_unused]] unsigned int bit) {
#if defined(__x86_64__)
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) == 1 && (eax & bit) != 0;
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

// "scalar, avx2".
std::string JoinNames(absl::Span<const Isa> isas) {
  return absl::StrJoin(isas, ", ", [](std::string* out, Isa isa) { absl::StrAppend(out, IsaName(isa)); });
}

CpuFeatures DetectCpu() {
  CpuFeatures cpu;
#if defined(__x86_64__)
  __builtin_cpu_init();
  cpu.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HasF16c() && __builtin_cpu_supports("bmi2");
  cpu.avx_vnni = HasExtended(kAvxVnni);
  cpu.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
  cpu.avx512_vnni = __builtin_cpu_supports("avx512vnni") && HasExtended(kAvx512Bf16) && __builtin_cpu_supports("avx512vbmi");
  cpu.amx = cpu.Supports(Isa::kAvx512Vnni) && HasAmx();
#endif
  return cpu;
}

}  // namespace

absl::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kScalar: return "scalar";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx2Vnni: return "avx2_vnni";
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx512Vnni: return "avx512_vnni";
    case Isa::kAmx: return "amx";
  }
  return "unknown";
}

bool CpuFeatures::Supports(Isa isa) const {
  switch (isa) {
    case Isa::kScalar: return true;
    case Isa::kAvx2: return avx2;
    case Isa::kAvx2Vnni: return avx2 && avx_vnni;
    case Isa::kAvx512: return avx2 && avx512;
    case Isa::kAvx512Vnni: return avx2 && avx512 && avx512_vnni;
    case Isa::kAmx: return avx2 && avx512 && avx512_vnni && amx;
  }
  return false;
}

std::vector<Isa> CpuFeatures::SupportedIsas() const {
  std::vector<Isa> isas;
  for (const Isa isa : kAllIsas) {
    if (Supports(isa)) isas.push_back(isa);
  }
  return isas;
}

const CpuFeatures& ThisCpu() {
  static const CpuFeatures cpu = DetectCpu();
  return cpu;
}

Isa DetectIsa() { return ThisCpu().SupportedIsas().back(); }

absl::StatusOr<Isa> SelectIsa(const CpuFeatures& cpu) {
  const std::vector<Isa> supported = cpu.SupportedIsas();
  const char* forced = std::getenv("PITH_FORCE_ISA");
  if (forced == nullptr || *forced == '\0') return supported.back();
  for (const Isa isa : kAllIsas) {
    if (IsaName(isa) != forced) continue;
    if (!cpu.Supports(isa))
      return UnavailableError("PITH_FORCE_ISA: expected an instruction set of this CPU (", JoinNames(supported), "), found ", forced);
    return isa;
  }
  return UsageError("PITH_FORCE_ISA: expected one of ", JoinNames(kAllIsas), ", found ", Printable(forced));
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
