// Any text as model.safetensors.index.json: parsed or refused; accepted file names stay inside the directory and survive a round trip.
#include <cstddef>
#include <cstdint>

#include "artifact/safetensors_shards.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index = pith::ParseSafetensorsIndex({reinterpret_cast<const char*>(data), size});
  if (!index.ok()) return 0;
  for (const auto& [tensor, file] : *index) CHECK(file.find('/') == std::string::npos && file[0] != '.');
  const auto again = pith::ParseSafetensorsIndex(pith::MakeSafetensorsIndex(*index, size));
  CHECK(again.ok() && *again == *index);
  return 0;
}
