#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the seeds of the scenario and goal fuzzers: a scenario with every section, the project's own sizes, and some
traces.

usage: fuzz/scenario_corpus.py          (writes fuzz/corpus/scenario and fuzz/corpus/goal)
"""
import pathlib

TOP = pathlib.Path(__file__).resolve().parent.parent
EVERYTHING = """[scenario]
title = all
seed = 7
end = 2ms
[network]
topology = two-sites
hosts = 8
long_delay = 5ms
[switch]
alpha = 0.5
trim = yes
spread = spray
[host]
loss = irn:few=5
[host 1..3,5]
paths = 4
[workload a]
kind = poisson
load = 80%
sizes = sizes/websearch.txt
flows = 10
[workload b]
kind = all-reduce-tree
size = 1M
[fault f]
cables = tier:1
kind = loss
value = 1e-3
until = 1ms
[variant v]
host.loss = csa
[variant w]
workload.a.load = 50%
[expect]
v/w.a.fct_p99 = 0..1.5
v:b.goodput = >=1Gb/s
dropped = 0
"""
GOAL = {
    "pair": "num_ranks 2\nrank 0 {\nl1: calc 10 cpu 1\nl2: send 8b to 1 tag 3\nl2 requires l1\n}\n"
            "rank 1 {\nl1: recv 8b from 0 tag 3\n}\n",
    "any": "num_ranks 3\nrank 0 {\nrecv 1b from -1 tag -1\n}\nrank 2 {\nsend 1b to 0 nic 0\n}\n",
    "cycle": "num_ranks 2\nrank 0 {\na: recv 1b from 1\nb: send 1b to 1\nb requires a\n}\n"
             "rank 1 {\na: recv 1b from 0\nb: send 1b to 0\nb irequires a\n}\n",
    "comments": "/* a */ num_ranks 1 // b\nrank 0 { /* c\n */\ncalc 5\n}\n",
}


def main():
    out = TOP / "fuzz" / "corpus"
    for folder in ("scenario", "goal"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    (out / "scenario" / "everything").write_text(EVERYTHING)
    for path in sorted((TOP / "scenarios" / "sizes").iterdir()):
        (out / "scenario" / path.name).write_bytes(path.read_bytes())
    for name, text in GOAL.items():
        (out / "goal" / name).write_text(text)


if __name__ == "__main__":
    main()
