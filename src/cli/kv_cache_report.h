// The KV cache that an artifact declares, as text and JSON: what `inspect` shows.
#pragma once

#include <string>

#include "base/json.h"
#include "model/declared_kv_cache.h"

namespace pith {

// "KV cache: declared fp8 static per tensor; scales of 30 layers: keys 0.0312 to 0.117, values 0.0021 to 0.0234", with a line's end; empty
// when nothing is declared.
std::string KvCacheLine(const DeclaredKvCache& declared);
// {"format": "fp8", "scheme": {...}, "scales": [{"layer": 0, "keys": [0.0312], "values": [0.0021]}]}; null when nothing is declared.
OrderedJson ToJson(const DeclaredKvCache& declared);

}  // namespace pith
