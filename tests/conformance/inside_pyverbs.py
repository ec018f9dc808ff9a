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
import types
import unittest


class Missing:
    """Stands for a name that a newer test file uses and the installed pyverbs lacks: what needs it is skipped."""

    def __init__(self, name):
        self.__dict__["name"] = name

    def skip(self, *args, **kwargs):
        raise unittest.SkipTest(f"the installed pyverbs has no {self.__dict__['name']}")

    def same(self, other):
        return self

    __call__ = __getattr__ = __index__ = __int__ = skip
    __or__ = __ror__ = __and__ = __rand__ = same


class MissingModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Missing,), {"__init__": lambda self, *args, **kwargs: Missing(name)()})


def put_placeholder(error):
    """Makes the name or module that an import lacked; False if it is not one of pyverbs."""
    module = re.match(r"No module named '(pyverbs\.[\w.]+)'", str(error))
    name = re.match(r"cannot import name '(\w+)' from '(pyverbs[\w.]*)'", str(error))
    attribute = re.match(r"module '(pyverbs[\w.]*)' has no attribute '(\w+)'", str(error))
    if module:
        sys.modules[module[1]] = MissingModule(module[1])
    elif name:
        setattr(importlib.import_module(name[2]), name[1], Missing(name[1]))
    elif attribute:
        setattr(importlib.import_module(attribute[1]), attribute[2], Missing(attribute[2]))
    return bool(module or name or attribute)


def import_tests(name):
    """Imports a test module; what pyverbs lacks becomes a placeholder."""
    for _ in range(100):
        try:
            return importlib.import_module(name)
        except (ImportError, AttributeError) as error:
            if not put_placeholder(error):
                raise
            for loaded in [m for m in sys.modules if m.startswith("tests.")]:
                del sys.modules[loaded]
    raise ImportError(name)


def tell_interface():
    """Older tests look into the kernel's sysfs for the network interface behind a device, where ours has no entry; newer ones ask rdma(8),
    for which there is a stand-in."""
    case = sys.modules["tests.base"].RDMATestCase
    case._get_ip_mac = lambda self, dev, port, index: self.args.append([dev, port, index, *self.get_ip_mac_address("lo")])


class Lines(unittest.TestResult):
    def tell(self, test, outcome, why=""):
        print(json.dumps({"test": test.id(), "outcome": outcome, "why": why}), flush=True)

    def addSuccess(self, test):
        self.tell(test, "passed")

    def addSkip(self, test, reason):
        self.tell(test, "skipped", reason)

    def addFailure(self, test, err):
        lacking = err[0] is AttributeError and re.match(r"(module|type object)? ?'pyverbs[\w.]*'", str(err[1]))
        if lacking:  # newer than the installed pyverbs
            self.tell(test, "skipped", str(err[1]))
            return
        if "/sys/class/infiniband/" in str(err[1]):
            self.tell(test, "skipped", "compares with the kernel's sysfs, where a device in user space has no entry")
            return
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
        tell_interface()
        unittest.defaultTestLoader.loadTestsFromModule(tests).run(Lines())


main()
