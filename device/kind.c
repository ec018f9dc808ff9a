// SPDX-License-Identifier: BSD-2-Clause
// The table of devices, and choosing among them.
#include "device/kind.h"

#include "engine/transaction.h"
#include "wire/mad.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct alb_device_kind kinds[ALB_DEVICE_NAMES] = {
    {.name = "roce0", .transport = "rc", .gsi_index = ALB_GSI_QPN},
    {.name = "albedo0",
     .transport = "csa",
     .gsi_index = ALB_GSI_ALBEDO_QPN,
     .icrc_ones = true,
     .finds_path_mtu = true,
     .peer_max = 1 << 17,
     .has_choice = true,
     .has_levels = true,
     .peers_have_slots = true},
};

const char *alb_device_name(uint32_t index)
{
    return index < ALB_DEVICE_NAMES ? kinds[index].name : NULL;
}

const struct alb_device_kind *alb_device_kind_find(const char *name)
{
    for (size_t i = 0; i < ALB_COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    return NULL;
}

int alb_device_configure(const char *name, const struct alb_device_options *options, struct alb_engine_config *config)
{
    const struct alb_device_kind *kind = alb_device_kind_find(name);
    if (!kind)
        return ENODEV;
    alb_engine_config_transport(config, kind->transport);
    config->gsi_index = kind->gsi_index;
    if (kind->peer_max)
        config->peer_max = kind->peer_max;
    if (!kind->has_choice)
        return 0;
    const char **const chosen[ALB_POLICIES] = {
        [ALB_POLICY_LOSS] = &config->loss,
        [ALB_POLICY_CONGESTION] = &config->congestion,
        [ALB_POLICY_PATH] = &config->path,
        [ALB_POLICY_CREDIT] = &config->credit,
    };
    for (unsigned i = 0; i < ALB_POLICIES; i++) {
        if (options->policies[i][0])
            *chosen[i] = options->policies[i];
    }
    if (options->path_max > 0)
        config->path_max = options->path_max;
    return 0;
}

static int add(struct alb_device_selection *selection, const char *name, char *error, size_t error_size)
{
    const struct alb_device_kind *kind = alb_device_kind_find(name);
    if (!kind) {
        snprintf(error, error_size, "\"%.64s\": no such device; there are roce0 and albedo0", name);
        return EINVAL;
    }
    for (uint32_t i = 0; i < selection->count; i++) {
        if (selection->index[i] == (uint32_t)(kind - kinds)) {
            snprintf(error, error_size, "%s is named twice", name);
            return EINVAL;
        }
    }
    selection->index[selection->count++] = (uint32_t)(kind - kinds);
    return 0;
}

int alb_device_select(const char *list, struct alb_device_selection *selection, char *error, size_t error_size)
{
    char text[256];
    *selection = (struct alb_device_selection){0};
    if (strlen(list) >= sizeof(text)) {
        snprintf(error, error_size, "longer than %zu bytes", sizeof(text) - 1);
        return EINVAL;
    }
    strcpy(text, list);
    char *rest = text, *name;
    int result = 0;
    while (!result && (name = strsep(&rest, ",")))
        result = add(selection, name, error, error_size);
    return result;
}

// Those that can do what is asked of completions.
static void select_all(struct alb_device_selection *selection, bool is_raised)
{
    *selection = (struct alb_device_selection){0};
    for (uint32_t i = 0; i < ALB_DEVICE_NAMES; i++) {
        if (!is_raised || kinds[i].has_levels)
            selection->index[selection->count++] = i;
    }
}

// A program that took the other device would be told less than it was started to be told, and nobody would know.
static int check_levels(const struct alb_device_selection *selection, char *error, size_t error_size)
{
    for (uint32_t i = 0; i < selection->count; i++) {
        const struct alb_device_kind *kind = &kinds[selection->index[i]];
        if (kind->has_levels)
            continue;
        snprintf(error, error_size,
                 "ALBEDO_COMPLETIONS: completions of %s cannot say more than \"delivered\"; choose albedo0 as the only "
                 "device, or name none",
                 kind->name);
        return EINVAL;
    }
    return 0;
}

int alb_device_selection_from_environment(struct alb_device_selection *selection, char *error, size_t error_size)
{
    const char *list = getenv("ALBEDO_DEVICES");
    char why[128];
    uint8_t level = ALB_LEVEL_DELIVERED;
    if (alb_device_level_from_environment(&level, error, error_size) != 0)
        return EINVAL;
    bool is_raised = level != ALB_LEVEL_DELIVERED;
    if (!list || !*list) {
        select_all(selection, is_raised);
        return 0;
    }
    int result = alb_device_select(list, selection, why, sizeof(why));
    if (result)
        snprintf(error, error_size, "ALBEDO_DEVICES: %s", why);
    else if (is_raised)
        result = check_levels(selection, error, error_size);
    return result;
}
