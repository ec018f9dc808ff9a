// SPDX-License-Identifier: BSD-2-Clause
#include "sim/scenario.h"

#include "base/text.h"
#include "sim/cluster.h"
#include "sim/scenario_keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILE_BYTES_MAX = 1 << 30,
};

// ---- sections -------------------------------------------------------------------------------------------------------

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

// Expectations, --set and files of figures have names with these between them.
static bool check_name(const struct alb_document_entry *entry, struct alb_complaint *complaint)
{
    return !strpbrk(entry->name, "/:.,") ||
           alb_complain(complaint, entry->file, entry->line,
                        "[%s %s]: expected a name of letters, digits, \"-\" and \"_\"", entry->section, entry->name);
}

// A variant changes what runs: what must come out of it stands in [expect].
static bool check_varied_key(const struct alb_document_entry *entry, struct alb_complaint *complaint)
{
    static const char expect[] = "expect.", variant[] = "variant.";
    if (strncmp(entry->key, expect, strlen(expect)) == 0)
        return alb_complain(complaint, entry->file, entry->line, "%s: expected %s:%s, in [expect]", entry->key,
                            entry->name, entry->key + strlen(expect));
    return strncmp(entry->key, variant, strlen(variant)) != 0 ||
           alb_complain(complaint, entry->file, entry->line, "%s: expected no variant within a variant", entry->key);
}

static bool check_section(const struct alb_document_entry *entry, struct alb_complaint *complaint)
{
    uint32_t i = 0;
    while (i < ALB_SECTIONS && !is(entry->section, alb_scenario_sections[i].name))
        i++;
    if (i == ALB_SECTIONS)
        return alb_complain(complaint, entry->file, entry->line,
                            "there is no section [%s]; expected scenario, network, switch, host, workload, fault, "
                            "expect or variant",
                            entry->section);
    bool may_be_named = i == ALB_SECTION_HOST || i == ALB_SECTION_WORKLOAD || i == ALB_SECTION_FAULT;
    if (entry->name[0] && !may_be_named && i != ALB_SECTION_VARIANT)
        return alb_complain(complaint, entry->file, entry->line, "[%s %s] has a name; expected [%s]", entry->section,
                            entry->name, entry->section);
    if (!entry->name[0] && i == ALB_SECTION_VARIANT)
        return alb_complain(complaint, entry->file, entry->line, "expected [variant NAME]");
    if (i == ALB_SECTION_VARIANT && !check_varied_key(entry, complaint))
        return false;
    return i == ALB_SECTION_HOST || check_name(entry, complaint);
}

bool alb_scenario_check_sections(const struct alb_document *document, struct alb_complaint *complaint)
{
    for (uint32_t i = 0; i < document->count; i++)
        if (!check_section(&document->entries[i], complaint))
            return false;
    return true;
}

static bool read_section(const struct alb_scenario *scenario, uint32_t section, const char *name, void *object,
                         void *more, struct alb_complaint *complaint)
{
    const struct alb_scenario_section *keys = &alb_scenario_sections[section];
    const struct alb_field_table tables[] = {{keys->fields, keys->count, object}, {keys->more, keys->more_count, more}};
    return alb_fields_read(&scenario->document, keys->name, name, tables, more ? 2 : 1, complaint);
}

const struct alb_document_entry *alb_scenario_place(const struct alb_scenario *scenario, const char *section,
                                                    const char *name, const char *key)
{
    const struct alb_document_entry *entry = alb_document_find(&scenario->document, section, name, key);
    if (!entry)
        entry = alb_document_find(&scenario->document, section, name, "");
    return entry ? entry : &scenario->nowhere;
}

static bool check_network(const struct alb_scenario *scenario, struct alb_complaint *complaint)
{
    const struct alb_document_entry *file = alb_document_find(&scenario->document, "network", "", "file");
    return !file || scenario->network.shape == ALB_TOPOLOGY_FILE ||
           alb_complain(complaint, file->file, file->line, "file: expected topology = file for it");
}

// ---- hosts ----------------------------------------------------------------------------------------------------------

