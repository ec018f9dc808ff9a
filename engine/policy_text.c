// SPDX-License-Identifier: BSD-2-Clause
// Policies as users name them: a parser of their parameters.
#include "engine/policy_text.h"

#include "base/text.h"

#include <string.h>

#define WORD_MAX 32

bool alb_policy_text_is(const char *text, const char *policy)
{
    size_t length = strlen(policy);
    return strncmp(text, policy, length) == 0 && (text[length] == '\0' || text[length] == ':');
}

// The part of text up to one of the delimiters or the end; *text moves behind it. False if it is too long.
static bool take_word(const char **text, const char *delimiters, char word[WORD_MAX])
{
    size_t length = strcspn(*text, delimiters);
    if (length >= WORD_MAX)
        return false;
    memcpy(word, *text, length);
    word[length] = '\0';
    *text += length;
    return true;
}

static bool parse_value(const struct alb_parameter *parameter, const char *text, uint64_t *value)
{
    switch (parameter->kind) {
    case ALB_PARAMETER_TIME:
        return alb_text_parse_duration(text, value, NULL, 0);
    case ALB_PARAMETER_RATE:
        if (!alb_text_parse_rate(text, value, NULL, 0))
            return false;
        *value /= 8;
        return true;
    case ALB_PARAMETER_BYTES_32:
        return alb_text_parse_bytes(text, value, NULL, 0);
    default:
        return alb_text_parse_u64(text, 0, UINT64_MAX, value, NULL, 0);
    }
}

static void keep(const struct alb_parameter *parameter, uint64_t value, void *to)
{
    void *place = (char *)to + parameter->offset;
    if (parameter->kind == ALB_PARAMETER_COUNT_32 || parameter->kind == ALB_PARAMETER_BYTES_32)
        *(uint32_t *)place = (uint32_t)value;
    else
        *(uint64_t *)place = value;
}

// given: a bit for each parameter that has been; false for a second time.
static bool set(const char *policy, const char *name, const char *text, const struct alb_parameters *parameters,
                uint32_t *given, void *to)
{
    for (size_t i = 0; i < parameters->count; i++) {
        const struct alb_parameter *parameter = &parameters->all[i];
        uint64_t value;
        if (strcmp(parameter->policy, policy) != 0 || strcmp(parameter->name, name) != 0)
            continue;
        if (*given & 1u << i || !parse_value(parameter, text, &value) || value < parameter->min ||
            value > parameter->max)
            return false;
        *given |= 1u << i;
        keep(parameter, value, to);
        return true;
    }
    return false;
}

bool alb_policy_text_set(const char *text, const char *policy, const struct alb_parameters *parameters, void *to)
{
    char name[WORD_MAX], value[WORD_MAX];
    uint32_t given = 0;
    alb_assert(parameters->count <= 32);
    text += strlen(policy);
    while (*text) {
        text++; // the colon, or a comma
        if (!take_word(&text, "=,", name) || *text++ != '=' || !take_word(&text, ",", value) ||
            !set(policy, name, value, parameters, &given, to))
            return false;
    }
    return true;
}

const char *alb_policy_text_parameter(const char *policy, const struct alb_parameters *parameters, uint32_t index,
                                      const char **bounds)
{
    for (size_t i = 0; i < parameters->count; i++) {
        if (strcmp(parameters->all[i].policy, policy) != 0 || index-- > 0)
            continue;
        *bounds = parameters->all[i].bounds;
        return parameters->all[i].name;
    }
    return NULL;
}
