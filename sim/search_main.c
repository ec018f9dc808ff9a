// SPDX-License-Identifier: BSD-2-Clause
// alb_search --seeds A..B: searches a range of seeds for a broken promise (sim/search.h). Stops at the first one.
#include "sim/search.h"

#include "sim/last_words.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void usage(FILE *to)
{
    fputs("usage: alb_search [--transport NAME [--short] | --transactions] [--seeds A..B | --seed N]\n"
          "                  [--twice] [--trace FILE] [--pcap FILE]\n"
          "  --transport NAME  what the engines speak, rc or csa (rc)\n"
          "  --short           short runs: few steps, small messages; seeds mean something else\n"
          "  --transactions    what reflection promises, over csa\n"
          "  --durable         of durable regions, which restarts of their targets leave\n"
          "  --seeds A..B      the seeds to try (0..999)\n"
          "  --seed N          one seed, with its figures\n"
          "  --twice           run every seed twice and compare the traces\n"
          "  --trace FILE      write the engines' trace of the last seed as JSON lines\n"
          "  --pcap FILE       write what the first host of the last seed sends and receives\n",
          to);
}

// A number without a sign, which strtoull would take.
static bool parse_seed(const char *text, uint64_t *seed, char **end)
{
    errno = 0;
    *seed = strtoull(text, end, 0);
    return *text >= '0' && *text <= '9' && errno == 0;
}

static bool parse_range(const char *text, uint64_t *first, uint64_t *last)
{
    char *end;
    if (!parse_seed(text, first, &end))
        return false;
    if (*end == 0) {
        *last = *first;
        return true;
    }
    if (strncmp(end, "..", 2) != 0)
        return false;
    return parse_seed(end + 2, last, &end) && *end == 0 && *first <= *last;
}

static void print(uint64_t seed, const struct alb_search_result *result)
{
    printf("seed %" PRIu64 ": %" PRIu64 " phases, %" PRIu64 " requests, %" PRIu64 " receives, %" PRIu64
           " packets (%" PRIu64 " lost, %" PRIu64 " sent again), %" PRIu64 " queue pairs failed, %" PRIu64
           " restarts, %" PRIu64 " partitions, %" PRIu64 " us, trace %016" PRIx64 "\n",
           seed, result->phases, result->requests, result->receives, result->packets, result->lost,
           result->retransmitted, result->failed_qps, result->restarts, result->partitions, result->virtual_ns / 1000,
           result->trace_hash);
}

static bool run(uint64_t seed, bool twice, const struct alb_search_options *options, struct alb_search_result *result)
{
    const struct alb_search_options quiet = {.transport = options->transport, .is_short = options->is_short};
    struct alb_search_result again;
    alb_last_words_seed(seed);
    bool ok = alb_search_run(seed, options, result);
    if (ok && twice && (!alb_search_run(seed, &quiet, &again) || again.trace_hash != result->trace_hash)) {
        printf("seed %" PRIu64 ": the second run differs from the first\n", seed);
        return false;
    }
    if (!ok)
        printf("seed %" PRIu64 ": %s\n", seed, result->failure);
    return ok;
}

static void print_txn(uint64_t seed, const struct alb_search_txn_result *result)
{
    printf("seed %" PRIu64 ": %" PRIu64 " transactions, %" PRIu64 " operations reported as committed, %" PRIu64
           " as aborted, %" PRIu64 " corrupt, %" PRIu64 " in doubt, %" PRIu64 " not known, %" PRIu64
           " questions, %" PRIu64 " plain WRITEs, %" PRIu64 " READs, %" PRIu64 " restarts, %" PRIu64
           " regions renewed, %" PRIu64 " breaks, %" PRIu64 " packets (%" PRIu64 " lost), %" PRIu64
           " us, trace %016" PRIx64 "\n",
           seed, result->transactions, result->committed, result->aborted, result->corrupt, result->doubts,
           result->unknown, result->questions, result->plain, result->reads, result->restarts, result->renewals,
           result->breaks, result->packets, result->lost, result->virtual_ns / 1000, result->trace_hash);
}

static bool run_txn(uint64_t seed, bool twice, const struct alb_search_options *options,
                    struct alb_search_txn_result *result)
{
    const struct alb_search_options quiet = {.is_durable = options->is_durable};
    struct alb_search_txn_result again;
    alb_last_words_seed(seed);
    bool ok = alb_search_txn_run(seed, options, result);
    if (ok && twice && (!alb_search_txn_run(seed, &quiet, &again) || again.trace_hash != result->trace_hash)) {
        printf("seed %" PRIu64 ": the second run differs from the first\n", seed);
        return false;
    }
    if (!ok)
        printf("seed %" PRIu64 ": %s\n", seed, result->failure);
    return ok;
}