// What alb_cluster_config_default gives for that transport, in the scenario's form.
static void set_host_defaults(struct alb_scenario *scenario)
{
    struct alb_cluster_config config;
    int failed = alb_cluster_config_default(&config, scenario->host.transport ? "csa" : "rc");
    alb_assert(!failed);
    scenario->engine = config.engine;
    scenario->engine.dcqcn.rate_max_bytes_per_s = 0; // not known before the topology is (sim/run.c)
    scenario->host.latency = config.host_latency;
    scenario->host.ahead_bytes = config.ahead_bytes;
    scenario->host.batch = config.batch;
    scenario->host.mtu_bytes = config.mtu_bytes;
    scenario->host.payload_bytes = config.payload_max_bytes;
    scenario->host.memory_bytes = config.memory_bytes ? config.memory_bytes : 1 << 20;
}

// The default window fits between bounds that the scenario gives.
static void fit_window(struct alb_engine_config *engine)
{
    engine->window_start_bytes = ALB_MIN(engine->window_start_bytes, engine->window_max_bytes);
    engine->window_start_bytes = ALB_MAX(engine->window_start_bytes, engine->window_min_bytes);
}

static bool gives_window_start(const struct alb_scenario *scenario, const char *name)
{
    return alb_document_find(&scenario->document, "host", name, "window_start") != NULL;
}

static bool read_hosts(struct alb_scenario *scenario, struct alb_complaint *complaint)
{
    const struct alb_scenario_section *keys = &alb_scenario_sections[ALB_SECTION_HOST];
    const struct alb_document_entry *transport = alb_document_find(&scenario->document, "host", "", "transport");
    scenario->host.transport = 1;
    if (transport)
        for (uint32_t i = 0; i < keys->more_count; i++)
            if (is(keys->more[i].key, "transport") &&
                !alb_field_parse(&keys->more[i], transport, &scenario->host, complaint))
                return false;
    set_host_defaults(scenario);
    if (!read_section(scenario, ALB_SECTION_HOST, "", &scenario->engine, &scenario->host, complaint) ||
        !alb_scenario_host_agrees(scenario, complaint) ||
        !alb_scenario_policies_agree(scenario, "", &scenario->engine, complaint))
        return false;
    if (!gives_window_start(scenario, ""))
        fit_window(&scenario->engine);
    if (!alb_scenario_engine_agrees(scenario, "", &scenario->engine, complaint))
        return false;
    for (uint32_t i = 0; i < scenario->document.count; i++) { // the others are read when their number is known
        const struct alb_document_entry *entry = &scenario->document.entries[i];
        struct alb_engine_config engine = scenario->engine;
        uint32_t *hosts;
        if (!is(entry->section, "host") || !entry->name[0] || entry->key[0])
            continue;
        if (alb_scenario_hosts(entry->name, ALB_SCENARIO_HOSTS_MAX, entry, &hosts, complaint) == 0)
            return false;
        free(hosts);
        if (!read_section(scenario, ALB_SECTION_HOST, entry->name, &engine, NULL, complaint) ||
            !alb_scenario_policies_agree(scenario, entry->name, &engine, complaint))
            return false;
        if (!gives_window_start(scenario, entry->name))
            fit_window(&engine);
        if (!alb_scenario_engine_agrees(scenario, entry->name, &engine, complaint))
            return false;
    }
    return true;
}

// One part of a list: N, A..B or A..B/STEP. Returns what follows it, or NULL.
static const char *parse_span(const char *at, uint64_t *first, uint64_t *last, uint64_t *step)
{
    char *end;
    *step = 1;
    if (*at < '0' || *at > '9')
        return NULL;
    *first = *last = strtoull(at, &end, 10);
    if (strncmp(end, "..", 2) == 0) {
        if (end[2] < '0' || end[2] > '9')
            return NULL;
        *last = strtoull(end + 2, &end, 10);
        if (*end == '/') {
            if (end[1] < '1' || end[1] > '9')
                return NULL;
            *step = strtoull(end + 1, &end, 10);
        }
    }
    return end;
}

