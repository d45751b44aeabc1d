#!/usr/bin/env python3
"""Checks sizes: files up to 600 lines, functions up to 70, and says how the 90th percentile of functions lies.

A function of src/kernels/cpu may have up to 150 lines when the comment directly above it says why, beginning "Longer than 70 lines:".
The length of a function is that of its body, from the line of { to the line of }.
"""

import re

import source_tree

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
MAX_KERNEL_LINES = 150
REASON = "Longer than 70 lines:"

NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/"                                              # comments
    r'|R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"'         # raw strings
    r'|"(?:\\.|[^"\\\n])*"'                                            # strings
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",                           # characters, but not the separators of 1'000'000
    re.DOTALL)
TYPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
# The end of a parameter list, then qualifiers, a trailing return type or member initializers.
FUNCTION_HEAD = re.compile(r"\)\s*(const|noexcept|override|final|mutable|&|->[^;]*|:[^;]*[)}]|\s)*$", re.DOTALL)


def blank(text):
    """The text with comments, strings and preprocessor lines replaced by spaces; line breaks stay."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    text = NOT_CODE.sub(spaces, text)
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", spaces, text, flags=re.MULTILINE)


def kind_of_brace(head):
    """What a { opens after `head`, the text since the last declaration: "function", "type" (or namespace) or "initializer"."""
    head = head.strip()
    if head.count("(") > head.count(")"):
        return "initializer"
    if FUNCTION_HEAD.search(head) and not head.endswith("="):
        return "function"
    return "type" if TYPE.search(head) else "initializer"


def functions(text):
    """(first line, last line, line where the declaration begins) of every outermost function body."""
    code = blank(text)
    scopes, start, line, found = [], 0, 1, []
    for position, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "{":
            head = code[start:position]
            inside = any(kind == "function" for kind, _, _, _ in scopes)
            kind = "block" if inside else kind_of_brace(head)
            scopes.append((kind, line, line - head.lstrip().count("\n"), start))
            start = position + 1
        elif char == "}" and scopes:
            kind, first, declared, outer_start = scopes.pop()
            if kind == "function":
                found.append((first, line, declared))
            # After an initializer, as in ": a_{1}, b_(2) {", the declaration goes on.
            start = outer_start if kind == "initializer" else position + 1
        elif char == ";":
            start = position + 1
    return found


def has_reason(lines, declared):
    """Whether the comment directly above line `declared` (counted from 1) holds the agreed words."""
    index = declared - 2
    while index >= 0 and lines[index].lstrip().startswith(("//", "template")):
        if REASON in lines[index]:
            return True
        index -= 1
    return False


def check_file(name, text):
    problems, lengths = [], []
    lines = text.split("\n")
    count = len(lines) - (1 if lines[-1] == "" else 0)
    if count > MAX_FILE_LINES:
        problems.append(f"{name}: expected at most {MAX_FILE_LINES} lines, found {count}")
    if not name.endswith((".h", ".cc", ".cu")):
        return problems, lengths
    for first, last, declared in functions(text):
        length = last - first + 1
        lengths.append((length, f"{name}:{first}"))
        kernel = name.startswith("src/kernels/cpu/") and has_reason(lines, declared)
        limit = MAX_KERNEL_LINES if kernel else MAX_FUNCTION_LINES
        if length > limit:
            problems.append(f"{name}:{first}: expected a function of at most {limit} lines, found {length}")
    return problems, lengths


def main():
    options = source_tree.parser(__doc__.splitlines()[0]).parse_args()
    problems, lengths, num_files = [], [], 0
    for name in source_tree.files(options.root):
        if not name.startswith(("src/", "tests/", "bench/", "scripts/", "cmake/")):
            continue
        if not name.endswith((".h", ".cc", ".cu", ".py", ".cmake", "CMakeLists.txt")) and not name.startswith("scripts/"):
            continue
        found, new_lengths = check_file(name, source_tree.read(options.root, name))
        problems += found
        lengths += new_lengths
        num_files += 1
    lengths.sort()
    p90 = lengths[len(lengths) * 9 // 10][0] if lengths else 0
    longest = f", longest {lengths[-1][0]} ({lengths[-1][1]})" if lengths else ""
    source_tree.finish("sizes", problems, f"{num_files} files, {len(lengths)} functions, p90 {p90} lines{longest}")


if __name__ == "__main__":
    main()
