#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is possible at all for the flows of a run: their completion times on one switch that never blocks.

usage: scripts/bound.py RESULT.jsonl      (of `albedo sim --json RESULT.jsonl --variant NAME SCENARIO`)

The same flows at the same times, as fluids that hosts' links alone bound: shared evenly (max-min), and the shortest rest
first, chosen by somebody who sees all hosts at every moment. No packet is lost or late, and no window has to be found. A
constant time for each flow stands for the way there and back.
"""
import argparse
import json

RATE = 100e9 / 8 * 4060 / 4200  # bytes of payload a second
ROUND_TRIP = 13e-6


def shared_evenly(active):
    """Bytes a second of each active flow [from, to, rest]: the most loaded link first."""
    left, users, rates = {}, {}, {}
    for flow, (sender, receiver, _) in active.items():
        for link in (("up", sender), ("down", receiver)):
            users.setdefault(link, set()).add(flow)
            left[link] = RATE
    share = {link: RATE / len(flows) for link, flows in users.items()}
    while share:
        fullest = min(share, key=share.get)
        rate = share[fullest]
        for flow in list(users[fullest]):
            rates[flow] = rate
            for link in (("up", active[flow][0]), ("down", active[flow][1])):
                users[link].discard(flow)
                left[link] -= rate
                if not users[link]:
                    del share[link]
                else:
                    share[link] = max(left[link], 0) / len(users[link])
    return rates


def shortest_first(active):
    senders, receivers, rates = set(), set(), {}
    for flow in sorted(active, key=lambda number: active[number][2]):
        sender, receiver, _ = active[flow]
        if sender not in senders and receiver not in receivers:
            rates[flow] = RATE
            senders.add(sender)
            receivers.add(receiver)
    return rates


def complete(flows, policy):
    """Completion time of each flow (begun, from, to, bytes), which are in the order of their beginnings."""
    now, begun, active, times = 0.0, 0, {}, [0.0] * len(flows)
    while begun < len(flows) or active:
        rates = policy(active) if active else {}
        until_end = min((active[flow][2] / rate for flow, rate in rates.items() if rate > 0), default=float("inf"))
        until_begin = flows[begun][0] - now if begun < len(flows) else float("inf")
        step = min(until_end, until_begin)
        now += step
        for flow, rate in rates.items():
            active[flow][2] -= rate * step
        if until_begin <= until_end:
            active[begun] = [flows[begun][1], flows[begun][2], float(flows[begun][3])]
            begun += 1
        for flow in [flow for flow, (_, _, rest) in active.items() if rest < 0.01]:
            times[flow] = now - flows[flow][0] + ROUND_TRIP
            del active[flow]
    return times


def show(name, times):
    times = sorted(times)
    parts = [times[min(len(times) - 1, int(len(times) * part))] * 1e6 for part in (0.5, 0.95, 0.99)]
    print("%-16s mean %.0f us, P50 %.0f, P95 %.0f, P99 %.0f, max %.0f"
          % (name, sum(times) / len(times) * 1e6, *parts, times[-1] * 1e6))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result")
    with open(parser.parse_args().result, encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    records = [record for record in records if record["record"] == "flow" and record["done_ns"] is not None]
    flows = sorted((record["begun_ns"] * 1e-9, record["from"], record["to"], record["bytes"]) for record in records)
    show("the run", [(record["done_ns"] - record["begun_ns"]) * 1e-9 for record in records])
    show("shared evenly", complete(flows, shared_evenly))
    show("shortest first", complete(flows, shortest_first))


if __name__ == "__main__":
    main()
