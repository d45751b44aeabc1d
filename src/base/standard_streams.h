// Standard input, output and error as every process may count on them.
#pragma once

namespace pith {

// Puts /dev/null in the place of standard streams the caller closed (2>&-). Otherwise the next file opened would take the number of the
// closed one, and a message or a result printed later would land in that file. A closed standard output stays an error: what stands in
// for it refuses writes. Call once, before any file is opened.
void ReserveStandardStreams();

}  // namespace pith
