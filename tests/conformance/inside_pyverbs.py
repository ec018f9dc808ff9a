#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs pyverbs test modules inside one process and prints a line of JSON per test. Started by run_pyverbs.py under `albedo run`.

usage: inside_pyverbs.py TESTS-DIRECTORY DEVICE GID-INDEX MODULE...
"""
import importlib
import json
import re
import sys
import traceback
import unittest


class Missing:
    """Stands for a name that a newer test file imports and the installed pyverbs lacks: what needs it is skipped."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args, **kwargs):
        raise unittest.SkipTest(f"the installed pyverbs has no {self.name}")

    def __getattr__(self, attribute):
        raise unittest.SkipTest(f"the installed pyverbs has no {self.name}")


def import_tests(name):
    """Imports a test module; names that pyverbs lacks become placeholders."""
    for _ in range(100):
        try:
            return importlib.import_module(name)
        except ImportError as error:
            lacking = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
            if not lacking or not lacking[2].startswith("pyverbs"):
                raise
            setattr(importlib.import_module(lacking[2]), lacking[1], Missing(lacking[1]))
            for loaded in [m for m in sys.modules if m == "tests" or m.startswith("tests.")]:
                del sys.modules[loaded]
    raise ImportError(name)


class Lines(unittest.TestResult):
    def tell(self, test, outcome, why=""):
        print(json.dumps({"test": test.id(), "outcome": outcome, "why": why}), flush=True)

    def addSuccess(self, test):
        self.tell(test, "passed")

    def addSkip(self, test, reason):
        self.tell(test, "skipped", reason)

    def addFailure(self, test, err):
        self.tell(test, "failed", "".join(traceback.format_exception(*err)))

    addError = addFailure

    def addExpectedFailure(self, test, err):
        self.tell(test, "passed")


def main():
    directory, device, gid, *modules = sys.argv[1:]
    sys.path[:0] = [directory, directory + "/tests"]
    sys.argv = ["run_tests.py", "--dev", device, "--port", "1", "--gid", gid]
    args_parser = importlib.import_module("args_parser")
    args_parser.parser.parse_args()
    sys.modules["tests"] = type(sys)("tests")
    sys.modules["tests"].__path__ = [directory + "/tests"]
    for module in modules:
        try:
            tests = import_tests("tests." + module)
        except Exception:  # a module that can't even be loaded is a result too
            print(json.dumps({"test": module, "outcome": "failed", "why": traceback.format_exc()}), flush=True)
            continue
        unittest.defaultTestLoader.loadTestsFromModule(tests).run(Lines())


main()
