#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The walls of the house (docs/ARCHITECTURE.md): checks on the sources themselves.

walls.py CHECK [--build DIR] runs one check, prints every violation as "file:line: what", and fails if there is one.
"""

import argparse
import collections
import fnmatch
import os
import re
import shutil
import subprocess
import sys

SKIPPED = 77  # to ctest
TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))

# Each folder, and the folders it may include from besides its own. tests/, bench/, fuzz/ and interop/ stand outside the house.
MAY_INCLUDE = {
    "base": [],
    "wire": ["base"],
    "engine": ["base", "wire"],
    "device": ["base", "wire", "engine"],
    "sim": ["base", "wire", "engine"],
    "plugins/verbs": ["base", "wire", "engine", "device"],
    "plugins/rdmacm": ["base", "wire", "engine", "device", "plugins/verbs"],
    "tools": ["base", "wire", "engine", "device", "sim"],
}

# System headers the protocol may see: types, memory, error numbers (not errno, which the check of symbols would find), the
# vector of references a segment is made of, and the processor's vectors; in wire/ also what computes the CRC.
PURE_HEADERS = {
    "engine": {
        "byteswap.h", "endian.h", "errno.h", "immintrin.h", "limits.h", "stdalign.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h",
        "string.h", "sys/uio.h",
    },
}
PURE_HEADERS["wire"] = PURE_HEADERS["engine"] | {"isa-l/crc.h"}

# What the engine's archive may take from outside; engine/engine.h says the same in words.
ENGINE_SYMBOLS = {"memcpy", "memmove", "memset", "memcmp", "strcmp"}
# Objects whose matter is text: one turns records into text for the driver to write, one reads the parameters of policies.
TEXT_SYMBOLS = {"trace_json.c.o": {"snprintf"}, "policy_text.c.o": {"strcspn", "strlen", "strncmp"}}

# Symbols a compiler inserts by itself: position-independent code, stack protection, sanitizers, coverage, division of 128 bits.
COMPILER_SYMBOLS = re.compile(
    r"^(_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__asan_.*|__ubsan_.*|__tsan_.*|__sanitizer_.*|__gcov_.*|__cpu_model|__cpu_indicator_init"
    r"|__u?(div|mod)ti3)$"
)

# Even the folders below the engine reach no clock, thread, socket, file or allocator.
FORBIDDEN_BELOW = re.compile(
    r"^(clock_.*|time|gettimeofday|nanosleep|usleep|pthread_.*|thrd_.*|socket|bind|connect|send(to|msg|mmsg)?"
    r"|recv(from|msg|mmsg)?|poll|epoll_.*|open(at)?(64)?|fopen(64)?|read|write|mmap(64)?|malloc|calloc|realloc|free|posix_memalign"
    r"|aligned_alloc|getrandom|rand|random|getenv|syscall)$"
)
# Lines for people: not for the engine (base/log.h).
LOG_SYMBOL = re.compile(r"^alb_log")
# What base/ writes: log lines, and the last words of a failed assertion.
WRITING_OBJECTS = {"log.c.o", "assert.c.o"}


# Functions that only tests call, and why they are there all the same.
ONLY_TESTED = {
    "alb_buddy_used": "that a pool gets back what it gave",
    "alb_cm_event_name": "what a test says of an event",
    "alb_cm_id_count": "that no id stays behind",
    "alb_cm_id_number": "which id a message names",
    "alb_cm_state_name": "what a test says of a state",
    "alb_cm_type_name": "what a test says of a message",
    "alb_cq_is_overrun": "that a queue has overrun, without the event",
    "alb_icrc_compute": "the ICRC of any bytes, to judge what is sealed",
    "alb_log_set_level": "a warning that a test provokes is not for its reader",
    "alb_pcap_next": "captures read back",
    "alb_pcap_reader_init": "captures read back",
    "alb_sim_link_script": "drops, swaps and copies of chosen packets",
    "alb_sim_link_set_payload_max": "a route with a smaller MTU",
    "alb_sim_link_set_tap": "a listener on a link",
    "alb_sim_queue_step": "one event at a time",
    "alb_sim_script_add": "drops, swaps and copies of chosen packets",
    "alb_sim_script_clear": "drops, swaps and copies of chosen packets",
    "alb_sim_script_is_done": "drops, swaps and copies of chosen packets",
    "alb_topology_find": "a switch by its name",
    "alb_versions_read_retry": "a reader like albedodv.h's, beside writers of the engine's own",
}


def tracked(*patterns):
    """Files of the project that match, whether committed yet or not; what .gitignore names is left out."""
    command = ["git", "-C", TOP, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    try:
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        names = out.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive has no .git
        suffixes = tuple(p.lstrip("*") for p in patterns)
        names = []
        for folder, folders, files in os.walk(TOP):
            folders[:] = [f for f in folders if not f.startswith((".git", "build"))]
            names += [os.path.relpath(os.path.join(folder, f), TOP) for f in files]
        names = [n for n in names if not patterns or n.endswith(suffixes)]
    return sorted(n for n in set(names) if n and os.path.isfile(os.path.join(TOP, n)))


def text_of(name):
    with open(os.path.join(TOP, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def folder_of(path):
    """The folder of the house a path belongs to, or None."""
    for folder in MAY_INCLUDE:
        if path.startswith(folder + "/"):
            return folder
    return None


def without_comments(text):
    """C text with comments and strings blanked, line numbers kept."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def check_includes(build):
    """A file includes only from its own folder or from folders below it."""
    found = []
    for name in tracked("*.c", "*.h"):
        folder = folder_of(name)
        if not folder:
            continue
        for number, line in enumerate(text_of(name).splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^">]+)[>"]', line)
            if not match:
                continue
            quoted, target = match.group(1) == '"', match.group(2)
            where = "%s:%d" % (name, number)
            if not quoted:
                pure = PURE_HEADERS.get(folder)
                if name == "engine/trace_json.c" and target == "stdio.h":
                    continue
                if pure and "/tests/" not in name and target not in pure:
                    found.append("%s: <%s> in %s/: only %s" % (where, target, folder, ", ".join(sorted(pure))))
                continue
            other = folder_of(target)
            if target.startswith("albedo/"):
                continue  # public headers, include/albedo
            if other is None:
                local = os.path.join(TOP, os.path.dirname(name), target)
                if not ("/tests/" in name and os.path.isfile(local)):
                    found.append('%s: "%s": write the path from the top of the tree' % (where, target))
            elif other != folder and other not in MAY_INCLUDE[folder]:
                found.append('%s: "%s": %s/ may include from %s' % (
                    where, target, folder, ", ".join(f + "/" for f in [folder] + MAY_INCLUDE[folder])))
    return found


