#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is possible at all for the flows of a run: their completion times on one switch that never blocks.

usage: scripts/bound.py RESULT.jsonl      (of `albedo sim --json RESULT.jsonl --variant NAME SCENARIO`)

The same flows at the same times, as fluids that hosts' links alone bound: shared evenly (max-min); each sender, or each
receiver, serves the flow with the shortest rest first, and what that one cannot use the next; and the shortest rest
first, what began first, or the least of the rest less what age counts for, chosen with knowledge of all hosts at every
moment. "csa's order" is what its hosts do with that last key, each for itself: receivers let three come first, senders
serve their flows in their order. No packet is lost or late, and no window has to be found. A constant time for each
flow stands for the way there and back. Links carry as much payload of what they carry in all as those of the run did,
whose headers, reports and repetitions have taken the rest; --headers counts headers alone, as if nothing was reported
or sent twice.

The last line is no policy but a floor: the least P99 that each sender's link by itself, or each receiver's, leaves to
any order of sending, even one that knows the future, and gives up the slowest hundredth altogether.
"""
import argparse
import json
import math
import sys

RATE = 100e9 / 8  # bytes a second
HEADERS = 4258 / 4116  # a link's bytes by those of payload, if there are no packets but full ones
ROUND_TRIP = 13e-6
SENDER, RECEIVER, REST = range(3)  # of an active flow
FIRST_MAX = 3  # as ALB_CREDIT_FIRST_MAX


def share_evenly(flows, left):
    """Bytes a second of each of these flows, the most loaded link first, of what is left of each link."""
    users, rates = {}, {}
    for number, flow in flows.items():
        for link in ((SENDER, flow[SENDER]), (RECEIVER, flow[RECEIVER])):
            users.setdefault(link, set()).add(number)
            left.setdefault(link, RATE)
    share = {link: left[link] / len(numbers) for link, numbers in users.items()}
    while share:
        fullest = min(share, key=share.get)
        rate = share[fullest]
        for number in list(users[fullest]):
            rates[number] = rate
            for link in ((SENDER, flows[number][SENDER]), (RECEIVER, flows[number][RECEIVER])):
                users[link].discard(number)
                left[link] = max(left[link] - rate, 0)
                if not users[link]:
                    share.pop(link, None)
                else:
                    share[link] = left[link] / len(users[link])
    return rates


def evenly(active):
    return share_evenly(active, {})


def has_room(flow, left):
    return min(left.get((side, flow[side]), RATE) for side in (SENDER, RECEIVER)) > 1


def serve(active, order, side, left, rates):
    """The first flow of each host at that side, then the second of each, and so on, of what the others leave."""
    lines = {}
    for number in order:
        lines.setdefault(active[number][side], []).append(number)
    for place in range(max(map(len, lines.values()), default=0)):
        flows = {line[place]: active[line[place]] for line in lines.values() if len(line) > place}
        rates.update(share_evenly({key: flow for key, flow in flows.items() if has_room(flow, left)}, left))


def shortest_of_each(side):
    def policy(active):
        rates = {}
        serve(active, sorted(active, key=lambda number: active[number][REST]), side, {}, rates)
        return rates
    return policy


def first_of_each_receiver(key):
    """Those with the least keys come first, in the order of their senders; the others have what is left."""
    def policy(active):
        first, waiting, counts, left, rates = [], [], {}, {}, {}
        for number in sorted(active, key=lambda number: key(number, active[number])):
            receiver = active[number][RECEIVER]
            counts[receiver] = counts.get(receiver, 0) + 1
            (first if counts[receiver] <= FIRST_MAX else waiting).append(number)
        serve(active, first, SENDER, left, rates)
        serve(active, waiting, SENDER, left, rates)
        return rates
    return policy


def first_of_all(key):
    """The flow with the least key of all has its whole link, then the next one whose sender and receiver are free."""
    def policy(active):
        senders, receivers, rates = set(), set(), {}
        for number in sorted(active, key=lambda number: key(number, active[number])):
            sender, receiver, _ = active[number]
            if sender not in senders and receiver not in receivers:
                rates[number] = RATE
                senders.add(sender)
                receivers.add(receiver)
        return rates
    return policy


def complete(flows, policy):
    """Completion time of each flow (begun, from, to, bytes on a link), which are in the order of their beginnings."""
    now, begun, active, times = 0.0, 0, {}, [0.0] * len(flows)
    while begun < len(flows) or active:
        rates = policy(active) if active else {}
        until_end = min((active[flow][REST] / rate for flow, rate in rates.items() if rate > 0), default=float("inf"))
        until_begin = flows[begun][0] - now if begun < len(flows) else float("inf")
        step = min(until_end, until_begin)
        now += step
        for flow, rate in rates.items():
            active[flow][REST] -= rate * step
        if until_begin <= until_end:
            active[begun] = [flows[begun][1], flows[begun][2], float(flows[begun][3])]
            begun += 1
        for flow in [flow for flow, (_, _, rest) in active.items() if rest < 0.01]:
            times[flow] = now - flows[flow][0] + ROUND_TRIP
            del active[flow]
    return times


def fewest_late(flows, limit, most):
    """How many flows (begun, bytes on it) of one link take longer than the limit, whatever their order: at least so many.

    Where all are allowed the same time, those that keep it may as well be served in the order of their beginnings. For
    each number of flows given up so far: the earliest moment at which the others can have ended.
    """
    ends = {0: 0.0}
    for begun, size in flows:
        after = {}
        for late, end in ends.items():
            kept = max(end, begun) + size / RATE
            if kept <= begun + limit:
                after[late] = min(after.get(late, kept), kept)
            if late < most:
                after[late + 1] = min(after.get(late + 1, end), end)
        ends = after
    return min(ends, default=most + 1)


def least_p99(flows):
    allowed = len(flows) - math.ceil(0.99 * len(flows))
    least = 0.0
    for side in (1, 2):
        links = {}
        for flow in flows:
            links.setdefault(flow[side], []).append((flow[0], flow[3]))
        low, high = 0.0, 10.0
        while high - low > 1e-7:
            limit = (low + high) / 2
            if sum(fewest_late(link, limit, allowed) for link in links.values()) <= allowed:
                high = limit
            else:
                low = limit
        least = max(least, high)
    return least + ROUND_TRIP


def show(name, times, ideals):
    slowdowns = sorted(time / ideal for time, ideal in zip(times, ideals))
    times = sorted(times)

    def part(values, share):
        return values[max(math.ceil(share * len(values)), 1) - 1]
    print("%-26s mean %.0f us, P50 %.0f, P95 %.0f, P99 %.0f, max %.0f; slowdown mean %.2f, P99 %.1f"
          % (name, sum(times) / len(times) * 1e6, *(part(times, share) * 1e6 for share in (0.5, 0.95, 0.99)),
             times[-1] * 1e6, sum(slowdowns) / len(slowdowns), part(slowdowns, 0.99)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result")
    parser.add_argument("--headers", action="store_true", help="nothing is sent but each byte once, with its headers")
    parser.add_argument("--aging", type=float, default=64, metavar="GBPS", help="what a flow gains by waiting, Gb/s (64)")
    arguments = parser.parse_args()
    with open(arguments.result, encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    hosts_links = [record for record in records if record["record"] == "link" and record["from"].startswith("h")]
    if any(link["bits_per_s"] != RATE * 8 for link in hosts_links):
        sys.exit("%s: the model is of hosts with links of %.0f Gb/s" % (arguments.result, RATE * 8e-9))
    on_links = sum(link["bytes"] for link in hosts_links)
    records = [record for record in records if record["record"] == "flow" and record["state"] == "done"]
    if not records:
        sys.exit("%s: no flow in it is done" % arguments.result)
    records.sort(key=lambda record: record["begun_ns"])
    cost = HEADERS if arguments.headers else on_links / sum(record["bytes"] for record in records)
    print("%-26s %.4f bytes on a host's link for each of payload" % ("", cost))
    flows = [(record["begun_ns"] * 1e-9, record["from"], record["to"], record["bytes"] * cost) for record in records]
    ideals = [record["ideal_ns"] * 1e-9 for record in records]
    show("the run", [(record["done_ns"] - record["begun_ns"]) * 1e-9 for record in records], ideals)
    show("shared evenly", complete(flows, evenly), ideals)
    show("shortest of each sender", complete(flows, shortest_of_each(SENDER)), ideals)
    show("shortest of each receiver", complete(flows, shortest_of_each(RECEIVER)), ideals)
    show("shortest of all", complete(flows, first_of_all(lambda number, flow: flow[REST])), ideals)
    show("oldest of all", complete(flows, first_of_all(lambda number, flow: number)), ideals)

    def due(number, flow):
        return flows[number][0] + flow[REST] / cost / (arguments.aging * 1e9 / 8)
    show("rest and age of all", complete(flows, first_of_all(due)), ideals)
    show("csa's order", complete(flows, first_of_each_receiver(due)), ideals)
    print("%-26s P99 %.0f" % ("no order is below", least_p99(flows) * 1e6))


if __name__ == "__main__":
    main()
