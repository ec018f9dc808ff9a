// SPDX-License-Identifier: BSD-2-Clause
// The table of devices, and choosing among them.
#include "device/kind.h"

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

int alb_device_selection_from_environment(struct alb_device_selection *selection, char *error, size_t error_size)
{
    const char *list = getenv("ALBEDO_DEVICES");
    char why[128];
    if (!list || !*list) {
        selection->count = ALB_DEVICE_NAMES;
        for (uint32_t i = 0; i < ALB_DEVICE_NAMES; i++)
            selection->index[i] = i;
        return 0;
    }
    int result = alb_device_select(list, selection, why, sizeof(why));
    if (result)
        snprintf(error, error_size, "ALBEDO_DEVICES: %s", why);
    return result;
}
