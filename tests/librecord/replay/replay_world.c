/* SPDX-License-Identifier: MIT */
/* Files by module, and the walk of one sample. */
#include "replay_world.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const void *replay_vdso(size_t *size)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    const void *found = NULL;
    char line[512];
    uint64_t start, end;

    while (maps != NULL && found == NULL && fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "[vdso]") != NULL &&
            sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2) {
            found = (const void *)(uintptr_t)start;
            *size = (size_t)(end - start);
        }
    if (maps != NULL)
        fclose(maps);
    return found;
}

static void open_file(struct replay_file *file, const char *path)
{
    file->tried = true;
    file->trampoline = strcmp(path, "[uprobes]") == 0;
    file->is_file = (path[0] == '/' && path[1] != '/') || strcmp(path, "[vdso]") == 0;
    if (path[0] == '[') {
        size_t size = 0;
        const void *vdso = file->is_file ? replay_vdso(&size) : NULL;

        if (vdso != NULL)
            recordint_image_open_memory(vdso, size, &file->image);
    } else if (file->is_file) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd >= 0) {
            recordint_image_open_fd(fd, &file->image);
            close(fd);
        }
    }
    if (file->image != NULL)
        file->rules = recordint_rule_table_new();
}

bool replay_world_find(void *user, uint64_t address, struct unwind_range *out)
{
    struct replay_world *world = user;
    const struct replay_mapping *mapping = replay_mapping_at(world->view, address);
    struct replay_file *file;

    if (mapping == NULL)
        return false;
    file = &world->files[mapping->module];
    if (!file->tried)
        open_file(file, world->replay->paths[mapping->module]);
    out->start = mapping->start;
    out->end = mapping->end;
    out->file_offset = mapping->file_offset;
    out->module = mapping->module;
    out->image = world->hidden ? NULL : file->image;
    out->rules = world->hidden ? NULL : file->rules;
    out->file = file->is_file;
    out->trampoline = file->trampoline;
    return true;
}

/* Code for a walk that sees no images. */
static size_t read_code(void *user, uint64_t address, void *out, size_t size)
{
    struct replay_world *world = user;
    const struct replay_mapping *mapping = replay_mapping_at(world->view, address);
    struct unwind_range range;
    struct image *image;
    uint64_t image_address;

    if (mapping == NULL || !replay_world_find(world, address, &range))
        return 0;
    image = world->files[mapping->module].image;
    if (image == NULL ||
        !recordint_image_address(image, address - mapping->start + mapping->file_offset,
                                 &image_address))
        return 0;
    return recordint_image_read(image, image_address, out, size);
}

void replay_world_init(struct replay_world *world, const struct replay *replay, bool cached)
{
    memset(world, 0, sizeof *world);
    world->replay = replay;
    world->files = calloc(replay->path_count + 1, sizeof *world->files);
    world->space.find = replay_world_find;
    world->space.user = world;
    world->space.read_code = read_code;
    if (cached)
        world->space.cache = recordint_unwind_cache_new();
    if (world->files == NULL || (cached && world->space.cache == NULL)) {
        fprintf(stderr, "unwind_replay: no memory\n");
        exit(2);
    }
}

void replay_world_free(struct replay_world *world)
{
    recordint_unwind_cache_free(world->space.cache);
    for (size_t i = 0; i < world->replay->path_count; i++) {
        recordint_rule_table_free(world->files[i].rules);
        recordint_image_free(world->files[i].image);
    }
    free(world->files);
    memset(world, 0, sizeof *world);
}

void replay_world_walk(struct replay_world *world, const struct replay_sample *sample,
                       struct replay_walk *out)
{
    const struct perf_event *event = sample->event;
    struct unwind_input input = {ARCH_NATIVE, event->sample.regs, event->sample.stack,
                                 event->sample.stack_size, 0};

    world->view = sample->view;
    world->space.generation = sample->view->generation;
    recordint_unwind(&world->space, &input, out->frame, REPLAY_FRAMES, &out->result);
}
