// SPDX-License-Identifier: BSD-2-Clause
// replay DIRECTORY: gives every file of a corpus to a fuzz target, as an ordinary test that needs no clang.
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX (1 << 20)

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *room = malloc(INPUT_MAX);
    if (!file || !room) {
        perror(path);
        exit(1);
    }
    size_t size = fread(room, 1, INPUT_MAX, file);
    fclose(file);
    // An exact copy, so that a sanitizer sees the first byte that is read too far.
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        abort();
    for (size_t i = 0; i < size; i++)
        exact[i] = room[i];
    free(room);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int argc, char **argv)
{
    DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;
    if (!directory) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    unsigned files = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        replay_file(path);
        files++;
    }
    closedir(directory);
    printf("%u inputs\n", files);
    return files ? 0 : 1;
}