// Asked of every host, so that no list is made for that.
bool alb_scenario_lists(const char *list, uint32_t host)
{
    uint64_t first, last, step;
    if (is(list, "all"))
        return true;
    for (const char *at = list; at;) {
        at = parse_span(at, &first, &last, &step);
        if (at && first <= host && host <= last && (host - first) % step == 0)
            return true;
        at = at && *at ? at + 1 : NULL;
    }
    return false;
}

void alb_scenario_change_host(const struct alb_scenario *scenario, uint32_t host, struct alb_engine_config *engine)
{
    struct alb_complaint complaint = {0};
    bool has_start = false;
    for (uint32_t i = 0; i < scenario->document.count; i++) {
        const struct alb_document_entry *entry = &scenario->document.entries[i];
        if (is(entry->section, "host") && entry->name[0] && !entry->key[0] && alb_scenario_lists(entry->name, host)) {
            read_section(scenario, ALB_SECTION_HOST, entry->name, engine, NULL, &complaint);
            has_start |= gives_window_start(scenario, entry->name);
        }
    }
    if (!has_start)
        fit_window(engine);
}

// ---- workloads and faults -------------------------------------------------------------------------------------------

static bool check_workload(const struct alb_scenario_workload *workload, bool is_csa, struct alb_complaint *complaint)
{
    const struct alb_document_entry *where = workload->where;
    bool is_poisson = workload->kind == ALB_WORKLOAD_POISSON, is_goal = workload->kind == ALB_WORKLOAD_GOAL;
    if (is_goal && !workload->file)
        return alb_complain(complaint, where->file, where->line, "a goal workload has no trace; expected file = NAME");
    if (is_poisson && (workload->load_per_billion == 0 || (workload->flows == 0 && workload->end == 0)))
        return alb_complain(complaint, where->file, where->line,
                            "expected load, and flows or end, for a poisson workload");
    if (!is_goal && workload->bytes == 0 && !workload->sizes)
        return alb_complain(complaint, where->file, where->line, "expected size, above 0, or sizes for the workload");
    if (workload->sizes && workload->bytes)
        return alb_complain(complaint, where->file, where->line, "expected size or sizes for the workload, not both");
    if (workload->sizes && workload->kind >= ALB_WORKLOAD_GOAL)
        return alb_complain(complaint, where->file, where->line, "expected size instead of sizes for a collective");
    if ((workload->kind == ALB_WORKLOAD_PAIRS || workload->kind == ALB_WORKLOAD_INCAST) && !workload->to)
        return alb_complain(complaint, where->file, where->line, "expected to = HOSTS, who receives");
    if (workload->is_unreliable && (workload->op == ALB_WORK_READ || workload->kind >= ALB_WORKLOAD_GOAL))
        return alb_complain(complaint, where->file, where->line,
                            "expected writes or sends of plain flows for unreliable = yes");
    if (workload->partial && (!workload->is_unreliable || workload->op != ALB_WORK_WRITE || !is_csa))
        return alb_complain(complaint, where->file, where->line,
                            "expected transport = csa, unreliable = yes and op = write for partial");
    if (workload->kind >= ALB_WORKLOAD_GOAL && workload->op == ALB_WORK_READ)
        return alb_complain(complaint, where->file, where->line, "expected op = write or send for what is received");
    return true;
}

// Results and expectations call a workload by its name, one without a name "flows", and all together "all".
static bool has_own_name(const struct alb_scenario *scenario, const struct alb_document_entry *where,
                         struct alb_complaint *complaint)
{
    if (strcmp(where->name, "all") == 0)
        return alb_complain(complaint, where->file, where->line, "expected another name: all of them are called all");
    for (uint32_t i = 0; i < scenario->workload_count; i++) {
        if (where->name[0] == 0 && strcmp(scenario->workloads[i].name, "flows") == 0)
            return alb_complain(complaint, where->file, where->line,
                                "expected a name: there is a [workload flows], as one without a name is called");
        if (strcmp(where->name, "flows") == 0 && scenario->workloads[i].where->name[0] == 0)
            return alb_complain(complaint, where->file, where->line,
                                "expected another name: [workload] is called flows");
    }
    return true;
}

