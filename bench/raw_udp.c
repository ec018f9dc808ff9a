// SPDX-License-Identifier: BSD-2-Clause
// raw_udp: what plain UDP does on this machine. Start the receiving role first, or second: the sending one waits for
// it.
#include "bench/parse.h"
#include "bench/raw.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: raw_udp --mode bandwidth|latency --role send|receive --local ADDRESS --port PORT [--peer ADDRESS] "
    "[options]\n"
    "The receiving role takes PORT, the sending one PORT + 1; the sending one prints one line of JSON.\n"
    "  -s, --size BYTES      message (default 1048576; at most 8388608)\n"
    "  -P, --payload BYTES   most payload in one datagram, beside 32 bytes of header and trailer (default 4096)\n"
    "  -W, --window BYTES    most UDP payload in flight (default 262144)\n"
    "  -t, --seconds SECONDS bandwidth: how long (default 1)\n"
    "  -n, --iterations N    latency: how often (default 20000)\n"
    "  -b, --buffer BYTES    SO_RCVBUF and SO_SNDBUF (default 4194304; 0: the system's)\n"
    "  -w, --wait spin|block how to wait for datagrams (default spin)\n"
    "      --no-gso          single datagrams: sendmmsg and recvmmsg instead of UDP GSO and GRO\n"
    "  -h, --help\n";

static const struct alb_bench_command command = {"raw_udp", usage};

static void parse_address(const char *option, const char *text, uint16_t port, struct sockaddr_storage *address)
{
    if (!alb_bench_parse_address(text, port, address))
        alb_bench_refuse(&command, option, text);
}

static const char *parse_word(const char *option, const char *text, const char *first, const char *second)
{
    if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
        alb_bench_refuse(&command, option, text);
    return text;
}

enum { OPTION_MODE = 256, OPTION_ROLE, OPTION_LOCAL, OPTION_PEER, OPTION_PORT, OPTION_NO_GSO };

static const struct option long_options[] = {
    {"mode", required_argument, NULL, OPTION_MODE},
    {"role", required_argument, NULL, OPTION_ROLE},
    {"local", required_argument, NULL, OPTION_LOCAL},
    {"peer", required_argument, NULL, OPTION_PEER},
    {"port", required_argument, NULL, OPTION_PORT},
    {"size", required_argument, NULL, 's'},
    {"payload", required_argument, NULL, 'P'},
    {"window", required_argument, NULL, 'W'},
    {"seconds", required_argument, NULL, 't'},
    {"iterations", required_argument, NULL, 'n'},
    {"buffer", required_argument, NULL, 'b'},
    {"wait", required_argument, NULL, 'w'},
    {"no-gso", no_argument, NULL, OPTION_NO_GSO},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void parse_options(int argc, char **argv, struct alb_raw_options *o)
{
    const char *local = NULL, *peer = NULL;
    uint32_t port = 0;
    for (int c; (c = getopt_long(argc, argv, "s:P:W:t:n:b:w:h", long_options, NULL)) != -1;) {
        switch (c) {
        case OPTION_MODE:
            o->mode = parse_word("--mode", optarg, "bandwidth", "latency");
            break;
        case OPTION_ROLE:
            o->role = parse_word("--role", optarg, "send", "receive");
            break;
        case OPTION_LOCAL:
            local = optarg;
            break;
        case OPTION_PEER:
            peer = optarg;
            break;
        case OPTION_PORT:
            port = alb_bench_take_number(&command, "--port", optarg, 1, 65534);
            break;
        case 's':
            o->message_bytes = alb_bench_take_number(&command, "--size", optarg, 1, ALB_RAW_MESSAGE_MAX);
            break;
        case 'P':
            o->payload_bytes =
                alb_bench_take_number(&command, "--payload", optarg, 1, ALB_RAW_BURST_BYTES - ALB_RAW_OVERHEAD_BYTES);
            break;
        case 'W':
            o->window_bytes = alb_bench_take_number(&command, "--window", optarg, 1, 1u << 30);
            break;
        case 't':
            o->seconds = strtod(optarg, NULL);
            if (!(o->seconds > 0 && o->seconds <= 60))
                alb_bench_refuse(&command, "--seconds", optarg);
            break;
        case 'n':
            o->iterations = alb_bench_take_number(&command, "--iterations", optarg, 1, 10000000);
            break;
        case 'b':
            o->buffer_bytes = alb_bench_take_number(&command, "--buffer", optarg, 0, 1u << 30);
            break;
        case 'w':
            o->wait = strcmp(parse_word("--wait", optarg, "spin", "block"), "spin") ? ALB_RAW_BLOCK : ALB_RAW_SPIN;
            break;
        case OPTION_NO_GSO:
            o->gso = false;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (!o->mode || !o->role || !local || !port || optind != argc || (*o->role == 's') != (peer != NULL))
        alb_bench_refuse(&command, "arguments", "one is missing or too many");
    parse_address("--local", local, (uint16_t)(*o->role == 's' ? port + 1 : port), &o->local);
    if (peer)
        parse_address("--peer", peer, (uint16_t)port, &o->peer);
}

int main(int argc, char **argv)
{
    static struct alb_raw_options o = {
        .message_bytes = 1u << 20,
        .payload_bytes = 4096,
        .window_bytes = 256u << 10,
        .buffer_bytes = 4u << 20,
        .iterations = 20000,
        .seconds = 1,
        .gso = true,
    };
    parse_options(argc, argv, &o);
    bool is_stream = *o.mode == 'b', is_sender = *o.role == 's';
    if (is_stream && is_sender)
        alb_raw_stream_send(&o);
    else if (is_stream)
        alb_raw_stream_receive(&o);
    else if (is_sender)
        alb_raw_pingpong_ask(&o);
    else
        alb_raw_pingpong_answer(&o);
    return 0;
}
