/* Loaded before the C library: the n-th file event under a folder kills the process, or fails.
 *
 * An event is a call that may change the disk: opening a file for writing, writing, taking room, renaming, removing,
 * making a directory, synchronising. Calls of Python, Rust and Java all come by here. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN = 1, WRITE = 2, RENAME = 4, REMOVE = 8, SYNC = 16, MAKE = 32 };

static char folder[PATH_MAX];
static long fatal_event, num_events;
static int kinds, fault; /* an errno, or 0 to kill */

/* Watch a folder: the event of this number, from 1, among those of these kinds is struck; none if it is 0. */
void strike(const char *under, long event, int of_kinds, int with) {
    strncpy(folder, under, sizeof folder - 1);
    kinds = of_kinds, fault = with, fatal_event = event, num_events = 0;
}

long events(void) { return num_events; }

static int inside(int directory, const char *path) {
    char link[64], place[PATH_MAX];
    if (path && path[0] == '/') return !strncmp(path, folder, strlen(folder));
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t length = readlink(directory == AT_FDCWD ? "/proc/self/cwd" : link, place, sizeof place - 1);
    if (length < 0) return 0;
    place[length] = 0;
    return !strncmp(place, folder, strlen(folder));
}

/* Whether the call is to fail, with errno set. */
static int struck(int kind, int directory, const char *path) {
    int saved = errno;
    if (!folder[0] || !(kind & kinds) || !inside(directory, path)) return errno = saved, 0;
    errno = saved;
    if (__atomic_add_fetch(&num_events, 1, __ATOMIC_SEQ_CST) != fatal_event) return 0;
    if (!fault) kill(getpid(), SIGKILL);
    errno = fault;
    return 1;
}

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        REAL(int, #name, const char *, int, ...); \
        if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) && struck(OPEN, AT_FDCWD, path)) return -1; \
        return real(path, flags, mode); \
    }
OPENS(open) OPENS(open64)

#define OPENS_AT(name) \
    int name(int at, const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        REAL(int, #name, int, const char *, int, ...); \
        if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) && struck(OPEN, at, path)) return -1; \
        return real(at, path, flags, mode); \
    }
OPENS_AT(openat) OPENS_AT(openat64)

ssize_t write(int file, const void *bytes, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return struck(WRITE, file, NULL) ? -1 : real(file, bytes, size);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    return struck(WRITE, file, NULL) ? -1 : real(file, parts, count);
}

#define PWRITES(name) \
    ssize_t name(int file, const void *bytes, size_t size, off_t place) { \
        REAL(ssize_t, #name, int, const void *, size_t, off_t); \
        return struck(WRITE, file, NULL) ? -1 : real(file, bytes, size, place); \
    }
PWRITES(pwrite) PWRITES(pwrite64)

#define TRUNCATES(name) \
    int name(int file, off_t size) { \
        REAL(int, #name, int, off_t); \
        return struck(WRITE, file, NULL) ? -1 : real(file, size); \
    }
TRUNCATES(ftruncate) TRUNCATES(ftruncate64)

#define ALLOCATES(name) \
    int name(int file, off_t place, off_t size) { \
        REAL(int, #name, int, off_t, off_t); \
        return struck(WRITE, file, NULL) ? errno : real(file, place, size); \
    }
ALLOCATES(posix_fallocate) ALLOCATES(posix_fallocate64)

#define SYNCS(name) \
    int name(int file) { \
        REAL(int, #name, int); \
        return struck(SYNC, file, NULL) ? -1 : real(file); \
    }
SYNCS(fsync) SYNCS(fdatasync)

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return struck(RENAME, AT_FDCWD, to) ? -1 : real(from, to);
}

int renameat(int at, const char *from, int there, const char *to) {
    REAL(int, "renameat", int, const char *, int, const char *);
    return struck(RENAME, there, to) ? -1 : real(at, from, there, to);
}

int renameat2(int at, const char *from, int there, const char *to, unsigned flags) {
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
    return struck(RENAME, there, to) ? -1 : real(at, from, there, to, flags);
}

#define REMOVES(name) \
    int name(const char *path) { \
        REAL(int, #name, const char *); \
        return struck(REMOVE, AT_FDCWD, path) ? -1 : real(path); \
    }
REMOVES(unlink) REMOVES(rmdir)

int unlinkat(int at, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    return struck(REMOVE, at, path) ? -1 : real(at, path, flags);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return struck(MAKE, AT_FDCWD, path) ? -1 : real(path, mode);
}
