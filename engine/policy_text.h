// SPDX-License-Identifier: BSD-2-Clause
// Policies as users name them, with parameters behind a colon: "irn:low=50us,few=2".
#pragma once

#include "base/types.h"

enum alb_parameter_kind {
    ALB_PARAMETER_TIME,     // uint64_t, ns; with a unit
    ALB_PARAMETER_RATE,     // uint64_t, bytes per second; with a unit, of bits
    ALB_PARAMETER_COUNT,    // uint64_t
    ALB_PARAMETER_COUNT_32, // uint32_t
    ALB_PARAMETER_BYTES_32, // uint32_t
};

struct alb_parameter {
    const char *policy, *name;
    const char *bounds; // as users are told: min to max, those that are another one's value, and such defaults
    size_t offset;      // of the value in what is set
    enum alb_parameter_kind kind;
    uint64_t min, max; // as the value is kept
};

// A list of them.
struct alb_parameters {
    const struct alb_parameter *all;
    size_t count;
};

// True if text names that policy, with parameters or without.
bool alb_policy_text_is(const char *text, const char *policy);
// Sets what the text gives of that policy, which it names. False: no such parameter, one given twice, or a value that
// is none or out of bounds; some may be set then.
bool alb_policy_text_set(const char *text, const char *policy, const struct alb_parameters *parameters, void *to);
// The names of the policy's parameters, and in *bounds what they can be, such as "1us..10s"; NULL behind the last.
const char *alb_policy_text_parameter(const char *policy, const struct alb_parameters *parameters, uint32_t index,
                                      const char **bounds);