static bool add_workload(struct alb_scenario *scenario, const struct alb_document_entry *where,
                         struct alb_complaint *complaint)
{
    if (scenario->workload_count == ALB_SCENARIO_WORKLOADS_MAX)
        return alb_complain(complaint, where->file, where->line, "expected %d workloads at most",
                            ALB_SCENARIO_WORKLOADS_MAX);
    if (!has_own_name(scenario, where, complaint))
        return false;
    struct alb_scenario_workload *workload = &scenario->workloads[scenario->workload_count++];
    *workload = (struct alb_scenario_workload){.name = where->name[0] ? where->name : "flows",
                                               .where = where,
                                               .hosts = "all",
                                               .messages = 1,
                                               .depth = 1,
                                               .queue_pairs = 1,
                                               .rounds = 1,
                                               .pieces = 8,
                                               .timeout = 14,
                                               .retries = 7};
    if (!alb_document_find(&scenario->document, "workload", where->name, "kind"))
        return alb_complain(complaint, where->file, where->line, "expected kind = ... for the workload");
    return read_section(scenario, ALB_SECTION_WORKLOAD, where->name, workload, NULL, complaint) &&
           check_workload(workload, scenario->host.transport == 1, complaint);
}

static bool add_fault(struct alb_scenario *scenario, const struct alb_document_entry *where,
                      struct alb_complaint *complaint)
{
    if (scenario->fault_count == ALB_SCENARIO_FAULTS_MAX)
        return alb_complain(complaint, where->file, where->line, "expected %d faults at most", ALB_SCENARIO_FAULTS_MAX);
    struct alb_scenario_fault *fault = &scenario->faults[scenario->fault_count++];
    *fault = (struct alb_scenario_fault){.where = where, .kind = UINT32_MAX};
    if (!read_section(scenario, ALB_SECTION_FAULT, where->name, fault, NULL, complaint))
        return false;
    if (!fault->cables || fault->kind == UINT32_MAX)
        return alb_complain(complaint, where->file, where->line, "expected cables and kind for the fault");
    return fault->until == 0 || fault->until > fault->at ||
           alb_complain(complaint, where->file, where->line, "expected until to be after at");
}

static bool read_parts(struct alb_scenario *scenario, struct alb_complaint *complaint)
{
    for (uint32_t i = 0; i < scenario->document.count; i++) {
        const struct alb_document_entry *entry = &scenario->document.entries[i];
        if (entry->key[0])
            continue;
        if (is(entry->section, "workload") && !add_workload(scenario, entry, complaint))
            return false;
        if (is(entry->section, "fault") && !add_fault(scenario, entry, complaint))
            return false;
    }
    return scenario->workload_count > 0 ||
           alb_complain(complaint, scenario->document.file, 0, "nothing is sent; expected a [workload]");
}

// ---- variants -------------------------------------------------------------------------------------------------------

const char *alb_scenario_variant(const struct alb_document *document, uint32_t index)
{
    for (uint32_t i = 0; i < document->count; i++) {
        const struct alb_document_entry *entry = &document->entries[i];
        if (is(entry->section, "variant") && entry->name[0] && !entry->key[0] && index-- == 0)
            return entry->name;
    }
    return NULL;
}

// "a, b", as far as there is room.
static void list_variants(const struct alb_document *document, char *text, size_t size)
{
    size_t length = 0;
    const char *name;
    text[0] = '\0';
    for (uint32_t i = 0; (name = alb_scenario_variant(document, i)) != NULL && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? ", " : "", name);
}

static bool check_variant(const struct alb_document *document, const char *variant, const char *said_by,
                          struct alb_complaint *complaint)
{
    char names[ALB_COMPLAINT_MAX / 2];
    if (alb_document_find(document, "variant", variant, ""))
        return true;
    list_variants(document, names, sizeof(names));
    return alb_complain(complaint, said_by, 0, "there is no [variant %s] in %s; there are %s", variant, document->file,
                        names[0] ? names : "none");
}

