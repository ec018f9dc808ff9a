// SPDX-License-Identifier: BSD-2-Clause
// `albedo cp`: one file to a server, or from it. A connection that is lost is made again, and the copy goes on where it
// was.
#include "tools/files.h"
#include "tools/files_part.h"
#include "tools/files_send.h"
#include "tools/files_talk.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define AGAIN_US 250000

// To librdmacm.so.1 (plugins/rdmacm/why.c): what hinders a connection is said here, with what is done about it.
__attribute__((visibility("default"))) extern const bool albedo_says_why;
const bool albedo_says_why = true;

struct remote {
    const char *host, *path;
    size_t host_length;
};

struct copy {
    const struct files_cp_options *options;
    struct sockaddr_storage addresses[FILES_ADDRESSES_MAX];
    uint32_t address_count;
    char path[FILES_TEXT_MAX]; // at the other host
    const char *kept_name;     // of the destination: what the user has not said, or ""
    struct progress progress;
    struct alb_digest digest;
    uint64_t size;
    uint8_t ack_timeout; // longer with each connection by which nothing came of it: the way may be a long one
    bool was_connected;
    bool has_begun; // the receiver has some of it
    char why[FILES_WHY_MAX];
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// HOST:PATH, where an IPv6 address stands in brackets. False: a path of this host.
static bool split(const char *text, struct remote *remote)
{
    const char *end = text[0] == '[' ? strchr(text, ']') : strchr(text, ':');
    const char *colon = end && *end == ']' ? end + 1 : end;
    remote->host = text[0] == '[' ? text + 1 : text;
    if (!colon || *colon != ':' || memchr(text, '/', (size_t)(colon - text)) || end == remote->host)
        return false;
    remote->host_length = (size_t)(end - remote->host);
    remote->path = colon + 1;
    return true;
}

// The host, and the path there. What goes into a folder keeps its name.
static bool take_remote(struct copy *copy, const struct remote *remote, bool is_put)
{
    char host[256];
    const char *destination = is_put ? remote->path : copy->options->to;
    bool is_folder = base_name(destination)[0] == '\0';
    copy->kept_name = !is_folder ? "" : base_name(is_put ? copy->options->from : remote->path);
    const char *added = is_put ? copy->kept_name : "";
    if (remote->host_length >= sizeof(host) || strlen(remote->path) + strlen(added) >= sizeof(copy->path)) {
        snprintf(copy->why, sizeof(copy->why), "%.64s...: %s", remote->host, strerror(ENAMETOOLONG));
        return false;
    }
    snprintf(host, sizeof(host), "%.*s", (int)remote->host_length, remote->host);
    snprintf(copy->path, sizeof(copy->path), "%s%s", remote->path, added);
    copy->address_count = files_link_find(host, copy->options->port, copy->addresses, copy->why);
    return copy->address_count > 0;
}

static enum files_result fail(struct copy *copy, const char *path, int error)
{
    snprintf(copy->why, sizeof(copy->why), "%.300s: %s", path, strerror(error));
    return FILES_FAILED;
}

static enum files_result put(struct copy *copy, struct files_link *link, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return fail(copy, copy->options->from, errno);
    struct files_message offer = {
        .kind = FILES_PUT,
        .mode = status.st_mode & 0777,
        .size = copy->size = (uint64_t)status.st_size,
        .chunk_bytes = copy->options->chunk_bytes,
    };
    if (files_send_check_end(fd, copy->size, copy->why) != FILES_OK)
        return FILES_CHANGED;
    snprintf(offer.text, sizeof(offer.text), "%s", copy->path);
    progress_begin(&copy->progress, base_name(copy->options->from), copy->size);
    enum files_result result = FILES_LOST;
    snprintf(copy->why, sizeof(copy->why), "the connection was lost");
    if (files_link_say(link, &offer))
        result = files_send_file(link, fd, copy->size, offer.chunk_bytes, &copy->progress, &copy->digest, copy->why);
    progress_end(&copy->progress);
    return result;
}

static enum files_result get(struct copy *copy, struct files_link *link, int folder)
{
    struct files_message message = {.kind = FILES_GET, .chunk_bytes = copy->options->chunk_bytes};
    struct files_part part;
    copy->progress = (struct progress){0}; // of this attempt
    snprintf(message.text, sizeof(message.text), "%s", copy->path);
    snprintf(copy->why, sizeof(copy->why), "the connection was lost");
    if (!files_link_say(link, &message) || !files_link_hear(link, &message))
        return FILES_LOST;
    if (message.kind != FILES_HAVE) {
        return files_refused(link, &message, copy->why);
    }
    copy->size = message.size;
    const char *name = copy->kept_name[0] ? copy->kept_name : base_name(copy->options->to);
    if (!files_part_open(&part, link->pd, folder, name, &message, copy->options->makes_safe, copy->why)) {
        files_refuse(link, copy->why, false);
        part.sink.close(&part.sink);
        return FILES_FAILED;
    }
    progress_begin(&copy->progress, name, copy->size);
    enum files_result result = files_receive_file(link, &part.sink, &copy->progress, &copy->digest, copy->why);
    progress_end(&copy->progress);
    part.sink.close(&part.sink);
    return result;
}

static alb_time now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * ALB_NS_PER_S + (uint64_t)time.tv_nsec;
}

