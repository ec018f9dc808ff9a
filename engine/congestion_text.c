// SPDX-License-Identifier: BSD-2-Clause
// Congestion policies as users name them. Their parameters are an engine's configuration.
#include "engine/engine.h"
#include "engine/policy.h"
#include "engine/policy_text.h"

#define AT(member)         offsetof(struct alb_engine_config, member)
#define BYTES              ALB_PARAMETER_BYTES_32, 1, 1u << 30
#define RATE               ALB_PARAMETER_RATE, 1, ALB_DCQCN_RATE_MAX_BYTES_PER_S
#define TIME(min, max)     ALB_PARAMETER_TIME, min, max
#define COUNT_32(min, max) ALB_PARAMETER_COUNT_32, min, max

static const struct alb_parameter all_parameters[] = {
    {"window", "start", "min..max (64KiB)", AT(window_start_bytes), BYTES},
    {"window", "min", "1..start (4KiB)", AT(window_min_bytes), BYTES},
    {"window", "max", "start..1GiB (16MiB)", AT(window_max_bytes), BYTES},
    {"window", "rtt_target", "1us..100s (1ms)", AT(rtt_target_ns), TIME(1000, 100 * ALB_NS_PER_S)},
    {"aimd", "start", "min..max (64KiB)", AT(window_start_bytes), BYTES},
    {"aimd", "min", "1..start (16KiB)", AT(window_min_bytes), BYTES},
    {"aimd", "max", "start..1GiB (2MiB)", AT(window_max_bytes), BYTES},
    {"fixed", "window", "1..1GiB", AT(window_max_bytes), BYTES},
    {"dcqcn", "rate_max", "rate_min, additive, hyper..1Tb/s (40Gb/s)", AT(dcqcn.rate_max_bytes_per_s), RATE},
    {"dcqcn", "rate_min", "8b/s..rate_max (10Mb/s)", AT(dcqcn.rate_min_bytes_per_s), RATE},
    {"dcqcn", "additive", "8b/s..rate_max (40Mb/s)", AT(dcqcn.additive_bytes_per_s), RATE},
    {"dcqcn", "hyper", "8b/s..rate_max (400Mb/s)", AT(dcqcn.hyper_bytes_per_s), RATE},
    {"dcqcn", "gain_log2", "1..16 (8)", AT(dcqcn.gain_log2), COUNT_32(1, 16)},
    {"dcqcn", "recovery", "0..65534 (5)", AT(dcqcn.recovery_steps), COUNT_32(0, UINT16_MAX - 1)},
    {"dcqcn", "counter", "1..1GiB (10000000)", AT(dcqcn.counter_bytes), BYTES},
    {"dcqcn", "increase", "1us..10s", AT(dcqcn.increase_ns), TIME(1000, 10 * ALB_NS_PER_S)},
    {"dcqcn", "alpha", "1us..10s", AT(dcqcn.alpha_ns), TIME(1000, 10 * ALB_NS_PER_S)},
    {"dcqcn", "cnp", "0..10s (50us)", AT(dcqcn.cnp_ns), TIME(0, 10 * ALB_NS_PER_S)},
    {"dcqcn", "burst", "0..50ms (100us)", AT(dcqcn.burst_ns), TIME(0, ALB_DCQCN_BURST_MAX_NS)},
};

static const struct alb_parameters parameters = {all_parameters, ALB_COUNT(all_parameters)};

const char *alb_congestion_parameter(const char *policy, uint32_t index, const char **bounds)
{
    return alb_policy_text_parameter(policy, &parameters, index, bounds);
}

bool alb_congestion_set(struct alb_engine_config *config)
{
    const struct alb_congestion_ops *ops = alb_congestion_find(config->congestion);
    if (!ops || !alb_policy_text_set(config->congestion, ops->name, &parameters, config))
        return false;
    if (ops == &alb_congestion_fixed) { // which has one window only
        config->window_min_bytes = ALB_MIN(config->window_min_bytes, config->window_max_bytes);
        config->window_start_bytes = config->window_max_bytes;
    }
    return true;
}

bool alb_congestion_agrees(const struct alb_engine_config *config)
{
    return config->window_min_bytes <= config->window_start_bytes &&
           config->window_start_bytes <= config->window_max_bytes && alb_dcqcn_config_is_valid(&config->dcqcn);
}
