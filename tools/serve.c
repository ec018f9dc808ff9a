// SPDX-License-Identifier: BSD-2-Clause
// `albedo serve`: takes and gives files of a folder, a thread for each connection.
#include "tools/command.h"
#include "tools/files.h"
#include "tools/files_claim.h"
#include "tools/files_memory.h"
#include "tools/files_part.h"
#include "tools/files_path.h"
#include "tools/files_send.h"
#include "tools/files_talk.h"

#include "base/list.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Connections whose peers have not answered yet, which anybody can ask for in anybody's name: so many, for so long.
// With one more the oldest gives way.
#define WAITING_MAX 64u
#define WAITING_NS  (10 * ALB_NS_PER_S)

struct server {
    int root;
    bool makes_safe;
    struct files_memory memories[FILES_MEMORIES_MAX];
    uint32_t memory_count;
    uint32_t session_limit;
    struct files_claims claims;
    pthread_mutex_t mutex; // guards what follows
    struct alb_list sessions;
    uint32_t session_count; // that have begun
    uint32_t waiting_count; // and that have not
};

struct session {
    struct alb_list link;
    struct server *server;
    struct rdma_cm_id *id;
    struct files_link link_to;
    bool has_begun;
    _Atomic bool gives_way;
    struct files_claim claim; // while it copies
};

// The record of what was copied. That it cannot be written is no reason to end copies.
static void record(const char *verb, const char *line, const struct alb_digest *digest)
{
    static bool was_said;
    char text[FILES_DIGEST_TEXT];
    flockfile(stdout); // guards was_said, too
    bool is_written = printf("%s  %s  %s\n", files_digest_format(digest, text), verb, line) >= 0;
    if ((!is_written || fflush(stdout) != 0) && !was_said) {
        fprintf(stderr, "albedo serve: cannot write to stdout: %s; copies go on\n", strerror(errno));
        was_said = true;
    }
    funlockfile(stdout);
}

static void report(const char *verb, const char *path, const struct alb_digest *digest, const char *why)
{
    char line[FILES_TEXT_MAX + FILES_WHY_MAX + 2];
    snprintf(line, sizeof(line), "%s%s%s", path[0] ? path : "\"\"", why ? ": " : "", why ? why : "");
    alb_text_disarm(line);
    if (why)
        fprintf(stderr, "albedo serve: %s\n", line);
    else
        record(verb, line, digest);
}

// The client is told before it finds that the memory which it sends to is gone: it would not know why, or try again and
// end the other copy in its turn.
static void give_way(struct session *session, char why[FILES_WHY_MAX])
{
    struct files_link *link = &session->link_to;
    if (link->is_lost || !atomic_load(&link->is_cancelled))
        return;
    snprintf(why, FILES_WHY_MAX, "another copy to this name has begun, and this one ends");
    files_link_part(link);
    files_refuse(link, why, false);
}

// False: it is not the session's to copy to, or not any more. Whoever ends others' copies is there to make its own: a
// client that is gone may have asked long ago.
static bool take_name(struct session *session, const char *name, char why[FILES_WHY_MAX])
{
    const struct files_message ping = {.kind = FILES_PING};
    struct files_claims *claims = &session->server->claims;
    struct files_link *link = &session->link_to;
    snprintf(why, FILES_WHY_MAX, "the connection was lost");
    if (files_claims_has(claims, name) && !(files_link_say(link, &ping) && files_link_reach(link)))
        return false;
    if (files_claim_take(claims, &session->claim, name, &link->is_cancelled))
        return true;
    give_way(session, why);
    return false;
}

// Along with others who read. False: what stands there is no one's copy.
static bool take_to_read(struct session *session, const struct files_memory *memory)
{
    struct files_claims *claims = &session->server->claims;
    if (!files_claim_share(claims, &session->claim, memory->name, &session->link_to.is_cancelled))
        return false;
    bool is_whole = atomic_load(&memory->mixed_bytes) == 0; // and stays so, since nobody copies to it now
    if (!is_whole)
        files_claim_drop(claims, &session->claim);
    return is_whole;
}

static void drop_name(struct session *session)
{
    files_claim_drop(&session->server->claims, &session->claim);
}

static void refuse(struct session *session, const struct files_message *asked, const char *why)
{
    files_refuse(&session->link_to, why, false);
    report(NULL, asked->text, NULL, why);
}

static void refuse_by(struct session *session, const struct files_message *asked, int error)
{
    files_refuse(&session->link_to, files_path_trouble(error), files_may_pass(error));
    report(NULL, asked->text, NULL, files_path_trouble(error));
}