def symbols(archive):
    """(defined, {(undefined, object)}) of an archive: each object is judged by itself. By readelf, since nm asks the compiler's plugin,
    which tells nothing of malloc, memcpy and whatever else the compiler knows where there is code for link time optimisation."""
    out = subprocess.run(["readelf", "-sW", archive], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    defined, undefined, where = set(), set(), ""
    for line in out.splitlines():
        file = re.match(r"File: .*\((.*)\)$", line)
        if file:
            where = file.group(1)
        fields = line.split()  # number, value, size, type, binding, visibility, section, name
        if len(fields) < 8 or fields[4] not in ("GLOBAL", "WEAK"):
            continue
        if fields[6] == "UND":
            undefined.add((fields[7], where))
        else:
            defined.add(fields[7])
    return defined, undefined


def archive_of(build, folder):
    path = os.path.join(build, folder, "libalb_%s.a" % folder)
    if not os.path.exists(path):
        sys.exit("walls: %s is not there; build first" % path)
    return path


def check_symbols(build):
    """The engine's archive takes only what engine/engine.h agrees to; base/ and wire/ hold no back door."""
    found = []
    below = set()
    for folder in ("base", "wire"):
        defined, undefined = symbols(archive_of(build, folder))
        below |= defined
        for symbol, where in sorted(undefined):
            if where not in WRITING_OBJECTS and FORBIDDEN_BELOW.match(symbol) and symbol not in defined:
                found.append("libalb_%s.a(%s): takes %s" % (folder, where, symbol))
    defined, undefined = symbols(archive_of(build, "engine"))
    for symbol, where in sorted(undefined):
        if LOG_SYMBOL.match(symbol):
            found.append("libalb_engine.a(%s): takes %s; the engine reports by events and counters" % (where, symbol))
        elif symbol in TEXT_SYMBOLS.get(where, ()):
            continue
        elif symbol not in defined | below | ENGINE_SYMBOLS and not COMPILER_SYMBOLS.match(symbol):
            found.append("libalb_engine.a(%s): takes %s, which engine/engine.h does not list" % (where, symbol))
    header = text_of("engine/engine.h")
    for symbol in sorted(ENGINE_SYMBOLS.union(*TEXT_SYMBOLS.values())):
        if symbol not in header:
            found.append("engine/engine.h: does not name %s among the symbols it takes" % symbol)
    return found


def check_numbers(build):
    """No floating point in engine/."""
    found = []
    for name in tracked("engine/*.c", "engine/*.h"):
        if "/tests/" in name:
            continue
        for number, line in enumerate(without_comments(text_of(name)).splitlines(), 1):
            if re.search(r"\b(float|double|long double)\b", line):
                found.append("%s:%d: floating point in the engine" % (name, number))
    return found


def check_licence(build):
    """Every source file names its licence first."""
    found = []
    for name in tracked("*.c", "*.h", "*.py", "*.sh", ".ci/run"):
        lines = text_of(name).splitlines()
        if lines and lines[0].startswith("#!"):
            lines = lines[1:]
        if not lines or "SPDX-License-Identifier: BSD-2-Clause" not in lines[0]:
            found.append("%s:1: the first line must hold SPDX-License-Identifier: BSD-2-Clause" % name)
    return found


def check_size(build):
    """No file over 700 lines: two mechanisms would share it."""
    found = []
    for name in tracked("*.c", "*.h"):
        count = text_of(name).count("\n")
        if folder_of(name) and count > 700:
            found.append("%s: %d lines, more than 700" % (name, count))
    return found


def check_used(build):
    """What a header of the house declares is called by the house, or by what measures it; what only tests call is in ONLY_TESTED."""
    declared, called = {}, set()
    for name in tracked("*.c", "*.h"):
        if "/tests/" in name or not (folder_of(name) or name.startswith(("bench/", "examples/"))):
            continue
        for number, line in enumerate(without_comments(text_of(name)).splitlines(), 1):
            names = re.findall(r"\balb_\w+", line)
            head = re.match(r"[a-z][\w* ]*?\b(alb_\w+)\(", line)  # a declaration or definition begins at the margin
            if head:
                names.remove(head.group(1))
                if name.endswith(".h"):
                    declared[head.group(1)] = "%s:%d" % (name, number)
            called.update(names)
    found = ["%s: %s is called by tests alone; ONLY_TESTED does not say why" % (where, function)
             for function, where in declared.items() if function not in called and function not in ONLY_TESTED]
    return found + ["ONLY_TESTED: %s is no such function" % function
                    for function in ONLY_TESTED if function not in declared or function in called]


def check_declared(build):
    """What a header declares is used by another file than the one that defines it; else it is static there."""
    head = re.compile(r"^[a-z][\w* ]*?\b(\w+)\(", re.M)  # a declaration or definition begins at the margin
    declared, defined, users = {}, {}, {}
    for name in tracked("*.c", "*.h"):
        text = without_comments(text_of(name))
        heads = [match.group(1) for match in head.finditer(text)]
        if name.endswith(".h") and folder_of(name) and "/tests/" not in name:
            declared.update((function, name) for function in heads)
        if name.endswith(".c"):
            for function in heads:
                defined.setdefault(function, set()).add(name)
        for word, count in collections.Counter(re.findall(r"\b[a-z]\w+\b", text)).items():
            if not name.endswith(".h") or count > heads.count(word):  # a header may use what it declares
                users.setdefault(word, set()).add(name)
    exported = set(re.findall(r"\w+", "".join(text_of(name) for name in tracked("*.map"))))
    return ["%s: only %s uses %s, which it could keep to itself" % (header, own, function)
            for function, header in sorted(declared.items()) for own in defined.get(function, ())
            if function not in exported and users.get(function, set()) <= {own}]


def check_leftovers(build):
    """Nothing unfinished, and nothing that points outside the repository."""
    found = []
    words = re.compile(r"\b(TODO|FIXME|XXX)\b")
    # Written so that this line does not find itself.
    outside = re.compile(r"\.\./shared\b|/work" + r"/(main|shared)")
    for name in tracked():
        if name.endswith((".pcap", ".png", ".svg")) or name.startswith(("fuzz/corpus", "tests/vectors")):
            continue
        if name == "tests/walls/walls.py":
            continue
        for number, line in enumerate(text_of(name).splitlines(), 1):
            if outside.search(line):
                found.append("%s:%d: refers to a place outside the repository" % (name, number))
            if name.endswith((".c", ".h", ".py", ".sh")) and words.search(line):
                found.append("%s:%d: unfinished" % (name, number))
    return found


def check_man(build):
    """Manual pages are well-formed and each has its program or subject."""
    found = []
    if not shutil.which("mandoc"):
        sys.exit("walls: mandoc is missing (scripts/setup.sh check)")
    for name in tracked("man/*.1", "man/*.3", "man/*.7"):
        out = subprocess.run(["mandoc", "-Tlint", "-Wwarning", os.path.join(TOP, name)], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, universal_newlines=True).stdout
        # A page of ours that is not installed yet is no mistake of the page.
        found += [line for line in out.splitlines() if "referenced manual not found" not in line]
    return found


def anchors_of(name):
    """What a heading of a page is called in a link."""
    headings = re.findall(r"^#+ (.*)$", text_of(name), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def check_links(build):
    """What a page of the documentation points at is there."""
    found = []
    for name in tracked("*.md"):
        for number, line in enumerate(text_of(name).splitlines(), 1):
            for link in re.findall(r"\]\(([^)\s]+)\)", line):
                if link.startswith(("http:", "https:")):
                    continue
                page, _, anchor = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(name), page)) if page else name
                if not os.path.exists(os.path.join(TOP, target)):
                    found.append("%s:%d: %s is not there" % (name, number, link))
                elif anchor and anchor not in anchors_of(target):
                    found.append("%s:%d: %s has no such heading" % (name, number, link))
    return found


