// SPDX-License-Identifier: BSD-2-Clause
// Topologies read from a file.
#include "base/map.h"
#include "base/text.h"
#include "sim/topology_impl.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORDS_MAX = 6,
    LINE_MAX_BYTES = 512,
    REPEAT_MAX = 4096,
};

struct reader {
    struct alb_topology *topology;
    struct alb_map nodes; // by name
    void *nodes_memory;
    const char *name;
    uint32_t line;
    char *error;
    char *words[WORDS_MAX + 1];
    uint32_t count;
};

static bool fail(struct reader *reader, const char *format, ...)
{
    va_list arguments;
    int length = snprintf(reader->error, ALB_TOPOLOGY_ERROR_MAX, "%s:%u: ", reader->name, reader->line);
    va_start(arguments, format);
    if (length > 0 && length < ALB_TOPOLOGY_ERROR_MAX)
        vsnprintf(reader->error + length, (size_t)(ALB_TOPOLOGY_ERROR_MAX - length), format, arguments);
    va_end(arguments);
    return false;
}

static void split(struct reader *reader, char *line)
{
    char *rest = NULL;
    line[strcspn(line, "#\r\n")] = 0;
    reader->count = 0;
    for (char *word = strtok_r(line, " \t", &rest); word && reader->count <= WORDS_MAX;
         word = strtok_r(NULL, " \t", &rest))
        reader->words[reader->count++] = word;
}

// ---- nodes by name --------------------------------------------------------------------------------------------------

struct name {
    char text[ALB_TOPOLOGY_NAME_MAX]; // and zeros behind it
};

static void index_begin(struct reader *reader)
{
    static const struct alb_siphash_key key; // whose file it is chooses names against himself at the most
    size_t bytes = alb_map_bytes(ALB_TOPOLOGY_NODES_MAX, sizeof(struct name));
    reader->nodes_memory = calloc(1, bytes);
    alb_assert(reader->nodes_memory);
    alb_map_init_zeroed(&reader->nodes, ALB_TOPOLOGY_NODES_MAX, sizeof(struct name), reader->nodes_memory, &key);
}

static void index_node(struct reader *reader, uint32_t node)
{
    struct name name = {""};
    strcpy(name.text, reader->topology->nodes[node].name);
    alb_map_insert(&reader->nodes, &name, node);
}

// UINT32_MAX: there is none.
static uint32_t find_node(const struct reader *reader, const char *text)
{
    struct name name = {""};
    uint64_t node;
    if (strlen(text) >= sizeof(name.text))
        return UINT32_MAX;
    strcpy(name.text, text);
    return alb_map_find(&reader->nodes, &name, &node) ? (uint32_t)node : UINT32_MAX;
}

// ---- lines ----------------------------------------------------------------------------------------------------------

static bool read_hosts(struct reader *reader)
{
    uint64_t count;
    char why[ALB_TEXT_ERROR_MAX];
    if (reader->count != 2 ||
        !alb_text_parse_u64(reader->words[1], 1, ALB_TOPOLOGY_NODES_MAX / 2, &count, why, sizeof(why)))
        return fail(reader, "expected: hosts N, with N from 1 to %u", ALB_TOPOLOGY_NODES_MAX / 2);
    if (reader->topology->node_count > 0)
        return fail(reader, "hosts are given once, before everything else");
    alb_topology_add_hosts(reader->topology, (uint32_t)count);
    for (uint32_t i = 0; i < count; i++)
        index_node(reader, i);
    return true;
}

static bool read_switch(struct reader *reader)
{
    const char *name = reader->words[1];
    if (reader->count != 2 || strlen(name) >= ALB_TOPOLOGY_NAME_MAX || strpbrk(name, "-*:"))
        return fail(reader,
                    "expected: switch NAME, of at most %u characters, without - * :", ALB_TOPOLOGY_NAME_MAX - 1);
    if (reader->topology->host_count == 0)
        return fail(reader, "expected first: hosts N");
    if (find_node(reader, name) != UINT32_MAX)
        return fail(reader, "there is a node \"%.40s\" already", name);
    if (reader->topology->node_count == ALB_TOPOLOGY_NODES_MAX)
        return fail(reader, "at most %u hosts and switches", ALB_TOPOLOGY_NODES_MAX);
    index_node(reader, alb_topology_add_node(reader->topology, "%s", name));
    return true;
}