static void take_file(struct session *session, const struct files_message *offer)
{
    struct files_part part;
    struct alb_digest digest;
    char name[NAME_MAX + 1], why[FILES_WHY_MAX];
    if (!files_part_check_name(offer->text, why)) {
        refuse(session, offer, why);
        return;
    }
    int folder = files_path_open_folder(session->server->root, offer->text, true, name);
    if (folder < 0) {
        refuse_by(session, offer, errno);
        return;
    }
    if (!take_name(session, offer->text, why)) {
        close(folder);
        report(NULL, offer->text, NULL, why);
        return;
    }
    bool is_good = files_part_open(&part, session->link_to.pd, folder, name, offer, session->server->makes_safe, why);
    if (!is_good)
        files_refuse(&session->link_to, why, part.may_pass);
    is_good = is_good && files_receive_file(&session->link_to, &part.sink, NULL, &digest, why) == FILES_OK;
    if (!is_good)
        give_way(session, why);
    part.sink.close(&part.sink);
    close(folder);
    drop_name(session);
    report("got", offer->text, &digest, is_good ? NULL : why);
}

static struct files_memory *find_memory(struct server *server, const char *name)
{
    for (uint32_t i = 0; i < server->memory_count; i++)
        if (strcmp(server->memories[i].name, name) == 0)
            return &server->memories[i];
    return NULL;
}

static void take_memory(struct session *session, struct files_memory *memory, const struct files_message *offer)
{
    struct files_memory_sink sink;
    struct alb_digest digest;
    char why[FILES_WHY_MAX];
    if (!files_memory_has_room(memory, offer->size, why)) { // before those who copy from there have to give way
        refuse(session, offer, why);
        return;
    }
    if (!take_name(session, memory->name, why)) {
        report(NULL, offer->text, NULL, why);
        return;
    }
    uint64_t mixed_before = atomic_load(&memory->mixed_bytes);
    files_memory_note_begun(memory, offer->size);
    bool is_good = files_memory_open(&sink, memory, session->link_to.pd, offer, why);
    if (!is_good) {
        atomic_store(&memory->mixed_bytes, mixed_before); // nothing was written
        files_refuse(&session->link_to, why, false);
    }
    is_good = is_good && files_receive_file(&session->link_to, &sink.sink, NULL, &digest, why) == FILES_OK;
    if (!is_good)
        give_way(session, why);
    sink.sink.close(&sink.sink);
    drop_name(session);
    report("got", offer->text, &digest, is_good ? NULL : why);
}

static int open_source(struct session *session, const char *path, struct stat *status)
{
    char name[NAME_MAX + 1];
    int folder = files_path_open_folder(session->server->root, path, false, name);
    if (folder < 0)
        return -1;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int error = errno;
    if (fd >= 0) {
        error = fstat(fd, status) != 0     ? errno
                : S_ISREG(status->st_mode) ? 0
                : S_ISDIR(status->st_mode) ? EISDIR
                                           : ENXIO;
        if (error) {
            close(fd);
            fd = -1;
        }
    }
    close(folder);
    errno = error;
    return fd;
}

static void give(struct session *session, const struct files_message *wish, int fd, const struct stat *status)
{
    struct progress progress;
    struct alb_digest digest;
    char why[FILES_WHY_MAX] = "the connection was lost";
    struct files_message have = {
        .kind = FILES_HAVE,
        .mode = status->st_mode & 0777,
        .size = (uint64_t)status->st_size,
        .chunk_bytes =
            ALB_MIN(ALB_MAX(wish->chunk_bytes / FILES_CHUNK_MIN * FILES_CHUNK_MIN, FILES_CHUNK_MIN), FILES_CHUNK_MAX),
    };
    progress_begin(&progress, wish->text, have.size);
    progress_end(&progress); // the progress bar is shown at the side that asked
    enum files_result result = FILES_LOST;
    if (files_link_say(&session->link_to, &have))
        result = files_send_file(&session->link_to, fd, have.size, have.chunk_bytes, &progress, &digest, why);
    if (result == FILES_LOST)
        give_way(session, why);
    report("gave", wish->text, &digest, result == FILES_OK ? NULL : why);
}

static void give_file(struct session *session, const struct files_message *wish)
{
    char why[FILES_WHY_MAX];
    struct stat status;
    if (files_part_is_unfinished(wish->text, why)) {
        refuse(session, wish, why);
        return;
    }
    int fd = open_source(session, wish->text, &status);
    if (fd < 0) {
        refuse_by(session, wish, errno);
        return;
    }
    if (files_send_check_end(fd, (uint64_t)status.st_size, why) == FILES_OK)
        give(session, wish, fd, &status);
    else
        refuse(session, wish, why);
    close(fd);
}

