"""Random small chat templates with what jinja2 makes of them, for differential tests.

    jinja_random.py SEED COUNT > cases.jsonl

Prints one {"case": ..., "result": ...} a line (see jinja_oracle.py). The grammar covers every statement, operator, filter, test and
method the interpreter claims; it keeps away from what docs/chat_templates.md lists as different. Exits with 77 without jinja2.
"""

import json
import random
import sys

import jinja_oracle

MESSAGES = [
    {"role": "system", "content": "You are a t\u00ebst.\n"},
    {"role": "user", "content": "  Hello <b>World</b>, it's \"me\" \U0001f600 "},
    {"role": "assistant", "content": None, "tool_calls": [{"name": "add", "arguments": {"a": 1, "b": [2.5, True]}}]},
    {"role": "tool", "content": "42"},
]
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"properties": {"a": {"type": "integer"}}}}}]
EXTRA = {
    "n": 5,
    "neg": -3,
    "f": 2.5,
    "s": "Stra\u00dfe a-b_c",
    "w": "one  two three",
    "empty": "",
    "l": [3, 1, 2, 1],
    "ls": ["b", "A", "c", "a"],
    "nested": [[1, 2], [3], []],
    "d": {"b": 2, "a": 1, "C": 3},
    "dd": {"x": {"y": [1, {"z": "deep"}]}},
    "yes": True,
    "no": False,
    "nil": None,
}
NAMES = {
    "int": ["n", "neg", "loop.index", "loop.index0", "i"],
    "float": ["f"],
    "str": ["s", "w", "empty", "messages[0].content", "messages[1]['content']", "messages[1].role", "bos_token", "k"],
    "bool": ["yes", "no", "add_generation_prompt"],
    "list": ["l", "ls", "nested", "messages", "tools", "messages[2].tool_calls"],
    "dict": ["d", "dd", "messages[0]", "messages[2].tool_calls[0].arguments", "tools[0].function"],
    "any": ["nil", "missing", "d.nope", "messages[9]", "x", "y"],
}
KINDS = list(NAMES)
LITERALS = {
    "int": ["0", "1", "2", "3", "-1", "7", "10"],
    "float": ["0.5", "1.0", "2.25", "1e3", "-1.5", "1e-7"],
    "str": ["''", "'a'", '"it\'s"', "'x y'", "'\\n'", "'a' 'b'", "'\u00e9\U0001f600'", "'<|im_start|>'", "' pad '", "'%s'", "'1.5'", "'12'"],
    "bool": ["true", "false", "True", "False"],
    "list": ["[]", "[1, 2, 3]", "['a', 'b']", "[1, 'a', none]", "(1, 2)", "()", "[[1, 'x'], [0, 'y']]", "range(4)", "range(5, 1, -2)"],
    "dict": ["{}", "{'a': 1}", "{'k': 'v', 'z': [1]}", "{1: 'one', 'two': 2}", "dict(p=1, q='r')"],
    "any": ["none", "missing"],
}
BINARY = {
    "int": ["+", "-", "*", "//", "%"],
    "float": ["+", "-", "*", "/", "//", "%"],
    "str": ["+", "~"],
    "list": ["+"],
}
COMPARE = ["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
TESTS = [
    "defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "true", "false",
    "odd", "even", "callable", "lower", "upper", "escaped", "divisibleby 2", "divisibleby(3)", "eq 1", "ne 'a'", "equalto('a')", "gt 0",
    "lt 5", "ge 1", "le(2)", "in [1, 'a']", "sameas none", "not none", "not defined", "not string", "filter", "test",
]
FILTERS = {
    "str": [
        "upper", "lower", "title", "capitalize", "trim", "string", "join", "join(', ')", "join('-')", "tojson", "tojson(indent=2)",
        "tojson(sort_keys=true)", "tojson(separators=(',', ':'))", "tojson(ensure_ascii=true)", "replace('a', 'bb')", "replace('', '.')",
        "replace('l', 'L', 1)", "indent", "indent(2, true)", "indent(1, blank=true)", "center(12)", "truncate(8)", "truncate(9, true, '~')",
        "escape", "e", "safe", "forceescape", "default('d')", "d('d', true)", "trim('ab ')", "format(1, 'b')", "first", "last", "reverse",
    ],
    "int": ["int", "int(7)", "int(0, 16)", "length", "count", "wordcount", "abs", "sum", "round"],
    "float": ["float", "float(1.5)", "round(1)", "round(1, 'ceil')", "round(2, 'floor')", "round(-1)", "abs"],
    "list": [
        "list", "sort", "sort(reverse=true)", "sort(case_sensitive=true)", "unique|list", "reverse|list", "select|list", "reject|list",
        "select('defined')|list", "select('odd')|list", "reject('none')|list", "select('string')|list", "map('string')|list",
        "map('upper')|list", "map('length')|list", "map('tojson')|list", "map(attribute='role')|list", "map(attribute='a', default=0)|list",
        "selectattr('role')|list", "selectattr('role', 'equalto', 'user')|list", "rejectattr('content', 'none')|list", "batch(2)|list",
        "batch(3, 'x')|list", "slice(2)|list", "slice(3, 0)|list", "dictsort", "dictsort(by='value')", "dictsort(true, reverse=true)",
        "items|list", "groupby('role')", "groupby(0)", "sort(attribute='role')", "map(attribute='0')|list",
    ],
    "any": ["first", "last", "max", "min", "default(1)", "attr('a')", "min(attribute='role')", "max(case_sensitive=true)", "sum(start=1)"],
}
METHODS = {
    "str": [
        "upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "lstrip()", "rstrip()", "strip('a ')", "rstrip('\\n')",
        "replace('a', 'A')", "replace('e', '', 1)", "removeprefix('<')", "removesuffix('\\n')", "center(9, '*')", "ljust(8)", "rjust(8, '.')",
        "zfill(6)", "join(['x', 'y'])", "join(ls)", "format(1, 2)", "expandtabs(4)", "split()[0]", "split('a')[-1]", "partition(' ')[2]",
    ],
    "int": ["find('a')", "rfind('a')", "find('e', 2)", "count('a')", "count('')", "index('e')", "find('l', 1, -1)"],
    "bool": [
        "startswith('a')", "startswith(('S', 'o'))", "endswith('.\\n')", "isdigit()", "isalpha()", "isalnum()", "isspace()", "isupper()",
        "islower()", "istitle()", "isascii()", "isidentifier()", "isprintable()", "isdecimal()",
    ],
    "list": [
        "split()", "split(',')", "split(' ')", "split('a', 1)", "split(none, 1)", "rsplit('a', 1)", "rsplit(none, 1)", "splitlines()",
        "splitlines(true)", "partition('a')", "rpartition(' ')",
    ],
}
DICT_METHODS = {
    "any": ["get('a')", "get('nope')", "get('a', 'dflt')", "update({'a': 1})", "pop('a')"],
    "list": ["keys()|list", "values()|list", "items()|list"],
}
LIST_METHODS = {"int": ["index(1)", "count(1)", "append(4)"], "list": ["copy()"]}


class Generator:
    def __init__(self, rng):
        self.rng = rng
        self.loops = 0

    def pick(self, options):
        return self.rng.choice(options)

    def chance(self, probability):
        return self.rng.random() < probability

    def expr(self, depth, kind=None):
        if kind is None or self.chance(0.08):
            kind = self.pick(KINDS)
        if depth <= 0 or self.chance(0.2):
            names = self.chance(0.5)
            return self.pick(NAMES[kind] if names else LITERALS[kind])
        makers = [self.conditional, self.binary, self.filtered, self.method, self.subscript, self.literal]
        if kind == "bool":
            makers = [self.comparison, self.test, self.logic, self.method, self.conditional]
        return self.pick(makers)(depth - 1, kind)

    def conditional(self, depth, kind):
        otherwise = f" else {self.expr(depth, kind)}" if self.chance(0.8) else ""
        return f"({self.expr(depth, kind)} if {self.expr(depth, 'bool')}{otherwise})"

    def binary(self, depth, kind):
        if kind not in BINARY:
            return self.expr(depth, kind)
        if self.chance(0.1):
            return f"({self.expr(depth, kind)} * {self.pick(['0', '2', '-1', 'true'])})"
        left, right = self.expr(depth, kind), self.expr(depth, kind)
        text = f"{left} {self.pick(BINARY[kind])} {right}"
        if kind in ("int", "float") and self.chance(0.2):
            text = f"-{left} {self.pick(BINARY[kind])} {right} {self.pick(BINARY[kind])} {self.expr(depth, kind)}"
        return f"({text})" if self.chance(0.8) else text

    def filtered(self, depth, kind):
        if kind not in FILTERS:
            return self.expr(depth, kind)
        return f"{self.expr(depth)}|{self.pick(FILTERS[kind])}"

    def method(self, depth, kind):
        tables = [(METHODS, "str"), (DICT_METHODS, "dict"), (LIST_METHODS, "list")]
        tables = [(table, own) for table, own in tables if kind in table]
        if not tables:
            return self.expr(depth, kind)
        table, own = self.pick(tables)
        return f"({self.expr(depth, own)}).{self.pick(table[kind])}"

    def subscript(self, depth, kind):
        forms = ["[0]", "[-1]", "[1:]", "[:2]", "[::-1]", "[1:-1]", "[::2]", "[5]", "['a']", ".a", "['x'].y", ".role", "[n]", "[-2:]"]
        name = self.pick(NAMES[self.pick(["list", "str", "dict"])])  # slicing a literal that has no slices is a known difference
        return name + self.pick(forms)

    def literal(self, depth, kind):
        if kind == "list":
            items = ", ".join(self.expr(depth) for _ in range(self.rng.randint(0, 3)))
            return f"[{items}]"
        if kind == "dict":
            keys = NAMES["str"] + LITERALS["str"] + LITERALS["int"]  # jinja2 finds unhashable literals when it compiles
            items = ", ".join(f"{self.pick(keys)}: {self.expr(depth)}" for _ in range(self.rng.randint(0, 3)))
            return f"{{{items}}}"
        return self.pick(LITERALS[kind])

    def comparison(self, depth, kind):
        both = self.pick(["int", "str", "float", "list", None])
        text = f"{self.expr(depth, both)} {self.pick(COMPARE)} {self.expr(depth, both)}"
        if self.chance(0.15):
            text += f" {self.pick(COMPARE)} {self.expr(depth, both)}"
        return f"({text})"

    def test(self, depth, kind):
        return f"({self.expr(depth)} is {self.pick(TESTS)})"

    def logic(self, depth, kind):
        if self.chance(0.2):
            return f"not {self.expr(depth, 'bool')}"
        return f"({self.expr(depth)} {self.pick(['and', 'or'])} {self.expr(depth, 'bool')})"

    def space(self):
        return self.pick(["", "", "", " ", "\n", "  \n", "\n  ", " text ", "text\n", "\n\n", "."])

    def tag(self, body):
        return f"{{%{self.pick(['', '', '-', '+'])} {body} {self.pick(['', '', '-', '+'])}%}}"

    def output(self, depth):
        return f"{{{{{self.pick(['', '-'])} {self.expr(depth)} {self.pick(['', '-'])}}}}}"

    def body(self, depth):
        parts = []
        for _ in range(self.rng.randint(1, 3)):
            parts.append(self.space())
            parts.append(self.statement(depth))
        return "".join(parts) + self.space()

    def statement(self, depth):
        if depth <= 0 or self.chance(0.35):
            return self.output(2)
        makers = [
            self.if_, self.if_, self.for_, self.for_, self.set_, self.set_, self.set_block, self.filter_block, self.macro, self.call,
            self.namespace, self.comment, self.raw, self.with_, self.generation, self.control, self.unpack,
        ]
        return self.pick(makers)(depth - 1)

    def if_(self, depth):
        text = self.tag(f"if {self.expr(2, 'bool')}") + self.body(depth)
        if self.chance(0.3):
            text += self.tag(f"elif {self.expr(2, 'bool')}") + self.body(depth)
        if self.chance(0.5):
            text += self.tag("else") + self.body(depth)
        return text + self.tag("endif")

    def for_(self, depth):
        target = self.pick(["i", "x", "k", "k, v", "i, x"])
        source = f"{self.expr(1, 'dict')}.items()" if "," in target and self.chance(0.7) else self.expr(1, "list")
        condition = f" if {self.expr(1, 'bool')}" if self.chance(0.2) else ""
        self.loops += 1
        text = self.tag(f"for {target} in {source}{condition}") + self.body(depth)
        self.loops -= 1
        if self.chance(0.25):
            text += self.tag("else") + self.body(depth)
        return text + self.tag("endfor")

    def set_(self, depth):
        return self.tag(f"set {self.pick(['x', 'y', 'n', 'k'])} = {self.expr(2)}")

    def unpack(self, depth):
        return self.tag(f"set {self.pick(['x, y', '(x, y)', 'x, (y, k)'])} = {self.pick(['1, 2', 'l[:2]', self.expr(1, 'list')])}")

    def set_block(self, depth):
        filters = self.pick(["", "", " | upper", " | trim", " | replace('e', 'E') | trim"])
        return self.tag(f"set {self.pick(['x', 'y'])}{filters}") + self.body(depth) + self.tag("endset")

    def filter_block(self, depth):
        return self.tag(f"filter {self.pick(['upper', 'trim', 'indent(2)', 'title', 'length', 'tojson'])}") + self.body(depth) + self.tag("endfilter")

    def macro(self, depth):
        name = self.pick(["m1", "m2"])
        loops, self.loops = self.loops, 0
        special = self.pick(["", "", "{{ varargs }}", "{{ kwargs }}", "{{ caller() if caller else 'none' }}"])
        text = self.tag(f"macro {name}({self.pick(['', 'x', 'x, y=2', 'x=n, y=x'])})") + self.body(depth) + special + self.tag("endmacro")
        self.loops = loops
        arguments = self.pick(["", "1", "s, 2", "y=3", "l, q=1", "*l", "**{}"])
        return text + f"{{{{ {name}({arguments}) }}}}"

    def call(self, depth):
        loops, self.loops = self.loops, 0
        text = self.tag(f"call{self.pick(['', '(k)'])} {self.pick(['m1()', 'm2(1)', 'm1(y=2)'])}") + self.body(depth) + self.tag("endcall")
        self.loops = loops
        return text

    def namespace(self, depth):
        value = self.expr(1, self.pick(["int", "str", "list"]))
        return (
            self.tag(f"set ns = namespace(a={self.expr(0)}, b=0)")
            + self.tag(f"for i in {self.expr(1, 'list')}")
            + self.tag(f"set ns.{self.pick(['a', 'b', 'c'])} = {self.pick(['', 'ns.a ~ ', 'ns.b + '])}{value}")
            + self.tag("endfor")
            + "{{ ns.a }}{{ ns.b }}{{ ns.c }}"
        )

    def comment(self, depth):
        return f"{{#{self.pick(['', '-', '+'])} c {{{{ x }}}} {self.pick(['', '-', '+'])}#}}"

    def raw(self, depth):
        return self.tag("raw").replace("+%}", "%}") + self.space() + "{{ x }}{% y %}" + self.space() + self.tag("endraw")

    def with_(self, depth):
        return self.tag(f"with x={self.expr(1)}, y=x") + self.body(depth) + self.tag("endwith")

    def generation(self, depth):
        loops, self.loops = self.loops, 0
        text = self.tag("generation") + self.body(depth) + self.tag("endgeneration")
        self.loops = loops
        return text

    def control(self, depth):
        if self.loops == 0:
            return self.output(1)
        return self.tag(f"if {self.expr(1, 'bool')}") + self.tag(self.pick(["break", "continue"])) + self.tag("endif")


def random_case(rng):
    generator = Generator(rng)
    template = generator.body(rng.randint(0, 3)) if rng.random() < 0.6 else f"{{{{ {generator.expr(rng.randint(1, 4))} }}}}"
    case = {"template": template, "messages": MESSAGES, "tools": TOOLS, "bos_token": "<s>", "eos_token": "</s>", "extra": EXTRA, "now": 0}
    return json.loads(json.dumps(case))  # fresh inputs: the indent filter of jinja2 changes a list it is given


def is_comparable(result):
    """Python's addresses and class names, bytes and integers past 64 bits are known differences."""
    text = result.get("text", "").lower()
    if any(mark in text for mark in (" at 0x", "<class", "macro", "loopcontext", "_iterator object", "<function")):
        return False
    return not any(len(run) > 18 for run in "".join(c if c.isdigit() else " " for c in text).split())


def cases(seed, count):
    rng = random.Random(seed)
    while count > 0:
        case = random_case(rng)
        result = jinja_oracle.render(json.loads(json.dumps(case)))
        if is_comparable(result):
            yield case, result
            count -= 1


if __name__ == "__main__":
    for case, result in cases(int(sys.argv[1]), int(sys.argv[2])):
        print(json.dumps({"case": case, "result": result}))