static bool read_end(struct reader *reader, const char *name, uint32_t *node)
{
    *node = find_node(reader, name);
    return *node != UINT32_MAX || fail(reader, "no host or switch is called \"%.40s\"", name);
}

static bool read_repeat(struct reader *reader, uint64_t *repeat)
{
    char why[ALB_TEXT_ERROR_MAX];
    *repeat = 1;
    if (reader->count == 5)
        return true;
    const char *word = reader->words[5];
    if (word[0] != 'x' || !alb_text_parse_u64(word + 1, 1, REPEAT_MAX, repeat, why, sizeof(why)))
        return fail(reader, "expected xN behind the delay, with N from 1 to %u", REPEAT_MAX);
    return true;
}

static bool read_cable(struct reader *reader)
{
    struct alb_topology *topology = reader->topology;
    struct alb_topology_cable cable = {0};
    alb_time delay_ns;
    uint64_t repeat;
    char why[ALB_TEXT_ERROR_MAX];
    if (reader->count < 5 || reader->count > 6)
        return fail(reader, "expected: cable NODE NODE RATE DELAY [xN]");
    if (!read_end(reader, reader->words[1], &cable.a) || !read_end(reader, reader->words[2], &cable.b))
        return false;
    if (cable.a == cable.b)
        return fail(reader, "a cable joins two nodes");
    if (!alb_text_parse_rate(reader->words[3], &cable.bits_per_s, why, sizeof(why)))
        return fail(reader, "%s", why);
    if (cable.bits_per_s == 0)
        return fail(reader, "a cable has a rate above 0");
    if (!alb_text_parse_duration(reader->words[4], &delay_ns, why, sizeof(why)))
        return fail(reader, "%s", why);
    if (delay_ns > 3600ull * 1000000000)
        return fail(reader, "a delay of at most an hour");
    if (!read_repeat(reader, &repeat))
        return false;
    cable.delay = alb_sim_from_ns(delay_ns);
    if (topology->cable_count + repeat > ALB_TOPOLOGY_CABLES_MAX)
        return fail(reader, "at most %u cables", ALB_TOPOLOGY_CABLES_MAX);
    for (uint64_t i = 0; i < repeat; i++) {
        for (uint32_t end = 0; end < 2; end++)
            if (topology->nodes[end ? cable.b : cable.a].cable_count == ALB_TOPOLOGY_PORTS_MAX)
                return fail(reader, "a node has at most %u cables", ALB_TOPOLOGY_PORTS_MAX);
        alb_topology_add_cable(topology, &cable);
    }
    return true;
}

static bool read_line(struct reader *reader)
{
    if (reader->count == 0)
        return true;
    if (strcmp(reader->words[0], "hosts") == 0)
        return read_hosts(reader);
    if (strcmp(reader->words[0], "switch") == 0)
        return read_switch(reader);
    if (strcmp(reader->words[0], "cable") == 0)
        return read_cable(reader);
    return fail(reader, "expected hosts, switch or cable, not \"%.40s\"", reader->words[0]);
}

// How far every node is from the nearest host: cables point upward and have the tier of their lower end.
static void set_tiers(struct alb_topology *topology)
{
    uint32_t *level = malloc(topology->node_count * sizeof(*level));
    bool has_changed = true;
    alb_assert(level);
    for (uint32_t i = 0; i < topology->node_count; i++)
        level[i] = i < topology->host_count ? 0 : topology->node_count;
    while (has_changed) {
        has_changed = false;
        for (uint32_t i = 0; i < topology->cable_count; i++) {
            struct alb_topology_cable *cable = &topology->cables[i];
            if (level[cable->b] < level[cable->a])
                *cable = (struct alb_topology_cable){cable->b, cable->a, 0, cable->bits_per_s, cable->delay};
            if (level[cable->a] + 1 < level[cable->b]) {
                level[cable->b] = level[cable->a] + 1;
                has_changed = true;
            }
        }
    }
    topology->tier_count = 0;
    for (uint32_t i = 0; i < topology->cable_count; i++) {
        struct alb_topology_cable *cable = &topology->cables[i];
        cable->tier = ALB_MIN(level[cable->a], topology->node_count - 1);
        topology->tier_count = ALB_MAX(topology->tier_count, cable->tier + 1);
    }
    free(level);
}

