// SPDX-License-Identifier: BSD-2-Clause
// flow: the options.
#include "bench/flow.h"
#include "bench/parse.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: flow --transport verbs|tcp|fabric --local ADDRESS --port PORT [--peer ADDRESS] [options]\n"
    "With --peer it sends, without it receives; each side prints one line of JSON.\n"
    "  -d, --device NAME       verbs: the device (default roce0); fabric: the provider (default tcp;ofi_rxm)\n"
    "  -s, --size BYTES        of a message (default 1048576, at least 8)\n"
    "  -w, --window N          most messages in flight (default 4)\n"
    "  -l, --list N            fabric: N writes are posted together, and the last alone is reported to both sides\n"
    "                          (default 1; the window is a multiple)\n"
    "  -c, --senders N         how many the receiver waits for (default 1)\n"
    "  -x, --exchange N        one message, one answer, so often at most, instead of a stream\n"
    "  -W, --warm SECONDS      not measured (default 0.2)\n"
    "  -t, --seconds SECONDS   measured (default 1)\n"
    "  -a, --ack-timeout CODE  verbs: of the queue pairs (default 14, which is 67 ms)\n"
    "  -i, --interval MS       the receiver tells what came in each interval\n"
    "  -e, --event             sleep for completions instead of polling\n"
    "  -v, --verify            exchange over verbs or fabric: every byte is checked\n"
    "  -h, --help\n";

static const struct alb_bench_command command = {"flow", usage};

static double parse_seconds(const char *option, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= 600))
        alb_bench_refuse(&command, option, text);
    return value;
}

static const struct alb_flow_ops *parse_transport(const char *text)
{
    static const struct alb_flow_ops *const all[] = {
        &alb_flow_verbs,
        &alb_flow_tcp,
#ifdef ALB_FLOW_HAS_FABRIC
        &alb_flow_fabric,
#endif
    };
    for (size_t i = 0; i < ALB_COUNT(all); i++) {
        if (strcmp(all[i]->name, text) == 0)
            return all[i];
    }
    if (strcmp(text, "fabric") == 0)
        alb_flow_fail(text, "libfabric's headers were not there when this was built (scripts/setup.sh bench)");
    alb_bench_refuse(&command, "--transport", text);
}

enum { OPTION_TRANSPORT = 256, OPTION_LOCAL, OPTION_PEER, OPTION_PORT };

static const struct option long_options[] = {
    {"transport", required_argument, NULL, OPTION_TRANSPORT},
    {"local", required_argument, NULL, OPTION_LOCAL},
    {"peer", required_argument, NULL, OPTION_PEER},
    {"port", required_argument, NULL, OPTION_PORT},
    {"device", required_argument, NULL, 'd'},
    {"size", required_argument, NULL, 's'},
    {"window", required_argument, NULL, 'w'},
    {"list", required_argument, NULL, 'l'},
    {"senders", required_argument, NULL, 'c'},
    {"exchange", required_argument, NULL, 'x'},
    {"warm", required_argument, NULL, 'W'},
    {"seconds", required_argument, NULL, 't'},
    {"ack-timeout", required_argument, NULL, 'a'},
    {"interval", required_argument, NULL, 'i'},
    {"event", no_argument, NULL, 'e'},
    {"verify", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void take_option(int option, struct alb_flow_options *o)
{
    switch (option) {
    case OPTION_TRANSPORT:
        o->ops = parse_transport(optarg);
        break;
    case OPTION_LOCAL:
        o->local = optarg;
        break;
    case OPTION_PEER:
        o->peer = optarg;
        break;
    case OPTION_PORT:
        o->port = (uint16_t)alb_bench_take_number(&command, "--port", optarg, 1, 65535);
        break;
    case 'd':
        o->device = optarg;
        break;
    case 's':
        o->bytes = alb_bench_take_number(&command, "--size", optarg, ALB_FLOW_ANSWER_BYTES, 1u << 30);
        break;
    case 'w':
        o->window = alb_bench_take_number(&command, "--window", optarg, 1, 4096);
        break;
    case 'l':
        o->list = alb_bench_take_number(&command, "--list", optarg, 1, 4096);
        break;
    case 'c':
        o->senders = alb_bench_take_number(&command, "--senders", optarg, 1, ALB_FLOW_SENDERS_MAX);
        break;
    case 'x':
        o->is_exchange = true;
        o->messages = alb_bench_take_number(&command, "--exchange", optarg, 1, 100000000);
        break;
    case 'W':
        o->warm_s = parse_seconds("--warm", optarg);
        break;
    case 't':
        o->measure_s = parse_seconds("--seconds", optarg);
        break;
    case 'a':
        o->ack_timeout = (uint8_t)alb_bench_take_number(&command, "--ack-timeout", optarg, 1, 31);
        break;
    case 'i':
        o->interval_ms = alb_bench_take_number(&command, "--interval", optarg, 1, 10000);
        break;
    case 'e':
        o->is_event = true;
        break;
    case 'v':
        o->is_verified = true;
        break;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default:
        fputs(usage, stderr);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static struct alb_flow_options o = {
        .bytes = 1u << 20, .window = 4, .list = 1, .senders = 1, .ack_timeout = 14, .warm_s = 0.2, .measure_s = 1};
    for (int option; (option = getopt_long(argc, argv, "d:s:w:l:c:x:W:t:a:i:evh", long_options, NULL)) != -1;)
        take_option(option, &o);
    if (!o.ops || !o.local || !o.port || optind != argc)
        alb_bench_refuse(&command, "arguments", "one is missing or too many");
    if (!o.device)
        o.device = strcmp(o.ops->name, "fabric") == 0 ? "tcp;ofi_rxm" : "roce0";
    if (o.is_exchange)
        o.window = 1;
    if (o.window % o.list != 0)
        alb_flow_fail("--list", "the window is no multiple of it");
    if (o.list > 1 && strcmp(o.ops->name, "fabric") != 0)
        alb_flow_fail("--list", "not with this transport");
    if (o.peer)
        alb_flow_send_run(&o);
    else
        alb_flow_receive_run(&o);
    return 0;
}
