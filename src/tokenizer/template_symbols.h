// The static scoping of jinja2, as far as it shows: which names of a scope are undefined until it assigns them.
//
// jinja2 decides at compile time where a name lives. If the first thing a scope does with a name, outside of any if, is to assign it, and
// no scope around it mentions the name, then the name belongs to that scope alone: inner scopes that read it before the assignment find it
// undefined, even if an input has that name.
// Source: jinja2 3.1, idtracking.py (observed behaviour).
#pragma once

#include "tokenizer/template_ast.h"

namespace pith::jinja {

// Fills the `unset` names of the template and of every scope in it. Linear in the template.
void FindUnsetNames(ParsedTemplate* parsed);

}  // namespace pith::jinja
