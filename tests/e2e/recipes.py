#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the blocks of docs/CI.md that are marked `sh`, as a reader would: each must end with status 0."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import NOT_LISTENING, TOP, Count, Process, describe, with_retries, reason  # noqa: E402


def recipes():
    """(title, text of the block)"""
    with open(os.path.join(TOP, "docs", "CI.md")) as file:
        text = file.read()
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        title = section.splitlines()[0]
        for block in re.findall(r"^```sh\n(.*?)^```$", section, flags=re.M | re.S):
            yield title, block


def run(block, build):
    with tempfile.TemporaryDirectory(prefix="albedo-recipe-") as folder:
        environment = dict(os.environ, PATH=os.path.join(build, "bin") + ":" + os.environ["PATH"])
        process = Process(["sh", "-e", "-c", "cd %s\n%s" % (folder, block)], environment)
        status = process.wait(time.monotonic() + 120)
        text = describe(process)
        process.end()
        if status == 0:
            return True, "exit 0", text
        if "Couldn't connect" in text:  # the recipes' servers have a second to start in
            return False, "%s (exit %s)" % (NOT_LISTENING, status), text
        return False, reason("exit %s" % status, process), text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="build folder (default: %(default)s)")
    build = os.path.abspath(parser.parse_args().build)
    count = Count()
    for title, block in recipes():
        if "unshare" in block and not shutil.which("unshare"):
            count.skip(title, "unshare is not installed (scripts/setup.sh check)")
            continue
        if "unshare" in block and subprocess.run(["unshare", "-Urn", "true"], stderr=subprocess.DEVNULL).returncode != 0:
            count.skip(title, "unshare -Urn: not permitted here")
            continue
        count.result(title, *with_retries(lambda: run(block, build)))
    count.finish()


main()