static void give_memory(struct session *session, const struct files_memory *memory, const struct files_message *wish)
{
    struct stat status;
    if (!take_to_read(session, memory)) {
        refuse(session, wish, "a copy to this memory is under way, or has not been finished; try when it has been");
        return;
    }
    if (fstat(memory->fd, &status) == 0)
        give(session, wish, memory->fd, &status);
    else
        refuse(session, wish, strerror(errno));
    drop_name(session);
}

// ---- sessions -------------------------------------------------------------------------------------------------------

static void let_oldest_give_way(struct server *server)
{
    ALB_LIST_FOR_EACH (&server->sessions, node) {
        struct session *session = ALB_LIST_ENTRY(node, struct session, link);
        if (session->has_begun || atomic_load(&session->gives_way))
            continue;
        atomic_store(&session->gives_way, true);
        return;
    }
}

// False: there are as many as there may be.
static bool enter(struct session *session)
{
    struct server *server = session->server;
    pthread_mutex_lock(&server->mutex);
    bool has_room = server->session_count < server->session_limit && server->waiting_count < 2 * WAITING_MAX;
    if (has_room) {
        if (server->waiting_count >= WAITING_MAX)
            let_oldest_give_way(server);
        alb_list_push_back(&server->sessions, &session->link);
        server->waiting_count++;
    }
    pthread_mutex_unlock(&server->mutex);
    return has_room;
}

// Its peer has answered. False: there are as many as there may be.
static bool begin(struct session *session)
{
    struct server *server = session->server;
    pthread_mutex_lock(&server->mutex);
    bool has_room = server->session_count < server->session_limit;
    if (has_room) {
        session->has_begun = true;
        server->waiting_count--;
        server->session_count++;
    }
    pthread_mutex_unlock(&server->mutex);
    return has_room;
}

static void leave(struct session *session)
{
    struct server *server = session->server;
    pthread_mutex_lock(&server->mutex);
    alb_list_remove(&session->link);
    server->session_count -= session->has_begun;
    server->waiting_count -= !session->has_begun;
    pthread_mutex_unlock(&server->mutex);
    free(session);
}

static void say_full(const struct server *server, char why[FILES_REFUSAL_MAX])
{
    snprintf(why, FILES_REFUSAL_MAX, "the server is full: it takes %u connections at a time (--limit)",
             server->session_limit);
}

// Waits for the peer's answer. False: it did not come, or there is no room.
static bool meet(struct session *session)
{
    struct files_link *link = &session->link_to;
    struct ibv_wc wc;
    alb_time until = files_link_now() + WAITING_NS;
    while (!link->is_established)
        if (files_link_wait(link, &wc, 100) < 0 || files_link_now() >= until || atomic_load(&session->gives_way))
            return false;
    if (begin(session))
        return true;
    char why[FILES_REFUSAL_MAX];
    say_full(session->server, why);
    files_refuse(link, why, true);
    return false;
}

static void answer(struct session *session)
{
    struct files_message message;
    while (files_link_hear(&session->link_to, &message)) {
        struct files_memory *memory = find_memory(session->server, message.text);
        if (message.kind == FILES_PUT && memory)
            take_memory(session, memory, &message);
        else if (message.kind == FILES_PUT)
            take_file(session, &message);
        else if (message.kind == FILES_GET && memory)
            give_memory(session, memory, &message);
        else if (message.kind == FILES_GET)
            give_file(session, &message);
        else
            break;
    }
}

static void *serve_session(void *argument)
{
    struct session *session = argument;
    char why[FILES_WHY_MAX];
    if (!files_link_accept(&session->link_to, session->id, why)) {
        fprintf(stderr, "albedo serve: a connection: %s\n", why);
    } else {
        if (meet(session))
            answer(session);
        files_link_close(&session->link_to);
    }
    leave(session);
    return NULL;
}

// 0, or why not.
static int begin_session(struct server *server, struct rdma_cm_id *id)
{
    pthread_t thread;
    struct session *session = calloc(1, sizeof(*session));
    if (!session)
        return ENOMEM;
    session->server = server;
    session->id = id;
    if (!enter(session)) {
        free(session);
        return EUSERS;
    }
    int error = pthread_create(&thread, NULL, serve_session, session);
    if (error)
        leave(session);
    else
        pthread_detach(thread);
    return error;
}

static void refuse_session(const struct server *server, struct rdma_cm_id *id, int error)
{
    char why[FILES_REFUSAL_MAX];
    if (error == EUSERS)
        say_full(server, why);
    else
        snprintf(why, sizeof(why), "the server cannot take the connection: %s", strerror(error));
    fprintf(stderr, "albedo serve: a connection is refused: %s\n", why);
    files_link_refuse(id, why);
}

