// SPDX-License-Identifier: BSD-2-Clause
// Nodes and cables by name.
#include "sim/topology.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

uint32_t alb_topology_find(const struct alb_topology *topology, const char *name)
{
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (strcmp(topology->nodes[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

// True if the text matches the first length characters of the pattern, in which * stands for any text.
static bool matches(const char *pattern, size_t length, const char *text)
{
    const char *end = pattern + length, *star = NULL, *resume = NULL;
    while (*text) {
        if (pattern < end && *pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (pattern < end && *pattern == *text) {
            pattern++;
            text++;
        } else if (star) { // the star takes one more
            pattern = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

struct selection {
    uint32_t tier, tier_left; // tier_left: how many more of that tier
    bool is_numbered;         // the pattern says how many
    const char *names;        // NULL: by tier
    size_t first_length;      // of the first name's pattern
};

static bool parse_number(const char **text, uint32_t *number)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    unsigned long value = strtoul(*text, &end, 10);
    *number = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
    *text = end;
    return true;
}

static bool parse(const char *pattern, struct selection *selection)
{
    *selection = (struct selection){.tier_left = UINT32_MAX};
    if (strncmp(pattern, "tier:", 5) == 0) {
        pattern += 5;
        if (!parse_number(&pattern, &selection->tier))
            return false;
        selection->is_numbered = *pattern == ':';
        if (selection->is_numbered && (pattern++, !parse_number(&pattern, &selection->tier_left)))
            return false;
        return *pattern == 0;
    }
    const char *dash = strchr(pattern, '-');
    if (!dash)
        return false;
    selection->names = pattern;
    selection->first_length = (size_t)(dash - pattern);
    return true;
}

static bool selects(struct selection *selection, const struct alb_topology *topology,
                    const struct alb_topology_cable *cable)
{
    if (!selection->names) {
        if (cable->tier != selection->tier || selection->tier_left == 0)
            return false;
        selection->tier_left--;
        return true;
    }
    const char *second = selection->names + selection->first_length + 1;
    const char *a = topology->nodes[cable->a].name, *b = topology->nodes[cable->b].name;
    size_t second_length = strlen(second);
    return (matches(selection->names, selection->first_length, a) && matches(second, second_length, b)) ||
           (matches(selection->names, selection->first_length, b) && matches(second, second_length, a));
}

uint32_t alb_topology_select(const struct alb_topology *topology, const char *pattern, uint32_t *cables,
                             uint32_t cables_max)
{
    struct selection selection;
    uint32_t count = 0;
    if (!parse(pattern, &selection))
        return 0;
    for (uint32_t i = 0; i < topology->cable_count; i++) {
        if (!selects(&selection, topology, &topology->cables[i]))
            continue;
        if (count < cables_max)
            cables[count] = i;
        count++;
    }
    return count;
}

bool alb_topology_first_of_tier(const char *pattern, uint32_t *tier, uint32_t *number)
{
    struct selection selection;
    if (!parse(pattern, &selection) || !selection.is_numbered)
        return false;
    *tier = selection.tier;
    *number = selection.tier_left;
    return true;
}