// Those that a setting names.
static bool check_variants(const struct alb_document *document, struct alb_complaint *complaint)
{
    for (uint32_t i = 0; i < document->count; i++) {
        const struct alb_document_entry *entry = &document->entries[i];
        if (is(entry->section, "variant") && entry->name[0] && entry->line == 0 &&
            !check_variant(document, entry->name, entry->file, complaint))
            return false;
    }
    return true;
}

static bool vary(struct alb_document *document, const struct alb_document *from, const char *variant,
                 struct alb_complaint *complaint)
{
    if (!check_variant(from, variant, "--variant", complaint))
        return false;
    for (uint32_t i = 0; i < from->count; i++) {
        const struct alb_document_entry *entry = &from->entries[i];
        if (is(entry->section, "variant") && is(entry->name, variant) && entry->key[0] &&
            !alb_document_put(document, entry->key, entry->value, entry->file, entry->line, complaint))
            return false;
    }
    return true;
}

// A section that --set or a variant begins has no line of its own.
static void add_missing_sections(struct alb_document *document)
{
    for (uint32_t i = 0; i < document->count; i++) {
        const struct alb_document_entry *entry = &document->entries[i];
        if (entry->key[0] && !alb_document_find(document, entry->section, entry->name, ""))
            alb_document_begin(document, i);
    }
}

// ---- the whole ------------------------------------------------------------------------------------------------------

bool alb_scenario_read(struct alb_scenario *scenario, const struct alb_document *document, const char *variant,
                       const char *directory, struct alb_complaint *complaint)
{
    *scenario = (struct alb_scenario){
        .directory = directory, .seed = 1, .end = ALB_SIM_NEVER, .nowhere = {.file = document->file}};
    alb_document_copy(&scenario->document, document);
    alb_topology_spec_default(&scenario->network);
    alb_switch_config_default(&scenario->switches);
    bool is_good =
        check_variants(document, complaint) && (!variant || vary(&scenario->document, document, variant, complaint));
    if (is_good)
        add_missing_sections(&scenario->document);
    is_good = is_good && alb_scenario_check_sections(&scenario->document, complaint) &&
              read_section(scenario, ALB_SECTION_SCENARIO, "", scenario, NULL, complaint) &&
              read_section(scenario, ALB_SECTION_NETWORK, "", &scenario->network, scenario, complaint) &&
              read_section(scenario, ALB_SECTION_SWITCH, "", &scenario->switches, NULL, complaint) &&
              check_network(scenario, complaint) && read_hosts(scenario, complaint) &&
              alb_scenario_switches_agree(scenario, complaint) && read_parts(scenario, complaint);
    if (!is_good)
        alb_document_fini(&scenario->document);
    return is_good;
}

void alb_scenario_fini(struct alb_scenario *scenario)
{
    alb_document_fini(&scenario->document);
}

// ---- lists and files ------------------------------------------------------------------------------------------------

static uint32_t add_hosts(const char *list, uint32_t host_count, uint32_t *hosts)
{
    uint64_t count = 0, first, last, step;
    for (const char *at = list; at;) {
        at = parse_span(at, &first, &last, &step);
        if (!at || (*at && *at != ',') || first > last || last >= host_count || (first < last && step > last - first))
            return 0;
        for (uint64_t host = first; host <= last; host += step, count++) {
            if (count == host_count)
                return 0;
            hosts[count] = (uint32_t)host;
        }
        at = *at ? at + 1 : NULL;
    }
    return (uint32_t)count;
}

uint32_t alb_scenario_hosts(const char *list, uint32_t host_count, const struct alb_document_entry *where,
                            uint32_t **hosts, struct alb_complaint *complaint)
{
    char everybody[40];
    *hosts = malloc((size_t)host_count * sizeof(**hosts));
    alb_assert(*hosts);
    snprintf(everybody, sizeof(everybody), "0..%" PRIu32, host_count - 1);
    uint32_t count = add_hosts(is(list, "all") ? everybody : list, host_count, *hosts);
    if (count == 0) {
        free(*hosts);
        alb_complain(complaint, where->file, where->line,
                     "\"%.60s\" is no list of hosts; expected all, or numbers and ranges such as 0..7 or 0..62/2 with "
                     "commas between, below %" PRIu32
                     ", no more of them than there are hosts, no step beyond its range",
                     list, host_count);
    }
    return count;
}