static int search_transactions(uint64_t first, uint64_t last, bool twice, const struct alb_search_options *options)
{
    struct alb_search_txn_result result, sum = {0};
    for (uint64_t seed = first;; seed++) {
        bool ok = run_txn(seed, twice, options, &result);
        if (!ok || first == last)
            print_txn(seed, &result);
        if (!ok)
            return 1;
        sum.transactions += result.transactions;
        sum.committed += result.committed;
        sum.aborted += result.aborted;
        sum.doubts += result.doubts;
        sum.restarts += result.restarts;
        sum.renewals += result.renewals;
        sum.plain += result.plain;
        sum.reads += result.reads;
        sum.unplaced += result.unplaced;
        sum.gone_back += result.gone_back;
        sum.journaled += result.journaled;
        sum.journal_errors += result.journal_errors;
        sum.redone += result.redone;
        sum.bound_again += result.bound_again;
        if (seed == last)
            break;
    }
    printf("%" PRIu64 " seeds, %" PRIu64 " transactions, %" PRIu64 " operations committed, %" PRIu64
           " aborted, %" PRIu64 " in doubt, %" PRIu64 " plain WRITEs, %" PRIu64 " READs, %" PRIu64 " restarts, %" PRIu64
           " regions renewed: every promise kept\n",
           last - first + 1, sum.transactions, sum.committed, sum.aborted, sum.doubts, sum.plain, sum.reads,
           sum.restarts, sum.renewals);
    if (options->is_durable)
        printf("%" PRIu64 " records, %" PRIu64 " errors of the journal, %" PRIu64 " commits repeated, %" PRIu64
               " transactions bound again, %" PRIu64 " committed when their regions had gone, %" PRIu64
               " plain words lost\n",
               sum.journaled, sum.journal_errors, sum.redone, sum.bound_again, sum.unplaced, sum.gone_back);
    return 0;
}

static int search_connections(uint64_t first, uint64_t last, bool twice, const struct alb_search_options *options)
{
    struct alb_search_result result, sum = {0};
    for (uint64_t seed = first;; seed++) {
        bool ok = run(seed, twice, options, &result);
        if (!ok || first == last)
            print(seed, &result);
        if (!ok)
            return 1;
        sum.requests += result.requests;
        sum.packets += result.packets;
        sum.failed_qps += result.failed_qps;
        sum.restarts += result.restarts;
        if (seed == last)
            break;
    }
    printf("%" PRIu64 " seeds, %" PRIu64 " requests, %" PRIu64 " packets, %" PRIu64 " queue pairs failed, %" PRIu64
           " restarts: every promise kept\n",
           last - first + 1, sum.requests, sum.packets, sum.failed_qps, sum.restarts);
    return 0;
}

// ---- options --------------------------------------------------------------------------------------------------------

struct choices {
    struct alb_search_options options;
    uint64_t first, last;
    bool twice, transactions, has_transport;
};

static bool take_transport(const char *name, struct choices *taken)
{
    taken->options.transport = name;
    taken->has_transport = true;
    if (strcmp(name, "rc") == 0 || strcmp(name, "csa") == 0)
        return true;
    fprintf(stderr, "alb_search: there is no transport \"%s\"; expected rc or csa\n", name);
    return false;
}

static bool take_seeds(const char *text, struct choices *taken)
{
    if (parse_range(text, &taken->first, &taken->last))
        return true;
    fprintf(stderr, "alb_search: \"%s\" is no range of seeds; expected N or A..B\n", text);
    return false;
}

// False: it makes no sense, and that has been said.
static bool take_option(int option, struct choices *taken)
{
    switch (option) {
    case 's':
        return take_seeds(optarg, taken);
    case 'x':
        return take_transport(optarg, taken);
    case 'S':
        taken->options.is_short = true;
        return true;
    case 'T':
        taken->transactions = true;
        return true;
    case 'D':
        taken->options.is_durable = true;
        return true;
    case '2':
        taken->twice = true;
        return true;
    case 't':
        taken->options.trace = optarg;
        return true;
    case 'p':
        taken->options.capture = optarg;
        return true;
    default:
        usage(stderr);
        return false;
    }
}

// Options that would mean nothing together are refused. NULL: there are none.
static const char *meaningless(const struct choices *taken)
{
    if (taken->options.is_durable && !taken->transactions)
        return "--durable is of --transactions";
    if (taken->options.is_short && taken->transactions)
        return "--short is not of --transactions";
    if (taken->transactions && taken->has_transport && strcmp(taken->options.transport, "csa") != 0)
        return "--transactions are of csa alone";
    return NULL;
}

// False: it cannot be written, and that has been said.
static bool can_be_written(const char *name)
{
    FILE *file = name ? fopen(name, "w") : NULL;
    if (name && !file)
        fprintf(stderr, "alb_search: %s: %s\n", name, strerror(errno));
    if (file)
        fclose(file);
    return !name || file;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"transport", required_argument, NULL, 'x'},
        {"seeds", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 's'},
        {"short", no_argument, NULL, 'S'},
        {"transactions", no_argument, NULL, 'T'},
        {"durable", no_argument, NULL, 'D'},
        {"twice", no_argument, NULL, '2'},
        {"trace", required_argument, NULL, 't'},
        {"pcap", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct choices taken = {.options = {.transport = "rc"}, .last = 999};
    for (int option; (option = getopt_long(argc, argv, "h", names, NULL)) != -1;) {
        if (option == 'h') {
            usage(stdout);
            return 0;
        }
        if (!take_option(option, &taken))
            return 2;
    }
    if (optind < argc) {
        fprintf(stderr, "alb_search: \"%s\": takes options only\n", argv[optind]);
        return 2;
    }
    const char *complaint = meaningless(&taken);
    if (complaint) {
        fprintf(stderr, "alb_search: %s\n", complaint);
        return 2;
    }
    if (!can_be_written(taken.options.trace) || !can_be_written(taken.options.capture))
        return 1;
    alb_last_words_begin("alb_search");
    return taken.transactions ? search_transactions(taken.first, taken.last, taken.twice, &taken.options)
                              : search_connections(taken.first, taken.last, taken.twice, &taken.options);
}
