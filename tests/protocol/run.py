#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs programs on albedo0 against a peer written in Python from docs/PROTOCOL.md alone. The last line is "N passed, N failed"; the exit
status is 0 only if nothing failed."""

import argparse
import os
import re
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(sys.path[0], "..", "e2e"))
import cm_cases  # noqa: E402
import echo_cases  # noqa: E402
import extended_cases  # noqa: E402
import hostile_cases  # noqa: E402
import life_cases  # noqa: E402
import text_cases  # noqa: E402
import txn_cases  # noqa: E402
import unreliable_cases  # noqa: E402
import verbs_cases  # noqa: E402
from harness import Albedo, Count  # noqa: E402
from stage import Failed, Stage  # noqa: E402

GROUPS = {"text": text_cases, "echo": echo_cases, "verbs": verbs_cases, "unreliable": unreliable_cases,
          "life": life_cases, "cm": cm_cases, "transaction": txn_cases,
          "extended": extended_cases, "hostile": hostile_cases}


def run(count, name, case, stage):
    began = time.monotonic()
    try:
        case(stage)
    except Failed as failure:
        count.result(name, False, "", str(failure))
    except Exception:  # whatever it is, the other cases still count
        count.result(name, False, "", traceback.format_exc())
    else:
        count.result(name, True, "%.1f s" % (time.monotonic() - began))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", default="", help="regular expression of names")
    parser.add_argument("--list", action="store_true", help="print the cases' names")
    arguments = parser.parse_args()
    cases = [("%s: %s" % (group, case.__name__.replace("_", " ")), case) for group, module in GROUPS.items() for case in module.CASES]
    cases = [(name, case) for name, case in cases if re.search(arguments.only, name)]
    if arguments.list:
        print("\n".join(name for name, _ in cases))
        return
    count, stage = Count(), Stage(Albedo(arguments.build, device="albedo0"))
    for name, case in cases:
        run(count, name, case, stage)
    count.finish()


if __name__ == "__main__":
    main()
