#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""pyverbs' own tests (rdma-core's tests/) over Albedo: a table, the reason of every skip, and "N passed, N failed, N skipped"
with the release of the tests.

The tests come from the rdma-core source package that matches the installed pyverbs or, where the mirror lacks it, from that of a later
Debian release. PYVERBS_TESTS names a folder that holds an unpacked `tests` instead.
"""
import argparse
import json
import os
import re
import subprocess
import sys

MISSING = 77  # exit status: the mirror is to blame
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
MODULES = """test_addr test_atomic test_cq test_cq_events test_cqex test_device test_fork test_mr test_odp
test_parent_domain test_pd test_qp test_qpex test_rdmacm test_relaxed_ordering test_shared_pd test_srq test_flow test_rss_traffic
test_tag_matching""".split()


def find_tests(build):
    if os.environ.get("PYVERBS_TESTS"):
        return os.environ["PYVERBS_TESTS"]
    command = [os.path.join(HERE, "fetch-source.sh"), "rdma-core", os.path.join(build, "conformance"), "trixie", "sid"]
    fetched = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if fetched.returncode != 0:
        print("pyverbs: no tests to run; set PYVERBS_TESTS to a folder that holds rdma-core's tests/", file=sys.stderr)
        sys.exit(MISSING)
    # The source tree also holds an unbuilt pyverbs, which must not be imported: give the tests a folder of their own.
    source = fetched.stdout.strip()
    alone = os.path.join(build, "conformance", "pyverbs")
    os.makedirs(alone, exist_ok=True)
    link = os.path.join(alone, "tests")
    if not os.path.islink(link):
        os.symlink(os.path.join(source, "tests"), link)
    return alone


def release_of(tests):
    """What stands behind the counts: how much is tested differs by release."""
    source = os.path.dirname(os.path.realpath(os.path.join(tests, "tests")))
    try:
        with open(os.path.join(source, "CMakeLists.txt"), encoding="utf-8") as file:
            return "rdma-core " + re.search(r'set\(PACKAGE_VERSION "([^"]*)"', file.read()).group(1)
    except (OSError, AttributeError):
        return source


def run_module(options, tests, module):
    """One process per module, so that a crash costs the rest of that module only."""
    command = [os.path.join(options.build, "bin", "albedo"), "run", *options.run, "--", "/usr/bin/python3",
               os.path.join(HERE, "inside_pyverbs.py"), tests, options.device, "0", module]
    # Newer tests ask rdma(8), which asks the kernel: the folder stand-in has one that tells of our device.
    environment = dict(os.environ, PATH=os.path.join(HERE, "stand-in") + ":" + os.environ["PATH"])
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=options.timeout, check=False)
        text, ended, errors = done.stdout, done.returncode, done.stderr
    except subprocess.TimeoutExpired as expired:
        text = (expired.stdout or b"").decode()
        ended, errors = f"no end within {options.timeout} s", ""
    results = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if ended == 0 and not results:
        results.append({"test": module, "outcome": "failed", "why": "the module ran no test"})
    if ended != 0:
        results.append({"test": module, "outcome": "failed", "why": f"the process ended with {ended}\n{errors[-2000:]}"})
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--device", default="roce0")
    parser.add_argument("--faults", help="passed on to albedo run")
    parser.add_argument("--timeout", type=float, default=180)
    parser.add_argument("--verbose", action="store_true", help="show what passed, too")
    parser.add_argument("modules", nargs="*", default=MODULES)
    options = parser.parse_args()
    options.run = ["--faults", options.faults] if options.faults else []
    tests = find_tests(options.build)
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for module in options.modules:
        if not os.path.exists(os.path.join(tests, "tests", module + ".py")):
            continue
        for result in run_module(options, tests, module):
            count[result["outcome"]] += 1
            if result["outcome"] != "passed" or options.verbose:
                why = result["why"] if result["outcome"] == "failed" else result["why"].split("\n")[0]
                print(f"{result['outcome']:8}{result['test'].removeprefix('tests.')}  {why}", flush=True)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped (tests of {release_of(tests)})")
    return 1 if count["failed"] or not count["passed"] else 0


sys.exit(main())