def check_names(build):
    """Files and functions of the house that a comment or a page names are there."""
    found = []
    sources = tracked("*.c", "*.h")
    paths = set(tracked())
    bases = {os.path.basename(name) for name in paths}
    for name in sources:
        bases |= {os.path.basename(file) for file in re.findall(r"#include <([^>]+)>", text_of(name))}
    code = set(re.findall(r"\b(?:alb|albdv)_\w+", "".join(without_comments(text_of(name)) for name in sources)))
    file_name = re.compile(r"(?<![\w./<*])((?:\w+/)*\w+\.[ch])\b(?!\.)")
    for name in sources + tracked("*.md", "man/*"):
        for number, line in enumerate(text_of(name).splitlines(), 1):
            comment = line.partition("//")[2] if name in sources else line
            for file in file_name.findall(comment):
                ours = file.split("/")[0] in MAY_INCLUDE if "/" in file else name in sources
                if ours and file not in paths and ("/" in file or file not in bases):
                    found.append("%s:%d: %s is not there" % (name, number, file))
            for function in re.findall(r"\b(?:alb|albdv)_[a-z]\w*[a-z0-9](?=\((?!\d))", comment):
                if function not in code:
                    found.append("%s:%d: %s() is not there" % (name, number, function))
    return found


def check_map(build):
    """docs/ARCHITECTURE.md names every source file of the house, headers where they stand alone, and none that is not there."""
    page = "docs/ARCHITECTURE.md"
    files = tracked("*.c", "*.h")
    sources = {n for n in files if folder_of(n) and "/tests/" not in n}
    lines = list(enumerate(text_of(page).splitlines(), 1))
    named = [(number, n) for number, line in lines for n in re.findall(r"`([\w/*]+\.[ch])`", line)]
    ours = [(number, n) for number, n in named if "/" not in n or n.startswith(tuple(f + "/" for f in MAY_INCLUDE))]

    def is_meant(path, name):
        return fnmatch.fnmatch(path if "/" in name else os.path.basename(path), name)

    found = ["%s:%d: %s is not there" % (page, number, n) for number, n in ours
             if not any(is_meant(path, n) for path in files)]
    for path in sorted(sources):
        same = {path, path[:-2] + ".c"} & sources
        if not any(is_meant(other, n) for other in same for _, n in named):
            found.append("%s: not in %s" % (path, page))
    return found


