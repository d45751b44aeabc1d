"""Renders chat templates with jinja2, set up as the transformers package sets it up.

    jinja_oracle.py < cases.jsonl > results.jsonl

A case is {"template", "messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "extra", "now"}; its result is
{"ok": true, "text": ...} or {"ok": false, "error": ...}. Needs Python 3.9 and jinja2 3.1; exits with 77 when jinja2 is missing.
"""

import datetime
import json
import sys

try:
    import jinja2
    import jinja2.ext
    import jinja2.sandbox
except ImportError:
    sys.exit(77)


class GenerationTag(jinja2.ext.Extension):
    """{% generation %} ... {% endgeneration %}: its body, as a call block renders it."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("render_body"), [], [], body).set_lineno(line)

    def render_body(self, caller):
        return caller()


class Namespace(jinja2.utils.Namespace):
    """A namespace that takes no attribute with a leading underscore."""

    def __init__(*args, **kwargs):
        attributes = dict(*args[1:], **kwargs)
        for name in attributes:
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(args[0], attributes)

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(f"attribute {name!r} of a namespace")


class MakeDict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment(now):
    def strftime_now(format):
        return datetime.datetime.fromtimestamp(now, datetime.timezone.utc).replace(tzinfo=None).strftime(format)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals.update(raise_exception=raise_exception, strftime_now=strftime_now, dict=MakeDict(), namespace=Namespace)
    return env


def render(case):
    try:
        text = environment(case.get("now", 0)).from_string(case["template"]).render(
            **{
                "documents": None,
                **case.get("extra", {}),
                "messages": case.get("messages"),
                "tools": case.get("tools"),
                "add_generation_prompt": case.get("add_generation_prompt", True),
                "bos_token": case.get("bos_token", ""),
                "eos_token": case.get("eos_token", ""),
            }
        )
        text.encode("utf-8")  # lone surrogates are an error too
        return {"ok": True, "text": text}
    except Exception as error:  # every failure of a template counts the same
        return {"ok": False, "error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(render(json.loads(line))), flush=False)