// The first host of a node's part of the network so far, in parts that cables join.
static uint32_t part_of(uint32_t *joined, uint32_t node)
{
    while (joined[node] != node)
        node = joined[node] = joined[joined[node]];
    return node;
}

// A host that the first one cannot reach, or none (host_count).
static uint32_t find_apart(const struct alb_topology *topology)
{
    uint32_t *joined = malloc(topology->node_count * sizeof(*joined));
    uint32_t host = 0;
    alb_assert(joined);
    for (uint32_t i = 0; i < topology->node_count; i++)
        joined[i] = i;
    for (uint32_t i = 0; i < topology->cable_count; i++) {
        uint32_t a = part_of(joined, topology->cables[i].a), b = part_of(joined, topology->cables[i].b);
        joined[ALB_MAX(a, b)] = ALB_MIN(a, b);
    }
    while (host < topology->host_count && part_of(joined, host) == part_of(joined, 0))
        host++;
    free(joined);
    return host;
}

static bool check_ways(struct reader *reader)
{
    const struct alb_topology *topology = reader->topology;
    uint32_t apart = find_apart(topology);
    return apart == topology->host_count ||
           fail(reader, "no cables lead from host %s to host %s: every host reaches every other one",
                topology->nodes[0].name, topology->nodes[apart].name);
}

static bool has_unlike_ways(const struct alb_topology *topology)
{
    const struct alb_topology_cable *like = NULL;
    for (uint32_t i = 0; i < topology->cable_count; i++) {
        const struct alb_topology_cable *cable = &topology->cables[i];
        if (cable->tier == 0)
            continue;
        if (like && (cable->bits_per_s != like->bits_per_s || cable->delay != like->delay))
            return true;
        like = cable;
    }
    return false;
}

bool alb_topology_read(struct alb_topology *topology, FILE *file, const char *name, char error[ALB_TOPOLOGY_ERROR_MAX])
{
    struct reader reader = {.topology = topology, .name = name, .error = error};
    char line[LINE_MAX_BYTES];
    bool is_good = true;
    *topology = (struct alb_topology){0};
    index_begin(&reader);
    while (is_good && fgets(line, sizeof(line), file)) {
        reader.line++;
        if (!strchr(line, '\n') && !feof(file)) {
            is_good = fail(&reader, "a line of less than %u characters", LINE_MAX_BYTES - 1);
            break;
        }
        split(&reader, line);
        is_good = read_line(&reader);
    }
    free(reader.nodes_memory);
    if (is_good && topology->host_count == 0)
        is_good = fail(&reader, "expected: hosts N");
    for (uint32_t i = 0; is_good && i < topology->host_count; i++)
        if (topology->nodes[i].cable_count != 1)
            is_good = fail(&reader, "host %s has %u cables: every host has one, to a switch", topology->nodes[i].name,
                           topology->nodes[i].cable_count);
    for (uint32_t i = 0; is_good && i < topology->cable_count; i++)
        if (topology->cables[i].a < topology->host_count && topology->cables[i].b < topology->host_count)
            is_good = fail(&reader, "host %s has a cable to a host: every host has one, to a switch",
                           topology->nodes[topology->cables[i].a].name);
    is_good = is_good && check_ways(&reader);
    if (is_good)
        set_tiers(topology);
    topology->has_unlike_ways = is_good && has_unlike_ways(topology);
    if (!is_good)
        alb_topology_free(topology);
    return is_good;
}