// By the first address with a listener: a server may have one of IPv4 only, and the name one of IPv6, too. LOST if one
// of them may be worth another try: also of those that no address of the device reaches at the moment, where one did
// before.
static enum files_result connect_to(struct copy *copy, struct files_link *link)
{
    enum files_result result = FILES_FAILED;
    for (uint32_t i = 0; i < copy->address_count; i++) {
        char why[FILES_WHY_MAX];
        enum files_result one = files_link_connect(link, &copy->addresses[i], copy->ack_timeout, why);
        if (one == FILES_OK) {
            copy->was_connected = true;
            return FILES_OK;
        }
        if (one == FILES_LOST || result != FILES_LOST)
            memcpy(copy->why, why, sizeof(copy->why));
        if (one == FILES_LOST || copy->was_connected)
            result = FILES_LOST;
    }
    return result;
}

// Again and again, until it is done, or nothing has come of it for too long.
static enum files_result copy_over(struct copy *copy, int fd, bool is_put)
{
    alb_time give_up_at = now() + copy->options->retry_seconds * ALB_NS_PER_S;
    enum files_result result = FILES_LOST;
    uint64_t most = 0; // sent, or found to be there already, which takes its time, too
    for (bool is_first = true; result == FILES_LOST && (is_first || now() < give_up_at); is_first = false) {
        struct files_link link;
        if (!is_first)
            usleep(AGAIN_US);
        result = connect_to(copy, &link);
        if (result != FILES_OK) {
            if (result == FILES_LOST && is_first && copy->options->retry_seconds > 0)
                fprintf(stderr, "albedo cp: %s; trying for %u second%s\n", copy->why, copy->options->retry_seconds,
                        copy->options->retry_seconds == 1 ? "" : "s");
            continue;
        }
        result = is_put ? put(copy, &link, fd) : get(copy, &link, fd);
        files_link_close(&link);
        copy->has_begun |= copy->progress.done > 0;
        if (copy->progress.done > copy->progress.skipped || copy->progress.done > most)
            give_up_at = now() + copy->options->retry_seconds * ALB_NS_PER_S; // it gets on
        else if (copy->ack_timeout < FILES_ACK_TIMEOUT_MAX)
            copy->ack_timeout++;
        most = ALB_MAX(most, copy->progress.done);
    }
    return result;
}

// The file to be sent, or the folder that gets it. A pipe that nobody writes to is not waited for: it is no file.
static int open_here(const struct files_cp_options *options, bool is_put)
{
    char folder[4096];
    if (is_put)
        return open(options->from, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (options->to[0] == '\0') { // more likely a variable that is not set than the folder that we are in
        errno = ENOENT;
        return -1;
    }
    const char *name = base_name(options->to);
    snprintf(folder, sizeof(folder), "%.*s", (int)(name - options->to), options->to);
    return open(folder[0] ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int report(struct copy *copy, enum files_result result)
{
    char text[FILES_DIGEST_TEXT];
    if (result == FILES_OK) {
        printf("%s  %s%s  %llu bytes\n", files_digest_format(&copy->digest, text), copy->options->to, copy->kept_name,
               (unsigned long long)copy->size);
        return 0;
    }
    fprintf(stderr, "albedo cp: %s to %s: %s%s\n", copy->options->from, copy->options->to, alb_text_disarm(copy->why),
            result == FILES_LOST && copy->has_begun ? "; copy it again, and it goes on from here" : "");
    return 1;
}

// A folder of this host is named as such: with "/" at its end, which need not be typed here, as with cp(1).
static void name_folder(struct files_cp_options *options, char *name, size_t size)
{
    struct stat status;
    if (base_name(options->to)[0] == '\0' || stat(options->to, &status) != 0 || !S_ISDIR(status.st_mode))
        return;
    if (snprintf(name, size, "%s/", options->to) < (int)size)
        options->to = name;
}

int files_cp(const struct files_cp_options *given)
{
    char folder[4096];
    struct files_cp_options settled = *given, *options = &settled;
    struct copy copy = {.options = options, .ack_timeout = FILES_ACK_TIMEOUT};
    struct stat status;
    struct remote from, to;
    bool is_get = split(options->from, &from), is_put = split(options->to, &to);
    if (is_get == is_put) {
        fputs(
            "albedo cp: one of the two is to be HOST:PATH (an IPv6 address stands in brackets), the other a file here "
            "(./a:b if it has a colon)\n",
            stderr);
        return 2;
    }
    if (is_put && options->makes_safe) {
        fputs("albedo cp: --sync is for a copy from a host; of one to a host `albedo serve --sync` there decides\n",
              stderr);
        return 2;
    }
    if (is_get)
        name_folder(options, folder, sizeof(folder));
    int fd = open_here(options, is_put);
    if (fd < 0 || (is_put && fstat(fd, &status) == 0 && !S_ISREG(status.st_mode))) {
        int error = errno;
        const char *path = is_put ? options->from : options->to;
        fprintf(stderr, "albedo cp: %s: %s\n", path[0] ? path : "\"\"", fd < 0 ? strerror(error) : "is not a file");
        return 1;
    }
    enum files_result result = FILES_FAILED;
    if (take_remote(&copy, is_put ? &to : &from, is_put))
        result = copy_over(&copy, fd, is_put);
    close(fd);
    return report(&copy, result);
}