def check_scripts(build):
    """Shell scripts pass shellcheck, Python programs compile."""
    found = []
    if not shutil.which("shellcheck"):
        sys.exit("walls: shellcheck is missing (scripts/setup.sh check)")
    shell = [n for n in tracked("*.sh", ".ci/run") if re.match(r"#!.*\b(ba|da)?sh\b", text_of(n))]
    if shell:
        out = subprocess.run(["shellcheck", "-x", "-f", "gcc", "-S", "warning", *shell], cwd=TOP, stdout=subprocess.PIPE,
                             universal_newlines=True).stdout
        found += out.splitlines()
    for name in tracked("*.py"):
        try:
            compile(text_of(name), name, "exec")
        except SyntaxError as error:
            found.append("%s:%s: %s" % (name, error.lineno, error.msg))
    return found


def check_format(build):
    """C is as clang-format 14 has it (make format); others differ from it, and don't judge."""
    if not shutil.which("clang-format"):
        sys.exit("walls: clang-format is missing (scripts/setup.sh check)")
    version = subprocess.run(["clang-format", "--version"], stdout=subprocess.PIPE, universal_newlines=True).stdout
    if not re.search(r"version 14\.", version):
        print("walls: not checked, since this is %s" % version.strip())
        sys.exit(SKIPPED)
    out = subprocess.run(["clang-format", "--dry-run", *tracked("*.c", "*.h")], cwd=TOP, stderr=subprocess.PIPE,
                         universal_newlines=True).stderr
    return [line for line in out.splitlines() if ": warning: " in line]


def main():
    checks = {name[6:]: function for name, function in globals().items() if name.startswith("check_")}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("check", choices=sorted(checks))
    parser.add_argument("--build", default=os.path.join(TOP, "build"), help="build folder (default: build)")
    arguments = parser.parse_args()
    found = checks[arguments.check](arguments.build)
    for line in found:
        print(line)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
