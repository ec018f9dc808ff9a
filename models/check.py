#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks reflection.pml with SPIN, exhaustively: `check.py NAME...`, or `check.py --list`.

Each name is a configuration that has to be free of errors, or one deliberate mistake in the protocol that SPIN has to
find: a model that is blind to it proves nothing. `check.py --all` runs them one after the other. --keep DIR leaves the
generated checker, its report and the trail there.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reflection.pml")
SKIPPED = 77  # ctest takes it for "not run"

FAULTS = "BREAKS=1 CORRUPTIONS=1 INITIATOR_CRASHES=1 TARGET_CRASHES=1"
JOURNAL = "DURABLE JOURNAL_ERRORS=2"

# name: macros. What must hold: safety, for one and for two transactions that overlap, and that everything ends.
PROOFS = {
    "one-volatile": FAULTS,
    "one-durable": f"{FAULTS} {JOURNAL}",
    "two": "N=2 CORRUPTIONS=1",
    "one-volatile-ends": "LIVE TARGET_CRASHES=1",
    "one-breaks-ends": "LIVE BREAKS=1 CORRUPTIONS=1",
    "keeper-alone": "NO_EVICTION M_NO_ENTRY INITIATOR_CRASHES=1 TARGET_CRASHES=1",
}
BIG_PROOFS = {
    "one-durable-twice": f"BREAKS=1 CORRUPTIONS=3 INITIATOR_CRASHES=1 TARGET_CRASHES=2 {JOURNAL}",
    "two-breaks": "N=2 BREAKS=1",
    "two-volatile": "N=2 TARGET_CRASHES=1",
    "two-durable": "N=2 TARGET_CRASHES=1 DURABLE",
    "one-successor-ends": "LIVE INITIATOR_CRASHES=1",
    "one-durable-ends": f"LIVE TARGET_CRASHES=1 {JOURNAL}",
}
# The mistake, and the smallest world in which it shows.
MISTAKES = {
    "forget-early": "M_FORGET_EARLY INITIATOR_CRASHES=1",
    "forget-corrupt": "M_FORGET_CORRUPT CORRUPTIONS=2 INITIATOR_CRASHES=1",
    "foreign-keeper": "M_FOREIGN_KEEPER NO_EVICTION M_NO_ENTRY INITIATOR_CRASHES=1 TARGET_CRASHES=1",
    "relearn-keeper": "M_RELEARN_KEEPER NO_EVICTION M_NO_ENTRY INITIATOR_CRASHES=1 TARGET_CRASHES=1",
    "no-entry": "M_NO_ENTRY INITIATOR_CRASHES=1",
    "presume-below-low-water": "M_PRESUME_BELOW_LOW_WATER INITIATOR_CRASHES=1",
    "expose-at-reflect": "M_EXPOSE_AT_REFLECT",
    "no-digest": "M_NO_DIGEST CORRUPTIONS=1",
    "no-readback": "M_NO_READBACK CORRUPTIONS=1",
    "no-hold": "M_NO_HOLD",
    "no-claims": "M_NO_CLAIMS N=2",
    "lease-after-commit": "M_LEASE_AFTER_COMMIT",
    "abort-after-commit": "M_ABORT_AFTER_COMMIT",
    "doubt-is-success": "M_DOUBT_IS_SUCCESS BREAKS=1",
    "successor-decides": "M_SUCCESSOR_DECIDES INITIATOR_CRASHES=1 BREAKS=1",
    "reflect-unjournaled": "M_REFLECT_UNJOURNALED DURABLE TARGET_CRASHES=1",
    "commit-unjournaled": "M_COMMIT_UNJOURNALED DURABLE TARGET_CRASHES=1",
    "abort-unjournaled": "M_ABORT_UNJOURNALED DURABLE TARGET_CRASHES=1",
    "journal-error-aborts": f"M_JOURNAL_ERROR_ABORTS {JOURNAL} TARGET_CRASHES=1",
    "no-repeat": "LIVE M_NO_REPEAT",
    "no-lease": "LIVE M_NO_LEASE INITIATOR_CRASHES=1",
}
BIG_MISTAKES = {
    "page-cache": "M_PAGE_CACHE N=2 TARGET_CRASHES=1 DURABLE",
    "marks-unordered": "M_MARKS_UNORDERED N=2 TARGET_CRASHES=1 DURABLE",
}
# The mistakes that `make check` looks for: one of each family.
QUICK_MISTAKES = ["forget-early", "foreign-keeper", "presume-below-low-water", "expose-at-reflect", "abort-unjournaled",
                  "no-repeat"]

ALL = {**PROOFS, **BIG_PROOFS, **MISTAKES, **BIG_MISTAKES}


def run(command, folder, seconds):
    return subprocess.run(command, cwd=folder, timeout=seconds, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")


def check(name, folder):
    """True if SPIN's answer is the one that is expected."""
    macros = ["-D" + macro for macro in ALL[name].split()]
    live = "-DLIVE" in macros
    # gcc optimises what SPIN generates for half a minute, and states are put together for longer than they are looked at: that pays where
    # there are millions of them.
    how = ["-O2", "-DCOLLAPSE"] if name in BIG_PROOFS or name in BIG_MISTAKES else ["-O0"]
    shutil.copy(MODEL, folder)
    made = run(["spin", "-a", *macros, "reflection.pml"], folder, 60)
    if made.returncode != 0 or not os.path.exists(os.path.join(folder, "pan.c")):
        print(made.stdout)
        return False
    kind = ["-DNFAIR=3"] if live else ["-DSAFETY"]
    made = run(["gcc", *how, "-w", "-DVECTORSZ=512", "-DMEMLIM=4000", *kind, "-o", "pan", "pan.c"], folder, 300)
    if made.returncode != 0:
        print(made.stdout)
        return False
    found = run(["./pan", "-m4000000", "-E", *(["-a", "-f"] if live else [])], folder, 3000).stdout
    return judge(name, found)


def judge(name, found):
    errors = re.search(r"errors: (\d+)", found)
    states = re.search(r"(\d+(?:\.\d+)?(?:e\+\d+)?) states, stored", found)
    story = re.search(r"^pan:\d+: (.*)$", found, re.M)
    # A search that was cut short proves nothing, whatever it says about errors.
    incomplete = "Search not completed" in found or "max search depth too small" in found
    is_mistake = name in MISTAKES or name in BIG_MISTAKES
    if errors is None or incomplete and errors.group(1) == "0":
        print(found)
        print(f"{name}: the search was cut short")
        return False
    summary = f"{name}: {states.group(1)} states, " + (story.group(1) if story else "no error")
    expected = (errors.group(1) != "0") == is_mistake
    print(summary + ("" if expected else "   <-- WRONG: " + ("not found" if is_mistake else "must hold")))
    return expected


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--list", action="store_true", help="names, and whether `make check` runs them")
    parser.add_argument("--keep", metavar="DIR")
    arguments = parser.parse_args()
    if arguments.list:
        for name in ALL:
            print(f"{'quick' if name in PROOFS or name in QUICK_MISTAKES else 'slow'} {name}")
        return 0
    names = list(ALL) if arguments.all else arguments.names
    unknown = [name for name in names if name not in ALL]
    if unknown or not names:
        parser.error("unknown: " + " ".join(unknown) if unknown else "which? --list says what there is")
    if not shutil.which("spin") or not shutil.which("gcc"):
        print("spin or gcc is not installed: not checked")
        return SKIPPED
    good = True
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            if arguments.keep:
                folder = os.path.join(arguments.keep, name)
                os.makedirs(folder, exist_ok=True)
            good = check(name, folder) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