// 0, or why not. Any address of IPv6 is just that, so that another listener can have the same port of IPv4.
static int listen_at(struct rdma_event_channel *channel, struct sockaddr *address)
{
    enum { BACKLOG = 64 };
    int is_one_family = 1;
    struct rdma_cm_id *id;
    if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0)
        return errno;
    if ((address->sa_family != AF_INET6 ||
         rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &is_one_family, sizeof(is_one_family)) == 0) &&
        rdma_bind_addr(id, address) == 0 && rdma_listen(id, BACKLOG) == 0)
        return 0;
    int error = errno;
    rdma_destroy_id(id);
    return error;
}

// The device does not have that address, which another one of the same name makes good.
static bool is_elsewhere(int error)
{
    return error == EADDRNOTAVAIL || error == ENODEV || error == EAFNOSUPPORT;
}

// At all addresses of that name which the device has: one at least.
static int listen_at_all(const char *name, const char *port, struct rdma_event_channel *channel)
{
    int why_not = 0;
    uint32_t count = 0;
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    int error = getaddrinfo(name, port, &hints, &found);
    if (error) {
        fprintf(stderr, "albedo serve: %s port %s: %s\n", name ? name : "any address", port, gai_strerror(error));
        return 1;
    }
    for (const struct addrinfo *one = found; one && (!why_not || is_elsewhere(why_not)); one = one->ai_next) {
        error = listen_at(channel, one->ai_addr);
        why_not = error ? error : why_not;
        count += !error;
    }
    freeaddrinfo(found);
    if (count > 0 && (!why_not || is_elsewhere(why_not)))
        return 0;
    fprintf(stderr, "albedo serve: cannot listen at %s port %s: %s%s\n", name ? name : "any address", port,
            strerror(why_not),
            why_not == EADDRINUSE   ? "; --port chooses another"
            : is_elsewhere(why_not) ? "; `albedo info` shows the device's addresses, and --net sets them"
                                    : "");
    return 1;
}

// The memory that files may be copied to and from by name. 0, or the status to end with when why is said.
static int take_memories(struct server *server, const struct files_serve_options *options)
{
    char why[FILES_WHY_MAX];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < options->memory_count; i++) {
        struct files_memory memory;
        int error = files_memory_make(&memory, options->memories[i], why);
        if (!error && find_memory(server, memory.name)) {
            snprintf(why, sizeof(why), "--memory: %s is there already", memory.name);
            error = EINVAL;
        }
        if (error) {
            fprintf(stderr, "albedo serve: %s\n", why);
            return error == EINVAL ? 2 : 1;
        }
        server->memories[server->memory_count++] = memory;
        bytes += memory.bytes;
    }
    if (!files_memory_is_free(bytes, why))
        fprintf(stderr, "albedo serve: warning: %s\n", why); // more may be free by the time that it is used
    return 0;
}

// Takes connections until the channel fails.
static void serve(struct server *server, struct rdma_event_channel *channel)
{
    struct rdma_cm_event *event;
    while (rdma_get_cm_event(channel, &event) == 0) {
        struct rdma_cm_id *id = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;
        // Acknowledged first: an id cannot move to another channel while an event of it is out.
        rdma_ack_cm_event(event);
        int error = id ? begin_session(server, id) : 0;
        if (error)
            refuse_session(server, id, error);
    }
    fprintf(stderr, "albedo serve: %s\n", strerror(errno));
}

// What copies had goes back to the system. Once memory of several MB is freed, as each copy's is, malloc would take as
// much from its arenas from then on, of which each thread may leave one behind, and they keep it.
static void give_memory_back(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

int files_serve(const struct files_serve_options *options)
{
    struct server server = {
        .makes_safe = options->makes_safe, .session_limit = options->session_limit, .mutex = PTHREAD_MUTEX_INITIALIZER};
    alb_list_init(&server.sessions);
    files_claims_init(&server.claims);
    give_memory_back();
    signal(SIGPIPE, SIG_IGN); // nobody need read what it says of copies
    int status = take_memories(&server, options);
    if (status)
        return status;
    server.root = open(options->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (server.root < 0) {
        fprintf(stderr, "albedo serve: %s: %s\n", options->folder[0] ? options->folder : "\"\"", strerror(errno));
        return 1;
    }
    struct rdma_event_channel *channel = rdma_create_event_channel();
    if (!channel) {
        fprintf(stderr, "albedo serve: no device: %s\n", strerror(errno));
        return 1;
    }
    if (listen_at_all(options->address, options->port, channel) != 0)
        return 1;
    printf("serving %s at port %s\n", options->folder, options->port);
    if (command_flush() != 0)
        return COMMAND_FAILED; // main says why
    serve(&server, channel);
    return 1;
}
