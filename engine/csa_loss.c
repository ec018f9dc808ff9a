// SPDX-License-Identifier: BSD-2-Clause
// Loss policies of csa by name, and their parameters.
#include "engine/csa_loss.h"

#include "base/text.h"

#include <string.h>

#define VALUE_MAX 32

static const struct alb_csa_loss_ops *const policies[] = {
    &alb_csa_loss_csa, &alb_csa_loss_gbn, &alb_csa_loss_irn, &alb_csa_loss_fixed, &alb_csa_loss_sleek,
};

static const struct parameter {
    const char *policy, *name;
    const char *bounds; // as a program is told: those below, and a default that is another's bound
    size_t offset;      // in struct alb_csa_loss, of an uint64_t
    bool is_time;
    uint64_t min, max;
} parameters[] = {
    {"go-back-n", "timeout", "1us..10s", offsetof(struct alb_csa_loss, timeout_ns), true, 1000, 10 * ALB_NS_PER_S},
    {"irn", "low", "1us..high (100us)", offsetof(struct alb_csa_loss, low_ns), true, 1000, 10 * ALB_NS_PER_S},
    {"irn", "high", "low..10s (320us)", offsetof(struct alb_csa_loss, high_ns), true, 1000, 10 * ALB_NS_PER_S},
    {"irn", "few", "0..1048576", offsetof(struct alb_csa_loss, few), false, 0, 1 << 20},
    {"irn", "threshold", "1..1048576", offsetof(struct alb_csa_loss, threshold), false, 1, 1 << 20},
    {"fixed", "interval", "1us..10s", offsetof(struct alb_csa_loss, interval_ns), true, 1000, 10 * ALB_NS_PER_S},
    {"sleek", "threshold", "1..1048576", offsetof(struct alb_csa_loss, threshold), false, 1, 1 << 20},
};

static bool is_one_of(char c, const char *characters)
{
    for (; *characters; characters++)
        if (*characters == c)
            return true;
    return false;
}

// The part of text up to one of the delimiters or the end; *text moves behind it. False if it is too long.
static bool take_word(const char **text, const char *delimiters, char word[VALUE_MAX])
{
    size_t length = 0;
    while ((*text)[length] && !is_one_of((*text)[length], delimiters))
        length++;
    if (length >= VALUE_MAX)
        return false;
    memcpy(word, *text, length);
    word[length] = 0;
    *text += length;
    return true;
}

static bool parse_value(const struct parameter *parameter, const char *text, struct alb_csa_loss *loss)
{
    uint64_t *value = (uint64_t *)((char *)loss + parameter->offset);
    if (!parameter->is_time)
        return alb_text_parse_u64(text, parameter->min, parameter->max, value, NULL, 0);
    return alb_text_parse_duration(text, value, NULL, 0) && *value >= parameter->min && *value <= parameter->max;
}

// given: a bit for each of parameters[] that has been; false for a second time.
static bool set_parameter(const char *name, const char *value, struct alb_csa_loss *loss, uint32_t *given)
{
    for (size_t i = 0; i < ALB_COUNT(parameters); i++) {
        if (strcmp(parameters[i].policy, loss->ops->name) != 0 || strcmp(parameters[i].name, name) != 0)
            continue;
        bool is_new = !(*given & 1u << i);
        *given |= 1u << i;
        return is_new && parse_value(&parameters[i], value, loss);
    }
    return false;
}

static bool parse_parameters(const char *text, struct alb_csa_loss *loss)
{
    char name[VALUE_MAX], value[VALUE_MAX];
    uint32_t given = 0;
    while (*text) {
        text++; // the colon, or a comma
        if (!take_word(&text, "=,", name) || *text++ != '=' || !take_word(&text, ",", value) ||
            !set_parameter(name, value, loss, &given))
            return false;
    }
    return loss->low_ns <= loss->high_ns; // both are 0 but for irn
}

const char *alb_csa_loss_parameter(const char *policy, uint32_t index, const char **bounds)
{
    for (size_t i = 0; i < ALB_COUNT(parameters); i++) {
        if (strcmp(parameters[i].policy, policy) != 0 || index-- > 0)
            continue;
        *bounds = parameters[i].bounds;
        return parameters[i].name;
    }
    return NULL;
}

bool alb_csa_loss_parse(const char *text, struct alb_csa_loss *loss)
{
    char name[VALUE_MAX];
    if (!text || !take_word(&text, ":", name))
        return false;
    for (size_t i = 0; i < ALB_COUNT(policies); i++) {
        if (strcmp(policies[i]->name, name) != 0)
            continue;
        *loss = (struct alb_csa_loss){.ops = policies[i]};
        if (loss->ops->init)
            loss->ops->init(loss);
        return parse_parameters(text, loss);
    }
    return false;
}