static const char *given_file(const struct alb_scenario *scenario, const char *name)
{
    for (uint32_t i = 0; i < scenario->data_count; i++)
        if (is(scenario->data[i].name, name))
            return scenario->data[i].text;
    return NULL;
}

const char *alb_scenario_path(const struct alb_scenario *scenario, const char *name, char path[ALB_SCENARIO_PATH_MAX])
{
    bool is_beside = name[0] != '/' && !given_file(scenario, name);
    snprintf(path, ALB_SCENARIO_PATH_MAX, "%s%s%s", is_beside ? scenario->directory : "", is_beside ? "/" : "", name);
    return path;
}

char *alb_scenario_file(const struct alb_scenario *scenario, const char *name, const struct alb_document_entry *where,
                        size_t *length, struct alb_complaint *complaint)
{
    char path[ALB_SCENARIO_PATH_MAX];
    const char *given = given_file(scenario, name);
    if (given) {
        *length = strlen(given);
        return strdup(given);
    }
    alb_scenario_path(scenario, name, path);
    FILE *file = fopen(path, "r");
    long bytes = -1;
    if (file && fseek(file, 0, SEEK_END) == 0)
        bytes = ftell(file);
    char *text = bytes >= 0 && bytes <= FILE_BYTES_MAX ? malloc((size_t)bytes + 1) : NULL;
    if (!text) {
        alb_complain(complaint, where->file, where->line, "%s: %s; expected a file of up to 1 GiB", path,
                     file ? "not a plain file" : strerror(errno));
    } else {
        rewind(file);
        *length = fread(text, 1, (size_t)bytes, file);
        text[*length] = '\0';
        size_t mark = alb_text_mark(text, *length);
        memmove(text, text + mark, *length + 1 - mark);
        *length -= mark;
    }
    if (file)
        fclose(file);
    return text;
}

// object: what the section's fields are without it; NULL: the text says so.
static void print_fields(FILE *to, const struct alb_field *fields, uint32_t count, const void *object)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *const *choices = fields[i].choices;
        char value[ALB_FIELD_TEXT_MAX] = "";
        if (object)
            alb_field_format(&fields[i], object, value);
        fprintf(to, value[0] ? "  %-18s %s (%s)\n" : "  %-18s %s\n", fields[i].key, fields[i].text, value);
        for (uint32_t c = 0; choices && choices[c]; c++)
            fprintf(to, "%s%s%s", c ? ", " : "                       one of ", choices[c], choices[c + 1] ? "" : "\n");
    }
}

void alb_scenario_print_keys(FILE *to)
{
    static const char text[] = "[workload]\nkind = permutation\nsize = 1";
    static struct alb_scenario least; // whose other keys are as they are by default
    struct alb_document document;
    struct alb_complaint complaint;
    bool is_good = alb_document_parse(&document, "", text, strlen(text), &complaint) &&
                   alb_scenario_read(&least, &document, NULL, "", &complaint);
    alb_assert(is_good);
    const void *const objects[ALB_SECTIONS] = {
        [ALB_SECTION_NETWORK] = &least.network,
        [ALB_SECTION_SWITCH] = &least.switches,
        [ALB_SECTION_HOST] = &least.engine,
    };
    for (uint32_t i = 0; i < ALB_SECTIONS; i++) {
        const struct alb_scenario_section *section = &alb_scenario_sections[i];
        fprintf(to, "%s[%s]  %s\n", i ? "\n" : "", section->name, section->text);
        print_fields(to, section->more, section->more_count, i == ALB_SECTION_HOST ? (void *)&least.host : &least);
        print_fields(to, section->fields, section->count, objects[i]);
    }
    alb_scenario_fini(&least);
    alb_document_fini(&document);
}
