"""Shows that the rows of data/slices are what they claim: enough of each kind, none twice, answers that an independent computation gives, and
code items whose tests pass with their solution and fail with wrong ones."""

import ast
import calendar  # noqa: F401  for the expressions of slice_answers.json, as the next two
import copy
import doctest
import functools  # noqa: F401
import itertools  # noqa: F401
import json
import os
import re
import signal
import unittest
from fractions import Fraction as F

HERE = os.path.dirname(os.path.abspath(__file__))
SLICES = os.path.join(os.path.dirname(os.path.dirname(HERE)), "data", "slices")

NUMBER = r"-?\d+(?:\.\d+)?"
EQUATION = re.compile(rf"({NUMBER}(?: [-+*/] {NUMBER})+) = ({NUMBER})")


def rows(name):
    with open(os.path.join(SLICES, name), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def identity(row):
    return row["id"] if "id" in row else row["task_id"]


def value(expression):
    """The exact value of an expression of numbers and + - * /."""
    return eval(re.sub(r"\d+(?:\.\d+)?", lambda match: f"F('{match.group(0)}')", expression))


with open(os.path.join(HERE, "slice_answers.json"), encoding="utf-8") as file:
    EXPRESSIONS = json.load(file)  # id -> Python expression of the answer, written without looking at the worked solution


class AllSlices(unittest.TestCase):
    FILES = ("math.jsonl", "math.text.jsonl", "code.jsonl", "multilingual.jsonl", "multilingual.text.jsonl", "prose.text.jsonl")

    def test_no_other_files_and_enough_rows(self):
        self.assertEqual(sorted(os.listdir(SLICES)), sorted((*self.FILES, "README.md")))
        for name in ("math.jsonl", "math.text.jsonl", "code.jsonl", "multilingual.jsonl", "prose.text.jsonl"):
            self.assertGreaterEqual(len(rows(name)), 60, name)

    def test_no_id_and_no_text_occurs_twice(self):
        ids, texts = set(), set()
        for name in self.FILES:
            for row in rows(name):
                self.assertNotIn(identity(row), ids)
                ids.add(identity(row))
                text = " ".join(re.findall(r"\w+", (row["text"] if "text" in row else row["prompt"]).lower()))
                self.assertNotIn(text, texts)
                texts.add(text)

    def test_rows_are_in_one_form_per_file(self):
        keys = {"math.jsonl": ["id", "slice", "prompt", "answer", "match"],
                "math.text.jsonl": ["id", "text"],
                "code.jsonl": ["task_id", "prompt", "entry_point", "canonical_solution", "test"],
                "multilingual.jsonl": ["id", "slice", "language", "prompt", "answer", "match"],
                "multilingual.text.jsonl": ["id", "language", "text"],
                "prose.text.jsonl": ["id", "text"]}
        for name in self.FILES:
            for row in rows(name):
                self.assertEqual(list(row), keys[name], identity(row))
                self.assertTrue(identity(row).startswith(name.split(".")[0] + "/"), identity(row))
                self.assertEqual(row.get("slice", name.split(".")[0]), name.split(".")[0], identity(row))
                for key, content in row.items():
                    if key not in ("prompt", "canonical_solution", "test") or name != "code.jsonl":
                        self.assertEqual(content, content.strip(), identity(row))


class Answers(unittest.TestCase):
    def test_an_independent_computation_gives_every_number(self):
        seen = set()
        for row in rows("math.jsonl") + rows("multilingual.jsonl"):
            if row["id"] in EXPRESSIONS:
                self.assertEqual(row["match"], "number", row["id"])
                self.assertEqual(F(eval(EXPRESSIONS[row["id"]])), F(row["answer"]), row["id"])
                seen.add(row["id"])
        self.assertEqual(seen, set(EXPRESSIONS))
        self.assertTrue({row["id"] for row in rows("math.jsonl")} <= seen)

    def test_every_step_of_a_worked_solution_is_right_and_the_last_gives_the_answer(self):
        worked = {row["id"]: row["text"] for row in rows("math.text.jsonl")}
        for row in rows("math.jsonl"):
            question, solution = worked.pop(row["id"] + "/text").split("\n")
            self.assertEqual(question, row["prompt"])
            steps = EQUATION.findall(solution)
            self.assertTrue(steps, row["id"])
            for left, right in steps:
                self.assertEqual(value(left), F(right), row["id"])
            self.assertEqual(F(steps[-1][1]), F(row["answer"]), row["id"])
        self.assertEqual(worked, {})

    def test_whoever_repeats_the_question_is_not_right(self):
        for row in rows("math.jsonl") + rows("multilingual.jsonl"):
            if row["match"] == "number":
                numbers = re.findall(NUMBER, row["prompt"])
                if numbers:
                    self.assertNotEqual(F(numbers[-1]), F(row["answer"]), row["id"])
            else:
                self.assertEqual(row["match"], "contains")
                self.assertNotIn(row["answer"].lower(), row["prompt"].lower(), row["id"])


class Texts(unittest.TestCase):
    def test_passages_have_80_to_200_words(self):
        for row in rows("prose.text.jsonl"):
            self.assertTrue(80 <= len(row["text"].split()) <= 200, row["id"])

    def test_each_of_eight_languages_or_more_has_eight_questions_and_a_passage(self):
        questions, passages = {}, {}
        for table, name in ((questions, "multilingual.jsonl"), (passages, "multilingual.text.jsonl")):
            for row in rows(name):
                self.assertEqual(row["id"].split("/")[1], row["language"])
                table[row["language"]] = table.get(row["language"], 0) + 1
        self.assertGreaterEqual(len(questions), 8)
        self.assertEqual(questions.keys(), passages.keys())
        self.assertGreaterEqual(min(questions.values()), 8, questions)

    def test_every_language_is_written_in_its_script(self):
        latin = "A-Za-z\u00c0-\u017f"
        scripts = {"ru": "\u0400-\u04ff", "zh": "\u4e00-\u9fff", "ja": "\u3040-\u30ff\u4e00-\u9fff", "ar": "\u0600-\u06ff"}
        for row in rows("multilingual.jsonl") + rows("multilingual.text.jsonl"):
            text = row["text"] if "text" in row else row["prompt"]
            letters = re.findall(r"[^\W\d_]", text)
            inside = re.findall(f"[{scripts.get(row['language'], latin)}]", text)
            self.assertGreaterEqual(len(inside), 0.9 * len(letters), row["id"])


class TimeIsUp(BaseException):  # not an Exception: the code under test must not catch it
    pass


def passes(row, solution):
    """Whether the item's test passes with this text after the prompt. Endless loops end after 50 ms of CPU time."""
    def stop(*_):
        raise TimeIsUp
    signal.signal(signal.SIGVTALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
        try:
            names = {}
            exec(compile(row["prompt"] + solution + "\n" + row["test"], row["task_id"], "exec"), names)
            names["check"](names[row["entry_point"]])
            return True
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except (Exception, TimeIsUp):
        return False


def change(node):
    """A wrong twin of a node of a syntax tree, or None."""
    twins = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn,
             ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.Add, ast.And: ast.Or, ast.Or: ast.And}
    if isinstance(node, ast.Compare) and type(node.ops[0]) in twins:
        node.ops[0] = twins[type(node.ops[0])]()
    elif isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in twins:
        node.op = twins[type(node.op)]()
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += 1
    else:
        return None
    return node


def wrong_solutions(row):
    """Texts of solutions that differ from the reference in one operator or constant."""
    function = ast.parse(row["prompt"] + row["canonical_solution"]).body[-1]
    for index in range(len(list(ast.walk(function)))):
        twin = copy.deepcopy(function)
        if change(list(ast.walk(twin))[index]) is not None:
            yield "\n".join("    " + line for statement in twin.body[1:] for line in ast.unparse(statement).split("\n")) + "\n"


class Code(unittest.TestCase):
    def test_the_reference_solution_passes_and_its_examples_are_true(self):
        for row in rows("code.jsonl"):
            self.assertTrue(passes(row, row["canonical_solution"]), row["task_id"])
            names = {}
            exec(row["prompt"] + row["canonical_solution"], names)
            tests = doctest.DocTestFinder().find(names[row["entry_point"]], row["entry_point"], globs=names)
            self.assertTrue(any(test.examples for test in tests), row["task_id"])
            for test in tests:
                self.assertEqual(doctest.DocTestRunner(verbose=False).run(test).failed, 0, row["task_id"])

    def test_wrong_solutions_fail(self):
        caught = total = 0
        for row in rows("code.jsonl"):
            self.assertFalse(passes(row, "    pass\n"), row["task_id"])
            self.assertFalse(passes(row, "    return 0\n"), row["task_id"])
            results = [passes(row, solution) for solution in wrong_solutions(row)]
            if results:
                self.assertIn(False, results, row["task_id"])
            caught += results.count(False)
            total += len(results)
        self.assertGreater(total, 200)
        self.assertGreater(caught, 0.9 * total, f"{caught} of {total} wrong solutions fail")

    def test_functions_are_named_once_and_lines_are_short(self):
        names = [row["entry_point"] for row in rows("code.jsonl")]
        self.assertEqual(len(names), len(set(names)))
        for row in rows("code.jsonl"):
            self.assertLessEqual(max(len(line) for line in row["prompt"].split("\n")), 140, row["task_id"])
            self.assertEqual(row["prompt"].count("def "), 1, row["task_id"])
            self.assertTrue(row["prompt"].endswith('"""\n'), row["task_id"])


if __name__ == "__main__":
    unittest.main()
